import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context, Hono } from 'hono'
import { noteConnection, Turns } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { Gallery, GalleryOptions } from '../runtime/gallery.js'
import { DAY_MS, startRetention } from '../runtime/retention.js'
import type { Runtime } from '../runtime/runtime.js'
import { errorResponse } from './error-response.js'
import { Metrics, type RouteClass } from './metrics.js'
import { a2aErrorResponse } from './protocols/a2a/a2a-error.js'
import { a2aRoutes } from './protocols/a2a/a2a-routes.js'
import { agentCard } from './protocols/a2a/a2a-wire.js'
import { adkError, adkRoutes } from './protocols/adk/adk-routes.js'
import { aguiError, aguiRoutes } from './protocols/agui/agui-routes.js'
import { chatError, chatRoutes } from './protocols/ai-sdk/chat-routes.js'
import { mcpError, mcpRoutes } from './protocols/mcp-routes.js'
import { openaiErrorResponse } from './protocols/openai/openai-error.js'
import { openaiRoutes } from './protocols/openai/openai-routes.js'
import { sweepThrowaways } from './protocols/openai/throwaway.js'
import { notFound, Refusal } from './refusal.js'
import type { ApiApp } from './routes/add-route.js'
import { mountExchangeRoutes } from './routes/exchange-routes.js'
import { mountGalleryRoutes } from './routes/gallery-routes.js'
import { type Hook, mountHookRoutes } from './routes/hook-routes.js'
import { mountDocs, mountHealthRoutes, mountInfoRoutes, mountMetrics } from './routes/info-routes.js'
import { mountLogin } from './routes/login.js'
import { mountMemoryRoutes } from './routes/memory-routes.js'
import { mountRunRoutes } from './routes/run-routes.js'
import { mountScheduleRoutes } from './routes/schedule-routes.js'
import { mountSessionRoutes } from './routes/session-routes.js'
import { RunHub } from './runs/run-hub.js'
import { AttemptLimit } from './security/attempt-limit.js'
import { Authenticator } from './security/authenticate.js'
import { isLoopback, type OriginRules } from './security/check-origin.js'
import { type AddressReader, addressReader } from './security/client-address.js'
import { bodyGuard, originGuard, securityHeaders, userGuard } from './security/guard.js'
import { tokenProblem } from './security/server-token.js'
import { DEFAULT_LIMITS, type ServerContext, type ServerEnv, type ServerLimits } from './server-context.js'
import { DEFAULT_WEB_ROOT, isPage, mountAdkWeb, mountStaticFiles } from './static-files.js'
import { StreamGate } from './stream-gate.js'

export interface ServeOptions {
  /** Not closed by the server's `close`. */
  runtime: Runtime
  /** 0: any free port. */
  port: number
  host: string
  /** Token, plain or hashed (`hashToken`) → user. Empty or absent: every caller is `user`, allowed on loopback only. */
  tokens?: Readonly<Record<string, string>> | undefined
  /** Pages of other origins that may call the API, such as `https://chat.example.com`. */
  allowedOrigins?: readonly string[] | undefined
  /** Host names of the server besides its address, such as `chat.example.com`. */
  allowedHosts?: readonly string[] | undefined
  /** Proxies, as addresses or ranges, whose X-Forwarded-For is trusted. */
  trustedProxies?: readonly string[] | undefined
  /** The folder of the built web chat. */
  webRoot?: string | undefined
  /** The folder of ADK's own page, which is then served under `/dev-ui/`. */
  adkWebRoot?: string | undefined
  logger: Logger
  version: string
  /** How long running runs may take to finish when the server closes. Default 4 s. */
  graceMs?: number | undefined
  /** How long run events are kept. Default 30 days; sessions are deleted by the runtime's `retention`. */
  keepRunsMs?: number | undefined
  /** How long the records of model calls are kept. Default 400 days. */
  keepUsageMs?: number | undefined
  limits?: Partial<ServerLimits> | undefined
  /** Signed requests of other systems that start runs. */
  hooks?: readonly Hook[] | undefined
}

export interface RunningServer {
  url: string
  port: number
  /** Refuses new runs, lets running ones finish within `graceMs`, sends streams a reconnect event, and closes. */
  close(): Promise<void>
}

const CLOSE_MS = 500

/** Serves a runtime over HTTP: the native API, the protocols and the web chat. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { runtime, logger, version, host, tokens = {}, graceMs = 4000 } = options
  checkTokens(host, tokens)
  const addressOf = addressReader(options.trustedProxies ?? [])
  await runtime.ready()
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const info = await runtime.info()
  const metrics = new Metrics()
  const hub = new RunHub({ runtime, appName: info.app, metrics, runsPerUser: limits.runsPerUser })
  let closing = false
  let gallery: Promise<Gallery> | undefined
  const context: ServerContext = {
    runtime,
    hub,
    info,
    userOf: c => c.get('user'),
    keyOf: (c, sessionId) => {
      checkSessionId(sessionId)
      return { appName: info.app, userId: c.get('user'), sessionId }
    },
    limits,
    logger,
    version,
    streams: new StreamGate(limits.streamsPerUser),
    metrics,
    gallery: () => {
      gallery ??= openGallery({ store: runtime.store, app: info.app, logger })
      return gallery
    },
    isClosing: () => closing,
  }
  const app = createApp({
    context,
    authenticator: new Authenticator(tokens, attemptLimit(limits, logger)),
    addressOf,
    origins: originRules(options),
    webRoot: options.webRoot ?? DEFAULT_WEB_ROOT,
    adkWebRoot: options.adkWebRoot,
    hooks: options.hooks ?? [],
  })
  const server = httpServer(app.fetch, limits)
  const port = await listen(server, options.port, host)
  const stopPruning = startRetention({
    store: runtime.store,
    appName: info.app,
    runsMs: options.keepRunsMs ?? 30 * DAY_MS,
    usageMs: options.keepUsageMs ?? 400 * DAY_MS,
    logger,
  })
  let closed: Promise<void> | undefined
  const close = async () => {
    closing = true
    const pruned = stopPruning()
    await hub.close(graceMs)
    await closeServer(server)
    metrics.close()
    await pruned
    await (await gallery)?.close()
  }
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

async function openGallery(options: GalleryOptions): Promise<Gallery> {
  const module = await import('../runtime/gallery.js')
  return new module.Gallery(options)
}

function originRules({ host, allowedOrigins = [], allowedHosts = [] }: ServeOptions): OriginRules {
  const origins = allowedOrigins.map(origin => (URL.canParse(origin) ? new URL(origin).origin : origin))
  return { loopbackOnly: isLoopback(host), host, allowedOrigins: origins, allowedHosts }
}

function checkTokens(host: string, tokens: Readonly<Record<string, string>>): void {
  if (!isLoopback(host) && Object.keys(tokens).length === 0) {
    const advice = 'Set server.tokens to { "<a long random token>": "<user>" }, or listen on 127.0.0.1.'
    throw new AgentError(
      'invalid-config',
      `Listening on "${host}" without tokens lets anyone on the network use this server. ${advice}`,
    )
  }
  for (const [token, user] of Object.entries(tokens)) {
    const problem = tokenProblem(token) ?? (user === '' ? 'must have a user that is not empty' : undefined)
    if (problem !== undefined)
      throw new AgentError('invalid-config', `A token in server.tokens is not valid: it ${problem}.`)
  }
}

function attemptLimit({ attemptsPerAddress, attemptWindowMs }: ServerLimits, logger: Logger): AttemptLimit {
  return new AttemptLimit({
    attempts: attemptsPerAddress,
    windowMs: attemptWindowMs,
    onLimit: address => logger.warn('Too many wrong tokens', { address, waitMs: attemptWindowMs }),
  })
}

/** Every protocol must be able to name a session: in a path, and within the limits of the native API. */
function checkSessionId(sessionId: string): void {
  if (sessionId.length <= 256 && sessionId !== '.' && sessionId !== '..') return
  throw new AgentError('invalid-argument', 'A session id has at most 256 characters and is not "." or "..".')
}

/** Node's limits for clients that send slowly or send too much apply before any route. */
function httpServer(fetch: (request: Request) => unknown, limits: ServerLimits): Server {
  const server = createAdaptorServer({
    fetch,
    overrideGlobalObjects: false,
    createServer,
    serverOptions: {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
      keepAliveTimeout: 5000,
      maxHeaderSize: 16 * 1024,
    },
  }) as Server
  server.maxHeadersCount = 100
  server.on('connection', noteConnection)
  return server
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', error => {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      const advice = isTaken ? 'Another program uses the port: choose another one.' : messageOf(error)
      reject(new AgentError('invalid-config', `The server cannot listen on ${host}:${port}. ${advice}`))
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

/** Streams were sent a reconnect event; connections that are still open after a moment are closed. */
function closeServer(server: Server): Promise<void> {
  return new Promise(resolve => {
    const force = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
    server.close(() => {
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}

interface AppParts {
  context: ServerContext
  authenticator: Authenticator
  addressOf: AddressReader
  origins: OriginRules
  webRoot: string
  adkWebRoot: string | undefined
  hooks: readonly Hook[]
}

/** The routes in order: public ones, the page included, then those that need a user. */
function createApp(parts: AppParts): ApiApp {
  const { context, authenticator, addressOf, origins, webRoot, adkWebRoot, hooks } = parts
  const app = new OpenAPIHono<ServerEnv>()
  const answer = (c: Context<ServerEnv>, error: unknown) =>
    protocolErrorOf(c.req.path)?.(error, context, c) ?? errorResponse(error, context.logger)
  app.onError((error, c) => answer(c, error))
  app.notFound(async c => {
    const methods = methodsOf(app, c.req.path)
    if (methods.length === 0) return answer(c, notFound('such page'))
    const allow = methods.join(', ')
    if (c.req.method === 'OPTIONS') return c.body(null, 204, { allow })
    const response = await answer(c, new Refusal('wrong-method', `This path accepts ${allow} only.`))
    response.headers.set('allow', allow)
    return response
  })
  app.use(countRequests(context), securityHeaders(), originGuard(origins))
  mountHealthRoutes(app, context)
  app.get('/.well-known/agent-card.json', c => c.json(agentCard(c, context, authenticator.asksForTokens)))
  mountHookRoutes(app, context, hooks)
  mountLogin(app, authenticator, addressOf)
  if (adkWebRoot !== undefined) mountAdkWeb(app, adkWebRoot)
  mountStaticFiles(app, webRoot)
  // From here on requests without a user are refused, also for paths that do not exist.
  app.use(userGuard(authenticator, addressOf), bodyGuard(context.limits))
  mountMetrics(app, context)
  mountDocs(app, context.version)
  mountInfoRoutes(app, context)
  mountSessionRoutes(app, context)
  mountMemoryRoutes(app, context)
  mountGalleryRoutes(app, context)
  mountExchangeRoutes(app, context)
  mountRunRoutes(app, context)
  mountScheduleRoutes(app, context)
  mountProtocols(app, context)
  return app
}

/** The methods that a path has routes for, without the page's route, which matches every path. */
function methodsOf(app: ApiApp, path: string): string[] {
  return ['GET', 'POST', 'PATCH', 'DELETE'].filter(method =>
    app.router
      .match(method, path)[0]
      .some(([[, route]]) => route.method === method && !route.path.endsWith('*')),
  )
}

function countRequests(context: ServerContext): Parameters<ApiApp['use']>[1] {
  // Requests that arrive together are handed over in one turn of the event loop.
  const turns = new Turns()
  return async (c, next) => {
    const started = performance.now()
    await turns.wait()
    await next()
    const route = routeClass(c.req.path)
    context.metrics.request(route, c.res.status)
    // The path may name sessions and the query may hold a token: neither is logged.
    const ms = Math.round(performance.now() - started)
    context.logger.debug('Request', { method: c.req.method, route, status: c.res.status, ms })
  }
}

function routeClass(path: string): RouteClass {
  if (path === '/api/health' || path === '/api/ready' || path === '/metrics') return 'health'
  if (path === '/login' || path === '/logout') return 'login'
  if (path.startsWith('/api/')) return path.endsWith('/events') ? 'stream' : 'api'
  return isPage(path) || /^\/(assets|docs)(\/|$)/.test(path) ? 'page' : 'protocol'
}

/**
 * The protocols that existing clients speak: ADK's, OpenAI's, the AI SDK's, AG-UI, A2A and MCP. Each has routes and errors of
 * its own shape; all of them use the same sessions and runs as the native API.
 */
function mountProtocols(app: Hono<ServerEnv>, context: ServerContext): void {
  app.route('/', adkRoutes(context))
  app.route('/', openaiRoutes(context))
  app.route('/', chatRoutes(context))
  app.route('/', aguiRoutes(context))
  app.route('/', mcpRoutes(context))
  app.route('/', a2aRoutes(context))
  void sweepThrowaways(context)
}

type ErrorAnswer = (error: unknown, context: ServerContext, c: Context<ServerEnv>) => Promise<Response>

/** How a protocol formats errors from before its routes, such as a wrong token or an unknown path. */
function protocolErrorOf(path: string): ErrorAnswer | undefined {
  if (path.startsWith('/v1/')) return openaiErrorResponse
  if (/^\/api\/chat(\/|$)/.test(path)) return chatError
  if (path === '/agui') return aguiError
  if (path === '/mcp') return mcpError
  if (/^\/a2a(\/|$)/.test(path)) return a2aErrorResponse
  return /^\/((dev\/)?apps\/|debug\/trace\/|(list-apps|run|run_sse|version)$)/.test(path)
    ? adkError
    : undefined
}
