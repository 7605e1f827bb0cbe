/** `/mcp`: the Model Context Protocol over streamable HTTP, with the users and limits of the other routes. */
import { randomUUID } from 'node:crypto'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { type Context, Hono } from 'hono'
import { isRecord } from '../../base/is-record.js'
import { loadOptional } from '../../packages.js'
import type { Problem } from '../chat-protocol.js'
import { readClientJson } from '../client-json.js'
import { errorResponse } from '../error-response.js'
import { Refusal } from '../refusal.js'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { type StreamChunk, streamResponse } from '../sse.js'

export function mcpRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  const clients = new McpClients(context)
  app.onError(error => mcpError(error, context))
  app.post('/mcp', c => clients.handle(c))
  app.get('/mcp', c => clients.handle(c))
  app.delete('/mcp', c => clients.handle(c))
  return app
}

/** An error from before the protocol: its status counts, and its body is an error of JSON-RPC. */
export async function mcpError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const { detail } = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'application/json')
  const body = { jsonrpc: '2.0', id: null, error: { code: -32000, message: detail } }
  return new Response(JSON.stringify(body), { status: answer.status, headers })
}

interface McpClient {
  user: string
  /** Requests and streams that are open. */
  uses: number
  /** Closes the client when nothing was open for a while. */
  idle?: NodeJS.Timeout
  transport: WebStandardStreamableHTTPServerTransport
  server: McpServer
}

/**
 * Connected clients, by the session id of the protocol. Nothing of a run depends on them: a client that is forgotten
 * connects again and follows its run by the run's id.
 */
class McpClients {
  readonly #context: ServerContext
  /** Least recently used first. */
  readonly #open = new Map<string, McpClient>()

  constructor(context: ServerContext) {
    this.#context = context
  }

  async handle(c: Context<ServerEnv>): Promise<Response> {
    const { streams } = this.#context
    const user = this.#context.userOf(c)
    const body = c.req.method === 'POST' ? { parsedBody: await readClientJson(c) } : {}
    const id = c.req.header('mcp-session-id')
    const client = id === undefined ? await this.#connect(user) : this.#find(id, user)
    const done = this.#use(client)
    // A caller at the limit of open streams is refused before anything is done; notifications get no stream.
    const leave = mayStream(c.req.method, body.parsedBody) ? streams.enter(user) : () => {}
    let response: Response
    try {
      response = await client.transport.handleRequest(c.req.raw, body)
    } catch (error) {
      done()
      throw error
    } finally {
      leave()
    }
    // Only the first request of a client has no session, and only a successful one opens it.
    if (id === undefined && client.transport.sessionId === undefined) await client.server.close()
    const { body: stream, headers } = response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream')
    c.env.outgoing.once('close', done)
    if (!isStream || !stream) return response
    const source = (signal: AbortSignal) => chunksOf(stream, signal)
    return streamResponse(c, this.#context, { headers: Object.fromEntries(headers), source })
  }

  /** Counts a use of a client until the returned function is called. */
  #use(client: McpClient): () => void {
    client.uses += 1
    clearTimeout(client.idle)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      client.uses -= 1
      const { sessionId } = client.transport
      if (client.uses > 0 || sessionId === undefined || !this.#open.has(sessionId)) return
      client.idle = setTimeout(() => this.#close(sessionId), this.#context.limits.mcpIdleMs)
      client.idle.unref()
    }
  }

  #close(id: string): void {
    const client = this.#open.get(id)
    this.#open.delete(id)
    clearTimeout(client?.idle)
    void client?.server.close().catch(() => {})
  }

  #find(id: string, user: string): McpClient {
    const client = this.#open.get(id)
    if (client?.user !== user)
      throw new Refusal('not-found', 'There is no such session of the protocol. Connect again.')
    this.#open.delete(id)
    this.#open.set(id, client)
    return client
  }

  async #connect(user: string): Promise<McpClient> {
    const { runtime, hub, info, version } = this.#context
    const [{ WebStandardStreamableHTTPServerTransport }, { McpServer }, { createMcpServer }] =
      await loadOptional(
        'mcp',
        () =>
          Promise.all([
            import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
            import('@modelcontextprotocol/sdk/server/mcp.js'),
            import('./mcp-server.js'),
          ]),
        'unsupported',
      )
    const server = createMcpServer(McpServer, {
      runtime,
      owner: { appName: info.app, userId: user },
      version,
      start: input => hub.start(input),
    })
    const transport: McpClient['transport'] = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => this.#keep(id, client),
      onsessionclosed: id => this.#close(id),
    })
    const client: McpClient = { user, transport, server, uses: 0 }
    // The SDK's types were not written for exactOptionalPropertyTypes; the class is a Transport.
    await server.connect(transport as Parameters<McpServer['connect']>[0])
    return client
  }

  /** A user's least recently used client is closed when there are too many. */
  #keep(id: string, client: McpClient): void {
    const own = [...this.#open].filter(([, { user }]) => user === client.user)
    for (const [old] of own.slice(0, Math.max(0, own.length + 1 - MOST_CLIENTS))) this.#close(old)
    this.#open.set(id, client)
  }
}

/** Of one user. */
const MOST_CLIENTS = 64

/** Requests are answered with a stream, and so is every GET. */
function mayStream(method: string, body: unknown): boolean {
  if (method !== 'POST') return method === 'GET'
  const messages: unknown[] = Array.isArray(body) ? body : [body]
  return messages.some(
    message => isRecord(message) && message.method !== undefined && message.id !== undefined,
  )
}

/** A stream of the SDK's, read only as fast as the client reads. */
async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const reader = stream.getReader()
  const stop = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield { bytes: value, events: 1 }
    }
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}
