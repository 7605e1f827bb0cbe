import type { StreamChunk } from '../sse.js'

/** Frames for a stream of server-sent events that carry data alone. */
export function dataFrames(values: readonly unknown[]): StreamChunk {
  const text = values.map(value => `data: ${JSON.stringify(value)}\n\n`).join('')
  return { bytes: Buffer.from(text), events: values.length }
}

/** The last frame of OpenAI's and the AI SDK's streams. */
export const DONE: StreamChunk = { bytes: Buffer.from('data: [DONE]\n\n'), events: 0 }
