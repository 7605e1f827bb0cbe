import type { Hono } from 'hono'
import { defined } from '../../base/defined.js'
import { keyHint, SUGGESTED_KEYS } from '../../provider/vendors.js'
import type { ModelList, ServerInfo, UsageList } from '../chat-protocol.js'
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
      summary: 'What is served, and the caller’s user name',
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
      summary: 'Models for runs, those with a key first',
      answer: { status: 200, schema: schemas.ModelList, description: 'The models' },
    },
    async c => {
      const list: ModelList = { default: context.info.model, models: await context.runtime.models() }
      return c.json(list)
    },
  )
}

const KEY_HINT = `${keyHint()}   (or ${SUGGESTED_KEYS.slice(1).join(', ')}), then start again`

/** Liveness and readiness, for supervisors and load balancers. */
export function mountHealthRoutes(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/usage',
      summary: 'What the model calls of the caller have used, by day, model and kind',
      query: schemas.UsageQuery,
      answer: { status: 200, schema: schemas.UsageList, description: 'Oldest day first' },
    },
    async (c, { query }) => {
      const lines = await context.runtime.usageByDay({ ...defined(query), userId: context.userOf(c) })
      const list: UsageList = { lines }
      return c.json(list)
    },
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/health',
      summary: 'The process answers',
      answer: { status: 200, schema: schemas.Health, description: 'The process is alive' },
    },
    c => c.json({ status: 'ok' }),
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/ready',
      summary: 'The store answers and the agent is built; 503 while shutting down',
      answer: { status: 200, schema: schemas.Health, description: 'The server is ready' },
    },
    async c => {
      if (context.isClosing()) throw new Refusal('shutting-down', 'The server is shutting down.')
      await context.runtime.ready()
      await context.runtime.store.check()
      await context.runtime.store.listSessions({ appName: context.info.app, userId: 'lango:ready', limit: 1 })
      return c.json({ status: 'ready' })
    },
  )
}

/** Metrics for Prometheus. */
export function mountMetrics(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/metrics', async c => {
    const waiting = await context.hub.waiting().catch(() => undefined)
    const gauges = {
      runsRunning: context.hub.running(),
      streamsOpen: context.streams.size,
      ...(waiting ? { runsWaiting: waiting.length } : {}),
    }
    c.header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
    return c.body(await context.metrics.toText(gauges))
  })
}

/** The API as an OpenAPI 3.1 document and as one HTML page, generated from all added routes on the first request. */
export function mountDocs(api: ApiApp, version: string): void {
  let document: ApiDocument | undefined
  api.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  const load = () => {
    // The library's type allows references everywhere; `addRoute` writes none where this file reads.
    document ??= api.getOpenAPI31Document({
      openapi: '3.1.0',
      info: {
        title: 'Lango',
        version,
        description:
          'Sessions, messages and runs. A run continues when its clients disconnect; its events are a separate stream that can be opened at any event number.',
      },
      // On loopback without tokens no credentials are needed.
      security: [{ token: [] }, {}],
    }) as unknown as ApiDocument
    return document
  }
  api.get('/api/openapi.json', c => c.json(load()))
  api.get('/api/docs', c => c.html(page(load())))
  api.get('/api/docs.css', c => c.body(STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }))
}

/** The part of an OpenAPI document that the page shows. */
interface ApiDocument {
  info: { title: string; version: string; description?: string }
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, unknown> }
}

interface Operation {
  summary?: string
  parameters?: { name: string; in: string; required?: boolean }[]
  requestBody?: { content: Record<string, { schema: unknown }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
}

function page({ info, paths, components }: ApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(method, path, operation)),
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} API</title>
<link rel="stylesheet" href="/api/docs.css">
</head>
<body>
<main>
<h1>${escapeHtml(info.title)} API <small>${escapeHtml(info.version)}</small></h1>
<p>${escapeHtml(info.description ?? '')}</p>
<p>For programs: <a href="/api/openapi.json">/api/openapi.json</a> (OpenAPI 3.1). Errors are problem documents (RFC 9457) with a <code>code</code>.</p>
${operations.join('\n')}
<h1>Shapes</h1>
${Object.entries(components?.schemas ?? {})
  .map(shape)
  .join('\n')}
</main>
</body>
</html>
`
}

function section(method: string, path: string, operation: Operation): string {
  const parameters = (operation.parameters ?? []).filter(parameter => parameter.in === 'query')
  const body = operation.requestBody?.content['application/json']?.schema
  const answers = Object.entries(operation.responses).filter(([status]) => status !== 'default')
  return `<section>
<h2><span class="method ${escapeHtml(method)}">${escapeHtml(method.toUpperCase())}</span> <code>${escapeHtml(path)}</code></h2>
<p>${escapeHtml(operation.summary ?? '')}</p>
<dl>
${parameters.length > 0 ? row('Query', parameters.map(({ name }) => `<code>${escapeHtml(name)}</code>`).join(', ')) : ''}
${body === undefined ? '' : row('Body', `<pre>${escapeHtml(JSON.stringify(body, null, 2))}</pre>`)}
${answers.map(([status, answer]) => row(`Answer ${status}`, describeAnswer(answer))).join('\n')}
</dl>
</section>`
}

function shape([name, schema]: [string, unknown]): string {
  return `<section id="${escapeHtml(name)}">
<h2><code>${escapeHtml(name)}</code></h2>
<pre>${escapeHtml(JSON.stringify(schema, null, 2))}</pre>
</section>`
}

function row(term: string, html: string): string {
  return `<dt>${escapeHtml(term)}</dt><dd>${html}</dd>`
}

function describeAnswer({ description, content }: Operation['responses'][string]): string {
  const [mediaType, media] = Object.entries(content ?? {})[0] ?? []
  const reference = (media?.schema as { $ref?: string } | undefined)?.$ref?.split('/').at(-1)
  const name = escapeHtml(reference ?? '')
  const link = reference === undefined ? '' : ` <a href="#${name}"><code>${name}</code></a>`
  const type =
    mediaType === undefined || mediaType === 'application/json' ? '' : ` (${escapeHtml(mediaType)})`
  return `${escapeHtml(description)}${link}${type}`
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

const STYLE = `:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h1 small { font-weight: 400; opacity: .6; font-size: .9rem; }
section { border-top: 1px solid var(--line); padding: 1.1rem 0 .4rem; }
h2 { font-size: 1rem; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
section > p { margin: .3rem 0 .6rem; }
section > pre { margin: .6rem 0; }
a { color: #1c7ed6; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: .75rem; background: var(--soft); border-radius: 6px; overflow-x: auto; }
dl { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .35rem 1rem; margin: 0 0 .6rem; }
dt { opacity: .65; }
dd { margin: 0; }
.method { display: inline-block; min-width: 4.2rem; font: 600 .8rem/1.5 ui-monospace, monospace; }
.get { color: #2b8a3e; } .post { color: #1c7ed6; } .patch { color: #e67700; } .delete { color: #e03131; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } }
`
