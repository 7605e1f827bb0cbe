import { describe, expect, test } from 'vitest'
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

describe('a request is sent again', () => {
  test('while nothing has been shown, waiting longer each time', async () => {
    const result = await run([[OVERLOADED], [OVERLOADED], [TEXT, DONE]])
    expect(result).toEqual({ sent: 3, slept: [250, 500], events: [TEXT, DONE], error: undefined })
  })

  test('four times at most', async () => {
    const result = await run(Array.from({ length: 9 }, () => [OVERLOADED]))
    expect(result).toMatchObject({ sent: 4, error: OVERLOADED })
  })

  test('after usage alone, which nobody sees', async () => {
    const usage: StreamEvent = { type: 'usage', usage: { inputTokens: 1, outputTokens: 0, totalTokens: 1 } }
    expect(await run([[usage, OVERLOADED], [DONE]])).toMatchObject({ sent: 2, error: undefined })
  })
})

describe('a caller that takes text back', () => {
  const RESTART: StreamEvent = { type: 'restart', error: OVERLOADED }

  test('gets restart between a half answer and the next one, and none where nothing was shown', async () => {
    const result = await run([[TEXT, OVERLOADED], [OVERLOADED], [TEXT, DONE]], {}, true)
    expect(result).toMatchObject({ sent: 3, events: [TEXT, RESTART, TEXT, DONE], error: undefined })
  })

  test('gets the error of the last attempt, without restart', async () => {
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
})

describe('a request is not sent again', () => {
  test('once something has been shown', async () => {
    expect(await run([[TEXT, OVERLOADED], [DONE]])).toMatchObject({
      sent: 1,
      events: [TEXT],
      error: OVERLOADED,
    })
  })

  test('when the error will not pass', async () => {
    const rejected = fail('provider-rejected', false)
    expect(await run([[rejected], [DONE]])).toMatchObject({ sent: 1, error: rejected })
  })

  test('when the provider asks for more than a minute', async () => {
    const busy = fail('provider-rate-limit', true, { retryAfterMs: 61_000 })
    expect(await run([[busy], [DONE]])).toMatchObject({ sent: 1, error: busy, slept: [] })
  })

  test('more than once for a call that its own server could not read', async () => {
    const unreadable = fail('provider-rejected', true, { providerCode: 'tool_use_failed' })
    expect(await run(Array.from({ length: 5 }, () => [unreadable]))).toMatchObject({
      sent: 2,
      error: unreadable,
    })
  })
})

test('a Retry-After is honoured, never shortened', () => {
  const busy = fail('provider-rate-limit', true, { retryAfterMs: 34_000 })
  expect(retryDelayMs(busy, 1, { ...DEFAULT_RETRY, random: () => 0 })).toBe(34_000)
  expect(retryDelayMs(busy, 1, { ...DEFAULT_RETRY, random: () => 0.999 })).toBeLessThan(34_300)
})

test('the default sleep ends at once when the signal is aborted', async () => {
  const controller = new AbortController()
  const sleeping = DEFAULT_RETRY.sleep(3_600_000, controller.signal)
  controller.abort(new Error('stopped'))
  await expect(sleeping).rejects.toThrow('stopped')
  await expect(DEFAULT_RETRY.sleep(3_600_000, controller.signal)).rejects.toThrow('stopped')
})
