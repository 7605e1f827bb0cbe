import { createParser, type ParseError } from 'eventsource-parser'
import { ClientError } from './client-error.js'

/** One server-sent event, as far as Lango's streams use them. */
export interface ServerEvent {
  event: string
  data: string
}

/** The longest event that is read: a tool's result may be large, a broken stream may be endless. */
const MAXIMUM_LENGTH = 64 * 1024 * 1024

/** Reads server-sent events. Ends when the stream does; an event that was cut off is left out. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const found: ServerEvent[] = []
  let tooLong = false
  const parser = createParser({
    maxBufferSize: MAXIMUM_LENGTH,
    onEvent: ({ event = 'message', data }) => found.push({ event, data }),
    // Fields that are unknown or cannot be read are ignored, as the standard asks.
    onError: ({ type }: ParseError) => {
      tooLong ||= type === 'max-buffer-size-exceeded'
    },
  })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      parser.feed(decoder.decode(value, { stream: true }))
      yield* found.splice(0)
      if (tooLong) throw eventTooLong()
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Asking again would bring the same event again, so this is not retried. */
function eventTooLong(): ClientError {
  const megabytes = MAXIMUM_LENGTH / 1024 / 1024
  const detail = `An event of the run is longer than ${megabytes} MB and was not read. Read the session's messages instead.`
  const problem = { type: 'about:blank', title: 'Too large', status: 0, detail, retryable: false }
  return new ClientError({ ...problem, code: 'too-large' })
}
