import { describe, expect, test } from 'vitest'
import type { StoredMessage } from './message.js'
import {
  costOf,
  fromUsageMetadata,
  type RunUsage,
  sessionUsage,
  sumUsage,
  toUsageMetadata,
  type Usage,
  withCost,
} from './usage.js'

const used = (given: Partial<RunUsage>): RunUsage => ({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
  ...given,
})

const PRICE = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 }
const MILLION = 1_000_000

test.each<[string, Partial<RunUsage>, Partial<typeof PRICE>, number]>([
  ['input and output', { inputTokens: MILLION, outputTokens: MILLION }, {}, 18],
  [
    'cached input, which is part of the input',
    { inputTokens: MILLION, cachedInputTokens: MILLION / 2 },
    {},
    1.65,
  ],
  [
    'written cache, which is part of the input',
    { inputTokens: MILLION, cacheWriteTokens: MILLION },
    {},
    3.75,
  ],
  ['reasoning, which is part of the output', { outputTokens: MILLION, reasoningTokens: MILLION }, {}, 15],
  ['nothing', {}, {}, 0],
  [
    'more cache than input, which some servers report',
    { inputTokens: 10, cachedInputTokens: MILLION },
    {},
    0.000003,
  ],
])('the cost of %s', (_name, usage, price, dollars) => {
  expect(costOf(used(usage), { ...PRICE, ...price })).toBeCloseTo(dollars, 10)
})

test('caches without a price of their own cost what input costs', () => {
  const usage = used({ inputTokens: MILLION, cachedInputTokens: 1000, cacheWriteTokens: 1000 })
  expect(costOf(usage, { input: 2, output: 1 })).toBeCloseTo(2, 10)
})

test('a sum of usage has a cost when all parts have one', () => {
  const parts = [
    withCost(used({ inputTokens: 1000, totalTokens: 1000 }), PRICE),
    withCost(used({ outputTokens: 1000, totalTokens: 1000 }), PRICE),
  ]
  expect(sumUsage(parts)).toMatchObject({ inputTokens: 1000, outputTokens: 1000, totalTokens: 2000 })
  expect(sumUsage(parts).cost).toBeCloseTo(0.018, 10)
})

test('a sum of usage has no cost when the price of a part is unknown', () => {
  const parts = [withCost(used({ inputTokens: 5 }), PRICE), withCost(used({ inputTokens: 5 }), undefined)]
  expect(sumUsage(parts)).not.toHaveProperty('cost')
  expect(sumUsage(parts).inputTokens).toBe(10)
})

test('a sum of no usage is free', () => {
  expect(sumUsage([]).cost).toBe(0)
})

describe('a session', () => {
  const message = (extra?: Record<string, unknown>): StoredMessage => ({
    role: 'assistant',
    content: 'x',
    timestamp: 0,
    seq: 1,
    tokens: 1,
    ...(extra ? { extra } : {}),
  })
  const usageMetadata = {
    promptTokenCount: 100,
    candidatesTokenCount: 10,
    thoughtsTokenCount: 5,
    cachedContentTokenCount: 20,
    totalTokenCount: 115,
  }

  test('the usage of a session is what its messages report, thoughts counted as output', () => {
    const total = sessionUsage([message(), message({ usageMetadata }), message({ usageMetadata })])
    expect(total).toEqual(
      used({
        inputTokens: 200,
        outputTokens: 30,
        cachedInputTokens: 40,
        reasoningTokens: 10,
        totalTokens: 230,
      }),
    )
  })

  test('the usage of a session has a cost when its messages name their models', () => {
    const named = message({ usageMetadata, modelVersion: 'anthropic/claude-sonnet-4-6' })
    const priceOf = (reference: string) => (reference === 'anthropic/claude-sonnet-4-6' ? PRICE : undefined)
    expect(sessionUsage([message(), named], priceOf).cost).toBeCloseTo(
      costOf(fromUsageMetadata(usageMetadata), PRICE),
      10,
    )
    expect(sessionUsage([named, message({ usageMetadata })], priceOf)).not.toHaveProperty('cost')
  })
})

test.each<[string, Usage]>([
  ['input and output', { inputTokens: 10, outputTokens: 4, totalTokens: 14 }],
  [
    'cache reads, cache writes and reasoning',
    {
      inputTokens: 100,
      outputTokens: 40,
      cachedInputTokens: 20,
      cacheWriteTokens: 30,
      reasoningTokens: 15,
      totalTokens: 140,
    },
  ],
  [
    'zeros that were reported',
    { inputTokens: 1, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, totalTokens: 1 },
  ],
])('usage with %s is the same after storing and reading', (_name, usage) => {
  const stored = JSON.parse(JSON.stringify(toUsageMetadata(usage))) as object
  expect(fromUsageMetadata(stored)).toEqual(used(usage))
  const kept = Object.values(usage).filter(value => value !== undefined)
  expect(Object.keys(stored)).toHaveLength(kept.length)
})

test('rows that do not name cache writes count none', () => {
  expect(fromUsageMetadata({ promptTokenCount: 7, totalTokenCount: 7 }).cacheWriteTokens).toBe(0)
  expect(fromUsageMetadata({ cacheWriteTokenCount: 'many' }).cacheWriteTokens).toBe(0)
})
