// ADK's confirmations and long-running tools: the run waits between two rounds, and an answer continues the same run.
import { AgentTool, FunctionTool, LlmAgent, LongRunningFunctionTool } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RunInput } from '../../src/run/run-host.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import type { RunAnswer } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

interface Office {
  runtime: Runtime
  provider: ScriptedProvider
}

interface OfficeOptions {
  store: SessionStore
  done: string[]
  /** The calls of the first answer. */
  calls?: readonly string[]
  resume?: boolean
  /** Its process ends in the test, or the test closes it. */
  crashes?: true
}

const call = (name: string) => ({ id: `${name}-1`, name, args: { n: 1, request: 'Help.' } })

/** A process whose agent has a tool that needs a confirmation, one that answers later, and a plain one. */
async function office({
  store,
  done,
  calls = ['pay'],
  resume = true,
  crashes,
}: OfficeOptions): Promise<Office> {
  const tool = (name: string, more: object = {}) =>
    new FunctionTool({
      name,
      description: name,
      parameters: z.object({ n: z.number() }),
      execute: () => {
        done.push(name)
        return { done: name }
      },
      ...more,
    })
  const ask = new FunctionTool({
    name: 'ask',
    description: 'ask',
    parameters: z.object({ n: z.number() }),
    execute: (_args, context) => {
      if (!context?.toolConfirmation) {
        context?.requestConfirmation({ hint: 'Really?' })
        return { status: 'waiting' }
      }
      if (context.toolConfirmation.confirmed) done.push('ask')
      return { confirmed: context.toolConfirmation.confirmed, payload: context.toolConfirmation.payload }
    },
  })
  const order = new LongRunningFunctionTool({
    name: 'order',
    description: 'order',
    parameters: z.object({ n: z.number() }),
    execute: async () => {
      done.push('order')
      return null
    },
  })
  const broken = new LongRunningFunctionTool({
    name: 'broken',
    description: 'broken',
    parameters: z.object({ n: z.number() }),
    execute: async () => {
      throw new RangeError('No connection.')
    },
  })
  const provider = new ScriptedProvider(
    (request): ScriptStep => {
      if (JSON.stringify(request).includes('Help others.')) return { text: 'Helped.' }
      const { messages } = request
      const turn = messages.findLastIndex(
        ({ role, parts, writtenBy }) => role === 'user' && writtenBy !== 'program' && parts.some(isText),
      )
      const hasCalled = messages
        .slice(turn)
        .some(({ parts }) => parts.some(({ type }) => type === 'tool-call'))
      return hasCalled ? { text: 'Finished.' } : { text: 'One moment.', toolCalls: calls.map(call) }
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    rootAgent: new LlmAgent({
      name: 'root',
      model: 'play/m',
      tools: [
        tool('pay', { requireConfirmation: true }),
        tool('send', { requireConfirmation: true }),
        tool('log'),
        ask,
        order,
        broken,
        new AgentTool({
          agent: new LlmAgent({ name: 'helper', model: 'play/m', instruction: 'Help others.' }),
        }),
      ],
    }),
    runs: { resume },
  })
  if (!crashes) onTestFinished(() => runtime.close())
  return { runtime, provider }
}

function isText({ type }: { type: string }): boolean {
  return type === 'text'
}

async function eventsOf(runtime: Runtime, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) events.push(event)
  return events
}

async function collect(runtime: Runtime, input: RunInput): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', ...input })) events.push(event)
  return events
}

async function resultsOf(store: SessionStore): Promise<[string, unknown][]> {
  const messages = await store.readMessages(KEY)
  return messages.flatMap(({ toolCalls = [] }) =>
    toolCalls.flatMap(({ name, output, kind }): [string, unknown][] =>
      kind === 'response' ? [[name, JSON.parse(output ?? 'null')]] : [],
    ),
  )
}

test.each<[RunAnswer, string[], object]>([
  ['once', ['pay'], { done: 'pay' }],
  ['no', [], { error: 'This tool call is rejected.' }],
  [{ confirmed: true, payload: { limit: 5 } }, ['pay'], { done: 'pay' }],
])(
  'a confirmation makes the run wait; %o from another process continues it',
  async (answer, paid, result) => {
    const store = await openStore('memory:')
    const done: string[] = []
    const first = await office({ store, done })
    const waiting = await first.runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
    expect(waiting).toMatchObject({
      finishReason: 'waiting',
      pending: [{ name: 'pay', question: 'approval' }],
    })
    expect(await store.runs.findRun(waiting.runId)).toMatchObject({ state: 'waiting' })
    await first.runtime.close()
    const second = await office({ store, done })
    await second.runtime.ready()
    await second.runtime.answer(waiting.runId, waiting.pending?.[0]?.id ?? '', answer)
    const events = await eventsOf(second.runtime, waiting.runId)
    expect(done).toEqual(paid)
    expect(gapsIn(events)).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', lastText: 'Finished.' })
    expect(events.find(event => event.type === 'tool-result')).toMatchObject({ name: 'pay', result })
    expect(events.filter(({ type }) => type === 'approval-answer')).toHaveLength(1)
    // The answer that was paid for is not asked for again.
    expect(second.provider.requests).toHaveLength(1)
    // What the model reads of the call is its result alone.
    const read = second.provider.requests.flatMap(({ messages }) => messages.flatMap(({ parts }) => parts))
    expect(read.filter(({ type }) => type === 'tool-result')).toMatchObject([{ name: 'pay', result }])
    const users = (await store.readMessages(KEY)).filter(({ author }) => author === 'user')
    expect(users).toHaveLength(2)
  },
)

test('a long-running tool makes the run wait; an object is its result', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done, calls: ['order'] })
  const { runId, finishReason, pending } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  expect({ finishReason, pending }).toMatchObject({
    finishReason: 'waiting',
    pending: [{ id: 'order-1', name: 'order', question: 'result' }],
  })
  await expect(runtime.answer(runId, 'order-1', 'once')).rejects.toMatchObject({ code: 'invalid-argument' })
  await runtime.answer(runId, 'order-1', { delivered: true })
  const events = await eventsOf(runtime, runId)
  expect(done).toEqual(['order'])
  expect(await resultsOf(store)).toEqual([['order', { delivered: true }]])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', lastText: 'Finished.' })
  expect(events.find(event => event.type === 'tool-result')).toMatchObject({
    id: 'order-1',
    result: { delivered: true },
    given: true,
  })
  expect(await store.runs.signalled([runId])).toEqual([])
})

test.each([[['broken']], [['broken', 'pay']]])(
  'of the calls %s, the long-running tool that fails has its error as its result, and the run does not wait for it',
  async calls => {
    const store = await openStore('memory:')
    const done: string[] = []
    const { runtime, provider } = await office({ store, done, calls })
    const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
    if (calls.includes('pay')) await runtime.answer(runId, 'pay-1', 'once')
    const events = await eventsOf(runtime, runId)
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', lastText: 'Finished.' })
    const failed = events.filter(event => event.type === 'tool-result' && event.name === 'broken')
    expect(failed).toMatchObject([
      { isError: true, result: { error: expect.stringContaining('No connection.') } },
    ])
    expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain('No connection.')
  },
)

test('several confirmations are answered one after the other, by their own id or that of their call', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done, calls: ['pay', 'send', 'log'] })
  const { runId, pending = [] } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  expect(pending.map(({ name }) => name)).toEqual(['pay', 'send'])
  await runtime.answer(runId, 'send-1', 'once')
  await expect
    .poll(
      async () =>
        (await store.runs.readEvents(runId)).filter(({ type }) => type === 'approval-answer').length,
    )
    .toBe(1)
  expect(done).toEqual(['log'])
  await runtime.answer(runId, pending[0]?.id ?? '', 'once')
  const events = await eventsOf(runtime, runId)
  expect(done).toEqual(['log', 'pay', 'send'])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', lastText: 'Finished.' })
  expect(await store.runs.signalled([runId])).toEqual([])
})

test('the result of an agent tool is kept when another call of its message needs a confirmation', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const first = await office({ store, done, calls: ['helper', 'pay'] })
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  await first.runtime.close()
  const second = await office({ store, done, calls: ['helper', 'pay'] })
  await second.runtime.ready()
  await second.runtime.answer(runId, 'pay-1', 'once')
  const events = await eventsOf(second.runtime, runId)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', lastText: 'Finished.' })
  expect(await resultsOf(store)).toContainEqual(['helper', { result: 'Helped.' }])
  const sent = JSON.stringify(second.provider.requests.at(-1)?.messages)
  expect(sent).toContain('Helped.')
  expect(sent).toContain('{"done":"pay"}')
})

test('the result of a tool is kept when another call of its message needs a confirmation', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime, provider } = await office({ store, done, calls: ['log', 'pay'] })
  const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  await runtime.answer(runId, 'pay-1', 'once')
  const events = await eventsOf(runtime, runId)
  expect(done).toEqual(['log', 'pay'])
  expect(events.flatMap(event => (event.type === 'tool-result' ? [event.name] : []))).toEqual(['log', 'pay'])
  const sent = JSON.stringify(provider.requests.at(-1)?.messages)
  expect(sent).toContain('{"done":"log"}')
  expect(sent).toContain('{"done":"pay"}')
})

test('onApproval answers a confirmation within the run', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done })
  const asked: string[] = []
  const { finishReason } = await runtime.runAndCollect({
    sessionId: 's',
    text: 'Go.',
    onApproval: ({ name }) => asked.push(name) > 0,
  })
  expect({ asked, done, finishReason }).toEqual({ asked: ['pay'], done: ['pay'], finishReason: 'stop' })
})

test('a caller that answers a confirmation while it reads the events gets the rest of them', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done })
  const types: string[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Go.' })) {
    types.push(event.type)
    if (event.type === 'approval-request') await runtime.answer(event.runId, event.id, 'once')
  }
  expect(done).toEqual(['pay'])
  expect(types.at(-1)).toBe('run-finish')
  expect(types).not.toContain('run-resumed')
})

test.each(['queue', 'reject'] as const)(
  'the next message (whenBusy: %s) may hold the answer, and ends the run that waits',
  async whenBusy => {
    const store = await openStore('memory:')
    const done: string[] = []
    const { runtime } = await office({ store, done })
    const first = await collect(runtime, { text: 'Go.' })
    expect(first.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'waiting' })
    const asked = first.find(event => event.type === 'approval-request')
    const functionResponse = {
      id: asked?.id ?? '',
      name: 'adk_request_confirmation',
      response: { confirmed: true },
    }
    const next = await collect(runtime, { parts: [{ functionResponse }], whenBusy })
    expect(done).toEqual(['pay'])
    expect(next.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', lastText: 'Finished.' })
    const runs = await store.runs.listRuns(KEY, {})
    expect(runs.map(({ finishReason }) => finishReason)).toEqual(['stop', 'stop'])
  },
)

test('a message that does not answer a long-running tool is answered, and ends the run that waits', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done, calls: ['order'] })
  const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  const later = await runtime.runAndCollect({ sessionId: 's', text: 'Anything else?' })
  expect(later).toMatchObject({ finishReason: 'waiting' })
  expect(await store.runs.findRun(runId)).toMatchObject({ finished: true, finishReason: 'stop' })
  await expect(runtime.answer(runId, 'order-1', {})).rejects.toMatchObject({ code: 'run-not-found' })
})

test('a run that waits between rounds can be stopped', async () => {
  const store = await openStore('memory:')
  const done: string[] = []
  const { runtime } = await office({ store, done })
  const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  await runtime.stop(runId)
  expect((await eventsOf(runtime, runId)).at(-1)).toMatchObject({ finishReason: 'aborted' })
  expect(done).toEqual([])
})

test('with runs.resume: false a confirmation ends the run', async () => {
  const store = await openStore('memory:')
  const { runtime } = await office({ store, done: [], resume: false })
  expect((await collect(runtime, { text: 'Go.' })).at(-1)).toMatchObject({
    type: 'run-finish',
    finishReason: 'stop',
  })
})

test.each([
  [
    ['ask', 'log'],
    ['log', 'ask'],
  ],
  [['ask'], ['ask']],
])(
  'of the calls %s, the tool that requests a confirmation while it runs is executed again with the answer',
  async (calls, order) => {
    const store = await openStore('memory:')
    const done: string[] = []
    const first = await office({ store, done, calls })
    const { runId, pending } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
    expect(pending).toMatchObject([{ name: 'ask', question: 'approval' }])
    await first.runtime.close()
    const second = await office({ store, done, calls })
    await second.runtime.ready()
    await second.runtime.answer(runId, 'ask-1', { confirmed: true, payload: { limit: 5 } })
    const events = await eventsOf(second.runtime, runId)
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', lastText: 'Finished.' })
    expect(done).toEqual(order)
    expect(events.filter(({ type }) => type === 'tool-unknown')).toEqual([])
    expect(await resultsOf(store)).toContainEqual(['ask', { confirmed: true, payload: { limit: 5 } }])
  },
)

/** Messages without ids and times. */
async function historyOf(store: SessionStore): Promise<string[]> {
  const messages = await store.readMessages(KEY)
  return messages.map(({ role, author, content, toolCalls }) =>
    JSON.stringify({ role, author, content, toolCalls }).replace(/adk-[0-9a-f-]{36}/g, 'adk'),
  )
}

/** Answers whatever the run asks, until it has ended. */
async function answered(runtime: Runtime): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) {
    events.push(event)
    const isResult = event.type === 'tool-call' && event.name === 'order'
    if (event.type !== 'approval-request' && !isResult) continue
    // One that is answered already is refused.
    await runtime.answer(RUN, event.id, isResult ? { delivered: true } : 'once').catch(() => {})
  }
  return events
}

const RUN = '00000000-0000-4000-8000-000000000001'

async function uninterrupted(calls: readonly string[]) {
  const store = await openStore('memory:')
  const watched = crashable(store)
  const { runtime } = await office({ store: watched.store, done: [], calls })
  await runtime.start({ sessionId: 's', runId: RUN, text: 'Go.' })
  const events = await answered(runtime)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  await runtime.close()
  expect(watched.writes).toBeGreaterThan(4)
  return { writes: watched.writes, history: await historyOf(store) }
}

/** Cuts the run off after a write; another process continues and answers it. */
async function expectContinued(calls: readonly string[], endsAfter: number, history: readonly string[]) {
  const where = `cut after write ${endsAfter}`
  const store = await openStore('memory:')
  const done: string[] = []
  const process = crashable(store, { endsAfter })
  const first = await office({ store: process.store, done, calls, crashes: true })
  await first.runtime.ready()
  void first.runtime
    .start({ sessionId: 's', runId: RUN, text: 'Go.' })
    .then(() => answered(first.runtime))
    .catch(() => {})
  const isOver = async () => (await store.runs.findRun(RUN))?.finished === true
  await Promise.race([process.over, eventually(isOver).toBe(true)])
  await process.crash()
  if (await isOver()) return
  const second = await office({ store, done, calls, crashes: true })
  await second.runtime.ready()
  const continued = await answered(second.runtime)
  await second.runtime.close()
  expect(gapsIn(continued), where).toEqual([])
  expect([...done].sort(), where).toEqual([...new Set(done)].sort())
  if (continued.some(({ type }) => type === 'tool-unknown')) return
  expect(continued.at(-1), where).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(await historyOf(store), where).toEqual(history)
  expect(await store.runs.signalled([RUN]), where).toEqual([])
}

/** Some of the cuts leave a run that waits for two seconds: all are made at the same time. */
test.each([[['pay', 'log']], [['ask']], [['order', 'log']], [['pay', 'order', 'send']], [['helper', 'pay']]])(
  'a run with calls of %s is continued after each write, with answers from any process',
  async calls => {
    const { writes, history } = await uninterrupted(calls)
    const cuts = Array.from({ length: writes - 1 }, (_, index) => index + 1)
    await Promise.all(cuts.map(endsAfter => expectContinued(calls, endsAfter, history)))
  },
)
