// A workflow is cut off after each of its writes and continued by another runtime: its history is that of an
// uninterrupted run, and no node or tool is executed twice.
import { LogLevel, type NodeContext, node, setLogLevel, Workflow } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { storedEvents } from '../../src/run/interrupted-runs.js'
import { OpenQuestions } from '../../src/run/open-questions.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { answerStored } from '../../src/run/run-signals.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { StoredMessage } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { WORKFLOW_CASES, type WorkflowCase } from '../adk-parity/workflow-cases.js'
import { KEY, Play } from '../adk-parity/workflow-ways.js'
import { crashable } from '../support/crashable-store.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'

setLogLevel(LogLevel.ERROR)

const RUN = '00000000-0000-4000-8000-000000000001'

async function attempt(given: WorkflowCase, store: SessionStore, play: Play): Promise<Runtime> {
  return createRuntime({
    store,
    providers: { play: play.provider },
    rootAgent: given.build(play.kit('play/m')),
    runs: { maxAttempts: 100 },
  })
}

const textOf = ({ turns: [first] = [] }: WorkflowCase) => (typeof first === 'string' ? first : 'go')

async function finished(runtime: Runtime): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) events.push(event)
  return events
}

/** The run without an interruption. */
async function whole(given: WorkflowCase) {
  const store = await openStore('memory:')
  const play = new Play(given)
  const watched = crashable(store)
  const runtime = await attempt(given, watched.store, play)
  await runtime.start({ sessionId: 's', runId: RUN, text: textOf(given) })
  const events = await finished(runtime)
  await runtime.close()
  return { play, writes: watched.writes, history: await historyOf(store), end: endOf(events) }
}

/** Runs until the process ends after that write. */
async function cut(given: WorkflowCase, store: SessionStore, play: Play, endsAfter: number): Promise<void> {
  const process = crashable(store, { endsAfter })
  const runtime = await attempt(given, process.store, play)
  void runtime.start({ sessionId: 's', runId: RUN, text: textOf(given) }).catch(() => {})
  await Promise.race([process.over, finishedIn(store)])
  await process.crash()
}

/** Continues what a process has left. A person lets nodes whose outcome is unknown be executed. */
async function continued(given: WorkflowCase, store: SessionStore, play: Play): Promise<RunEvent[]> {
  const runtime = await attempt(given, store, play.again(await answersIn(store)))
  await runtime.ready()
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) {
    events.push(event)
    if (event.type === 'tool-unknown' && event.asks) await runtime.answer(RUN, event.id, 'run')
  }
  await runtime.close()
  return events
}

/** How many answers of each agent are stored. */
async function answersIn(store: SessionStore): Promise<Map<string, number>> {
  const said = new Map<string, number>()
  for (const { role, author = '' } of await messagesOf(store))
    if (role === 'assistant') said.set(author, (said.get(author) ?? 0) + 1)
  return said
}

async function messagesOf(store: SessionStore): Promise<StoredMessage[]> {
  const nested = { ...KEY, appName: 'lango/expert' }
  const inner = (await store.describeSession(nested)) ? await store.readMessages(nested) : []
  return [...(await store.readMessages(KEY)), ...inner]
}

async function finishedIn(store: SessionStore): Promise<void> {
  await eventually(async () => (await store.runs.findRun(RUN))?.finished).toBe(true)
}

/** Messages without ids and times, each node and branch in its own order. */
async function historyOf(store: SessionStore): Promise<object[]> {
  const plain = (await messagesOf(store)).map(viewOf)
  const session = await store.loadSession(KEY)
  return [...plain.sort(byText), { state: session?.state }]
}

function viewOf({ role, author, branch, content, toolCalls, extra = {} }: StoredMessage): object {
  const { nodeInfo, output, route, errorMessage } = extra
  const calls = toolCalls?.map(({ id, name, input, output: result }) => ({ id, name, input, result }))
  return { role, author, branch, content, calls, nodeInfo, output, route, errorMessage }
}

function byText(one: object, other: object): number {
  return JSON.stringify(one).localeCompare(JSON.stringify(other))
}

function endOf(events: readonly RunEvent[]): object {
  const end = events.at(-1)
  return end?.type === 'run-finish' ? { finishReason: end.finishReason, text: end.text } : { end }
}

/** A run that asks a person waits for the answer. */
const UNATTENDED = Object.keys(WORKFLOW_CASES).filter(name => !name.startsWith('a question'))

const inMemory = () => openStore('memory:')

test.each(UNATTENDED)('workflow "%s" is continued after its first, a middle and its last write', name =>
  continuedAfter(name, writes => [...new Set([1, Math.floor(writes / 2), writes - 1])], inMemory),
)

test.each(UNATTENDED)('workflow "%s" is continued after each of its writes', LONG, name =>
  continuedAfter(name, writes => Array.from({ length: writes - 1 }, (_, index) => index + 1), inMemory),
)

/** The same on real databases, after some of the writes: the first, the last, and those in between by a fixed step. */
const SOME = UNATTENDED.filter((_name, index) => index % 3 === 0)

async function continuedOn(
  kind: string,
  name: string,
  cutsOf: (writes: number) => readonly number[],
): Promise<void> {
  const open = async () => {
    const database = kind === 'postgres' ? await createStoreDatabase() : undefined
    const store = await openStore(database?.url ?? `sqlite:${await temporaryFolder()}/lango.db`)
    endings.push(async () => {
      await store.close()
      await database?.drop()
    })
    return store
  }
  const endings: (() => Promise<unknown>)[] = []
  onTestFinished(async () => {
    for (const end of endings) await end()
  })
  await continuedAfter(name, cutsOf, open)
}

test.each(SOME)('workflow "%s" on sqlite is continued after a middle and its last write', name =>
  continuedOn('sqlite', name, writes => [Math.floor(writes / 2), writes - 1]),
)

test.for(['sqlite', 'postgres'].flatMap(kind => SOME.map(name => [name, kind] as const)))(
  'workflow "%s" on %s is continued after some of its writes',
  LONG,
  ([name, kind]) =>
    continuedOn(kind, name, writes => [...new Set([1, 3, Math.floor(writes / 2), writes - 1])]),
)

async function continuedAfter(
  name: string,
  cutsOf: (writes: number) => readonly number[],
  open: () => Promise<SessionStore>,
): Promise<void> {
  const given = WORKFLOW_CASES[name]
  if (!given) throw new TypeError(name)
  const reference = await whole(given)
  expect(reference.writes).toBeGreaterThan(2)
  let compared = 0
  for (const endsAfter of cutsOf(reference.writes)) {
    const where = `cut after write ${endsAfter}`
    const store = await open()
    const play = new Play(given)
    await cut(given, store, play, endsAfter)
    if ((await store.runs.findRun(RUN))?.finished) continue
    const events = await continued(given, store, play)
    const allowed = events.flatMap(event =>
      event.type === 'tool-unknown' && event.answer ? [event.name] : [],
    )
    for (const line of new Set(reference.play.effects)) {
      const most = times(reference.play, line) + allowed.filter(node => line.startsWith(node)).length
      expect(times(play, line), `${where}: ${line}`).toBeLessThanOrEqual(most)
    }
    // A tool that was cut off between its beginning and its end is not executed again: its outcome is unknown.
    if (events.some(event => event.type === 'tool-unknown' && !event.asks && !event.answer)) continue
    expect(endOf(events), `${where} ${JSON.stringify(events.at(-2))}`).toEqual(reference.end)
    expect(new Set(play.effects), where).toEqual(new Set(reference.play.effects))
    expect(await historyOf(store), where).toEqual(reference.history)
    compared += 1
  }
  expect(compared, 'runs that were cut off, continued and compared').toBeGreaterThan(0)
}

function times({ effects }: Play, line: string): number {
  return effects.filter(each => each === line).length
}

test('a question of a workflow makes the run wait, and its answer continues it in another process', async () => {
  const given = WORKFLOW_CASES['a question that a function response answers']
  if (!given) throw new TypeError('no such workflow')
  const store = await openStore('memory:')
  const play = new Play(given)
  const first = await attempt(given, store, play)
  const asked = await first.runAndCollect({ sessionId: 's', runId: RUN, text: 'go' })
  expect(asked.finishReason).toBe('waiting')
  await first.close()
  const second = await attempt(given, store, play)
  await second.ready()
  await second.answer(RUN, 'q-1', { result: 'red' })
  const events = await finished(second)
  expect(endOf(events)).toEqual({ finishReason: 'stop', text: 'painted "red"' })
  expect(play.effects).toEqual(['prepare "go"', 'ask "go"', 'paint "red"'])
  await second.close()
})

test('a workflow that has changed ends the run as interrupted, and nothing new is executed', async () => {
  const given = WORKFLOW_CASES['a line of functions']
  if (!given) throw new TypeError('no such workflow')
  const store = await openStore('memory:')
  const play = new Play(given)
  await cut(given, store, play, 4)
  const changed: WorkflowCase = {
    build: kit => new Workflow({ name: 'line', edges: [['START', kit.fn('other'), kit.fn('upper')]] }),
  }
  const events = await continued(changed, store, play)
  expect(events.at(-2)).toMatchObject({ type: 'error', error: { code: 'run-interrupted' } })
  expect(JSON.stringify(events.at(-2))).toContain('node \\"other\\" begins, where the record has')
  expect(play.effects.filter(line => line.startsWith('other'))).toEqual([])
})

/** A line of two functions; the first one or the second one does not end in this process. */
function checkout(stuck: 'charge' | 'receipt' | undefined, onStuck: () => void = () => {}): Workflow {
  const run = async <Result>(name: string, result: () => Result): Promise<Result> => {
    if (name !== stuck) return result()
    onStuck()
    return new Promise<never>(() => {})
  }
  const charge = node(() => run('charge', () => ({ paid: 5 })), {
    name: 'charge',
    outputSchema: z.object({ paid: z.number() }),
  })
  const receipt = node(
    (_context: NodeContext, { paid }: { paid: number }) => run('receipt', () => `Paid ${paid}.`),
    { name: 'receipt' },
  )
  return new Workflow({ name: 'flow', edges: [['START', charge, receipt]] })
}

/** Executes or continues the checkout until a node is stuck, and ends the process there. */
async function stuckAt(store: SessionStore, stuck: 'charge' | 'receipt'): Promise<void> {
  let isStuck = () => {}
  const over = new Promise<void>(resolve => {
    isStuck = resolve
  })
  const process = crashable(store)
  const runtime = await createRuntime({ store: process.store, rootAgent: checkout(stuck, () => isStuck()) })
  if (await store.runs.findRun(RUN)) await runtime.ready()
  else await runtime.start({ sessionId: 's', runId: RUN, text: 'go' })
  await over
  await process.crash()
}

/** The question about a node, once it is asked. */
async function asksAbout(
  runtime: Runtime,
  name: string,
): Promise<Extract<RunEvent, { type: 'tool-unknown' }>> {
  for await (const event of runtime.follow(RUN))
    if (event.type === 'tool-unknown' && event.asks && event.name === name) return event
  throw new TypeError('nothing was asked')
}

test('a node that took effect is confirmed with its output, which the next node gets', async () => {
  const store = await openStore('memory:')
  await stuckAt(store, 'charge')
  const runtime = await createRuntime({ store, rootAgent: checkout(undefined) })
  onTestFinished(() => runtime.close())
  const { id } = await asksAbout(runtime, 'charge')
  const refusal = (message: string) => ({
    code: 'invalid-argument',
    message: expect.stringContaining(message),
  })
  await expect(runtime.answer(RUN, id, 'happened')).rejects.toMatchObject(
    refusal('{ happened: true, result }'),
  )
  const wrong = { happened: true, result: { paid: 'much' } }
  await expect(runtime.answer(RUN, id, wrong)).rejects.toMatchObject(refusal('paid'))
  await runtime.answer(RUN, id, { happened: true, result: { paid: 7 } })
  expect(endOf(await finished(runtime))).toEqual({ finishReason: 'stop', text: 'Paid 7.' })
})

test('the output that a person has given to a node is kept when the next process continues the run', async () => {
  const store = await openStore('memory:')
  await stuckAt(store, 'charge')
  const first = await createRuntime({ store, rootAgent: checkout(undefined) })
  const { id } = await asksAbout(first, 'charge')
  await first.close()
  const asker = await openQuestionsOf(store)
  expect(asker).toMatchObject([{ callId: id, asks: 'outcome', needsResult: true }])
  await answerStored(store, RUN, id, { happened: true, result: { paid: 7 } })
  await stuckAt(store, 'receipt')
  const last = await createRuntime({ store, rootAgent: checkout(undefined) })
  onTestFinished(() => last.close())
  const asked = await asksAbout(last, 'receipt')
  // Nothing uses its output.
  expect(asked).not.toHaveProperty('needsResult')
  await last.answer(RUN, asked.id, 'run')
  expect(endOf(await finished(last))).toEqual({ finishReason: 'stop', text: 'Paid 7.' })
})

async function openQuestionsOf(store: SessionStore) {
  const questions = new OpenQuestions()
  for await (const event of storedEvents(store.runs, RUN)) questions.add(event)
  return questions.list
}
