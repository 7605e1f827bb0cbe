import { expect, test } from 'vitest'
import { effortFor, isOpenAiModel, isReasoningModel } from './openai-models.js'

test.each([
  ['gpt-5', { effort: 'minimal' }, 'minimal'],
  ['gpt-5-mini', { effort: 'minimal' }, 'minimal'],
  ['gpt-5.2', { effort: 'minimal' }, 'low'],
  ['gpt-5.2', { budgetTokens: 0 }, 'none'],
  ['o3', { budgetTokens: 0 }, 'low'],
  ['o3', { budgetTokens: 4000 }, 'low'],
  ['gpt-5.2', { budgetTokens: 16_000 }, 'medium'],
  ['gpt-5.2', { budgetTokens: 30_000 }, 'high'],
  ['gpt-5.2', { effort: 'high', budgetTokens: 1 }, 'high'],
  ['gpt-5.2', { includeThoughts: true }, undefined],
  ['gpt-5.2', undefined, undefined],
] as const)('%s asked for %j thinks with effort %s', (model, wish, effort) => {
  expect(effortFor(model, wish)).toBe(effort)
})

test.each([
  ['gpt-5.2', true, true],
  ['o4-mini', true, true],
  ['codex-mini-latest', true, true],
  ['gpt-5-chat-latest', true, false],
  ['gpt-4.1', true, false],
  ['chatgpt-4o-latest', true, false],
  ['gpt-oss-120b', false, false],
  ['mistral-large-latest', false, false],
])('%s is OpenAI’s own: %s, and thinks: %s', (model, own, thinks) => {
  expect([isOpenAiModel(model), isReasoningModel(model)]).toEqual([own, thinks])
})
