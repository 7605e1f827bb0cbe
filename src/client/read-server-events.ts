/** One server-sent event, as far as Lango's streams use them. */
export interface ServerEvent {
  event: string
  data: string
}

/** The longest event that is read: a tool's result may be large, a broken stream may be endless. */
const MAXIMUM_LENGTH = 64 * 1024 * 1024

/** Reads server-sent events. Ends when the stream does; an event that was cut off is not told. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = parse(block)
        if (event) yield event
      }
      if (rest.length > MAXIMUM_LENGTH) return
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function parse(block: string): ServerEvent | undefined {
  const data: string[] = []
  let event = 'message'
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') }
}
