import { describe, expect, test } from 'vitest'
import { createProvider } from './create-provider.js'
import type { ProviderOptions } from './provider-settings.js'

describe('options that cannot work are refused when the provider is made', () => {
  test.each([
    ['an unknown type', { type: 'nobody' }, 'gemini, openai, anthropic'],
    ['an unknown preset', { type: 'openai-compatible', preset: 'nobody' }, 'ollama'],
    ['a compatible server without an address', { type: 'openai-compatible' }, 'baseUrl'],
    ['an address that is none', { type: 'openai', baseUrl: 'not a url' }, 'not a url'],
  ])('%s', (_, options, words) => {
    expect(() => createProvider(options as ProviderOptions)).toThrowError(
      expect.objectContaining({ code: 'invalid-config', message: expect.stringContaining(words) }),
    )
  })

  test('an unknown profile', () => {
    expect(() => createProvider({ type: 'openai', profile: 'nobody' })).toThrowError('nobody')
  })
})

test('the id is what was given, or the preset, or the type', () => {
  expect(createProvider({ type: 'openai', id: 'work' }).id).toBe('work')
  expect(createProvider({ type: 'openai-compatible', preset: 'groq' }).id).toBe('groq')
  expect(createProvider({ type: 'gemini', id: undefined, apiKey: undefined }).id).toBe('gemini')
})

describe('the profile', () => {
  test.each([
    [{ type: 'openai' }, 'gpt-5.2', 'openai-responses'],
    [{ type: 'openai', api: 'chat' }, 'gpt-5.2', 'openai-chat'],
    [{ type: 'openai' }, 'some-gateway-model', 'openai-chat'],
    [{ type: 'openai', profile: 'mistral' }, 'gpt-5.2', 'mistral'],
    [{ type: 'openai-compatible', preset: 'groq' }, 'x', 'groq'],
    [{ type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }, 'mistral-7b', 'mistral'],
    [{ type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }, 'x', 'vllm'],
    [{ type: 'anthropic' }, 'claude-new', 'anthropic-4.6'],
    [{ type: 'gemini' }, 'gemini-next', 'gemini-3-strict'],
  ] as [ProviderOptions, string, string][])('of %j for %s is %s', (options, model, profile) => {
    expect(createProvider(options).describeModel(model).profile).toBe(profile)
  })
})

test('Ollama’s window is what the server allows', () => {
  const describe = (env: Record<string, string>) =>
    createProvider({ type: 'openai-compatible', preset: 'ollama', env }).describeModel('qwen3:8b')
      .contextWindow
  expect(describe({})).toBe(8192)
  expect(describe({ OLLAMA_CONTEXT_LENGTH: '65536' })).toBe(65_536)
})
