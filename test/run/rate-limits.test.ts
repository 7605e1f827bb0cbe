// Requests of all runs of a process take turns under a provider's rate limit.
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { RateLimiter } from '../../src/provider/retry.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'

test.each([
  ['openai-chat', 'openai', 'gpt-4.1', { api: 'chat' }],
  ['anthropic-4.6', 'anthropic', 'claude-sonnet-4-6', {}],
] as const)(
  'a hundred runs on %s with ten requests a second: none fails, at most two of a hundred requests are refused',
  async (profile, type, model, more) => {
    const server = await startStrictProvider({ profile, requestsPerSecond: 10 })
    const { baseUrl } = server
    const runtime = await createRuntime({
      store: 'memory:',
      providers: { p: { type, apiKey: 'k', baseUrl, ...more } },
      agent: { model: `p/${model}` },
      runs: { maxRunning: 200 },
    })
    onTestFinished(async () => {
      await runtime.close()
      await server.close()
    })
    let waits = 0
    const stop = runtime.observe(event => {
      if (event.type === 'model-wait') waits += 1
    })
    const runs = Array.from({ length: 100 }, () => runtime.runAndCollect({ text: 'hello' }))
    const results = await Promise.all(runs)
    stop()
    expect(results.every(({ finishReason }) => finishReason === 'stop')).toBe(true)
    const refused = server.requests.length - 100
    expect(refused / server.requests.length).toBeLessThanOrEqual(0.02)
    expect(waits).toBeGreaterThan(50)
  },
  60_000,
)

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

  test('headers say how many are left until when; the rest waits for the reset', async () => {
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

  test('Anthropic’s headers are read, and a time in the past holds nobody', async () => {
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

  test('a refusal makes all wait for its Retry-After, then one goes at a time', async () => {
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

  test('an aborted request leaves the queue', async () => {
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

  test('a single caller never waits', async () => {
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
