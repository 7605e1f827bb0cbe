import { expect, test } from 'vitest'
import type { RunInspection } from '../../observe/inspect.js'
import { inspectLines } from './run-command.js'

const usage = {
  inputTokens: 1200,
  outputTokens: 34,
  cachedInputTokens: 1000,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 1234,
  cost: 0.0042,
}
const cut = { messages: 40, tokens: 9000, keptMessages: 12, keptTokens: 7000, shortened: [] }
const run: RunInspection = {
  runId: 'r1',
  agent: 'root',
  finishReason: 'stop',
  calls: [],
  steps: [
    {
      step: 1,
      model: 'openai/gpt-5.2',
      profile: 'openai-responses',
      stored: { messages: 52, tokens: 16_000 },
      history: { messages: 12, tokens: 7000 },
      cuts: [
        { ...cut, reason: 'token-budget', budgetTokens: 8000 },
        {
          ...cut,
          messages: 0,
          reason: 'message-limit',
          shortened: [{ callId: 'c', name: 'read_file', fromTokens: 20_000, toTokens: 500 }],
        },
      ],
      repairs: [
        { step: 'pair-calls', kind: 'k', at: 3, detail: 'Answered a call that had no answer.' },
        { step: 'steady', kind: 'prefix-break', at: 0, detail: 'It does not extend the one before it.' },
      ],
      breaks: [
        { step: 'steady', kind: 'prefix-break', at: 0, detail: 'It does not extend the one before it.' },
      ],
      mappedIds: { a: 'b' },
      sent: { messages: 13, bytes: 2048, body: {} },
      usage,
    },
  ],
  total: { requests: 1, bytes: 2048, repairs: 1, breaks: 1, usage },
}

test('/inspect shows a step from what was stored to what was sent', () => {
  expect(inspectLines(run)).toEqual([
    'run r1 · root · stop',
    '',
    'step 1 · openai/gpt-5.2 · rules of openai-responses',
    '  stored    52 messages, 16k tokens',
    '  cut       40 messages, 9k tokens, to fit 8k tokens',
    "  cut       read_file's output shortened from 20k to 500 tokens",
    '  history   12 messages, 7k tokens',
    '  repaired  Calls and their results: Answered a call that had no answer.',
    '  break     It does not extend the one before it.',
    '  ids       1 call id rewritten for the wire',
    '  sent      13 messages, 2.0 KB',
    '  counted   1.2k in (1k cached), 34 out, $0.0042',
    '',
    'total: 1 request · 2.0 KB sent · 1 repair · 1.2k in, 34 out · $0.0042',
  ])
})

test('/inspect of a run that sent nothing says so, with its error', () => {
  const error = { code: 'provider-auth', message: 'No API key.' }
  const total = { ...run.total, requests: 0 }
  expect(inspectLines({ runId: 'r2', error, calls: [], steps: [], total })).toEqual([
    'run r2 · unfinished',
    'failed: No API key.',
    '',
    'Nothing was sent to a model in this run.',
  ])
})

test('/inspect shortens long lists', () => {
  const [step] = run.steps
  const repairs = Array.from({ length: 20 }, () => ({ step: 'map-ids', kind: 'k', at: 1, detail: 'd' }))
  const steps = Array.from({ length: 15 }, () => ({ ...step!, repairs }))
  const lines = inspectLines({ ...run, steps })
  expect(lines).toContain('… 5 earlier steps')
  expect(lines.filter(line => line.includes('… 8 more repairs'))).toHaveLength(10)
})
