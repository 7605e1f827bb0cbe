// Loaded before a server's process: from the moment at which it listens, no module can be loaded any more.
import { register } from 'node:module'
import { Server } from 'node:net'

const hook = `
let isListening
export function initialize(memory) {
  isListening = memory
}
export async function load(url, context, next) {
  if (isListening[0] === 1 && !url.startsWith('node:')) throw new Error('loaded after listening: ' + url)
  return next(url, context)
}`

const isListening = new Int32Array(new SharedArrayBuffer(4))
register(`data:text/javascript,${encodeURIComponent(hook)}`, { data: isListening })

const { listen } = Server.prototype
Server.prototype.listen = function (...args) {
  isListening[0] = 1
  return listen.apply(this, args)
}
