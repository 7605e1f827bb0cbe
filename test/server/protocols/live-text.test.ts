// A streamed answer is the same in every protocol, however the model's text was cut into pieces, and for every reader:
// one that is there from the start, one that joins in mid-text, one at another server of the same store, and one that
// comes after the end.

import { LlmAgent, ParallelAgent } from '@google/adk'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { silentLogger } from '../../../src/logger.js'
import { type GenerateRequest, type Provider, withGenerate } from '../../../src/provider/provider.js'
import type { StreamEvent } from '../../../src/provider/stream-event.js'
import { eventsAfter, firstSeqOf, joinDeltas, numbered, splitAt } from '../../../src/run/event-numbers.js'
import type { RunEvent } from '../../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.js'
import { runPartId } from '../../../src/server/protocols/openai/client-calls.js'
import { type RunningServer, serve } from '../../../src/server/serve.js'
import { ScriptedProvider } from '../../../src/testing/scripted-provider.js'
import { gapsIn, inOnePiece } from '../../support/event-numbers.js'
import { gate } from '../../support/paced-model.js'
import { createStoreDatabase } from '../../support/postgres.js'
import { readEvents } from '../../support/read-events.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { searchTool } from '../../support/tools.js'

/** An answer of the model: reasoning, text, and then a call of a tool unless it is the last one. */
interface Answer {
  reasoning: string
  text: string
}

interface Plan {
  answers: readonly Answer[]
  /** Lengths of pieces, used one after the other. */
  pieces: readonly number[]
}

const WORDS = fc.array(fc.constantFrom('a', 'bc ', '😀', 'é\n', '“', 'word '), {
  minLength: 2,
  maxLength: 12,
})
const TEXT = WORDS.map(words => words.join(''))
const ANSWER = fc.record({ reasoning: fc.oneof(fc.constant(''), TEXT), text: TEXT })
const ANSWERS = fc.array(ANSWER, { minLength: 1, maxLength: 2 })
const PIECES = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 })
const PLAN: fc.Arbitrary<Plan> = fc.record({ answers: ANSWERS, pieces: PIECES })

/** The text in pieces of these lengths. A piece may end inside of a surrogate pair, as some servers send them. */
function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; index += 1) {
    const length = lengths[index % lengths.length] ?? 1
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

/** A model that plays a plan for each conversation, and waits in the middle of its last text. */
function playing({ answers, pieces }: Plan, half: { reached: () => void; passed: Promise<void> }): Provider {
  const generate = async function* (request: GenerateRequest): AsyncGenerator<StreamEvent> {
    yield { type: 'request', model: request.model, profile: 'p', repairs: [], mappedIds: {}, body: {} }
    const index = JSON.stringify(request.messages).split('"query').length - 1 > 0 ? answers.length - 1 : 0
    const { reasoning, text } = answers[index] ?? { reasoning: '', text: '' }
    const isLast = index === answers.length - 1
    for (const part of cut(reasoning, pieces)) yield { type: 'reasoning-delta', text: part }
    const parts = cut(text, pieces)
    for (const [at, part] of parts.entries()) {
      if (isLast && at === Math.floor(parts.length / 2)) {
        half.reached()
        await half.passed
      }
      yield { type: 'text-delta', text: part }
    }
    if (!isLast) yield { type: 'tool-call', id: 'c1', name: 'search', args: { query: 'x' } }
    yield { type: 'usage', usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
    yield { type: 'done', finishReason: isLast ? 'stop' : 'tool-calls' }
  }
  return withGenerate(new ScriptedProvider([], { id: 'play' }), generate)
}

interface Site {
  near: string
  far: string
  /** Resolves when the model waits in mid-text. */
  reached: Promise<void>
  open(): void
  close(): Promise<void>
}

/** Two servers on one store; the first one gets the requests. */
async function openSite(store: string, plan: Plan, isParallel = false): Promise<Site> {
  const half = gate()
  const waits = gate()
  const opened: { runtime: Runtime; server: RunningServer }[] = []
  for (const _each of ['near', 'far']) {
    const provider = playing(plan, { reached: waits.open, passed: half.passed })
    const model = 'play/model'
    const agents = ['one', 'two'].map(name => new LlmAgent({ name, model, instruction: name }))
    const runtime = await createRuntime({
      ...{ store, logger: silentLogger, providers: { play: provider } },
      ...(isParallel
        ? { rootAgent: new ParallelAgent({ name: 'root', subAgents: agents }) }
        : { agent: { name: 'root', model, tools: [searchTool] } }),
    })
    const server = await serve({
      runtime,
      port: 0,
      host: '127.0.0.1',
      version: '1',
      logger: silentLogger,
      graceMs: 0,
    })
    opened.push({ runtime, server })
  }
  const [near, far] = opened.map(({ server }) => server.url)
  return {
    ...{ near: near ?? '', far: far ?? '', reached: waits.passed, open: half.open },
    close: async () => {
      half.open()
      for (const { server, runtime } of opened) {
        await server.close()
        await runtime.close()
      }
    },
  }
}

/** A reader of one run: the request that starts it, the same or another one that joins it, and what it has read. */
interface Reader {
  start(url: string): Promise<Reading>
  join(url: string, started: Reading, isOver: boolean): Promise<Reading>
}

interface Reading {
  runId: string
  /** What is to be equal for all readers. */
  view: Promise<unknown>
}

type Json = Record<string, unknown>

async function post(url: string, body: object, headers: Json = {}): Promise<Response> {
  // With a key, a request that is sent again after its answer is the same run.
  const all = { 'content-type': 'application/json', 'idempotency-key': 'k', ...headers } as Record<
    string,
    string
  >
  return checked(await fetch(url, { method: 'POST', headers: all, body: JSON.stringify(body) }))
}

function checked(response: Response): Response {
  expect([response.status, response.url]).toEqual([200, response.url])
  return response
}

async function dataOf(response: Response): Promise<Json[]> {
  const lines = (await response.text()).split('\n').filter(line => line.startsWith('data: {'))
  return lines.map(line => JSON.parse(line.slice('data: '.length)) as Json)
}

function reading(response: Response, viewOf: (data: readonly Json[]) => unknown): Reading {
  return { runId: response.headers.get('x-lango-run') ?? '', view: dataOf(response).then(viewOf) }
}

/** Appends to the text of a name. */
function add(texts: Json, name: unknown, text: unknown): void {
  texts[String(name)] = String(texts[String(name)] ?? '') + String(text)
}

function isRising(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0))
}

const RUN = '6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11'

const native: Reader = {
  start: async url => {
    const start = { text: 'go', runId: RUN }
    const body = JSON.stringify(start)
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(`${url}/api/sessions/s/runs`, { method: 'POST', headers, body })).status).toBe(202)
    return native.join(url, { runId: RUN, view: Promise.resolve() }, false)
  },
  join: async (url, { runId }) => {
    const events = readEvents(url, runId)
    return { runId, view: events.then(found => ({ gaps: gapsIn(found), events: inOnePiece(found) })) }
  },
}

/** Ids, texts by item, and each other event with its number. */
function responseView(data: readonly Json[]) {
  const texts: Json = {}
  const ends: Json = {}
  for (const { type, item_id, delta, sequence_number } of data) {
    if (!String(type).endsWith('text.delta')) continue
    add(texts, item_id, delta)
    ends[`${item_id} ${String(texts[String(item_id)]).length}`] = sequence_number
  }
  const others = data.filter(({ type }) => !String(type).endsWith('text.delta'))
  expect(isRising(data.map(each => Number(each.sequence_number)))).toBe(true)
  return {
    texts,
    others,
    last: Object.fromEntries(
      Object.entries(texts).map(([id, text]) => [id, ends[`${id} ${String(text).length}`]]),
    ),
  }
}

const responses: Reader = {
  start: async url =>
    reading(await post(`${url}/v1/responses`, { model: 'lango', input: 'go', stream: true }), responseView),
  join: async (url, { runId }) =>
    reading(
      checked(await fetch(`${url}/v1/responses/${runPartId('resp', runId, 0)}?stream=true`)),
      responseView,
    ),
}

const completions: Reader = {
  start: async url => {
    const body = { model: 'lango', messages: [{ role: 'user', content: 'go' }], stream: true }
    const answer = await post(`${url}/v1/chat/completions`, body, { 'x-lango-session': 's' })
    return reading(answer, data => {
      const view: Json = {}
      for (const { id, choices } of data) {
        const [choice] = choices as { delta: Json; finish_reason: unknown }[]
        add(view, 'content', choice?.delta.content ?? '')
        add(view, 'reasoning', choice?.delta.reasoning_content ?? '')
        Object.assign(view, { id }, choice?.finish_reason ? { finish: choice.finish_reason } : {})
      }
      return view
    })
  },
  join: url => completions.start(url),
}

const aiSdk: Reader = {
  start: async url => {
    const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'go' }] }]
    return reading(await post(`${url}/api/chat`, { id: 's', messages }), chunkView)
  },
  join: async (url, _started, isOver) =>
    isOver ? aiSdk.start(url) : reading(checked(await fetch(`${url}/api/chat/s/stream`)), chunkView),
}

function chunkView(data: readonly Json[]) {
  const texts: Json = {}
  for (const { type, id, delta } of data) if (String(type).endsWith('-delta')) add(texts, id, delta)
  return { texts, others: data.filter(({ type }) => !String(type).endsWith('-delta')) }
}

const agui: Reader = {
  start: async url => {
    const fixed = { threadId: 't', runId: RUN, state: {}, tools: [], context: [], forwardedProps: {} }
    const messages = [{ id: 'u1', role: 'user', content: 'go' }]
    return reading(await post(`${url}/agui`, { ...fixed, messages }), aguiView)
  },
  join: url => agui.start(url),
}

/** The messages of the agent as a client has them in the end. */
function aguiView(data: readonly Json[]) {
  let messages = new Map<unknown, Json>()
  for (const event of data) {
    const { type, messageId, delta } = event
    const known = messages.get(messageId)
    if (type === 'MESSAGES_SNAPSHOT')
      messages = new Map((event.messages as Json[]).map(message => [message.id, message]))
    else if (String(type).endsWith('MESSAGE_START') && !known)
      messages.set(messageId, {
        id: messageId,
        role: type === 'TEXT_MESSAGE_START' ? 'assistant' : 'reasoning',
        content: '',
      })
    else if (String(type).endsWith('MESSAGE_CONTENT'))
      messages.set(messageId, { ...known, content: `${known?.content ?? ''}${delta}` })
    else if (type === 'TOOL_CALL_START') {
      const parent = messages.get(event.parentMessageId)
      messages.set(event.parentMessageId, { ...parent, calls: event.toolCallId })
    } else if (type === 'TOOL_CALL_RESULT')
      messages.set(messageId, {
        id: messageId,
        role: 'tool',
        content: event.content,
        toolCallId: event.toolCallId,
      })
  }
  return [...messages.values()].flatMap(({ id, role, content, toolCalls, calls, toolCallId }) => {
    const called = calls ?? (toolCalls as { id: string }[] | undefined)?.[0]?.id
    return role === 'user' ? [] : [{ id, role, content, called, toolCallId }]
  })
}

const a2a: Reader = {
  start: async url => {
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] }
    return reading(await post(`${url}/a2a/message:stream`, { message }), artifactView)
  },
  join: async (url, { runId }, isOver) => {
    if (!isOver) return reading(await post(`${url}/a2a/tasks/${runId}:subscribe`, {}), artifactView)
    const task = (await checked(await fetch(`${url}/a2a/tasks/${runId}`)).json()) as Json
    return { runId, view: Promise.resolve(artifactView([{ task }])) }
  },
}

interface WireArtifact {
  artifactId: string
  parts: { text?: string }[]
}

function artifactView(data: readonly Json[]): Json {
  let texts: Json = {}
  for (const { task, artifactUpdate } of data) {
    if (task) texts = {}
    for (const { artifactId, parts } of (task as { artifacts?: WireArtifact[] } | undefined)?.artifacts ?? [])
      add(texts, artifactId, parts[0]?.text)
    const update = artifactUpdate as { artifact: WireArtifact } | undefined
    if (update) add(texts, update.artifact.artifactId, update.artifact.parts[0]?.text)
  }
  return texts
}

const adk: Reader = {
  start: async url => {
    const session = `${url}/apps/lango/users/user/sessions/s`
    await fetch(session, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    const newMessage = { role: 'user', parts: [{ text: 'go' }] }
    const body = { appName: 'lango', userId: 'user', sessionId: 's', newMessage, streaming: true }
    return reading(await post(`${url}/run_sse`, body), data => {
      const texts: Json = {}
      const complete = data.filter(({ partial }) => partial !== true)
      for (const { partial, author, content } of data)
        for (const part of (content as { parts: Json[] }).parts)
          if (partial === true) add(texts, `${author} ${part.thought === true}`, part.text)
      return { texts, ids: complete.map(({ id }) => id), parts: complete.map(({ content }) => content) }
    })
  },
  join: url => adk.start(url),
}

const mcp: Reader = {
  start: async url => mcpCall(url, 'ask', { text: 'go', sessionId: 's' }),
  join: async (url, { runId }) => mcpCall(url, 'follow_run', { runId }),
}

async function mcpCall(url: string, name: string, args: Json): Promise<Reading> {
  const client = new Client({ name: 'test', version: '1' })
  // The SDK's types were not written for exactOptionalPropertyTypes.
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)) as Transport)
  const progress: { progress: number; message?: string }[] = []
  const onprogress = (each: { progress: number; message?: string | undefined }) => {
    progress.push({ progress: each.progress, message: each.message ?? '' })
  }
  const result = client.callTool({ name, arguments: args }, undefined, { onprogress })
  const view = result.then(async ({ content }) => {
    await client.close()
    expect(isRising(progress.map(each => each.progress))).toBe(true)
    return { said: progress.map(({ message }) => message).join(''), last: progress.at(-1)?.progress, content }
  })
  const runId = args.runId ?? (await runOf(url))
  return { runId: String(runId), view }
}

async function runOf(url: string): Promise<string> {
  for (;;) {
    const response = await fetch(`${url}/api/sessions/s/runs`)
    const { runs = [] } = (await response.json()) as { runs?: { runId: string }[] }
    if (runs[0]) return runs[0].runId
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

const READERS = { native, responses, completions, aiSdk, agui, a2a, adk, mcp }
const NAMES = Object.keys(READERS) as (keyof typeof READERS)[]

async function newStore(kind: 'sqlite' | 'postgres'): Promise<string> {
  if (kind === 'sqlite') return `sqlite:${await temporaryFolder()}/lango.db`
  const created = await createStoreDatabase()
  drops.push(() => created.drop())
  return created.url
}

const drops: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const drop of drops) await drop()
})

/** The views of readers from the start, from mid-text and after the end, at both servers; the first is the live one. */
async function viewsOf(store: string, reader: Reader, plan: Plan, isParallel = false): Promise<unknown[]> {
  const site = await openSite(store, plan, isParallel)
  try {
    const live = await reader.start(site.near)
    const early = reader === native ? [await reader.join(site.far, live, false)] : []
    await site.reached
    const joined = [await reader.join(site.near, live, false), await reader.join(site.far, live, false)]
    site.open()
    const views = await Promise.all([live, ...early, ...joined].map(({ view }) => view))
    for (const url of [site.near, site.far]) views.push(await (await reader.join(url, live, true)).view)
    const short = runPartId('', live.runId, 0).slice(1, -2)
    return views.map(view =>
      JSON.parse(JSON.stringify(view).replaceAll(live.runId, 'RUN').replaceAll(short, 'RUN')),
    )
  } finally {
    await site.close()
  }
}

const CASES = NAMES.flatMap(name => [
  { name, kind: 'sqlite' as const, numRuns: 3 },
  { name, kind: 'postgres' as const, numRuns: 1 },
])

test.each(CASES)(
  'readers of $name on $kind get the same ids and text once',
  { timeout: 240_000 },
  async ({ name, kind, numRuns }) => {
    const property = fc.asyncProperty(PLAN, PIECES, async (plan, pieces) => {
      const [live, ...others] = await viewsOf(await newStore(kind), READERS[name], plan)
      for (const view of others) expect(view).toEqual(live)
      for (const { text } of plan.answers)
        expect(JSON.stringify(live)).toContain(JSON.stringify(text).slice(1, -1))
      if (kind === 'postgres') return
      const [otherCut] = await viewsOf(await newStore(kind), READERS[name], { ...plan, pieces })
      expect(withoutTimes(otherCut)).toEqual(withoutTimes(live))
    })
    await fc.assert(property, { numRuns, endOnFailure: true })
  },
)

/** Two runs of one plan differ in times and in ids that the model layer makes up. */
function withoutTimes(view: unknown): unknown {
  const isTime = (name: string) =>
    ['durationMs', 'created_at', 'created', 'timestamp', 'sessionId', 'ids'].includes(name)
  const named = (name: string, value: unknown) => (isTime(name) ? undefined : value)
  return JSON.parse(JSON.stringify(view, named).replaceAll(UUID, 'ID'))
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

test.each(['native', 'aiSdk', 'agui', 'a2a', 'responses'] as const)(
  'readers of %s get the texts of two agents that write at the same time once, with the same ids',
  { timeout: 240_000 },
  async name => {
    const property = fc.asyncProperty(ANSWER, PIECES, async (answer, pieces) => {
      const [live, ...others] = await viewsOf(
        await newStore('sqlite'),
        READERS[name],
        { answers: [answer], pieces },
        true,
      )
      for (const view of others) expect(view).toEqual(live)
    })
    await fc.assert(property, { numRuns: 2, endOnFailure: true })
  },
)

test('a reader of the native events gets the rest after any number, in mid-text and after the end, at both servers', {
  timeout: 120_000,
}, async () => {
  const plan = { answers: [{ reasoning: 'Hm 😀.', text: 'One 😀 two three' }], pieces: [3, 1, 5] }
  const site = await openSite(await newStore('sqlite'), plan)
  try {
    const live = await native.start(site.near)
    await site.reached
    const cursors = Array.from({ length: 30 }, (_, index) => index)
    // A user may have 32 streams open at a server.
    const readAll = () =>
      Promise.all(
        [site.near, site.far].flatMap(url =>
          cursors.map(async after => ({ after, events: await readEvents(url, RUN, { after }) })),
        ),
      )
    const inMidText = readAll()
    site.open()
    const { events } = (await live.view) as { events: RunEvent[] }
    const rests = [...(await inMidText), ...(await readAll())]
    for (const rest of rests)
      expect(inOnePiece(rest.events), `after ${rest.after}`).toEqual(
        joinDeltas(eventsAfter(events, rest.after)),
      )
  } finally {
    await site.close()
  }
})

test('a response is read again from any of its numbers, with the text after it once', {
  timeout: 120_000,
}, async () => {
  const plan = {
    answers: [
      { reasoning: 'Hm.', text: 'Let me see. ' },
      { reasoning: '', text: 'One 😀 two three' },
    ],
    pieces: [2, 5],
  }
  const site = await openSite(await newStore('sqlite'), plan)
  try {
    const first = await post(`${site.near}/v1/responses`, { model: 'lango', input: 'go', stream: true })
    const id = runPartId('resp', first.headers.get('x-lango-run') ?? '', 0)
    site.open()
    const whole = await dataOf(first)
    const view = responseView(whole)
    for (const { sequence_number: after } of whole.slice(0, -1)) {
      for (const url of [site.near, site.far]) {
        const rest = await dataOf(
          checked(await fetch(`${url}/v1/responses/${id}?stream=true&starting_after=${after}`)),
        )
        const seen = whole.filter(event => Number(event.sequence_number) <= Number(after))
        expect(responseView([...seen, ...rest]), `after ${after}`).toEqual(view)
        // So do clients that read all of it and leave out what they have.
        const again = await dataOf(checked(await fetch(`${url}/v1/responses/${id}?stream=true`)))
        const others = again.filter(event => Number(event.sequence_number) > Number(after))
        expect(responseView([...seen, ...others]), `left out until ${after}`).toEqual(view)
      }
    }
  } finally {
    await site.close()
  }
})

/** The names of the texts of a run, made by a rule. */
function namesBy(rule: (event: RunEvent, index: number) => number, events: readonly RunEvent[]): number[] {
  return events.flatMap((event, index) => {
    const before = events[index - 1]
    return before && joinDeltas([before, event]).length === 1 ? [] : [rule(event, index)]
  })
}

test.each([
  ['the first number', firstSeqOf, true],
  ['the number of the first piece', ({ seq }: RunEvent) => seq, false],
  ['the count of pieces', (_event: RunEvent, index: number) => index, false],
])('names made from %s do not depend on the pieces: %#', (_title, rule, holds) => {
  const property = fc.property(PLAN, fc.array(fc.nat(40)), ({ answers }, cuts) => {
    const bodies = answers.flatMap(({ reasoning, text }) => [
      { type: 'reasoning-delta' as const, author: 'root', text: reasoning },
      { type: 'text-delta' as const, author: 'root', text },
      { type: 'agent-transfer' as const, from: 'a', to: 'b' },
    ])
    const whole = numbered(bodies, { sessionId: 's', runId: 'r' }, 0)
    const pieces = cuts.reduce<readonly RunEvent[]>(splitAt, whole)
    return JSON.stringify(namesBy(rule, pieces)) === JSON.stringify(namesBy(rule, whole))
  })
  expect(fc.check(property).failed).toBe(!holds)
})
