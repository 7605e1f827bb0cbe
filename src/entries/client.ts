/** `lango/client`: the typed client of the server's native API, for browsers and Node. */
export type { TraceContext } from '../base/trace-context.js'
export type { ClientOptions, ExportedSession, FollowOptions, LangoClient } from '../client/client.js'
export { ClientError } from '../client/client-error.js'
export { createClient } from '../client/create-client.js'
export type * from '../server/chat-protocol.js'
