/**
 * What a turn costs: a question, one tool call, an answer, with a model that takes no time, at full durability
 * and at several lengths of history. The yardstick is the same turn on ADK's in-memory service plus the same
 * events as rows in a bare SQLite table with the same pragmas, one transaction each. A turn of ADK's own runner on
 * Lango's session service is one side; a run of Lango's runtime, with lease, events and the ledger of its tool call, another.
 *
 *     npm run bench -- turn [--json]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LlmRequest, LlmResponse } from '@google/adk'
import {
  BaseLlm,
  type BaseSessionService,
  type Event,
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  Runner,
} from '@google/adk'
import { DatabaseSync } from '@photostructure/sqlite'
import { z } from 'zod'
import { SessionServiceAdapter } from '../src/adk/session/session-service-adapter.js'
import { createRuntime } from '../src/runtime/runtime.js'
import { openStore } from '../src/store/open-store.js'
import { ScriptedProvider } from '../src/testing/scripted-provider.js'
import { defineTool } from '../src/tool.js'
import { Report } from './support/report.js'

const QUESTION = 'Where is the key that I put away last week?'
const SIDES = ['ours', 'run', 'peer'] as const
const LENGTHS = [0, 20, 100, 400]
const SAMPLES = Number(process.env.LANGO_BENCH_SAMPLES ?? 40)
/** Turns of each side before anything is measured: a side with more code is compiled later. */
const COMPILED_AFTER = Number(process.env.LANGO_BENCH_WARM_UP ?? 1000)
/** Turns of each side before a length of history is measured. */
const WARM_UP = 30

/** Calls the tool when it is asked, answers when it has the result. */
class InstantModel extends BaseLlm {
  constructor() {
    super({ model: 'instant' })
  }
  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const answered = request.contents.at(-1)?.parts?.some(part => part.functionResponse)
    const call = { functionCall: { name: 'look', args: { place: 'the second drawer from the top' } } }
    const text = { text: 'It is in the second drawer from the top, behind the envelopes.' }
    yield { content: { role: 'model', parts: [answered ? text : call] } }
  }
  override connect(): Promise<never> {
    return Promise.reject(new TypeError('not a live model'))
  }
}

const agent = new LlmAgent({
  name: 'agent',
  model: new InstantModel(),
  tools: [
    new FunctionTool({
      name: 'look',
      description: 'Looks somewhere',
      parameters: z.object({ place: z.string() }),
      execute: ({ place }) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' }),
    }),
  ],
})

const USED = { inputTokens: 200, outputTokens: 20 }

const look = defineTool({
  name: 'look',
  description: 'Looks somewhere',
  parameters: z.object({ place: z.string() }),
  effect: 'read',
  execute: ({ place }) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' }),
})

const report = new Report('turn')
const pattern = await eventsOfTurn()
const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
try {
  await warmUp()
  for (const length of LENGTHS) await measure(length)
  await measureBudget()
} finally {
  await rm(folder, { recursive: true, force: true })
}
report.finish()

/** Every side in turns, on stores of its own. */
async function warmUp(): Promise<void> {
  report.progress(`${COMPILED_AFTER} turns of each side that are not measured …`)
  const { sidesFor, close } = await openSides('warm')
  for (let sample = 0; sample < COMPILED_AFTER; sample += 1) {
    const sides = await sidesFor(`s${sample}`, 0)
    for (const side of SIDES) await sides[side]()
  }
  await close()
}

/** The sides on files of that name. */
async function openSides(name: string) {
  const store = await openStore(`sqlite:${folder}/ours-${name}.db`)
  const ours = new SessionServiceAdapter(store, { rootAgentName: 'agent' })
  const memory = new InMemorySessionService()
  const raw = openRaw(`${folder}/raw-${name}.db`)
  const runStore = await openStore(`sqlite:${folder}/runs-${name}.db`)
  const runSessions = new SessionServiceAdapter(runStore, { rootAgentName: 'agent' })
  const runtime = await createRuntime({ store: runStore, rootAgent: agent, app: 'bench' })
  return {
    /** A turn of each side in a new session with that many events. */
    async sidesFor(sessionId: string, length: number) {
      for (const sessions of [ours, memory, runSessions]) await fill(sessions, sessionId, length)
      return {
        ours: () => turn(ours, sessionId),
        run: () => runtime.runAndCollect({ userId: 'u', sessionId, text: QUESTION }),
        peer: async () => raw.insert(sessionId, await turn(memory, sessionId)),
      }
    },
    async close() {
      raw.close()
      await runtime.close()
      await runStore.close()
      await store.close()
    },
  }
}

async function measure(length: number): Promise<void> {
  report.progress(`a turn after ${length} events …`)
  const { sidesFor, close } = await openSides(String(length))
  const times: { ours: number[]; run: number[]; peer: number[] } = { ours: [], run: [], peer: [] }
  for (let sample = 0; sample < SAMPLES + WARM_UP; sample += 1) {
    const sides = await sidesFor(`s${sample}`, length)
    // A later side finds warmer caches, so they take turns.
    const order = [...SIDES.slice(sample % 3), ...SIDES.slice(0, sample % 3)]
    const taken = { ours: 0, run: 0, peer: 0 }
    for (const side of order) taken[side] = await timed(sides[side])
    if (sample < WARM_UP) continue
    for (const side of SIDES) times[side].push(taken[side])
  }
  const peer = median(times.peer)
  report.atMost(`a turn after ${length} events`, 'ms', median(times.ours), peer, 1.5)
  report.atMost(`a run with its ledger after ${length} events`, 'ms', median(times.run), peer, 1.5)
  await close()
}

/** The same runs with and without a budget: two more commits for each of the two model calls. */
async function measureBudget(): Promise<void> {
  report.progress('runs with a budget …')
  const provider = new ScriptedProvider(
    ({ messages }) =>
      messages.at(-1)?.parts.some(part => part.type === 'tool-result')
        ? { text: 'It is in the second drawer from the top, behind the envelopes.', usage: USED }
        : { toolCalls: [{ name: 'look', args: { place: 'the second drawer from the top' } }], usage: USED },
    { id: 'play', model: { price: { input: 1, output: 4 } } },
  )
  const runtime = await createRuntime({
    store: `sqlite:${folder}/budget.db`,
    providers: { play: provider },
    agent: { name: 'agent', model: 'play/m', tools: [look] },
  })
  const budget = { perRunUsd: 10, perSessionUsd: 1000, perUserUsdPerDay: 1_000_000 }
  const times: { free: number[]; paid: number[] } = { free: [], paid: [] }
  for (let sample = 0; sample < SAMPLES + WARM_UP; sample += 1) {
    const sides = sample % 2 === 0 ? (['free', 'paid'] as const) : (['paid', 'free'] as const)
    for (const side of sides) {
      const input = { userId: side, sessionId: `${side}-${sample}`, text: QUESTION }
      const taken = await timed(() => runtime.runAndCollect(side === 'paid' ? { ...input, budget } : input))
      if (sample >= WARM_UP) times[side].push(taken)
    }
  }
  report.atMost('a run with a budget, against one without', 'ms', median(times.paid), median(times.free), 2)
  await runtime.close()
}

async function turn(sessionService: BaseSessionService, sessionId: string): Promise<Event[]> {
  const runner = new Runner({ appName: 'bench', agent, sessionService })
  const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
  const events: Event[] = []
  for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage })) events.push(event)
  return events
}

/** Real turns' events, appended without running them. */
async function fill(sessions: BaseSessionService, sessionId: string, length: number): Promise<void> {
  const session = await sessions.createSession({ appName: 'bench', userId: 'u', sessionId })
  for (let index = 0; index < length; index += 1) {
    const event = structuredClone({ ...(pattern[index % pattern.length] as Event) })
    const turnNumber = Math.floor(index / pattern.length)
    for (const part of event.content?.parts ?? []) {
      const named = part.functionCall ?? part.functionResponse
      if (named) named.id = `adk-${turnNumber}`
    }
    await sessions.appendEvent({
      session,
      event: { ...event, id: `e${index}`, timestamp: 1_700_000_000_000 + index },
    })
  }
}

async function eventsOfTurn(): Promise<Event[]> {
  const sessions = new InMemorySessionService()
  await sessions.createSession({ appName: 'bench', userId: 'u', sessionId: 'pattern' })
  await turn(sessions, 'pattern')
  const session = await sessions.getSession({ appName: 'bench', userId: 'u', sessionId: 'pattern' })
  return session?.events ?? []
}

/** The least that a durable turn costs: its four events, each committed before the next. */
function openRaw(file: string) {
  const database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  database.exec('CREATE TABLE events (session TEXT, seq INTEGER, event TEXT, PRIMARY KEY (session, seq))')
  const [begin, insert, commit] = ['BEGIN IMMEDIATE', 'INSERT INTO events VALUES (?, ?, ?)', 'COMMIT'].map(
    text => database.prepare(text),
  )
  return {
    insert(session: string, events: readonly Event[]): void {
      // The question is an event too, though the runner does not yield it.
      for (const [seq, event] of [events[0], ...events].entries()) {
        begin?.run()
        insert?.run(session, seq, JSON.stringify(event))
        commit?.run()
      }
    },
    close: () => database.close(),
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
