import { describe, expect, test } from 'vitest'
import type { Provider } from './provider.js'
import { createRegistry, parseModelReference } from './provider-registry.js'

test.each([
  ['openai/gpt-5.2', { provider: 'openai', model: 'gpt-5.2' }],
  ['openrouter/meta-llama/llama-3.3', { provider: 'openrouter', model: 'meta-llama/llama-3.3' }],
  ['gemini-2.5-flash', { model: 'gemini-2.5-flash' }],
  [' ollama/qwen3:8b ', { provider: 'ollama', model: 'qwen3:8b' }],
])('%s is split at its first slash', (reference, expected) => {
  expect(parseModelReference(reference)).toEqual(expected)
})

describe('a reference finds', () => {
  test.each([
    ['openai/gpt-5.2', 'openai', 'gpt-5.2'],
    ['anthropic/claude-opus-5', 'anthropic', 'claude-opus-5'],
    ['gemini/gemini-2.5-pro', 'gemini', 'gemini-2.5-pro'],
    ['gemini-2.5-pro', 'gemini', 'gemini-2.5-pro'],
    ['models/gemini-2.5-pro', 'gemini', 'gemini-2.5-pro'],
    ['ollama/qwen3:8b', 'ollama', 'qwen3:8b'],
    ['groq/openai/gpt-oss-120b', 'groq', 'openai/gpt-oss-120b'],
    ['demo/demo', 'demo', 'demo'],
    ['demo', 'demo', 'demo'],
  ])('%s without any configuration', (reference, id, model) => {
    const resolved = createRegistry().resolve(reference)
    expect([resolved.provider.id, resolved.model]).toEqual([id, model])
  })

  test('a configured provider by its own name', () => {
    const registry = createRegistry({ work: { type: 'openai', apiKey: 'k' } })
    expect(registry.resolve('work/gpt-5.2').provider.id).toBe('work')
  })

  test('a provider that the caller made', () => {
    const mine: Provider = { id: 'mine', describeModel: () => ({}) as never, async *generate() {} }
    expect(createRegistry({ mine }).resolve('mine/x').provider).toBe(mine)
  })

  test('the same provider every time', () => {
    const registry = createRegistry()
    expect(registry.resolve('openai/a').provider).toBe(registry.resolve('openai/b').provider)
  })
})

describe('what cannot be found', () => {
  test.each(['nobody/x', 'openai/', 'openai-compatible/x', 'unknown-model', ''])(
    '%j lists the known providers',
    reference => {
      expect(() => createRegistry({ work: { type: 'demo' } }).resolve(reference)).toThrowError(
        expect.objectContaining({
          code: 'invalid-config',
          message: expect.stringMatching(/work, gemini, openai, anthropic/),
        }),
      )
    },
  )

  test.each([
    ['gpt-5.2', 'openai/gpt-5.2'],
    ['claude-opus-5', 'anthropic/claude-opus-5'],
  ])('%s comes with a suggestion', (reference, suggestion) => {
    expect(() => createRegistry().resolve(reference)).toThrowError(suggestion)
  })
})
