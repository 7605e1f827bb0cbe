import { expect, test } from 'vitest'
import { catalogNames, describeModel } from './model-catalog.js'

test.each([
  ['openai', 'gpt-5.2-2025-12-11', 400_000, 1.75],
  ['openai', 'gpt-5-mini', 400_000, 0.25],
  ['openai', 'gpt-5.6-luna', 1_050_000, 0.2],
  ['openai', 'o3-mini', 200_000, 1.1],
  ['anthropic', 'claude-opus-4-5-20251101', 200_000, 5],
  ['anthropic', 'claude-opus-4-20250514', 200_000, 15],
  ['openrouter', 'anthropic/claude-opus-4.5', 200_000, 5],
  ['gemini', 'gemini-2.5-flash-lite', 1_048_576, 0.1],
  ['gemini', 'gemini-3.1-pro-preview', 1_048_576, 2],
  ['deepseek', 'deepseek-chat', 1_000_000, 0.28],
])('%s/%s is found by the longest row that its name continues', (type, model, contextWindow, input) => {
  expect(describeModel(type, model)).toMatchObject({
    id: model,
    known: true,
    contextWindow,
    price: { input },
  })
})

test.each([
  ['gpt-50', 'openai'],
  ['o30', 'openai'],
  ['gemini-2.55-pro', 'gemini'],
])('%s is not taken for a model whose name it only begins with', (model, type) => {
  expect(describeModel(type, model).known).toBe(false)
})

test.each(['gemini', 'openai', 'anthropic', 'openai-compatible', 'ollama'])(
  'an unknown model of %s gets a careful guess',
  type => {
    const info = describeModel(type, 'brand-new')
    expect(info).toMatchObject({ id: 'brand-new', known: false })
    expect(info.contextWindow).toBeGreaterThan(info.outputLimit)
    expect(info.price).toBeUndefined()
  },
)

test('the configuration corrects the catalogue, and undefined corrects nothing', () => {
  const models = { 'gpt-5.2': { contextWindow: 1000, name: 'Mine', outputLimit: undefined as never } }
  expect(describeModel('openai', 'gpt-5.2', { models })).toMatchObject({
    contextWindow: 1000,
    name: 'Mine',
    outputLimit: 128_000,
  })
})

test('a server’s own limit holds for every model on it', () => {
  expect(describeModel('ollama', 'qwen3:8b', { windowLimit: 8192 })).toMatchObject({
    contextWindow: 8192,
    outputLimit: 2048,
  })
})

test('every row of the catalogue has a window larger than its output and plausible prices', () => {
  for (const name of catalogNames()) {
    const { contextWindow, outputLimit, price } = describeModel('openai', name)
    expect(outputLimit, name).toBeLessThanOrEqual(contextWindow / 2)
    if (!price) continue
    expect(price.output, name).toBeGreaterThanOrEqual(price.input)
    expect(price.cachedInput ?? 0, name).toBeLessThan(price.input)
    expect(price.longContext?.input ?? price.input + 1, name).toBeGreaterThan(price.input)
  }
})

test.each([
  ['gpt-4o', { vision: true, tools: true, thinking: false }],
  ['o3-mini', { vision: false, tools: true, thinking: true }],
  ['gpt-5.2-2025-12-11', { vision: true, tools: true, thinking: true }],
  ['gpt-5.2-nano', undefined],
  ['brand-new', undefined],
])('%s has the capabilities %j', (model, capabilities) => {
  expect(describeModel('openai', model).capabilities).toEqual(capabilities)
})

test('a name that continues a known one otherwise than by a release has its limits and no price', () => {
  const info = describeModel('openai', 'gpt-5.2-nano')
  expect(info).toMatchObject({ contextWindow: 400_000, known: false })
  expect(info.price).toBeUndefined()
})

test.each([
  ['gemini', 'gemini-2.5-flash', 'gemini-2'],
  ['gemini', 'gemini-3.8-flash', 'gemini-3-strict'],
  ['anthropic', 'claude-haiku-4-5', 'anthropic-4.5'],
  ['anthropic', 'claude-opus-5', 'anthropic-4.6'],
  ['openai', 'gpt-5.2', 'openai-responses'],
  ['mistral', 'mistral-large-latest', 'mistral'],
])('%s/%s is repaired by %s', (type, model, profile) => {
  expect(describeModel(type, model).profile).toBe(profile)
})
