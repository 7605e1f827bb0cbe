// Mastra reports to its makers. `node --import ./only-loopback.mjs` refuses every connection that is not on loopback.
import { Socket } from 'node:net'

const connect = Socket.prototype.connect

Socket.prototype.connect = function (...given) {
  // Node itself passes the arguments as one list.
  const [first, second] = Array.isArray(given[0]) ? given[0] : given
  const options = typeof first === 'object' ? first : { port: first, host: second }
  const host = options.host ?? 'localhost'
  if (options.path === undefined && !['localhost', '127.0.0.1', '::1'].includes(host)) {
    process.nextTick(() => this.destroy(new Error(`${host} is not on loopback`)))
    return this
  }
  return connect.apply(this, given)
}
