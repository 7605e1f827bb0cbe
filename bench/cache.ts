/**
 * What a prompt cache misses: the share of the bytes of all requests that are not a prefix of the request before, in
 * sessions of 200 turns with a tool call each. The best possible is computed for the same session: every request extends
 * the last, except at the cuts that the same budget forces when it moves in quarter steps.
 *
 *     npm run bench -- cache [--json] [--only PROFILE] [--turns N]
 */
import { PROFILES, type ProfileName } from '../src/provider/repair/profile.js'
import type { StreamEvent } from '../src/provider/stream-event.js'
import { createRuntime } from '../src/runtime/runtime.js'
import type { Message } from '../src/session/message.js'
import type { SessionStore } from '../src/session/session-store.js'
import { openStore } from '../src/store/open-store.js'
import { defineTool } from '../src/tool.js'
import { modelOf, WireProvider } from '../test/support/wire-provider.js'
import { Report } from './support/report.js'

type Kind = 'native' | 'foreign' | 'broken'

/** A request as a cache sees it. */
interface Sent {
  /** The tools and the instruction. */
  head: string
  messages: string[]
  /** The estimated tokens of the whole history, whatever was left out. */
  historyTokens: number
}

const BUDGET = 32_000
const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const turns = Number(option('turns') ?? 200)
const names = Object.keys(PROFILES) as ProfileName[]
const only = option('only')
const report = new Report('cache')
const WORDS =
  'lamp bell river stone paper garden letter window bridge market winter number engine island'.split(' ')

const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: { at: { type: 'number' } } },
  effect: 'read',
  execute: ({ at }) => ({ at, found: words(200, Number(at)) }),
})

for (const profile of names.filter(name => only === undefined || name === only)) {
  for (const kind of ['native', 'foreign', 'broken'] as const) {
    report.progress(`${profile}, ${kind} …`)
    const whole = await play(profile, kind, 'off')
    const budgeted = await play(profile, kind, BUDGET)
    const uncut = missed(whole)
    if (kind === 'native') report.atMost(`${profile}, native, no cut, vs 1 %`, '%', uncut, 1, 1)
    else report.atMost(`${profile}, ${kind}, no cut, vs the best possible`, '%', uncut, best(whole, Infinity))
    const limit = kind === 'native' ? 1.15 : undefined
    report.atMost(
      `${profile}, ${kind}, budget, vs the best possible`,
      '%',
      missed(budgeted),
      best(whole, BUDGET),
      limit,
    )
  }
}
report.finish()

/** The percentage of bytes that no cache of the request before has. */
function missed(requests: readonly Sent[]): number {
  let [all, lost] = [0, 0]
  for (const [index, request] of requests.entries()) {
    const before = requests[index - 1]
    const total = bytes([request.head, ...request.messages])
    all += total
    lost += total - (before ? cached(before, request) : 0)
  }
  return (100 * lost) / all
}

function cached(before: Sent, { head, messages }: Sent): number {
  if (before.head !== head) return 0
  const end = messages.findIndex((message, index) => message !== before.messages[index])
  return bytes([head, ...messages.slice(0, end === -1 ? messages.length : end)])
}

/** What the best client would miss, given the requests of a session without a cut. */
function best(requests: readonly Sent[], budget: number): number {
  const sizes = requests.map(({ messages }) => bytes(messages))
  let [all, lost, start] = [0, 0, -1]
  for (const [index, { head, historyTokens }] of requests.entries()) {
    const left = (at: number) => (at < 0 ? 0 : (requests[at]?.historyTokens ?? 0))
    const isCut = historyTokens - left(start) > budget
    while (isCut && start < index - 1 && historyTokens - left(start) > budget * 0.75) start += 1
    const size = (sizes[index] ?? 0) - (start < 0 ? 0 : (sizes[start] ?? 0))
    all += bytes([head]) + size
    if (index === 0) lost += bytes([head]) + size
    else lost += isCut ? size : (sizes[index] ?? 0) - (sizes[index - 1] ?? 0)
  }
  return (100 * lost) / all
}

function bytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

/** Plays the turns, a third of them imported from elsewhere unless the session is native, and returns the requests. */
async function play(profile: ProfileName, kind: Kind, budget: number | 'off'): Promise<Sent[]> {
  const store = await openStore('memory:')
  await store.createSession(KEY)
  const imported = kind === 'native' ? 0 : Math.floor(turns / 3)
  for (const message of history(imported, kind === 'broken')) await store.appendMessage(KEY, message)
  const runtime = await createRuntime({
    store,
    providers: { main: new WireProvider(profile, scriptOf(profile)) },
    agent: { model: `main/${modelOf(profile)}`, instruction: words(300, 0), tools: [look] },
    history: { maxMessageTokenBudget: budget, ...(budget === 'off' ? { maxMessages: 1_000_000 } : {}) },
  })
  for (let turn = imported; turn < turns; turn++)
    await runtime.runAndCollect({ sessionId: KEY.sessionId, text: `Question ${turn}: ${words(30, turn)}` })
  await runtime.close()
  const sent = await requestsOf(store)
  await store.close()
  return sent
}

/** Thinks, calls a tool after a question, and answers after its result. */
function scriptOf(profile: ProfileName) {
  const { vendor } = PROFILES[profile]
  let count = 0
  return ({ messages }: { messages: readonly { role: string }[] }): StreamEvent[] => {
    count += 1
    const origin = { vendor, model: modelOf(profile) }
    const signature = Buffer.from(`signature ${count}`).toString('base64')
    const thought: StreamEvent = { type: 'reasoning-delta', text: words(20, count), signature, origin }
    if (messages.at(-1)?.role !== 'user')
      return [
        thought,
        { type: 'text-delta', text: words(120, count) },
        { type: 'done', finishReason: 'stop' },
      ]
    const signed = vendor === 'gemini' ? { signature } : {}
    const id = `call${String(count).padStart(5, '0')}`
    return [
      thought,
      { type: 'tool-call', id, name: 'look', args: { at: count }, origin, ...signed },
      { type: 'done', finishReason: 'tool-calls' },
    ]
  }
}

/** Turns of another framework: without signatures, and with `broken` half of them damaged. */
function history(count: number, broken: boolean): Message[] {
  return Array.from({ length: count }, (_, turn): Message[] => {
    const timestamp = turn
    const id = broken && turn % 6 === 1 ? 'again' : `old-${turn}`
    const call = { id, name: 'look', input: `{"at":${turn}}`, kind: 'call' as const }
    const result = {
      id,
      name: 'look',
      output: JSON.stringify({ found: words(200, turn) }),
      kind: 'response' as const,
    }
    const messages: Message[] = [
      { role: 'user', author: 'user', content: `Question ${turn}: ${words(30, turn)}`, timestamp },
      { role: 'assistant', content: '', toolCalls: [call], timestamp },
      { role: 'tool', content: '', toolCalls: [result], timestamp },
      { role: 'assistant', content: words(120, turn), timestamp },
    ]
    if (!broken || turn % 2 === 0) return messages
    // The call is lost, the result is lost, or nobody answered.
    return messages.filter((_message, index) => index !== 1 + (turn % 3))
  }).flat()
}

async function requestsOf(store: SessionStore): Promise<Sent[]> {
  const all: Sent[] = []
  for (const { runId } of (await store.runs.listRuns(KEY, { limit: 10_000 })).toReversed())
    for (const { record } of await store.runs.readRequests(runId)) all.push(toSent(record))
  return all
}

function toSent({ body, history: given, cuts }: Record<string, unknown>): Sent {
  const plain = JSON.parse(
    JSON.stringify(body, (key, value: unknown) => (key === 'cache_control' ? undefined : value)),
  ) as Record<string, unknown>
  const list = (plain.messages ?? plain.contents ?? plain.input) as { role?: string }[]
  const leading = list.findIndex(message => message.role !== 'system')
  const { tools, system, systemInstruction, instructions } = plain
  const opening = (cuts as { tokens: number }[])[0]
  return {
    head: JSON.stringify([tools, system ?? systemInstruction ?? instructions ?? list.slice(0, leading)]),
    messages: list.slice(leading).map(message => JSON.stringify(message)),
    historyTokens: (given as { tokens: number }).tokens + (opening?.tokens ?? 0),
  }
}

/** Text that differs from call to call. */
function words(count: number, seed: number): string {
  return Array.from(
    { length: count },
    (_, index) => WORDS[(seed * 7 + index * (1 + (seed % 5))) % WORDS.length],
  ).join(' ')
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? undefined : process.argv[at + 1]
}
