import { expect, test } from 'vitest'
import { ClientError } from './client-error.js'
import { createClient, readServerEvents, type ServerEvent } from './create-client.js'

async function read(pieces: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = []
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  for await (const event of readServerEvents(body)) events.push(event)
  return events
}

const TEXT = [
  'retry: 1000\n\n',
  ': still here\n\n',
  'id: 1\ndata: {"text":"größe 😀"}\n\n',
  'id: 2\r\ndata: first\r\ndata: second\r\n\r\n',
  'event: reconnect\nretry: 1000\ndata: {}\n\n',
  'id: 3\ndata: cut o',
].join('')

const EVENTS = [
  { event: 'message', data: '{"text":"größe 😀"}' },
  { event: 'message', data: 'first\nsecond' },
  { event: 'reconnect', data: '{}' },
]

test('the client reads the same events however the bytes are split, and leaves out one that was cut off', async () => {
  const bytes = new TextEncoder().encode(TEXT)
  expect(await read([bytes])).toEqual(EVENTS)
  for (let at = 1; at < bytes.length; at++) {
    expect(await read([bytes.slice(0, at), bytes.slice(at)])).toEqual(EVENTS)
  }
  expect(await read(Array.from(bytes, byte => Uint8Array.of(byte)))).toEqual(EVENTS)
})

test.each<[string, string, ServerEvent[]]>([
  ['a byte order mark', '\uFEFFdata: a\n\n', [{ event: 'message', data: 'a' }]],
  [
    'lines that end in CR',
    'event: x\rdata: a\r\rdata: b\r\r\n',
    [
      { event: 'x', data: 'a' },
      { event: 'message', data: 'b' },
    ],
  ],
  ['a field without a space or a value', 'data\ndata:a\nevent\n\n', [{ event: 'message', data: '\na' }]],
  [
    'fields that nobody knows',
    'other: 1\ndata: a\nid: 7\nretry: soon\n\n',
    [{ event: 'message', data: 'a' }],
  ],
  ['an event without data', 'event: x\n\ndata: a\n\n', [{ event: 'message', data: 'a' }]],
  ['a comment within an event', 'data: a\n: note\ndata: b\n\n', [{ event: 'message', data: 'a\nb' }]],
])('the client reads %s of an event stream', async (_name, text, expected) => {
  const bytes = new TextEncoder().encode(text)
  expect(await read([bytes])).toEqual(expected)
  expect(await read(Array.from(bytes, byte => Uint8Array.of(byte)))).toEqual(expected)
})

/** The shortest of three readings, in milliseconds. */
async function shortest(pieces: readonly Uint8Array[]): Promise<number> {
  const times: number[] = []
  for (let time = 0; time < 3; time++) {
    const start = performance.now()
    await read(pieces)
    times.push(performance.now() - start)
  }
  return Math.min(...times)
}

test('one event of megabytes in many pieces takes as long as the same bytes in small events', async () => {
  const pieceLength = 2048
  const count = 1024
  const text = 'x'.repeat(pieceLength - 'data: \n\n'.length)
  const small = new TextEncoder().encode(`data: ${text}\n\n`)
  const yardstick = Array.from({ length: count }, () => small)
  const within = new TextEncoder().encode('x'.repeat(pieceLength))
  const huge = [
    new TextEncoder().encode('data: '),
    ...Array.from({ length: count }, () => within),
    new TextEncoder().encode('\n\n'),
  ]
  const [event] = await read(huge)
  expect(event?.data.length).toBe(pieceLength * count)
  // A reader that looks at all it has again for each piece takes hundreds of times as long.
  expect(await shortest(huge)).toBeLessThan(20 * (await shortest(yardstick)))
}, 60_000)

test('an event longer than the limit ends the stream with an error that says so', async () => {
  const piece = new TextEncoder().encode('x'.repeat(1024 * 1024))
  const pieces = [new TextEncoder().encode('data: '), ...Array.from({ length: 65 }, () => piece)]
  await expect(read(pieces)).rejects.toMatchObject({ code: 'too-large', retryable: false })
})

test.each([
  ['a page with status 200', () => new Response('<html>Welcome</html>', { status: 200 }), 200, false],
  [
    'a page of a proxy with status 502',
    () => new Response('<html>Bad gateway</html>', { status: 502 }),
    502,
    true,
  ],
  ['an unreachable server', () => Promise.reject(new TypeError('fetch failed')), 0, true],
])('%s is a ClientError', async (_name, answer, status, retryable) => {
  const client = createClient({ baseUrl: 'http://127.0.0.1:1', fetch: async () => answer() })
  const error = await client.info().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(ClientError)
  expect(error).toMatchObject({ code: 'internal', status, retryable })
})
