import { expect, test } from 'vitest'
import type { Provider } from './provider.js'
import { createProvider, createRegistry, parseModelReference } from './provider-registry.js'
import type { ProviderOptions } from './provider-settings.js'

test.each([
  ['openai/gpt-5.2', { provider: 'openai', model: 'gpt-5.2' }],
  ['openrouter/meta-llama/llama-3.3', { provider: 'openrouter', model: 'meta-llama/llama-3.3' }],
  ['gemini-2.5-flash', { model: 'gemini-2.5-flash' }],
  [' ollama/qwen3:8b ', { provider: 'ollama', model: 'qwen3:8b' }],
])('the reference %s is split at its first slash', (reference, expected) => {
  expect(parseModelReference(reference)).toEqual(expected)
})

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
])('the reference %s finds its provider without configuration', (reference, id, model) => {
  const resolved = createRegistry().resolve(reference)
  expect([resolved.provider.id, resolved.model]).toEqual([id, model])
})

test('a reference finds a configured provider by its name', () => {
  const registry = createRegistry({ work: { type: 'openai', apiKey: 'k' } })
  expect(registry.resolve('work/gpt-5.2').provider.id).toBe('work')
})

test('a reference finds a provider that the caller created', () => {
  const mine: Provider = { id: 'mine', describeModel: () => ({}) as never, async *generate() {} }
  expect(createRegistry({ mine }).resolve('mine/x').provider).toBe(mine)
})

test('a reference finds the same provider each time', () => {
  const registry = createRegistry()
  expect(registry.resolve('openai/a').provider).toBe(registry.resolve('openai/b').provider)
})

test.each(['nobody/x', 'openai/', 'openai-compatible/x', 'unknown-model', ''])(
  'the unknown reference %j is refused with the known providers',
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
])('the unknown reference %s is refused with a suggestion', (reference, suggestion) => {
  expect(() => createRegistry().resolve(reference)).toThrowError(suggestion)
})

test.each([
  ['an unknown type', { type: 'nobody' }, 'gemini, openai, anthropic'],
  ['an unknown preset', { type: 'openai-compatible', preset: 'nobody' }, 'ollama'],
  ['a compatible server without an address', { type: 'openai-compatible' }, 'baseUrl'],
  ['an address that is none', { type: 'openai', baseUrl: 'not a url' }, 'not a url'],
])('createProvider refuses %s', (_, options, words) => {
  expect(() => createProvider(options as ProviderOptions)).toThrowError(
    expect.objectContaining({ code: 'invalid-config', message: expect.stringContaining(words) }),
  )
})

test('createProvider refuses an unknown profile', () => {
  expect(() => createProvider({ type: 'openai', profile: 'nobody' })).toThrowError('nobody')
})

test('the id of a provider is the given one, or its preset, or its type', () => {
  expect(createProvider({ type: 'openai', id: 'work' }).id).toBe('work')
  expect(createProvider({ type: 'openai-compatible', preset: 'groq' }).id).toBe('groq')
  expect(createProvider({ type: 'gemini', id: undefined, apiKey: undefined }).id).toBe('gemini')
})

test.each([
  [{ type: 'openai' }, 'gpt-5.2', 'openai-responses'],
  [{ type: 'openai', api: 'chat' }, 'gpt-5.2', 'openai-chat'],
  [{ type: 'openai' }, 'some-gateway-model', 'openai-chat'],
  [{ type: 'openai', profile: 'mistral' }, 'gpt-5.2', 'mistral'],
  [{ type: 'openai-compatible', preset: 'groq' }, 'x', 'groq'],
  [{ type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }, 'mistral-7b', 'mistral-template'],
  [{ type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }, 'x', 'vllm'],
  [{ type: 'anthropic' }, 'claude-new', 'anthropic-4.6'],
  [{ type: 'gemini' }, 'gemini-next', 'gemini-3-strict'],
] as [ProviderOptions, string, string][])('the profile of %j for %s is %s', (options, model, profile) => {
  expect(createProvider(options).describeModel(model).profile).toBe(profile)
})

test('Ollama’s window is what the server allows', () => {
  const describe = (env: Record<string, string>) =>
    createProvider({ type: 'openai-compatible', preset: 'ollama', env }).describeModel('qwen3:8b')
      .contextWindow
  expect(describe({})).toBe(8192)
  expect(describe({ OLLAMA_CONTEXT_LENGTH: '65536' })).toBe(65_536)
})
