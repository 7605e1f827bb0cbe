// What a run reports while it works is what the store says about it later: tokens and dollars, cache writes included.
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { fromMessages } from '../../src/transcript/from-messages.js'
import type { ChatMessage } from '../../web/src/state/api.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
/** A write to the cache costs more than input: counted as input, 100,000 of them would be $0.075 short. */
const PRICE = {
  input: 3,
  output: 15,
  cachedInput: 0.3,
  cacheWrite: 3.75,
  cacheWrite1h: 6,
  longContext: {
    above: 200_000,
    input: 6,
    output: 22.5,
    cachedInput: 0.6,
    cacheWrite: 7.5,
    cacheWrite1h: 12,
  },
}

const open: Runtime[] = []

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

async function start(store: string, price = PRICE): Promise<Runtime> {
  const provider = new ScriptedProvider(
    [
      {
        toolCalls: [{ name: 'search', args: { query: 'a' } }],
        usage: { inputTokens: 100_000, outputTokens: 10, cachedInputTokens: 0, cacheWriteTokens: 100_000 },
      },
      {
        toolCalls: [{ name: 'search', args: { query: 'b' } }],
        usage: {
          inputTokens: 250_000,
          outputTokens: 100,
          cachedInputTokens: 100_000,
          cacheWriteTokens: 100_000,
          cacheWrite1hTokens: 40_000,
        },
      },
      {
        text: 'done',
        usage: {
          inputTokens: 100_300,
          outputTokens: 40,
          cachedInputTokens: 100_000,
          cacheWriteTokens: 200,
          reasoningTokens: 15,
        },
      },
    ],
    { id: 'play', model: { price } },
  )
  const agent = { name: 'root', model: 'play/m', tools: [searchTool] }
  const runtime = await createRuntime({ store, providers: { play: provider }, agent })
  open.push(runtime)
  return runtime
}

async function playOnce(runtime: Runtime) {
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) events.push(event)
  const steps = events.flatMap(event => (event.type === 'usage' ? [event.usage] : []))
  const finish = events.find(event => event.type === 'run-finish')
  return { steps, total: finish?.usage }
}

/** The footer of the answer, which the page shows below the bubble. */
function footerOf(messages: readonly ChatMessage[]) {
  return fromMessages(messages, []).find(entry => entry.kind === 'footer')
}

describe.each(['memory', 'SQLite', 'PostgreSQL'])('in %s', kind => {
  const address = async () => {
    if (kind === 'PostgreSQL') {
      const database = await createStoreDatabase()
      onTestFinished(() => database.drop())
      return database.url
    }
    return kind === 'memory' ? 'memory:' : `sqlite:${join(await temporaryFolder(), 'cost.db')}`
  }

  test(`live usage, stored usage in ${kind}, the chat bubble, the inspector and the usage of the day show one cost`, async () => {
    const runtime = await start(await address())
    const { steps, total } = await playOnce(runtime)
    expect(steps.map(usage => usage.cacheWriteTokens)).toEqual([100_000, 100_000, 200])
    const long = 0.3 + 0.06 + 0.45 + 0.48 + 0.00225
    expect(total?.cost).toBeCloseTo(0.37515 + long + 0.0003 + 0.03 + 0.00075 + 0.0006, 12)

    expect(await runtime.usage(KEY)).toEqual(total)
    const messages = await runtime.messages(KEY)
    expect(messages.flatMap(({ usage }) => (usage ? [usage] : []))).toEqual(steps)
    expect(footerOf(messages)).toMatchObject({ cost: total?.cost, totalTokens: total?.totalTokens })

    const [run] = await runtime.listRuns(KEY)
    const inspection = await runtime.inspect(run?.runId ?? '')
    const inspected = inspection?.steps.map(step => step.usage?.cost ?? Number.NaN) ?? []
    expect(inspected).toEqual(steps.map(usage => usage.cost))
    const [line, ...others] = await runtime.usageByDay()
    expect(others).toEqual([])
    const { cost = Number.NaN, ...tokens } = line?.usage ?? {}
    expect(cost).toBeCloseTo(total?.cost ?? Number.NaN, 9)
    // How long a cache keeps what was written is in the cost of the day, and not in its tokens.
    const { cacheWrite1hTokens, ...counted } = total ?? {}
    expect(cacheWrite1hTokens).toBe(40_000)
    expect({ ...tokens, cost: total?.cost }).toEqual(counted)
  })
})

test('a session that is opened by another process costs what it cost before', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'cost.db')}`
  const first = await start(store)
  const { total } = await playOnce(first)
  const second = await start(store)
  expect(await second.usage(KEY)).toEqual(total)
})

test('a price that changes does not change what was spent: messages, session and usage of the day agree', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'cost.db')}`
  const first = await start(store)
  const { steps, total } = await playOnce(first)
  const dearer = await start(store, { ...PRICE, input: 300, output: 1500 })
  expect(await dearer.usage(KEY)).toEqual(total)
  const messages = await dearer.messages(KEY)
  expect(messages.flatMap(({ usage }) => (usage ? [usage] : []))).toEqual(steps)
  const [line] = await dearer.usageByDay()
  expect(line?.usage.cost).toBeCloseTo(total?.cost ?? Number.NaN, 9)
})

test('the bubble shows no cost when the price of one step is unknown', () => {
  const usage = {
    inputTokens: 1,
    outputTokens: 1,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    totalTokens: 2,
  }
  const answer = (seq: number, cost: { cost?: number }): ChatMessage => ({
    seq,
    role: 'assistant',
    author: 'root',
    timestamp: seq,
    tokens: 1,
    parts: [{ type: 'text', text: 'said' }],
    usage: { ...usage, ...cost },
  })
  expect(footerOf([answer(1, { cost: 0.5 }), answer(2, { cost: 0.25 })])).toMatchObject({ cost: 0.75 })
  expect(footerOf([answer(1, { cost: 0.5 }), answer(2, {})])).not.toHaveProperty('cost')
})
