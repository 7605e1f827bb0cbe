import { expect, test } from 'vitest'
import type { StreamEvent } from '../stream-event.js'
import { type ChatChunkWire, fromChatStream } from './from-chat-stream.js'

const CONTEXT = { provider: 'openai', model: 'm', origin: { vendor: 'openai', model: 'm' } }

async function read(chunks: readonly ChatChunkWire[]): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  const stream = (async function* () {
    yield* chunks
  })()
  for await (const event of fromChatStream(stream, CONTEXT)) events.push(event)
  return events
}

test('pages that an answer cites are its sources, with the text that they support', async () => {
  const page = { url: 'https://a.example/rain', title: 'Rain', start_index: 0, end_index: 9 }
  const events = await read([
    { choices: [{ index: 0, delta: { content: 'It rains ' } }] },
    { choices: [{ index: 0, delta: { content: 'today.', annotations: [{ url_citation: page }, {}] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ])
  expect(events.find(({ type }) => type === 'metadata')).toEqual({
    type: 'metadata',
    metadata: {
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://a.example/rain', title: 'Rain' } }],
        groundingSupports: [{ segment: { text: 'It rains ' }, groundingChunkIndices: [0] }],
      },
    },
  })
})
