import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { ClientError } from '../../src/client/client-error.js'
import { createClient } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { gapsIn, textOf } from '../support/event-numbers.js'
import { startServer } from '../support/start-server.js'

/** A network that breaks every stream after so many bytes, a few times, and then holds. */
function breakingFetch(breaks: number[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const bytes = String(input).includes('/events') ? breaks.shift() : undefined
    if (bytes === undefined || !response.body) return response
    let left = bytes
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.slice(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('terminated'))
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
}

test('the client gets every event once over a connection that breaks in the middle of events', async () => {
  const { client: direct, url } = await startServer()
  const { runId } = await direct.start('s1', { text: 'say 400' })
  const states: string[] = []
  const client = createClient({ baseUrl: `${url}/`, fetch: breakingFetch([5, 180, 700, 1501]) })
  const seen: RunEvent[] = []
  const onConnection = (state: string) => states.push(state)
  for await (const event of client.follow(runId, { onConnection })) seen.push(event)
  expect(gapsIn(seen)).toEqual([])
  expect(seen.at(-1)).toMatchObject({ type: 'run-finish', text: textOf(seen) })
  expect(states.filter(state => state === 'lost')).toHaveLength(4)
  expect(states.at(-1)).toBe('open')
})

test('following a run ends with its signal, and fails with 404 for an unknown run', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'hang' })
  const stop = new AbortController()
  const seen: string[] = []
  for await (const event of client.follow(runId, { signal: stop.signal })) {
    seen.push(event.type)
    if (event.type === 'text-delta') stop.abort()
  }
  expect(seen).toEqual(['run-start', 'text-delta'])
  const missing = client.follow('00000000-0000-4000-8000-000000000000').next()
  await expect(missing).rejects.toMatchObject({ code: 'not-found', status: 404 })
})

test('an unreachable server and a proxy that responds with HTML are retryable ClientErrors', async () => {
  const proxy = createServer((_request, answer) => {
    answer.writeHead(502, { 'content-type': 'text/html', 'retry-after': '7' }).end('<h1>Bad gateway</h1>')
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  const port = typeof address === 'object' ? address?.port : 0
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}` })
  const answered = await client.info().catch(error => error)
  expect(answered).toBeInstanceOf(ClientError)
  expect(answered).toMatchObject({ status: 502, retryable: true, retryAfterSeconds: 7 })
  await new Promise(resolve => proxy.close(resolve))
  await expect(client.info()).rejects.toMatchObject({ status: 0, retryable: true })
})

test('an HTML page with status 200 is a ClientError that says the answer is not JSON', async () => {
  const html = () => new Response('<h1>Sign in</h1>', { headers: { 'content-type': 'text/html' } })
  const client = createClient({ fetch: async () => html() })
  const failure = await client.sessions().catch(error => error)
  expect(failure).toBeInstanceOf(ClientError)
  expect(failure).toMatchObject({ status: 200, retryable: false, message: expect.stringMatching(/not JSON/) })
})

test('the client reads, edits and deletes the memory notes of a session', async () => {
  const { client, runtime } = await startServer()
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  await client.createSession({ sessionId: 's1' })
  const observations = ['Ann lives in Oslo.', 'Ann likes tea.', 'Ann has a dog.'].map(text => ({
    ...{ kind: 'fact' as const, priority: 1 as const, time: 1, origin: 'digest', text, fromSeq: 1, toSeq: 1 },
  }))
  const message = { role: 'user', content: 'About me.', timestamp: 1 }
  await runtime.store.appendMessage(key, message)
  await runtime.store.memory.observe(key, { observed: { afterSeq: 0, throughSeq: 1 }, observations })
  const texts = async () => (await client.memory('s1')).notes.map(({ text }) => text)
  expect(await texts()).toEqual(['Ann lives in Oslo.', 'Ann likes tea.', 'Ann has a dog.'])
  expect((await client.memory('s1', { afterNumber: 1, limit: 1 })).notes).toMatchObject([{ number: 2 }])
  const { number } = await client.editNote('s1', 1, 'Ann lives in Porto.')
  expect(await texts()).toEqual(['Ann likes tea.', 'Ann has a dog.', 'Ann lives in Porto.'])
  expect(await client.forget('s1', number)).toMatchObject({ forgotten: expect.any(Number) })
  expect(await texts()).toEqual(['Ann likes tea.', 'Ann has a dog.'])
  await client.forget('s1')
  expect(await texts()).toEqual([])
  await expect(client.memory('none')).rejects.toMatchObject({ code: 'session-not-found', status: 404 })
  await expect(client.forget('none')).rejects.toBeInstanceOf(ClientError)
})

test('the client sends its token with every call and stream', async () => {
  const { url } = await startServer({ tokens: { 'token-of-ann-0123456789': 'ann' } })
  const client = createClient({ baseUrl: url, token: 'token-of-ann-0123456789' })
  const { runId } = await client.start('s1', { text: 'say 1' })
  let last = ''
  for await (const event of client.follow(runId)) last = event.type
  expect(last).toBe('run-finish')
  await expect(createClient({ baseUrl: url }).info()).rejects.toMatchObject({ code: 'unauthorized' })
})
