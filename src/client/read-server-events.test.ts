import { expect, test } from 'vitest'
import { readServerEvents, type ServerEvent } from './read-server-events.js'

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

test('reads the same events however the bytes are split, and leaves out one that was cut off', async () => {
  const bytes = new TextEncoder().encode(TEXT)
  expect(await read([bytes])).toEqual(EVENTS)
  for (let at = 1; at < bytes.length; at++) {
    expect(await read([bytes.slice(0, at), bytes.slice(at)])).toEqual(EVENTS)
  }
  expect(await read(Array.from(bytes, byte => Uint8Array.of(byte)))).toEqual(EVENTS)
})
