import type { Hono } from 'hono'
import type { ModelList, ServerInfo } from '../chat-protocol.js'
import { Refusal } from '../refusal.js'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

/** What is served, and which models there are. */
export function mountInfoRoutes(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/info',
      summary: 'What is served, and to whom',
      answer: { status: 200, schema: schemas.ServerInfo, description: 'The server' },
    },
    c => {
      const info: ServerInfo = {
        ...context.info,
        version: context.version,
        user: context.userOf(c),
        ...(context.info.demo ? { keyHint: KEY_HINT } : {}),
        maxBodyBytes: context.limits.maxBodyBytes,
      }
      return c.json(info)
    },
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/models',
      summary: 'Models that a run can be given, those with a key first',
      answer: { status: 200, schema: schemas.ModelList, description: 'The models' },
    },
    async c => {
      const list: ModelList = { default: context.info.model, models: await context.runtime.models() }
      return c.json(list)
    },
  )
}

const KEY_HINT = `${process.platform === 'win32' ? 'set' : 'export'} OPENAI_API_KEY=…   (or GEMINI_API_KEY, ANTHROPIC_API_KEY, MISTRAL_API_KEY, DEEPSEEK_API_KEY), then start again`

/** Whether the process lives, and whether it can work: for whoever starts, stops and routes to it. */
export function mountHealthRoutes(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/health',
      summary: 'The process answers',
      answer: { status: 200, schema: schemas.Health, description: 'It lives' },
    },
    c => c.json({ status: 'ok' }),
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/ready',
      summary: 'The store answers and the agent is built; 503 while shutting down',
      answer: { status: 200, schema: schemas.Health, description: 'It can work' },
    },
    async c => {
      if (context.isClosing()) throw new Refusal('shutting-down', 'The server is shutting down.')
      await context.runtime.ready()
      await context.runtime.store.listSessions({ appName: context.info.app, userId: 'lango:ready', limit: 1 })
      return c.json({ status: 'ready' })
    },
  )
}

/** Counts for Prometheus. */
export function mountMetrics(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/metrics', async c => {
    const gauges = { runsRunning: context.hub.running(), streamsOpen: context.streams.size }
    c.header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
    return c.body(await context.metrics.toText(gauges))
  })
}
