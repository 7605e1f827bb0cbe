import { expect, test } from 'vitest'
import { AgentError, type AgentErrorCode } from '../errors.js'
import { DEFAULT_RETRY, type RetryPolicy, retryDelayMs, retryStream } from './retry.js'
import type { StreamEvent } from './stream-event.js'

const fail = (code: AgentErrorCode, retryable: boolean, details = {}) =>
  new AgentError(code, 'x', { retryable, details })
const OVERLOADED = fail('provider-overloaded', true)
const TEXT: StreamEvent = { type: 'text-delta', text: 'hi' }
const DONE: StreamEvent = { type: 'done', finishReason: 'stop' }

async function run(
  attempts: (StreamEvent | AgentError)[][],
  policy: Partial<RetryPolicy> = {},
  takesBack = false,
) {
  const slept: number[] = []
  const events: StreamEvent[] = []
  let sent = 0
  const stream = retryStream({
    policy: { ...DEFAULT_RETRY, random: () => 0, sleep: async delay => void slept.push(delay), ...policy },
    toError: error => error as AgentError,
    toPaused: () => fail('provider-rate-limit', true),
    takesBack,
    async *attempt() {
      for (const step of attempts[sent++] ?? []) {
        if (step instanceof AgentError) throw step
        yield step
      }
    },
  })
  let error: unknown
  try {
    for await (const event of stream) events.push(event)
  } catch (thrown) {
    error = thrown
  }
  return { sent, slept, events, error }
}

test('a request is retried while nothing was emitted, with growing delays', async () => {
  const result = await run([[OVERLOADED], [OVERLOADED], [TEXT, DONE]])
  expect(result).toEqual({ sent: 3, slept: [250, 500], events: [TEXT, DONE], error: undefined })
})

test('a request is sent at most four times', async () => {
  const result = await run(Array.from({ length: 9 }, () => [OVERLOADED]))
  expect(result).toMatchObject({ sent: 4, error: OVERLOADED })
})

test('a request is retried after usage alone, which is not shown', async () => {
  const usage: StreamEvent = { type: 'usage', usage: { inputTokens: 1, outputTokens: 0, totalTokens: 1 } }
  expect(await run([[usage, OVERLOADED], [DONE]])).toMatchObject({ sent: 2, error: undefined })
})

const RESTART: StreamEvent = { type: 'restart', error: OVERLOADED }

test('a caller that can discard text gets restart between a partial answer and the next one, and none where nothing was emitted', async () => {
  const result = await run([[TEXT, OVERLOADED], [OVERLOADED], [TEXT, DONE]], {}, true)
  expect(result).toMatchObject({ sent: 3, events: [TEXT, RESTART, TEXT, DONE], error: undefined })
})

test('a caller that can discard text gets the error of the last attempt, without restart', async () => {
  const result = await run(
    [
      [TEXT, OVERLOADED],
      [TEXT, OVERLOADED],
    ],
    { maxAttempts: 2 },
    true,
  )
  expect(result).toMatchObject({ sent: 2, events: [TEXT, RESTART, TEXT], error: OVERLOADED })
})

test('a request is not retried once something was emitted', async () => {
  expect(await run([[TEXT, OVERLOADED], [DONE]])).toMatchObject({
    sent: 1,
    events: [TEXT],
    error: OVERLOADED,
  })
})

test('a request is not retried after a permanent error', async () => {
  const rejected = fail('provider-rejected', false)
  expect(await run([[rejected], [DONE]])).toMatchObject({ sent: 1, error: rejected })
})

test('a request is not retried when the provider asks for a delay of more than a minute', async () => {
  const busy = fail('provider-rate-limit', true, { retryAfterMs: 61_000 })
  expect(await run([[busy], [DONE]])).toMatchObject({ sent: 1, error: busy, slept: [] })
})

test('a request is retried only once for a call that its own server could not read', async () => {
  const unreadable = fail('provider-rejected', true, { providerCode: 'tool_use_failed' })
  expect(await run(Array.from({ length: 5 }, () => [unreadable]))).toMatchObject({
    sent: 2,
    error: unreadable,
  })
})

test('the delay is at least the Retry-After of the provider', () => {
  const busy = fail('provider-rate-limit', true, { retryAfterMs: 34_000 })
  expect(retryDelayMs(busy, 1, { ...DEFAULT_RETRY, random: () => 0 })).toBe(34_000)
  expect(retryDelayMs(busy, 1, { ...DEFAULT_RETRY, random: () => 0.999 })).toBeLessThan(34_300)
})

test('the default sleep ends at once when its signal is aborted', async () => {
  const controller = new AbortController()
  const sleeping = DEFAULT_RETRY.sleep(3_600_000, controller.signal)
  controller.abort(new Error('stopped'))
  await expect(sleeping).rejects.toThrow('stopped')
  await expect(DEFAULT_RETRY.sleep(3_600_000, controller.signal)).rejects.toThrow('stopped')
})
