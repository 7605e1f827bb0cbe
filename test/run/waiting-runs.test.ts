// A run that waits for a person holds no lease and no memory, and continues in whichever process there is. It leaves memory
// after two seconds, which the tests wait for at the same time.
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { AgentError } from '../../src/errors.js'
import { silentLogger } from '../../src/logger.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool, type Tool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { faultyStore } from '../support/faulty-store.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

interface Office {
  runtime: Runtime
  provider: ScriptedProvider
}

/** A process whose agent asks before it pays. */
async function office(store: SessionStore, payments: string[], more: Partial<Tool> = {}): Promise<Office> {
  const provider = new ScriptedProvider(
    ({ messages }) =>
      JSON.stringify(messages).includes('tool-result')
        ? { text: 'Done.' }
        : { text: 'One moment.', toolCalls: [{ id: 'c1', name: 'pay', args: { amount: 5 } }] },
    { id: 'play' },
  )
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number() }),
    effect: 'once',
    execute: (_args, { idempotencyKey }) => {
      payments.push(idempotencyKey)
      return { paid: true }
    },
  })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [{ ...pay, needsApproval: true, ...more }] },
  })
  return { runtime, provider }
}

/** Not `expect.poll`, which knows one running test. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  await vi.waitUntil(isTrue, { timeout: 60_000 })
}

async function waits({ runtime }: Office, runId: string): Promise<void> {
  await until(async () => (await runtime.store.runs.findRun(runId))?.state === 'waiting')
}

async function eventsOf(runtime: Runtime, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) events.push(event)
  return events
}

test.concurrent('runAndCollect returns what the run waits for, and the answer of another process continues it', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const result = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  expect(result).toMatchObject({
    finishReason: 'waiting',
    pending: [{ id: 'c1', name: 'pay', args: { amount: 5 }, question: 'approval' }],
  })
  await first.runtime.close()
  const lease = await store.acquireLease(KEY, { waitMs: 0 })
  await lease.release()

  const second = await office(store, payments)
  onTestFinished(() => second.runtime.close())
  await second.runtime.ready()
  await second.runtime.answer(result.runId, 'c1', 'once')
  const events = await eventsOf(second.runtime, result.runId)
  expect(payments).toHaveLength(1)
  expect(second.provider.requests).toHaveLength(1)
  expect(events.filter(({ type }) => type === 'approval-request')).toHaveLength(1)
  expect(events.filter(({ type }) => type === 'approval-answer')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', lastText: 'Done.' })
  expect(events.find(({ type }) => type === 'run-resumed')).toMatchObject({ attempt: 1, replayedSteps: 1 })
})

test.concurrent('an answer in a process that has executed nothing continues the run there', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await first.runtime.close()
  const second = await office(store, payments)
  onTestFinished(() => second.runtime.close())
  await second.runtime.answer(runId, 'c1', 'once')
  await until(async () => (await store.runs.findRun(runId))?.finishReason === 'stop')
  expect(payments).toHaveLength(1)
})

/** A run whose process has ended while its tool was working, and a process that has executed nothing. */
async function abandoned(payments: string[]): Promise<Office & { runId: string; store: SessionStore }> {
  const store = await openStore('memory:')
  const process = crashable(store)
  let paying = () => {}
  const isPaying = new Promise<void>(resolve => {
    paying = resolve
  })
  const execute = () => {
    paying()
    return new Promise<never>(() => {})
  }
  const policy = { needsApproval: false, onUnknown: 'retry' } as const
  const first = await office(process.store, payments, { ...policy, execute })
  const { runId } = await first.runtime.start({ sessionId: 's', text: 'Pay.' })
  await isPaying
  await process.crash()
  return { ...(await office(store, payments, policy)), runId, store }
}

test.concurrent.each<[string, (runtime: Runtime, runId: string) => Promise<unknown>]>([
  ['follow', eventsOf],
  ['findRun', (runtime, runId) => runtime.findRun(runId)],
  ['listRuns', runtime => runtime.listRuns(KEY)],
])(
  '%s in a process that has executed nothing continues a run whose process has ended',
  async (_name, meet) => {
    const payments: string[] = []
    const { runtime, runId, store } = await abandoned(payments)
    try {
      await meet(runtime, runId)
      await until(async () => (await store.runs.findRun(runId))?.finishReason === 'stop')
      expect(payments).toHaveLength(1)
    } finally {
      await runtime.close()
    }
  },
)

/** A process whose agent names a tool that does not exist: building it fails. */
async function unbuildable(store: SessionStore, warnings: unknown[]): Promise<Runtime> {
  const warn = (message: string, fields: unknown) => void warnings.push({ message, fields })
  const agent = { name: 'root', model: 'demo/demo', tools: ['absent'] }
  return createRuntime({ store, agent, logger: { ...silentLogger, warn } })
}

test.concurrent('an answer is kept, and logged as not continued, where the agent cannot be built', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await first.runtime.close()
  const warnings: unknown[] = []
  const reader = await unbuildable(store, warnings)
  // Nothing can be done for it before it is answered.
  await reader.findRun(runId)
  expect(warnings).toEqual([])
  await reader.answer(runId, 'c1', 'once')
  const fields = { runId, error: expect.stringContaining('absent') }
  expect(warnings).toEqual([{ message: expect.stringContaining('cannot continue'), fields }])
  await reader.close()
  const second = await office(store, payments)
  onTestFinished(() => second.runtime.close())
  expect((await eventsOf(second.runtime, runId)).at(-1)).toMatchObject({ finishReason: 'stop' })
})

test.concurrent('reading a run that another process executes builds no agents', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const warnings: unknown[] = []
  let pay = () => {}
  const paid = new Promise<void>(resolve => {
    pay = resolve
  })
  const execute = async () => {
    await paid
    return { paid: true }
  }
  const { runtime } = await office(store, [], { needsApproval: false, execute })
  const reader = await unbuildable(store, warnings)
  onTestFinished(async () => {
    await Promise.all([runtime.close(), reader.close()])
  })
  const { runId } = await runtime.start({ sessionId: 's', text: 'Pay.' })
  expect(await reader.listRuns(KEY)).toMatchObject([{ runId, finished: false }])
  const followed = eventsOf(reader, runId)
  pay()
  expect((await followed).at(-1)).toMatchObject({ finishReason: 'stop' })
  await reader.findRun(runId)
  expect(warnings).toEqual([])
})

test.concurrent('a runtime that is closed while it looks for an abandoned run builds no agents for it', async () => {
  const { runtime, runId, store } = await abandoned([])
  await runtime.close()
  let ask = () => {}
  const isAsked = new Promise<void>(resolve => {
    ask = resolve
  })
  let reply = () => {}
  const replied = new Promise<void>(resolve => {
    reply = resolve
  })
  const slow = faultyStore(store, {
    runs: {
      listUnfinished: async (listUnfinished, query) => {
        ask()
        await replied
        return listUnfinished(query)
      },
    },
  })
  const warnings: unknown[] = []
  const reader = await unbuildable(slow, warnings)
  const found = reader.findRun(runId)
  await isAsked
  await reader.close()
  reply()
  expect(await found).toMatchObject({ runId, finished: false })
  expect(warnings).toEqual([])
})

test.concurrent('a refusal reaches the model, and nothing is paid', async ({ onTestFinished }) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const { runtime } = await office(store, payments)
  onTestFinished(() => runtime.close())
  const { runId } = await runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await runtime.answer(runId, 'c1', 'no')
  const events = await eventsOf(runtime, runId)
  expect(payments).toEqual([])
  expect(events.find(({ type }) => type === 'tool-result')).toMatchObject({ isError: true })
})

test.concurrent('an answer that was given survives the process that took it', async ({ onTestFinished }) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await first.runtime.close()
  const process = crashable(store)
  const second = await office(process.store, payments, { execute: () => new Promise(() => {}) })
  await second.runtime.ready()
  await second.runtime.answer(runId, 'c1', 'once')
  await until(async () => (await store.runs.readEvents(runId)).some(({ type }) => type === 'approval-answer'))
  await process.crash()
  const third = await office(store, payments, { onUnknown: 'retry' })
  onTestFinished(() => third.runtime.close())
  await third.runtime.ready()
  const events = await eventsOf(third.runtime, runId)
  expect(payments).toHaveLength(1)
  expect(events.filter(({ type }) => type === 'approval-request')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})

test.concurrent('a refusal whose result was reported and not stored is not asked again', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await first.runtime.close()
  const process = crashable(store)
  // Events are also written by themselves: the process ends between that write and the one of the message.
  const ending = faultyStore(process.store, {
    runs: {
      saveStep: async (saveStep, step) => {
        if (step.message?.role !== 'tool') return saveStep(step)
        await store.runs.appendEvents(step.key, step.runId, step.events ?? [])
        await process.crash()
        return new Promise(() => {})
      },
    },
  })
  const second = await office(ending, payments)
  await second.runtime.ready()
  await second.runtime.answer(runId, 'c1', 'no')
  await process.over
  const reported = (await store.runs.readEvents(runId)).map(({ type }) => type)
  expect(reported).toContain('tool-result')
  const third = await office(store, payments)
  onTestFinished(() => third.runtime.close())
  await third.runtime.ready()
  const events = await eventsOf(third.runtime, runId)
  expect(payments).toEqual([])
  expect(events.filter(({ type }) => type === 'approval-request')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
})

test.concurrent('an answer that a process has read and not recorded reaches the one that continues the run', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const first = await office(store, payments)
  const { runId } = await first.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await first.runtime.close()
  const process = crashable(store)
  const endAfter = async (read: Promise<unknown>) => {
    await read
    await process.crash()
    return new Promise<never>(() => {})
  }
  const ending = faultyStore(process.store, {
    runs: {
      readSignals: (readSignals, id) => endAfter(readSignals(id)),
      takeSignals: (takeSignals, id) => endAfter(takeSignals(id)),
    },
  })
  const second = await office(ending, payments)
  await second.runtime.ready()
  await second.runtime.answer(runId, 'c1', 'once')
  await process.over
  expect(payments).toEqual([])
  const third = await office(store, payments)
  onTestFinished(() => third.runtime.close())
  await third.runtime.ready()
  const events = await eventsOf(third.runtime, runId)
  expect(payments).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})

test.concurrent('an answer that the store does not take is refused, also where the run waits in memory, and can be repeated', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const process = crashable(store)
  let isDown = true
  const down = faultyStore(process.store, {
    runs: {
      sendSignal: (sendSignal, ...args) =>
        isDown
          ? Promise.reject(new AgentError('store-unavailable', 'down', { retryable: true }))
          : sendSignal(...args),
    },
  })
  const first = await office(down, payments)
  // A caller that is asked keeps the run in memory.
  const onApproval = () => new Promise<boolean>(() => {})
  const { runId } = await first.runtime.start({ sessionId: 's', text: 'Pay.', onApproval })
  for await (const event of first.runtime.follow(runId)) if (event.type === 'approval-request') break
  await expect(first.runtime.answer(runId, 'c1', 'once')).rejects.toMatchObject({
    code: 'store-unavailable',
    retryable: true,
  })
  await process.crash()
  isDown = false
  const second = await office(store, payments)
  onTestFinished(() => second.runtime.close())
  await second.runtime.ready()
  await second.runtime.answer(runId, 'c1', 'once')
  const events = await eventsOf(second.runtime, runId)
  expect(payments).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})

test.concurrent('later messages wait behind a run that waits, and are answered after it', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const own = await office(store, payments)
  onTestFinished(() => own.runtime.close())
  const { runId } = await own.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  const next = await own.runtime.start({ sessionId: 's', text: 'And?' })
  expect(await store.runs.findRun(next.runId)).toMatchObject({ state: 'queued' })
  await own.runtime.answer(runId, 'c1', 'no')
  const events = await eventsOf(own.runtime, next.runId)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  const order = (await store.readMessages(KEY))
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content)
  expect(order).toEqual(['Pay.', 'And?'])
})

test.concurrent('a run that waits can be stopped', async ({ onTestFinished }) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const own = await office(store, payments)
  onTestFinished(() => own.runtime.close())
  const { runId } = await own.runtime.runAndCollect({ sessionId: 's', text: 'Pay.' })
  await own.runtime.stop(runId)
  const events = await eventsOf(own.runtime, runId)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
  expect(payments).toEqual([])
})

test.concurrent('a caller that reads the events of the run gets those of its continuation', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const own = await office(store, payments)
  onTestFinished(() => own.runtime.close())
  const types: string[] = []
  for await (const event of own.runtime.run({ sessionId: 's', text: 'Pay.' })) {
    types.push(event.type)
    if (event.type === 'approval-request')
      void waits(own, event.runId).then(() => own.runtime.answer(event.runId, 'c1', 'once'))
  }
  expect(types).toContain('run-resumed')
  expect(types.at(-1)).toBe('run-finish')
  expect(payments).toHaveLength(1)
})

test.concurrent('an unknown outcome that a person must judge waits like an approval', async ({
  onTestFinished,
}) => {
  const store = await openStore('memory:')
  const payments: string[] = []
  const process = crashable(store)
  const more = { needsApproval: false, onUnknown: 'ask' as const }
  let isCalled = () => {}
  const called = new Promise<void>(resolve => {
    isCalled = resolve
  })
  const first = await office(process.store, payments, {
    ...more,
    execute: () => {
      isCalled()
      return new Promise(() => {})
    },
  })
  const { runId } = await first.runtime.start({ sessionId: 's', text: 'Pay.' })
  await called
  await process.crash()
  const second = await office(store, payments, more)
  await second.runtime.ready()
  await waits(second, runId)
  await second.runtime.close()
  const third = await office(store, payments, more)
  onTestFinished(() => third.runtime.close())
  await third.runtime.ready()
  await third.runtime.answer(runId, 'c1', 'run')
  const events = await eventsOf(third.runtime, runId)
  expect(payments).toHaveLength(1)
  expect(events.filter(event => event.type === 'tool-unknown' && event.asks)).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})
