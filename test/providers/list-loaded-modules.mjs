// Prints, when the process ends, the URL of every module that was resolved. Loaded with --import.
import { register } from 'node:module'
import { MessageChannel } from 'node:worker_threads'

const { port1, port2 } = new MessageChannel()
const urls = []
port1.on('message', url => urls.push(url))
port1.unref()

const hooks = `
  let port
  export function initialize(data) { port = data.port }
  export async function resolve(specifier, context, next) {
    const found = await next(specifier, context)
    port.postMessage(found.url)
    return found
  }
`
register(`data:text/javascript,${encodeURIComponent(hooks)}`, {
  data: { port: port2 },
  transferList: [port2],
})
process.on('beforeExit', () => {
  if (process.exitCode === undefined) {
    process.exitCode = 0
    // Messages that are still under way arrive first.
    setImmediate(() => console.log(JSON.stringify(urls)))
  }
})
