// Requests of all runs of a process take turns under a provider's rate limit.
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { RateLimiter } from '../../src/provider/rate-limiter.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { longUnless } from '../support/tiers.js'

// A process that gets no processor for a while sends what it had spread over that time at once: tried again then.
for (const count of [25, 100]) {
  test(`${count} runs with ten requests a second: none fails, those that wait say so, and at most two requests are refused`, {
    ...longUnless(count === 25),
    retry: 2,
    timeout: 180_000,
  }, async () => {
    const server = await startStrictProvider({ profile: 'openai-chat', requestsPerSecond: 10 })
    const other = await startStrictProvider({ profile: 'openai-chat' })
    const { baseUrl } = server
    const runtime = await createRuntime({
      store: 'memory:',
      providers: {
        p: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl },
        other: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: other.baseUrl },
      },
      agent: { model: 'p/gpt-4.1' },
      runs: { maxRunning: 200 },
    })
    onTestFinished(async () => {
      await runtime.close()
      await server.close()
      await other.close()
    })
    // What is loaded by the first request would make the others late.
    await runtime.runAndCollect({ text: 'hello', model: 'other/gpt-4.1' })
    let waits = 0
    const stop = runtime.observe(event => {
      if (event.type === 'model-wait') waits += 1
    })
    const runs = Array.from({ length: count }, () => runtime.runAndCollect({ text: 'hello' }))
    const results = await Promise.all(runs)
    stop()
    expect(results.every(({ finishReason }) => finishReason === 'stop')).toBe(true)
    // A limit that nobody states can only be found by a refusal: one, the eleventh request of the first second.
    expect(server.requests.length - count).toBeLessThanOrEqual(2)
    expect(waits).toBeGreaterThan(count / 2)
  })
}

test('after a Retry-After of an hour, further runs fail at once with the time that is left, and close does not wait', async () => {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    faults: [{ at: 0, kind: '429', retryAfter: 3600 }],
  })
  onTestFinished(() => server.close())
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { paused: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: server.baseUrl } },
    agent: { model: 'paused/gpt-4.1' },
  })
  const ask = () => runtime.runAndCollect({ text: 'hello', sessionId: 's' }).catch(error => error)
  expect(await ask()).toMatchObject({
    code: 'provider-rate-limit',
    message: expect.stringContaining('It asks for a pause of 60 min.'),
    details: { status: 429, retryAfterMs: 3_600_000 },
  })
  const waits: number[] = []
  runtime.observe(event => {
    if (event.type === 'model-wait') waits.push(event.waitMs)
  })
  const second = await ask()
  expect(waits).toEqual([])
  expect(second).toMatchObject({ code: 'provider-rate-limit', retryable: true })
  expect(second.message).toMatch(/paused\/gpt-4.1 .* no request for another \d+ min\. One request a minute/)
  expect(second.details.retryAfterMs).toBeGreaterThan(3_000_000)
  expect(server.requests).toHaveLength(1)
  await runtime.close()
})

test('a run that waits for a rate limit ends at once when the runtime is closed', async () => {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    faults: [{ at: 0, kind: '429', retryAfter: 50 }],
  })
  onTestFinished(() => server.close())
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { closing: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: server.baseUrl } },
    agent: { model: 'closing/gpt-4.1' },
  })
  const waits: number[] = []
  runtime.observe(event => {
    if (event.type === 'model-wait') waits.push(event.waitMs)
  })
  // One waits for its retry, the other for its turn.
  const first = runtime.runAndCollect({ text: 'hello' })
  await expect.poll(() => waits.length, { timeout: 20_000 }).toBe(1)
  const second = runtime.runAndCollect({ text: 'hello' })
  await expect.poll(() => waits.length, { timeout: 20_000 }).toBe(2)
  const closing = performance.now()
  await runtime.close()
  expect(performance.now() - closing).toBeLessThan(20_000)
  await Promise.allSettled([first, second])
  expect(server.requests).toHaveLength(1)
})

/** Requests that begin together, to a provider that takes so many in any second, on a clock of its own. */
async function together(count: number, limit: number, { answerMs, refuseMs }: Record<string, number>) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const limiter = new RateLimiter()
  const pause = (delayMs = 0) => new Promise<void>(resolve => setTimeout(resolve, delayMs))
  const start = Date.now()
  const seen = { refused: 0, taken: [] as number[] }
  const send = async (): Promise<void> => {
    const sentAt = await limiter.take()
    await pause(refuseMs)
    const now = Date.now()
    if (seen.taken.filter(at => now - at < 1000).length < limit) {
      seen.taken.push(now)
      await pause((answerMs ?? 0) - (refuseMs ?? 0))
      return limiter.answered(true, sentAt)
    }
    seen.refused += 1
    limiter.answered(false)
    limiter.refused(1000, sentAt)
    await pause(1125)
    return send()
  }
  const all = Promise.all(Array.from({ length: count }, send))
  let isOver = false
  void all.then(() => (isOver = true))
  while (!isOver) await vi.advanceTimersByTimeAsync(10)
  const lastMs = Math.max(...seen.taken) - start - (refuseMs ?? 0)
  return { share: seen.refused / (count + seen.refused), lastMs }
}

describe.each([
  { answerMs: 40, refuseMs: 20 },
  { answerMs: 600, refuseMs: 80 },
  { answerMs: 600, refuseMs: 250 },
  { answerMs: 3000, refuseMs: 150 },
])('with answers after $answerMs ms and refusals after $refuseMs ms', times => {
  test(`a limit of ten a second refuses at most two of a hundred with answers after ${times.answerMs} ms and refusals after ${times.refuseMs} ms`, async () => {
    const { share, lastMs } = await together(100, 10, times)
    expect(share).toBeLessThanOrEqual(0.02)
    expect(lastMs).toBeLessThan(12_000)
  })

  test(`without a limit, ten requests with answers after ${times.answerMs} ms are sent at once and fifty within a second and a half`, async () => {
    expect((await together(10, Number.POSITIVE_INFINITY, times)).lastMs).toBe(0)
    expect((await together(50, Number.POSITIVE_INFINITY, times)).lastMs).toBeLessThan(1500)
  })
})

test('after the first answer of a burst, no request is sent until the others were answered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const limiter = new RateLimiter()
  const sent: number[] = []
  for (let count = 0; count < 30; count++) void limiter.take().then(at => sent.push(at))
  await vi.advanceTimersByTimeAsync(600)
  expect(sent).toHaveLength(11)
  // A busy server reads ten, one after another, for half a second, and refuses the last.
  for (const sentAt of sent.slice(0, 10)) {
    limiter.answered(true, sentAt)
    await vi.advanceTimersByTimeAsync(50)
  }
  expect(sent).toHaveLength(11)
  limiter.answered(false, sent[10])
  limiter.refused(1000, sent[10])
  await vi.advanceTimersByTimeAsync(1100)
  expect(sent).toHaveLength(12)
})

describe('turns', () => {
  afterEach(() => void vi.useRealTimers())

  function limiter() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    const made = new RateLimiter()
    const sent: number[] = []
    const start = Date.now()
    const send = () => void made.take().then(() => sent.push(Date.now() - start))
    return { made, sent, send }
  }

  test('rate limit headers allow so many requests; the rest waits for the reset', async () => {
    const { made, sent, send } = limiter()
    send()
    await vi.advanceTimersByTimeAsync(0)
    made.learn(
      new Headers({
        'x-ratelimit-limit-requests': '3',
        'x-ratelimit-remaining-requests': '2',
        'x-ratelimit-reset-requests': '800ms',
      }),
    )
    made.answered(true)
    for (let count = 0; count < 4; count++) send()
    await vi.advanceTimersByTimeAsync(700)
    expect(sent).toEqual([0, 0, 0])
    await vi.advanceTimersByTimeAsync(300)
    expect(sent).toHaveLength(5)
    expect(sent[3]).toBeGreaterThanOrEqual(800)
  })

  test('Anthropic’s rate limit headers are read, and a time in the past delays no request', async () => {
    const { made, sent, send } = limiter()
    made.learn(
      new Headers({
        'anthropic-ratelimit-requests-remaining': '0',
        'anthropic-ratelimit-requests-reset': new Date(Date.now() + 1500).toISOString(),
      }),
    )
    send()
    expect(made.waitMs).toBeGreaterThan(1000)
    await vi.advanceTimersByTimeAsync(1600)
    expect(sent).toHaveLength(1)
  })

  test('a refusal makes all requests wait for its Retry-After, then one is sent at a time', async () => {
    const { made, sent, send } = limiter()
    for (let count = 0; count < 5; count++) {
      send()
      await vi.advanceTimersByTimeAsync(10)
      made.answered(true)
    }
    send()
    await vi.advanceTimersByTimeAsync(0)
    made.answered(false)
    made.refused(2000)
    for (let count = 0; count < 3; count++) send()
    await vi.advanceTimersByTimeAsync(1900)
    expect(sent).toHaveLength(6)
    await vi.advanceTimersByTimeAsync(1200)
    const [first = 0, second = 0] = sent.slice(6)
    expect(first).toBeGreaterThanOrEqual(2050)
    // Five in two seconds, a little slower.
    expect(second - first).toBeGreaterThanOrEqual(400)
  })

  test('an aborted request leaves the queue of a rate limit', async () => {
    const { made, sent, send } = limiter()
    made.refused(1000)
    const abort = new AbortController()
    const failure = made.take(abort.signal).catch(error => error)
    send()
    abort.abort(new Error('gone'))
    expect(await failure).toMatchObject({ message: 'gone' })
    await vi.advanceTimersByTimeAsync(3000)
    expect(sent).toHaveLength(1)
  })

  const longest = {
    ms: 60_000,
    error: (waitMs: number) => new AgentError('provider-rate-limit', 'paused', { details: { waitMs } }),
  }

  test('a pause longer than the caller waits fails waiting and new requests with the true time', async () => {
    const { made } = limiter()
    const sentAt = await made.take(undefined, longest)
    made.refused(30_000, sentAt)
    const waiting = made.take(undefined, longest).catch(error => error)
    made.answered(false, sentAt)
    const until = Date.now() + 3_600_000
    made.refused(3_600_000, sentAt)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await waiting).toMatchObject({ details: { waitMs: expect.closeTo(3_600_000, -3) } })
    const waitMs = until - Date.now()
    expect(waitMs).toBeLessThanOrEqual(3_590_000)
    await expect(made.take(undefined, longest)).rejects.toMatchObject({ details: { waitMs } })
    expect(made.waitMs).toBe(waitMs)
    // No request waits: no timer is left that would hold the process.
    expect(vi.getTimerCount()).toBe(0)
  })

  test('one request a minute is sent during a long pause: a refusal renews the pause, an answer ends it', async () => {
    const { made } = limiter()
    made.refused(3_600_000, await made.take(undefined, longest))
    const isSent = async () => {
      const first = await made.take(undefined, longest).catch(() => undefined)
      await expect(made.take(undefined, longest)).rejects.toMatchObject({ code: 'provider-rate-limit' })
      return first
    }
    await vi.advanceTimersByTimeAsync(59_000)
    expect(await isSent()).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1000)
    const refused = await isSent()
    made.answered(false, refused)
    made.refused(7_200_000, refused)
    expect(made.waitMs).toBe(7_200_000)
    await vi.advanceTimersByTimeAsync(60_000)
    made.answered(true, await isSent())
    await made.take(undefined, longest)
    await made.take(undefined, longest)
    expect(made.waitMs).toBe(0)
  })

  test('a short retry limit fails no request that waits for its turn only', async () => {
    const { made } = limiter()
    let sent = 0
    for (let count = 0; count < 30; count++)
      void made.take(undefined, { ...longest, ms: 1 }).then(() => sent++)
    await vi.advanceTimersByTimeAsync(0)
    expect(sent).toBe(11)
    await vi.advanceTimersByTimeAsync(5000)
    expect(sent).toBe(30)
  })

  test('a daily limit that is used up by its headers fails requests with the time until the next one', async () => {
    const { made } = limiter()
    await made.take(undefined, longest)
    made.learn(
      new Headers({
        'x-ratelimit-limit-requests': '24',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '24h',
      }),
    )
    made.answered(true)
    await expect(made.take(undefined, longest)).rejects.toMatchObject({ details: { waitMs: 3_600_000 } })
    await vi.advanceTimersByTimeAsync(60_000)
    await made.take(undefined, longest)
  })

  test('an answer to a request that was sent before the refusal does not end the pause', async () => {
    const { made } = limiter()
    const early = await made.take()
    await vi.advanceTimersByTimeAsync(10)
    const sentAt = await made.take()
    await vi.advanceTimersByTimeAsync(10)
    made.refused(3_600_000, sentAt)
    made.answered(true, early)
    expect(made.waitMs).toBe(3_600_000)
  })

  test('a Retry-After longer than a timer can be is waited for without a busy timer', async () => {
    const { made, sent, send } = limiter()
    // Not a spy: `restoreAllMocks` of a later file would bring the timers of this test back.
    const faked = globalThis.setTimeout
    const delays: unknown[] = []
    globalThis.setTimeout = new Proxy(faked, {
      apply: (target, self, given) => {
        delays.push(given[1])
        return Reflect.apply(target, self, given)
      },
    })
    made.refused(99_999_999_000)
    send()
    await vi.advanceTimersByTimeAsync(10_000)
    globalThis.setTimeout = faked
    expect(delays).toEqual([2_147_483_647])
    expect(sent).toEqual([])
  })

  test('an aborted request leaves no timer, and one that is aborted already does not wait', async () => {
    const { made } = limiter()
    made.refused(50_000)
    const abort = new AbortController()
    const failure = made.take(abort.signal).catch(error => error)
    expect(vi.getTimerCount()).toBe(1)
    abort.abort(new Error('gone'))
    expect(await failure).toMatchObject({ message: 'gone' })
    expect(vi.getTimerCount()).toBe(0)
    await expect(made.take(abort.signal)).rejects.toMatchObject({ message: 'gone' })
  })

  test('a single caller without refusals never waits', async () => {
    const { made, sent, send } = limiter()
    for (let count = 0; count < 50; count++) {
      send()
      await vi.advanceTimersByTimeAsync(1)
      made.answered(true)
    }
    expect(sent).toHaveLength(50)
    expect(sent.at(-1)).toBe(49)
  })
})
