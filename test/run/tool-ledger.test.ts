// Paid means paid once: what the ledger of tool calls records, and what it does with calls whose outcome is unknown.
import { AgentTool, LlmAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { AgentError } from '../../src/errors.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { ToolCallRecord } from '../../src/session/run-store.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type ScriptedCall, ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import type { OnUnknown, Tool, ToolContext } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { faultyStore } from '../support/faulty-store.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const RUN = '00000000-0000-4000-8000-000000000001'
const PAY = { name: 'pay', args: { amount: 5, to: 'ann' } }

type Seen = Pick<ToolContext, 'idempotencyKey' | 'attempt'>

/** A tool that pays, and the calls that it has executed. */
function payTool(more: Partial<Tool> = {}) {
  const seen: Seen[] = []
  const tool: Tool = {
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: (_args, { idempotencyKey, attempt }) => {
      seen.push({ idempotencyKey, attempt })
      return { paid: seen.length }
    },
    ...more,
  }
  return { tool, seen }
}

/** A tool that pays and never answers; `begun` resolves when it has been called. */
function hangingPay(more: Partial<Tool> = {}) {
  let begin: (seen: Seen) => void = () => {}
  const begun = new Promise<Seen>(resolve => {
    begin = resolve
  })
  const { tool } = payTool({
    ...more,
    execute: (_args, { idempotencyKey, attempt }) => {
      begin({ idempotencyKey, attempt })
      return new Promise(() => {})
    },
  })
  return { tool, begun }
}

const calling = (...toolCalls: ScriptedCall[]): ScriptStep => ({ toolCalls })
const told = (request: GenerateRequest) => JSON.stringify(request.messages.at(-1))

interface StartOptions extends Omit<Partial<RuntimeOptions>, 'tools'> {
  steps: readonly ScriptStep[]
  /** Its process ends in the test, so it is not closed. */
  crashes?: true
  tools?: readonly Tool[]
}

async function start({ steps, tools = [], crashes, ...options }: StartOptions) {
  const provider = new ScriptedProvider(steps, { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    // What a later run finds when the run of a process that is gone was ended.
    runs: { resume: false },
    providers: { play: provider },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools } }),
    ...options,
  })
  if (!crashes) onTestFinished(() => runtime.close())
  return { runtime, provider }
}

async function run(runtime: Runtime, text = 'Go.'): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text })) events.push(event)
  return events
}

const unknowns = (events: readonly RunEvent[]) =>
  events.flatMap(event => (event.type === 'tool-unknown' ? event : []))

function rowsOf(store: SessionStore, events: readonly RunEvent[]): Promise<ToolCallRecord[]> {
  return store.runs.readCalls(events[0]?.runId ?? '')
}

/** A session whose process ended while a call of `pay` was executed. */
async function crashedDuringPay(more: Partial<Tool> = {}) {
  const shared = await openStore('memory:')
  onTestFinished(() => shared.close())
  const { store, crash } = crashable(shared)
  const { tool, begun } = hangingPay(more)
  const provider = new ScriptedProvider([calling({ id: 'c1', ...PAY })], { id: 'play' })
  const first = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [tool] },
  })
  const { runId } = await first.start({ sessionId: 's', text: 'Pay.' })
  const seen = await begun
  await crash()
  return { store: shared, runId, seen }
}

/** What happens when a model repeats the call of a crashed process. */
async function repeatAfterCrash(
  more: Partial<Tool> = {},
  onEvent?: (event: RunEvent, runtime: Runtime) => void,
) {
  const crashed = await crashedDuringPay(more)
  const { tool, seen } = payTool(more)
  const { runtime, provider } = await start({
    store: crashed.store,
    steps: [calling({ id: 'c2', ...PAY }), { text: 'Done.' }],
    tools: [tool],
  })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Again.' })) {
    events.push(event)
    onEvent?.(event, runtime)
  }
  const [earlier] = await crashed.store.runs.readCalls(crashed.runId)
  const [own] = await rowsOf(crashed.store, events)
  return { ...crashed, runtime, provider, executed: seen, events, earlier, own }
}

test('a call that changes something is stored before and after its tool runs; one that only reads, with its messages', async () => {
  const during: unknown[] = []
  const look = async () => {
    const rows = await store.runs.readCalls(runId)
    during.push(rows.map(({ tool, status, attempt }) => [tool, status, attempt]))
    return { ok: true }
  }
  const { tool: pay } = payTool({ execute: look })
  const { tool: find } = payTool({ name: 'find', effect: 'read', execute: look })
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const steps = [calling({ id: 'c1', ...PAY }), calling({ id: 'c2', name: 'find' }), { text: 'Done.' }]
  const { runtime } = await start({ store, steps, tools: [pay, find] })
  const runId = '00000000-0000-4000-8000-000000000001'
  await runtime.runAndCollect({ sessionId: 's', text: 'Go.', runId })
  expect(during).toEqual([
    [['pay', 'started', 1]],
    [
      ['pay', 'done', 1],
      ['find', 'intent', 0],
    ],
  ])
  expect(await store.runs.readCalls(runId)).toMatchObject([
    { callId: 'c1', tool: 'pay', effect: 'once', status: 'done', attempt: 1, result: { ok: true } },
    { callId: 'c2', tool: 'find', effect: 'read', status: 'done', attempt: 0, result: { ok: true } },
  ])
  expect((await runtime.inspect(runId))?.calls).toMatchObject([
    { tool: 'pay', callId: 'c1', status: 'done', attempt: 1, effect: 'once' },
    { tool: 'find', callId: 'c2', status: 'done', effect: 'read' },
  ])
})

test('every call of a session has its own idempotency key', async () => {
  const { tool, seen } = payTool()
  const other = { name: 'pay', args: { to: 'ann', amount: 6 } }
  const steps = [calling(PAY, PAY), calling(other), { text: 'Done.' }, calling(PAY), { text: 'Done.' }]
  const { runtime } = await start({ steps, tools: [tool] })
  const events = await run(runtime)
  await run(runtime)
  expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(4)
  expect(
    seen.every(({ idempotencyKey, attempt }) => /^[0-9a-f]{32}$/.test(idempotencyKey) && attempt === 1),
  ).toBe(true)
  const shown = (await runtime.inspect(events[0]?.runId ?? ''))?.calls?.map(call => call.idempotencyKey)
  expect(shown).toEqual(seen.slice(0, 3).map(({ idempotencyKey }) => idempotencyKey))
})

test('a call of a process that is gone is not executed again, and the model reads that its outcome is not known', async () => {
  const { provider, executed, events, earlier, own, seen, store, runId } = await repeatAfterCrash()
  expect(executed).toEqual([])
  const [first, second] = provider.requests
  expect(JSON.stringify(first?.messages)).toContain('NOT known whether it took effect')
  expect(told(second as GenerateRequest)).toContain('Not run again')
  expect(unknowns(events)).toMatchObject([{ id: 'c2', idempotencyKey: seen.idempotencyKey, policy: 'tell' }])
  expect([earlier?.status, own?.status]).toEqual(['unknown', 'unknown'])
  const stored = await store.runs.readEvents(runId)
  expect(stored.slice(-3)).toMatchObject([
    { type: 'tool-unknown', id: 'c1', name: 'pay', idempotencyKey: seen.idempotencyKey },
    { type: 'error', error: { code: 'run-interrupted' } },
    { type: 'run-finish', finishReason: 'error' },
  ])
})

test.each<[Partial<Tool>, OnUnknown]>([
  [{ onUnknown: 'retry' }, 'retry'],
  [{ effect: 'idempotent' }, 'retry'],
])('with %o an unknown call is executed again with its key', async more => {
  const { executed, seen, earlier, own, provider } = await repeatAfterCrash(more)
  expect(seen.attempt).toBe(1)
  expect(executed).toEqual([{ idempotencyKey: seen.idempotencyKey, attempt: 2 }])
  expect([earlier?.status, own?.status]).toEqual(['failed', 'done'])
  if (more.effect) expect(JSON.stringify(provider.requests[0]?.messages)).toContain('may be called again')
})

/** A store whose first write that marks a call as started is not acknowledged before `acknowledge` is called. */
function slowToStart(shared: SessionStore) {
  let acknowledge = () => {}
  const acknowledged = new Promise<void>(resolve => {
    acknowledge = resolve
  })
  let stored = () => {}
  const isStored = new Promise<void>(resolve => {
    stored = resolve
  })
  const store = faultyStore(shared, {
    runs: {
      saveStep: async (saveStep, step) => {
        const saved = await saveStep(step)
        if (!step.calls?.some(({ status }) => status === 'started')) return saved
        stored()
        await acknowledged
        return saved
      },
    },
  })
  return { store, isStored, acknowledge }
}

/** A process whose run is given away, or that is killed, while the write before its tool is not acknowledged. */
async function leftBeforePay(shared: SessionStore, leave: 'handover' | 'kill', more: Partial<Tool> = {}) {
  const { store: slow, isStored, acknowledge } = slowToStart(shared)
  const { store, crash } = crashable(slow)
  const { tool, seen } = payTool(more)
  const provider = new ScriptedProvider([calling({ id: 'c1', ...PAY })], { id: 'play' })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [tool] },
  })
  await runtime.ready()
  await runtime.start({ sessionId: 's', text: 'Pay.', runId: RUN })
  await isStored
  if (leave === 'kill') await crash()
  const handedOver = leave === 'kill' ? undefined : runtime.active()[0]?.loop?.handOver(60_000)
  acknowledge()
  await handedOver
  await crash()
  const [row] = await shared.runs.readCalls(RUN)
  return { row, executed: seen }
}

/** The next process continues the run to its end. */
async function continuePay(store: SessionStore, more: Partial<Tool> = {}) {
  const { tool, seen } = payTool(more)
  const steps = [{ text: 'Done.' }]
  const { runtime } = await start({ store, steps, tools: [tool], runs: { resume: true } })
  await runtime.resume(RUN)
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) events.push(event)
  const [row] = await store.runs.readCalls(RUN)
  return { row, executed: seen, events }
}

test('a call that did not begin before its run was handed over is executed once by the next process', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const left = await leftBeforePay(store, 'handover')
  expect(left.executed).toEqual([])
  expect(left.row).toMatchObject({ status: 'intent', attempt: 0 })
  const { events, executed, row } = await continuePay(store)
  expect(unknowns(events)).toEqual([])
  expect(executed).toMatchObject([{ attempt: 1 }])
  expect(row).toMatchObject({ status: 'done', attempt: 1, result: { paid: 1 } })
})

test('a call that may have begun before its process was killed stays unknown', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const left = await leftBeforePay(store, 'kill')
  expect(left.row).toMatchObject({ status: 'started', attempt: 1 })
  const { events, executed, row } = await continuePay(store)
  expect(unknowns(events)).toMatchObject([{ id: 'c1', policy: 'tell' }])
  expect(executed).toEqual([])
  expect(row).toMatchObject({ status: 'unknown', attempt: 1 })
})

test('a repeated execution that did not begin before the handover leaves the first one unknown', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  await leftBeforePay(store, 'kill', { onUnknown: 'retry' })
  const { store: slow, isStored, acknowledge } = slowToStart(store)
  const { tool, seen } = payTool({ onUnknown: 'retry' })
  const { runtime } = await start({ store: slow, steps: [], tools: [tool], runs: { resume: true } })
  await runtime.resume(RUN)
  await isStored
  const handedOver = runtime.active()[0]?.loop?.handOver(60_000)
  acknowledge()
  await handedOver
  expect(seen).toEqual([])
  expect(await store.runs.readCalls(RUN)).toMatchObject([{ status: 'started', attempt: 1 }])
  const { executed } = await continuePay(store, { onUnknown: 'retry' })
  expect(executed).toMatchObject([{ attempt: 2 }])
})

test('a call of an agent inside a tool that fails to begin does not hold up the handover of its run', async () => {
  const { store } = await crashedDuringPay()
  const before = await start({ store, steps: [{ text: 'Hello.' }], tools: [payTool().tool] })
  await before.runtime.runAndCollect({ sessionId: 's', text: 'Hello.' })
  const failing = faultyStore(store, {
    runs: { listUnknownCalls: () => Promise.reject(new AgentError('store-unavailable', 'down')) },
  })
  const { tool, seen } = payTool()
  const steps = [
    calling({ id: 'h1', name: 'helper', args: { request: 'Pay.' } }),
    calling({ id: 'c2', ...PAY }),
  ]
  let ask = () => {}
  const isAsked = new Promise<void>(resolve => {
    ask = resolve
  })
  const provider = new ScriptedProvider(
    (_request, index) => {
      const step = steps[index]
      if (step) return step
      ask()
      return new Promise<ScriptStep>(() => {})
    },
    { id: 'play' },
  )
  const helper = new LlmAgent({ name: 'helper', model: 'play/m', tools: [new ToolAdapter(tool)] })
  const runtime = await createRuntime({
    store: failing,
    providers: { play: provider },
    rootAgent: new LlmAgent({ name: 'root', model: 'play/m', tools: [new AgentTool({ agent: helper })] }),
    runs: { resume: true },
  })
  onTestFinished(() => runtime.close())
  await runtime.start({ sessionId: 's', text: 'Pay.', runId: RUN })
  await isAsked
  expect(seen).toEqual([])
  await runtime
    .active()
    .find(({ runId }) => runId === RUN)
    ?.loop?.handOver(600_000)
  expect(await store.runs.findRun(RUN)).toMatchObject({ finished: false })
})

test('a second crash keeps the key and counts the attempt', async () => {
  const { store, seen } = await crashedDuringPay({ onUnknown: 'retry' })
  const keys = [seen]
  for (let crashes = 0; crashes < 2; crashes++) {
    const next = crashable(store)
    const { tool, begun } = hangingPay({ onUnknown: 'retry' })
    const { runtime } = await start({
      store: next.store,
      steps: [calling(PAY)],
      tools: [tool],
      crashes: true,
    })
    await runtime.start({ sessionId: 's', text: 'Again.' })
    keys.push(await begun)
    await next.crash()
  }
  expect(keys.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(new Set(keys.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
})

test('a repeated execution that fails says nothing about the one that was cut off: the next equal call has its key', async () => {
  const { store, seen, runId } = await crashedDuringPay({ onUnknown: 'retry' })
  const keys: Seen[] = []
  const { tool } = payTool({
    onUnknown: 'retry',
    execute: (_args, { idempotencyKey, attempt }) => {
      keys.push({ idempotencyKey, attempt })
      if (keys.length === 1) throw new RangeError('The bank is closed.')
      return { paid: true }
    },
  })
  const steps = [calling({ id: 'c2', ...PAY }), { text: 'Paid.' }]
  const { runtime, provider } = await start({ store, steps, tools: [tool], runs: { resume: true } })
  await runtime.resume(runId)
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) events.push(event)
  expect(told(provider.requests[0] as GenerateRequest)).toContain('The bank is closed.')
  expect(keys).toEqual([
    { idempotencyKey: seen.idempotencyKey, attempt: 2 },
    { idempotencyKey: seen.idempotencyKey, attempt: 3 },
  ])
  expect(unknowns(events)).toMatchObject([{ id: 'c1', idempotencyKey: seen.idempotencyKey }])
  expect((await rowsOf(store, events)).map(({ status }) => status)).toEqual(['failed', 'done'])
})

test('verify answers a call that took effect with its result when its run is settled', async () => {
  const asked: unknown[] = []
  const verify = (args: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
    asked.push([args, idempotencyKey])
    return { receipt: 7 }
  }
  const { provider, executed, seen, earlier } = await repeatAfterCrash({ verify })
  expect(asked).toEqual([[PAY.args, seen.idempotencyKey]])
  expect(JSON.stringify(provider.requests[0]?.messages)).toContain('receipt')
  expect(earlier).toMatchObject({ status: 'done', result: { receipt: 7 } })
  // The model pays once more although it can read that the first call took effect: that is another call.
  expect(executed).toEqual([{ idempotencyKey: expect.not.stringMatching(seen.idempotencyKey), attempt: 1 }])
})

test('a call that verify found without effect is executed', async () => {
  const { executed, earlier, own, provider } = await repeatAfterCrash({ verify: () => undefined })
  expect(executed).toHaveLength(1)
  expect([earlier?.status, own?.status]).toEqual(['failed', 'done'])
  expect(JSON.stringify(provider.requests[0]?.messages)).toContain('had no effect')
})

test('an outcome stays unknown when verify fails, and a repeated call asks again', async () => {
  let isReachable = false
  const verify = () => {
    if (!isReachable) throw new AgentError('internal', 'The bank does not answer.')
    return { receipt: 7 }
  }
  const crashed = await crashedDuringPay({ verify })
  const { tool, seen } = payTool({ verify })
  const steps = [calling(PAY), { text: 'Unclear.' }, calling(PAY), { text: 'Paid.' }]
  const { runtime, provider } = await start({ store: crashed.store, steps, tools: [tool] })
  await run(runtime)
  expect(told(provider.requests[1] as GenerateRequest)).toContain('Not run again')
  isReachable = true
  const events = await run(runtime)
  expect(told(provider.requests[3] as GenerateRequest)).toContain('receipt')
  expect(seen).toEqual([])
  expect(unknowns(events)).toEqual([])
  expect(await crashed.store.runs.listUnknownCalls(KEY)).toEqual([])
})

test.each([
  ['happened', 0, 'done', 'A person has confirmed'],
  ['run', 1, 'done', 'paid'],
  ['leave', 0, 'unknown', 'Not run again'],
] as const)('ask: a person says "%s"', async (answer, executions, status, words) => {
  const { executed, events, own, earlier, provider, seen } = await repeatAfterCrash(
    { onUnknown: 'ask' },
    (event, runtime) => {
      if (event.type === 'tool-unknown' && event.asks) void runtime.answer(event.runId, event.id, answer)
    },
  )
  expect(executed).toHaveLength(executions)
  if (executed[0]) expect(executed[0]).toEqual({ idempotencyKey: seen.idempotencyKey, attempt: 2 })
  expect(unknowns(events)).toMatchObject([{ asks: true }, { answer }])
  expect(own?.status).toBe(status)
  expect(earlier?.status).toBe(answer === 'happened' ? 'done' : answer === 'run' ? 'failed' : 'unknown')
  expect(told(provider.requests[1] as GenerateRequest)).toContain(words)
})

test.each([
  ['happened', 0, 'A person has confirmed'],
  ['run', 1, 'paid'],
] as const)(
  'a person\'s answer "%s" after the run has ended decides the call that the model repeats',
  async (answer, executions, words) => {
    const { store, runId } = await crashedDuringPay()
    const { tool, seen } = payTool()
    const steps = [{ text: 'Unclear.' }, calling(PAY), { text: 'Done.' }]
    const { runtime, provider } = await start({ store, steps, tools: [tool] })
    await run(runtime)
    await expect(runtime.answer(runId, 'other', answer)).rejects.toMatchObject({ code: 'run-not-found' })
    await runtime.answer(runId, 'c1', answer)
    await run(runtime)
    expect(seen).toHaveLength(executions)
    expect(told(provider.requests.at(-1) as GenerateRequest)).toContain(words)
    expect(await store.runs.listUnknownCalls(KEY)).toEqual([])
  },
)

test('with onUnknown: fail, a repeated call whose outcome is unknown ends the run', async () => {
  const { executed, events, own } = await repeatAfterCrash({ onUnknown: 'fail' })
  expect(executed).toEqual([])
  expect(events.slice(-2)).toMatchObject([
    { type: 'error', error: { code: 'tool-outcome-unknown', retryable: false } },
    { type: 'run-finish', finishReason: 'error' },
  ])
  expect(unknowns(events)).toMatchObject([{ policy: 'fail' }])
  expect(own?.status).toBe('unknown')
})

test('calls that were done keep their results when another call of their message was cut off', async () => {
  const shared = await openStore('memory:')
  onTestFinished(() => shared.close())
  const { store, crash } = crashable(shared)
  const { tool: pay, begun } = hangingPay()
  const { tool: book } = payTool({ name: 'book', execute: () => ({ booked: 'room 7' }) })
  const { tool: mail } = payTool({ name: 'mail' })
  const calls = calling({ id: 'c1', name: 'book' }, { id: 'c2', ...PAY }, { id: 'c3', name: 'mail' })
  const first = await start({ store, steps: [calls], tools: [pay, book, mail], crashes: true })
  await first.runtime.start({ sessionId: 's', text: 'Go.' })
  await begun
  await crash()
  const { runtime, provider } = await start({
    store: shared,
    steps: [{ text: 'I see.' }],
    tools: [pay, book, mail],
  })
  await run(runtime)
  const results = provider.requests[0]?.messages.filter(({ role }) => role === 'tool') ?? []
  const text = JSON.stringify(results)
  expect(text).toContain('room 7')
  expect(text.match(/NOT known whether/g)).toHaveLength(1)
  expect(text.match(/The call did not run/g)).toHaveLength(1)
  const messages = await shared.readMessages(KEY)
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant'])
})

test('a tool that only reads may be called again after a crash', async () => {
  const { executed, provider, events } = await repeatAfterCrash({ effect: 'read' })
  expect(JSON.stringify(provider.requests[0]?.messages)).toContain('may be called again')
  expect(executed).toMatchObject([{ attempt: 1 }])
  expect(unknowns(events)).toEqual([])
})

test('a tool that is stopped by its time limit has an unknown outcome, and is not executed again', async () => {
  let executions = 0
  const { tool } = payTool({
    timeoutMs: 10,
    execute: () => {
      executions += 1
      return new Promise(() => {})
    },
  })
  const { runtime, provider } = await start({
    steps: [calling(PAY), calling(PAY), { text: 'Stuck.' }],
    tools: [tool],
  })
  const events = await run(runtime)
  expect(executions).toBe(1)
  expect(told(provider.requests[1] as GenerateRequest)).toContain('NOT known whether')
  expect(told(provider.requests[2] as GenerateRequest)).toContain('Not run again')
  expect((await rowsOf(runtime.store, events)).map(({ status }) => status)).toEqual(['unknown', 'unknown'])
  expect(unknowns(events)).toHaveLength(2)
})

test('a run that is stopped leaves what had begun as unknown, and the rest as not run', async () => {
  const { tool: pay, begun } = hangingPay()
  const { tool: mail } = payTool({ name: 'mail' })
  const steps = [calling({ id: 'c1', ...PAY }, { id: 'c2', name: 'mail' })]
  const { runtime } = await start({ steps, tools: [pay, mail] })
  const abort = new AbortController()
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Go.', signal: abort.signal })) {
    events.push(event)
    if (event.type === 'run-start') void begun.then(() => abort.abort())
  }
  expect((await rowsOf(runtime.store, events)).map(({ callId, status }) => [callId, status])).toEqual([
    ['c1', 'unknown'],
    ['c2', 'failed'],
  ])
  expect(unknowns(events)).toMatchObject([{ id: 'c1' }])
  expect(events).toEqual(await runtime.store.runs.readEvents(events[0]?.runId ?? ''))
  const answers = (await runtime.store.readMessages(KEY)).find(({ role }) => role === 'tool')?.toolCalls ?? []
  expect(answers.map(({ id, output }) => [id, output])).toEqual([
    ['c1', expect.stringContaining('NOT known whether')],
    ['c2', expect.stringContaining('did not run')],
  ])
})

test('a tool that throws has failed, and the same call is another one', async () => {
  const { tool, seen } = payTool()
  const throwing = payTool({
    execute: (args, context) => {
      void tool.execute(args, context)
      throw new AgentError('internal', 'Refused.')
    },
  })
  const { runtime } = await start({
    steps: [calling(PAY), calling(PAY), { text: 'No.' }],
    tools: [throwing.tool],
  })
  const events = await run(runtime)
  expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
  expect((await rowsOf(runtime.store, events)).map(({ status }) => status)).toEqual(['failed', 'failed'])
})

test('a call that is refused, or has wrong arguments, was not executed', async () => {
  const { tool } = payTool({ needsApproval: true, parameters: { type: 'object', required: ['amount'] } })
  const steps = [calling(PAY), calling({ name: 'pay', args: {} }), { text: 'No.' }]
  const { runtime } = await start({ steps, tools: [tool] })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'Go.', onApproval: () => 'no' }))
    events.push(event)
  expect((await rowsOf(runtime.store, events)).map(({ status, attempt }) => [status, attempt])).toEqual([
    ['failed', 0],
    ['failed', 0],
  ])
})
