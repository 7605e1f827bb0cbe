// Money that cannot be overspent: a strict server keeps the bill, and no run exceeds its budget.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { checkedStore } from '../../src/store/checked-store.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { openDatabase } from '../conformance/store/drivers.js'
import { type BillingProvider, billedBy, startBilling } from '../support/billing-provider.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'

const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function billing(step: Parameters<typeof startBilling>[0]): Promise<BillingProvider> {
  const billed = await startBilling(step)
  open.push(billed.server)
  return billed
}

async function start(billed: BillingProvider, more: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: billedBy(billed.server) },
    agent: { name: 'root', model: 'bank/bill-1', tools: [searchTool] },
    ...more,
  })
  open.push(runtime)
  return runtime
}

async function eventsOf(runtime: Runtime, input: Parameters<Runtime['run']>[0]): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.run(input)) events.push(event)
  return events
}

const answer = () => ({ text: 'Yes.', outputTokens: 20 })
/** Searches for ever, for something else each time. */
const endless = (outputTokens: number) => (request: { toolChoice: unknown }, index: number) =>
  request.toolChoice === 'none'
    ? { text: 'This is what I found.', outputTokens: 30 }
    : { toolCalls: [{ name: 'search', args: { query: `q${index}` } }], outputTokens }

const stores = [
  ['memory', async () => 'memory:'],
  ['SQLite', async () => `sqlite:${join(await temporaryFolder(), 'b.db')}`],
  [
    'PostgreSQL',
    async () => {
      const database = await createStoreDatabase()
      open.push({ close: database.drop })
      return database.url
    },
  ],
] as const

describe.each(stores)('in %s', (name, address) => {
  test(`in ${name}, a run whose worst case exceeds the budget gets a lower output limit and its answer`, async () => {
    const billed = await billing(answer)
    const runtime = await start(billed, { store: await address(), budget: { perRunUsd: 0.1 } })
    const result = await runtime.runAndCollect({ text: 'Is it so?' })
    expect(result).toMatchObject({ text: 'Yes.', finishReason: 'stop' })
    // $0.10 at $40 per million are at most 2,500 tokens; some are held for a last answer.
    expect(billed.limits[0]).toBeGreaterThan(1800)
    expect(billed.limits[0]).toBeLessThan(2500)
    expect(billed.peak()).toBeLessThanOrEqual(0.1)
    expect(result.usage.cost).toBeCloseTo(billed.bill(), 9)
  })

  test(`in ${name}, a run that would never end wraps up inside its budget`, async () => {
    const billed = await billing(endless(400))
    const runtime = await start(billed, { store: await address(), limits: { maxTurns: 100 } })
    const events = await eventsOf(runtime, { text: 'Search.', budget: { perRunUsd: 0.12 } })
    const finish = events.at(-1)
    expect(finish).toMatchObject({
      type: 'run-finish',
      finishReason: 'budget',
      lastText: 'This is what I found.',
    })
    const wrapUp = events.find(event => event.type === 'wrap-up')
    expect(wrapUp).toMatchObject({ reason: 'budget', budget: { scope: 'run', limitUsd: 0.12 } })
    expect(billed.peak()).toBeLessThanOrEqual(0.12)
    // Most of it was used.
    expect(billed.bill()).toBeGreaterThan(0.06)
    expect(finish?.type === 'run-finish' && finish.usage.cost).toBeCloseTo(billed.bill(), 9)
    // The run is told in its history, and the next one has another budget.
    billed.limits.splice(0)
    const next = await runtime.runAndCollect({
      sessionId: finish?.sessionId,
      text: 'And?',
      budget: { perRunUsd: 0.03 },
    })
    expect(next.finishReason).toBe('budget')
    expect(billed.server.violations).toEqual([])
  })
})

test.each([
  [0.03, 0],
  [0.05, 0],
  [0.12, 8000],
])(
  'a run with a budget of $%f and a message of %i characters spends most of it before its last answer',
  async (perRunUsd, length) => {
    const billed = await billing(endless(50))
    const runtime = await start(billed, { limits: { maxTurns: 100 }, budget: { perRunUsd } })
    const result = await runtime.runAndCollect({ text: `Search. ${'word '.repeat(length / 5)}` })
    expect(result).toMatchObject({ finishReason: 'budget', lastText: 'This is what I found.' })
    expect(billed.peak()).toBeLessThanOrEqual(perRunUsd)
    expect(billed.bill() / perRunUsd).toBeGreaterThan(0.52)
  },
)

test('a run that can pay for nothing says so without a call', async () => {
  const billed = await billing(answer)
  const runtime = await start(billed)
  const result = await runtime.runAndCollect({ text: 'Hello', budget: { perRunUsd: 0.0001 } })
  expect(result.finishReason).toBe('budget')
  expect(result.text).toContain('the budget of $0.0001 for this run is used up')
  expect(billed.server.requests).toEqual([])
})

test('the budget of a session and of a user count over runs, and other users have their own', async () => {
  const billed = await billing(() => ({ text: 'Long.', outputTokens: 900 }))
  const runtime = await start(billed, { budget: { perSessionUsd: 0.06, perUserUsdPerDay: 0.1 } })
  const finishOf = async (input: { sessionId: string; userId: string }) =>
    (await runtime.runAndCollect({ ...input, text: 'Go' })).finishReason
  expect(await finishOf({ sessionId: 'a', userId: 'ann' })).toBe('stop')
  // What is left is a shorter answer than the model wants to give.
  expect(await finishOf({ sessionId: 'a', userId: 'ann' })).toBe('budget')
  expect(await finishOf({ sessionId: 'a', userId: 'ann' })).toBe('budget')
  expect(await finishOf({ sessionId: 'b', userId: 'ann' })).toBe('stop')
  expect(await finishOf({ sessionId: 'c', userId: 'ann' })).toBe('budget')
  expect(billed.bill()).toBeLessThanOrEqual(0.1)
  expect(await finishOf({ sessionId: 'a', userId: 'bob' })).toBe('stop')
})

test('an answer that ends at a lowered output limit ends its run as budget', async () => {
  const billed = await billing(() => ({ text: 'A long sto', outputTokens: 50_000 }))
  const runtime = await start(billed)
  const result = await runtime.runAndCollect({ text: 'Tell', budget: { perRunUsd: 0.1 } })
  expect(result).toMatchObject({ finishReason: 'budget', text: 'A long sto' })
  expect(billed.bill()).toBeLessThanOrEqual(0.1)
})

test('an agent inside a tool draws from the budget of the run', async () => {
  const { AgentTool, LlmAgent } = await import('@google/adk')
  const billed = await billing(request => {
    if (request.system.includes('INNER')) return { text: 'Inner.', outputTokens: 1000 }
    const calls = request.messages.filter(({ role }) => role === 'tool').length
    if (request.toolChoice === 'none' || calls > 6) return { text: 'Outer.' }
    return { toolCalls: [{ name: 'inner', args: { request: `part ${calls}` } }] }
  })
  const inner = new LlmAgent({
    name: 'inner',
    model: 'bank/bill-1',
    instruction: 'INNER',
    description: 'Helps.',
  })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'bank/bill-1',
    tools: [new AgentTool({ agent: inner })],
  })
  const { agent: _none, ...options } = { agent: undefined, rootAgent }
  const runtime = await createRuntime({
    ...{ store: 'memory:', providers: { bank: billedBy(billed.server) }, ...options },
  })
  open.push(runtime)
  const result = await runtime.runAndCollect({ text: 'Go', budget: { perRunUsd: 0.15 } })
  expect(result.finishReason).toBe('budget')
  expect(billed.peak()).toBeLessThanOrEqual(0.15)
  expect(result.usage.cost).toBeCloseTo(billed.bill(), 9)
})

test('a model without a known price is refused before the run is accepted, or called uncounted', async () => {
  const billed = await billing(answer)
  const providers = { bank: billedBy(billed.server, false) }
  const runtime = await start(billed, { providers, budget: { perRunUsd: 1 } })
  const refused = runtime.runAndCollect({ text: 'Hello' })
  await expect(refused).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining('price'),
  })
  expect(billed.server.requests).toEqual([])
  const ignored = await runtime.runAndCollect({ text: 'Hello', budget: { unknownPrice: 'ignore' } })
  expect(ignored).toMatchObject({ text: 'Yes.', finishReason: 'stop' })
})

test('a call that was cut off counts as its worst case, and is not sent again without money', async () => {
  const billed = await billing(answer)
  open.pop()
  await billed.server.close()
  const { startStrictProvider } = await import('../../src/testing/start-strict-provider.js')
  const cut = await startStrictProvider({ profile: 'openai-chat', faults: [{ kind: 'cut' }] })
  open.push(cut)
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: { ...billedBy(cut), retry: { baseDelayMs: 1 } } },
    agent: { name: 'root', model: 'bank/bill-1' },
    budget: { perRunUsd: 0.1 },
  })
  open.push(runtime)
  const result = await runtime.runAndCollect({ text: 'Hello' })
  // The first call and the last one: neither is sent again.
  expect(result.finishReason).toBe('budget')
  expect(cut.requests).toHaveLength(2)
})

/** A server that bills each request at its output limit when it has arrived, and resets the connection. */
async function startResetting() {
  const bills: number[] = []
  const server = createServer(async (request, response) => {
    const { max_completion_tokens: limit } = JSON.parse(await text(request))
    bills.push((limit * 40) / 1_000_000)
    response.socket?.resetAndDestroy()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  open.push({ close: () => new Promise(resolve => server.close(() => resolve())) })
  const { port } = server.address() as AddressInfo
  return { bills, baseUrl: `http://127.0.0.1:${port}/v1` }
}

const sum = (amounts: readonly number[]) => amounts.reduce((all, one) => all + one, 0)

test('a request whose connection is reset before the answer counts as spent, and is sent again only as often as the budget pays for it', async () => {
  const { bills, baseUrl } = await startResetting()
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: { ...billedBy({ baseUrl }), retry: { baseDelayMs: 1, maxAttempts: 10 } } },
    // The worst case of a call is about $0.16.
    agent: { name: 'root', model: 'bank/bill-1', maxOutputTokens: 4000 },
    budget: { perSessionUsd: 0.5 },
  })
  open.push(runtime)
  const first = await runtime.runAndCollect({ sessionId: 's', text: 'Hello' })
  expect(first.finishReason).toBe('budget')
  const second = await runtime.runAndCollect({ sessionId: 's', text: 'Hello' })
  expect(second.finishReason).toBe('budget')
  expect(bills.length).toBeGreaterThanOrEqual(3)
  expect(sum(bills)).toBeLessThanOrEqual(0.5)
  expect(sum(bills)).toBeGreaterThan(0.45)
})

test('a request whose connection is reset before the answer counts as spent when it is not sent again', async () => {
  const { bills, baseUrl } = await startResetting()
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: { ...billedBy({ baseUrl }), retry: { maxAttempts: 1 } } },
    agent: { name: 'root', model: 'bank/bill-1', maxOutputTokens: 4000 },
    budget: { perSessionUsd: 0.2 },
  })
  open.push(runtime)
  const ask = () => runtime.runAndCollect({ sessionId: 's', text: 'Hello' })
  await expect(ask()).rejects.toMatchObject({ code: 'provider-unavailable' })
  await ask().catch(() => {})
  await ask().catch(() => {})
  expect(sum(bills)).toBeLessThanOrEqual(0.2)
})

test('a connection that is refused costs nothing', async () => {
  const billed = await billing(answer)
  const gone = await startStrictProvider({ profile: 'openai-chat' })
  await gone.close()
  const runtime = await start(billed, {
    providers: { bank: billedBy(billed.server), gone: { ...billedBy(gone), retry: { baseDelayMs: 1 } } },
    budget: { perSessionUsd: 0.1 },
  })
  const failed = runtime.runAndCollect({ sessionId: 's', text: 'Hello', model: 'gone/bill-1' })
  await expect(failed).rejects.toMatchObject({ code: 'provider-unavailable', details: { isSent: false } })
  expect(await runtime.runAndCollect({ sessionId: 's', text: 'Hello' })).toMatchObject({
    finishReason: 'stop',
  })
  expect(billed.limits[0]).toBeGreaterThan(1800)
})

test('an error after a part of the answer counts as the worst case, whatever its code', async () => {
  const refused = new AgentError('provider-rate-limit', 'busy', { details: { status: 429 } })
  const provider = new ScriptedProvider([{ text: 'Half an answer', error: refused }, { text: 'Yes.' }], {
    id: 'play',
    model: { price: { input: 10, output: 40 }, outputLimit: 2000 },
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m' },
    budget: { perSessionUsd: 0.1 },
  })
  open.push(runtime)
  const ask = () => runtime.runAndCollect({ sessionId: 's', text: 'Hello' })
  await expect(ask()).rejects.toMatchObject({ code: 'provider-rate-limit' })
  await ask()
  expect(provider.requests[0]?.options?.maxOutputTokens).toBe(2000)
  expect(provider.requests[1]?.options?.maxOutputTokens).toBeLessThan(1000)
})

test('a refused request costs nothing', async () => {
  const { startStrictProvider } = await import('../../src/testing/start-strict-provider.js')
  const busy = await startStrictProvider({
    profile: 'openai-chat',
    faults: [0, 1].map(at => ({ kind: '500', at })),
  })
  open.push(busy)
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: { ...billedBy(busy), retry: { baseDelayMs: 1 } } },
    agent: { name: 'root', model: 'bank/bill-1' },
    budget: { perRunUsd: 0.1 },
  })
  open.push(runtime)
  expect(await runtime.runAndCollect({ text: 'Hello' })).toMatchObject({ finishReason: 'stop' })
  expect(busy.requests).toHaveLength(3)
})

test.each([
  ['perRun', { perRun: 1 }],
  ['perRunUsd', { perRunUsd: 0 }],
  ['perRunUsd', { perRunUsd: '1' }],
  ['unknownPrice', { unknownPrice: 'maybe' }],
])('refuses a budget with a wrong %s', async (_key, budget) => {
  const billed = await billing(answer)
  const options = { budget } as unknown as Partial<RuntimeOptions>
  await expect(start(billed, options)).rejects.toMatchObject({ code: 'invalid-config' })
  const runtime = await start(billed)
  const input = { text: 'x', budget } as unknown as Parameters<Runtime['runAndCollect']>[0]
  await expect(runtime.runAndCollect(input)).rejects.toMatchObject({ code: 'invalid-argument' })
})

test.each([
  ['draws from the budget and has a line of its own', 5, true],
  ['is replaced by rules when the budget leaves nothing for it', 0.11, false],
])('the observer of memory %s', async (_title, perSessionUsd, isPaid) => {
  const billed = await billing(request => (request.tools.length === 0 ? { text: '[]' } : answer()))
  const history = { memory: { observer: 'bank/bill-1', recall: false }, maxMessageTokenBudget: 1000 }
  const runtime = await start(billed, { history, budget: { perSessionUsd } })
  const text = 'A fact about the harbour that is long enough to be noted. '.repeat(12)
  for (let turn = 0; turn < 8; turn++)
    await runtime.runAndCollect({ sessionId: 's', text: `${turn} ${text}` })
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  await expect
    .poll(async () => (await runtime.store.memory.progress(key))?.observedSeq ?? 0, { timeout: 60_000 })
    .toBeGreaterThan(0)
  const lines = await runtime.store.spending.usage({ appName: 'lango' })
  const memory = lines.find(({ kind }) => kind === 'memory')
  if (isPaid) expect(memory?.usage.cost).toBeGreaterThan(0)
  expect(billed.peak()).toBeLessThanOrEqual(perSessionUsd)
})

test('a budget costs two commits for each model call', async () => {
  const billed = await billing((_request, index) =>
    index % 2 === 0 ? { toolCalls: [{ name: 'search', args: { query: 'a' } }] } : answer(),
  )
  const database = await openDatabase(`sqlite:${join(await temporaryFolder(), 'c.db')}`)
  const store = checkedStore(await openSqlStore(database))
  open.push(store)
  const runtime = await start(billed, { store })
  const commitsOf = async (sessionId: string, budget?: { perRunUsd: number }) => {
    const before = database.work.commits
    await runtime.runAndCollect({ text: 'Go', sessionId, ...(budget && { budget }) })
    return database.work.commits - before
  }
  await commitsOf('warm')
  // A slow run renews its lease: that commit is not of the budget.
  const leastOf = async (name: string, budget?: { perRunUsd: number }) => {
    const commits: number[] = []
    for (const time of [1, 2, 3]) commits.push(await commitsOf(`${name} ${time}`, budget))
    return Math.min(...commits)
  }
  const free = await leastOf('free')
  const paid = await leastOf('paid', { perRunUsd: 1 })
  // Two model calls. Refused reservations would be more.
  expect(paid - free).toBeLessThanOrEqual(4)
})

test('a run that ended at its budget continues with another budget, on the same model', async () => {
  const billed = await billing(endless(400))
  const runtime = await start(billed, { limits: { maxTurns: 6 } })
  const first = await eventsOf(runtime, { sessionId: 's', text: 'Search.', budget: { perRunUsd: 0.06 } })
  const { runId } = first[0] as RunEvent
  expect(first.at(-1)).toMatchObject({ finishReason: 'budget' })
  const next = await runtime.resume(runId, { budget: { perRunUsd: 0.5 } })
  expect(next.runId).not.toBe(runId)
  const events: RunEvent[] = []
  for await (const event of runtime.follow(next.runId)) events.push(event)
  expect(events[0]).toMatchObject({ model: 'bank/bill-1', sessionId: 's' })
  expect(events.at(-1)).toMatchObject({ finishReason: 'turn-limit' })
  await expect(runtime.resume(next.runId, { budget: { perRunUsd: 1 } })).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('did not end at its budget'),
  })
  await expect(runtime.resume('nobody', { budget: { perRunUsd: 1 } })).rejects.toMatchObject({
    code: 'run-not-found',
  })
})

describe('a dearer model answers instead of one that is down', () => {
  async function startWithFallback() {
    const billed = await billing(answer)
    const down = await startStrictProvider({
      profile: 'openai-chat',
      faults: Array.from({ length: 20 }, () => ({ kind: '503' as const })),
    })
    open.push(down)
    const cheap = {
      ...billedBy(down),
      retry: { maxAttempts: 1 },
      models: { 'cheap-1': { contextWindow: 200_000, outputLimit: 32_000, price: { input: 1, output: 4 } } },
    }
    const runtime = await start(billed, {
      providers: { bank: billedBy(billed.server), cheap },
      agent: { name: 'root', model: 'cheap/cheap-1', fallback: ['bank/bill-1'], tools: [searchTool] },
    })
    return { runtime, billed }
  }

  test('the price of a dearer fallback model is reserved, and the output limit is that of its price', async () => {
    const { runtime, billed } = await startWithFallback()
    const events = await eventsOf(runtime, { text: 'Is it so?', budget: { perRunUsd: 0.1 } })
    expect(events.find(({ type }) => type === 'model-switch')).toMatchObject({ to: 'bank/bill-1' })
    const finish = events.at(-1)
    expect(finish).toMatchObject({ finishReason: 'stop', lastText: 'Yes.' })
    expect(billed.limits[0]).toBeGreaterThan(1800)
    expect(billed.limits[0]).toBeLessThan(2500)
    expect(billed.peak()).toBeLessThanOrEqual(0.1)
    expect(finish?.type === 'run-finish' && finish.usage.cost).toBeCloseTo(billed.bill(), 9)
  })

  test('a fallback model that the budget cannot pay is not asked', async () => {
    const { runtime, billed } = await startWithFallback()
    const events = await eventsOf(runtime, { text: 'Is it so?', budget: { perRunUsd: 0.004 } })
    expect(events.at(-1)).toMatchObject({ finishReason: 'budget' })
    expect(billed.bill()).toBe(0)
  })
})

test.each([
  ['the demo model', { play: { type: 'demo' as const } }, 'play/demo'],
  [
    'a script',
    {
      play: new ScriptedProvider([{ text: 'Scripted.', usage: { inputTokens: 9, outputTokens: 2 } }], {
        id: 'play',
      }),
    },
    'play/any',
  ],
])('%s costs nothing and is called with any budget', async (_name, providers, model) => {
  const runtime = await createRuntime({
    store: 'memory:',
    providers,
    agent: { name: 'root', model },
    budget: { perRunUsd: 0.000001 },
  })
  open.push(runtime)
  const { finishReason, usage } = await runtime.runAndCollect({ text: 'Hello' })
  expect({ finishReason, cost: usage.cost }).toEqual({ finishReason: 'stop', cost: 0 })
})

test('a provider that copies its requests can be paid for', async () => {
  const provider = new ScriptedProvider([{ text: 'Copied.' }], {
    id: 'play',
    model: { price: { input: 1, output: 4 } },
  })
  const agent = { name: 'root', model: 'play/m' }
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent,
    budget: { perRunUsd: 1 },
  })
  open.push(runtime)
  expect(await runtime.runAndCollect({ text: 'Go' })).toMatchObject({ text: 'Copied.', finishReason: 'stop' })
})
