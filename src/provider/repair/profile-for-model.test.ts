import { expect, test } from 'vitest'
import { profileForModel } from './profile-for-model.js'

test.each([
  ['gemini', 'gemini-2.5-flash', 'gemini-2'],
  ['gemini', 'models/gemini-2.0-flash-001', 'gemini-2'],
  ['gemini', 'gemini-1.5-pro', 'gemini-2'],
  ['gemini', 'gemini-3-pro-preview', 'gemini-3'],
  ['gemini', 'gemini-3.1-pro', 'gemini-3'],
  ['gemini', 'gemini-3.5-flash', 'gemini-3'],
  ['gemini', 'gemini-3.5-flash-lite', 'gemini-3-strict'],
  ['gemini', 'gemini-3.6-flash', 'gemini-3-strict'],
  ['gemini', 'gemini-3.8-pro', 'gemini-3-strict'],
  ['gemini', 'gemini-4-ultra', 'gemini-3-strict'],
  ['gemini', 'gemini-flash-latest', 'gemini-3-strict'],
  ['anthropic', 'claude-3-5-sonnet-20241022', 'anthropic-4.5'],
  ['anthropic', 'claude-sonnet-4-20250514', 'anthropic-4.5'],
  ['anthropic', 'claude-opus-4-1-20250805', 'anthropic-4.5'],
  ['anthropic', 'claude-haiku-4-5', 'anthropic-4.5'],
  ['anthropic', 'claude-sonnet-4-5@20250929', 'anthropic-4.5'],
  ['anthropic', 'claude-opus-4-6', 'anthropic-4.6'],
  ['anthropic', 'claude-opus-4-8', 'anthropic-4.6'],
  ['anthropic', 'claude-fable-5', 'anthropic-4.6'],
  ['anthropic', 'claude-instant-1.2', 'anthropic-4.5'],
  ['anthropic', 'something-new', 'anthropic-4.6'],
  ['openai', 'gpt-5.2', 'openai-responses'],
  ['mistral', 'mistral-large-latest', 'mistral'],
  ['deepseek', 'deepseek-reasoner', 'deepseek-thinking'],
  ['groq', 'llama-3.3-70b-versatile', 'groq'],
  ['cerebras', 'qwen-3', 'groq'],
  ['ollama', 'mistral', 'ollama'],
  ['openai-compatible', 'mistralai/Mixtral-8x7B', 'mistral'],
  ['openai-compatible', 'deepseek-ai/DeepSeek-V3.2', 'deepseek-thinking'],
  ['openai-compatible', 'my-model', 'vllm'],
])('%s/%s has the profile %s', (type, model, profile) => {
  expect(profileForModel(type, model)).toBe(profile)
})

test('OpenAI’s models over Chat Completions have their own profile', () => {
  expect(profileForModel('openai', 'gpt-4o', 'chat')).toBe('openai-chat')
})
