/**
 * What ADK's own page asks for beside sessions and runs: artifacts, traces, graphs, its version. Traces are made from the
 * stored events: Lango keeps no spans. Evaluations, tests and the builder are not here, and say so.
 */
import type { Context, Hono } from 'hono'
import { isRecord } from '../../../base/is-record.js'
import type { AgentTree } from '../../../runtime/info.js'
import type { Artifact, ArtifactStore } from '../../../session/artifacts.js'
import type { SessionKey } from '../../../session/message.js'
import { sessionPages } from '../../../session/session-pages.js'
import { notFound, Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { badField } from '../read-body.js'
import type { AdkEvent } from './adk-run.js'

type KeyIn = (c: Context<ServerEnv>, context: ServerContext) => SessionKey

const SESSION = '/apps/:appName/users/:userId/sessions/:sessionId'

export function mountAdkPages(app: Hono<ServerEnv>, context: ServerContext, keyIn: KeyIn): void {
  app.get('/version', c => c.json({ version: context.version, language: 'TypeScript', language_version: '' }))
  mountArtifacts(app, context, keyIn)
  mountTraces(app, context)
  mountGraphs(app, context, keyIn)
  mountMissing(app)
}

function mountArtifacts(app: Hono<ServerEnv>, context: ServerContext, keyIn: KeyIn): void {
  const one = `${SESSION}/artifacts/:name`
  const keyOf = (c: Context<ServerEnv>) => ({ ...keyIn(c, context), name: c.req.param('name') ?? '' })
  app.get(`${SESSION}/artifacts`, async c => c.json(await artifactsOf(context).list(keyIn(c, context))))
  app.get(one, async c => c.json(partOf(await loadArtifact(context, keyOf(c)))))
  app.get(`${one}/versions`, async c => {
    const versions = await artifactsOf(context).versions(keyOf(c))
    return c.json(versions.map(({ version }) => version))
  })
  app.get(`${one}/versions/:version`, async c => {
    const version = Number(c.req.param('version'))
    if (!Number.isInteger(version)) throw badField('version', 'The version of an artifact is a whole number.')
    return c.json(partOf(await loadArtifact(context, keyOf(c), version)))
  })
  app.delete(one, async c => {
    await artifactsOf(context).delete(keyOf(c))
    return c.body(null, 204)
  })
}

function artifactsOf({ runtime }: ServerContext): ArtifactStore {
  return runtime.store.artifacts
}

async function loadArtifact(
  context: ServerContext,
  key: SessionKey & { name: string },
  version?: number,
): Promise<Artifact> {
  const found = await artifactsOf(context).load(key, version)
  if (!found) throw notFound(`artifact "${key.name}"`)
  return found
}

/** The artifact as the part that ADK saved: its body belongs where the header says. */
function partOf({ header, body }: Artifact): object {
  const part = isRecord(header.part) ? header.part : {}
  if (header.field === 'text') return { ...part, text: body }
  const inline = isRecord(part.inlineData) ? part.inlineData : {}
  return header.field === 'data' ? { ...part, inlineData: { ...inline, data: body } } : part
}

/** A span as ADK's page reads it; times in nanoseconds. */
interface Span {
  name: string
  span_id: string
  trace_id: string
  start_time: number
  end_time: number
  parent_span_id: string | null
  attributes: Record<string, unknown>
}

function mountTraces(app: Hono<ServerEnv>, context: ServerContext): void {
  for (const prefix of ['', '/dev/apps/:appName']) {
    app.get(`${prefix}/debug/trace/session/:sessionId`, async c => {
      const key = context.keyOf(c, c.req.param('sessionId'))
      const session = await context.runtime.store.describeSession(key)
      return c.json(session ? spansOf(key.sessionId, await context.runtime.events(key)) : [])
    })
    app.get(`${prefix}/debug/trace/:eventId`, async c => c.json(await traceOf(context, c)))
  }
}

/** The newest sessions among which the one of an event is looked for. */
const SEARCHED = 20

/** What is known of one event: the request that it answers, and the answer. */
async function traceOf(context: ServerContext, c: Context<ServerEnv>): Promise<Record<string, unknown>> {
  const eventId = c.req.param('eventId') ?? ''
  const { appName, userId } = context.keyOf(c, 'any')
  let searched = 0
  for await (const page of sessionPages(context.runtime.store, { appName, userId })) {
    for (const { key } of page) {
      if (searched++ >= SEARCHED) throw notFound(`event "${eventId}" in the newest ${SEARCHED} sessions`)
      const events = await context.runtime.events(key)
      const index = events.findIndex(({ id }) => id === eventId)
      if (index < 0) continue
      const span = spansOf(key.sessionId, events).find(
        ({ attributes }) => attributes['gcp.vertex.agent.event_id'] === eventId,
      )
      return { ...span?.attributes, ...(await requestOf(context, key, index + 1)) }
    }
  }
  throw notFound(`event "${eventId}"`)
}

/** The request that a stored answer was the answer to, as it was sent. */
async function requestOf(
  { hub, runtime }: ServerContext,
  key: SessionKey,
  seq: number,
): Promise<Record<string, unknown>> {
  const run = (await hub.list(key, 500)).find(({ afterSeq = Number.POSITIVE_INFINITY }) => afterSeq < seq)
  const steps = run ? ((await runtime.inspect(run.runId))?.steps ?? []) : []
  const answers = (await runtime.events(key, { afterSeq: run?.afterSeq ?? 0 })).filter(isAnswer)
  const own = (await runtime.events(key, { afterSeq: seq - 1 }))[0]
  const step = steps[answers.findIndex(({ id }) => id === own?.id)]
  return { 'gcp.vertex.agent.llm_request': JSON.stringify(step?.sent.body ?? {}) }
}

function isAnswer({ author, content }: AdkEvent): boolean {
  return author !== 'user' && !(content?.parts ?? []).some(({ functionResponse }) => functionResponse)
}

/** Spans by the times of the events: one for each invocation, model call and tool call. */
function spansOf(sessionId: string, events: readonly AdkEvent[]): Span[] {
  const spans: Span[] = []
  const roots = new Map<string, Span>()
  let before = events[0]?.timestamp ?? 0
  for (const event of events) {
    const { id, invocationId = '', timestamp = before, author, content } = event
    const root = roots.get(invocationId) ?? rootSpan(sessionId, invocationId, before)
    if (!roots.has(invocationId)) spans.push(root)
    roots.set(invocationId, root)
    root.end_time = nanoseconds(timestamp)
    const results = (content?.parts ?? []).flatMap(({ functionResponse }) => functionResponse?.name ?? [])
    const names =
      author === 'user' ? [] : results.length > 0 ? results.map(name => `execute_tool ${name}`) : ['call_llm']
    for (const [index, name] of names.entries()) {
      spans.push({
        name,
        span_id: `${id}-${index}`,
        trace_id: root.trace_id,
        start_time: nanoseconds(before),
        end_time: nanoseconds(timestamp),
        parent_span_id: root.span_id,
        attributes: {
          'gcp.vertex.agent.event_id': id,
          'gcp.vertex.agent.invocation_id': invocationId,
          'gcp.vertex.agent.session_id': sessionId,
          'gcp.vertex.agent.llm_request': '{}',
          'gcp.vertex.agent.llm_response': JSON.stringify({ content }),
        },
      })
    }
    before = timestamp
  }
  return spans
}

function rootSpan(sessionId: string, invocationId: string, start: number): Span {
  return {
    name: 'invocation',
    span_id: `invocation-${invocationId}`,
    trace_id: invocationId === '' ? sessionId : invocationId,
    start_time: nanoseconds(start),
    end_time: nanoseconds(start),
    parent_span_id: null,
    attributes: { 'gcp.vertex.agent.invocation_id': invocationId, 'gcp.vertex.agent.session_id': sessionId },
  }
}

function nanoseconds(ms: number): number {
  return ms * 1_000_000
}

function mountGraphs(app: Hono<ServerEnv>, context: ServerContext, keyIn: KeyIn): void {
  app.get('/dev/apps/:appName/build_graph', async c => {
    return c.json({ name: context.info.app, root_agent: toAppInfo(await agentsOf(context)) })
  })
  app.get('/dev/apps/:appName/build_graph_image', async c => {
    return c.json({
      '': { dotSrc: dotOf(await agentsOf(context), c.req.query('dark_mode') === 'true') },
    })
  })
  app.get(`${SESSION}/events/:eventId/graph`, async c => {
    const events = await context.runtime.events(keyIn(c, context))
    const event = events.find(({ id }) => id === c.req.param('eventId'))
    const isDark = c.req.query('dark_mode') === 'true'
    return c.json({ dotSrc: dotOf(await agentsOf(context), isDark, event && namesIn(event)) })
  })
}

async function agentsOf({ runtime, info }: ServerContext): Promise<AgentTree> {
  return (await runtime.info({ agents: true })).agents ?? { name: info.agent, tools: [], subAgents: [] }
}

interface AppInfo {
  name: string
  type: 'agent'
  description?: string
  model?: string
  tools?: { name: string; type: 'tool' }[]
  sub_agents?: AppInfo[]
}

function toAppInfo({ tools, subAgents, ...agent }: AgentTree): AppInfo {
  return {
    ...agent,
    type: 'agent',
    ...(tools.length > 0 ? { tools: tools.map(name => ({ name, type: 'tool' as const })) } : {}),
    ...(subAgents.length > 0 ? { sub_agents: subAgents.map(toAppInfo) } : {}),
  }
}

/** The agent that an event is of, and the tools that it calls or has results of. */
function namesIn({ author, content }: AdkEvent): ReadonlySet<string> {
  const tools = (content?.parts ?? []).flatMap(({ functionCall, functionResponse }) => {
    return functionCall?.name ?? functionResponse?.name ?? []
  })
  return new Set([author ?? '', ...tools])
}

/** Agents and tools in the language of Graphviz. */
function dotOf(root: AgentTree, isDark: boolean, marked: ReadonlySet<string> = new Set()): string {
  const ink = isDark ? '#cccccc' : '#333333'
  const lines: string[] = []
  const node = (name: string, shape: string) => {
    const fill = marked.has(name) ? ', style=filled, fillcolor="#0F5223", fontcolor="#ffffff"' : ''
    lines.push(`  ${quoted(name)} [shape=${shape}, color="${ink}", fontcolor="${ink}"${fill}];`)
  }
  const visit = (agent: AgentTree) => {
    node(agent.name, 'ellipse')
    for (const tool of agent.tools) node(tool, 'box')
    for (const child of agent.subAgents) visit(child)
    for (const name of [...agent.tools, ...agent.subAgents.map(child => child.name)])
      lines.push(`  ${quoted(agent.name)} -> ${quoted(name)} [color="${ink}"];`)
  }
  visit(root)
  return `digraph {\n  rankdir=LR;\n  bgcolor="${isDark ? '#333537' : '#ffffff'}";\n${lines.join('\n')}\n}`
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

/** Lists are empty, so that the page shows none; everything else is refused with a sentence. */
function mountMissing(app: Hono<ServerEnv>): void {
  for (const prefix of ['/apps/:appName', '/dev/apps/:appName']) {
    for (const list of ['eval_sets', 'eval_results', 'tests']) app.get(`${prefix}/${list}`, c => c.json([]))
    // The builder edits agents that it has written itself: there are none.
    app.get(`${prefix}/builder`, c => c.text(''))
    for (const info of ['eval_metrics', 'metrics-info'])
      app.get(`${prefix}/${info}`, c => c.json({ metricsInfo: [] }))
    for (const path of [
      'eval_sets',
      'eval-sets',
      'eval_results',
      'eval_metrics',
      'metrics-info',
      'tests',
      'builder',
    ])
      app.all(`${prefix}/${path}/*`, () => refuseMissing())
    for (const path of ['eval_sets', 'eval-sets', 'tests', 'builder'])
      app.post(`${prefix}/${path}`, () => refuseMissing())
  }
}

function refuseMissing(): never {
  throw new Refusal(
    'not-found',
    'Evaluations, tests and the agent builder of ADK are not part of this server. Run them with ADK’s own tools.',
  )
}
