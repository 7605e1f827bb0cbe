/**
 * A turn with server tools may come back half done: `pause_turn` means that the API wants the answer so far returned
 * as it is, and goes on where it stopped. What reaches the reader is one answer: blocks are numbered on, and the
 * usage of all requests is summed.
 */
import { defined } from '../../base/defined.js'
import { isRecord } from '../../base/is-record.js'
import { AgentError } from '../../errors.js'
import type { AnthropicEventWire, AnthropicUsageWire } from './from-anthropic-stream.js'
import type { AnthropicBlockWire, AnthropicRequestWire } from './to-anthropic-request.js'

/** A turn that is still not done after so many requests is not going to be. */
const MOST_PAUSES = 10

type Send = (body: AnthropicRequestWire) => Promise<AsyncIterable<AnthropicEventWire>>

/** The events of an answer, and of those that continue it. */
export async function* continuePaused(
  body: AnthropicRequestWire,
  send: Send,
): AsyncGenerator<AnthropicEventWire> {
  let { messages } = body
  let spent: AnthropicUsageWire = {}
  let { container } = body
  let blocks = 0
  for (let pauses = 0; pauses <= MOST_PAUSES; pauses += 1) {
    const answer = new PausedAnswer(blocks, spent)
    for await (const event of await send(
      pauses === 0 ? body : { ...body, messages, ...defined({ container }) },
    )) {
      // What is no event is reported by the reader.
      const shown = isRecord(event) ? answer.add(event) : event
      if (shown !== undefined) yield shown
    }
    if (!answer.isPaused) return
    messages = withAnswer(messages, answer.content)
    spent = answer.usage
    container = answer.container ?? container
    blocks += answer.content.length
  }
  throw new AgentError(
    'provider-stream',
    `${body.model} paused its turn ${MOST_PAUSES} times without finishing it. Ask for less at once.`,
    { details: { model: body.model, providerCode: 'pause_turn' } },
  )
}

/** The answer continues the assistant's last message, if there is one. */
function withAnswer(
  messages: AnthropicRequestWire['messages'],
  content: AnthropicBlockWire[],
): AnthropicRequestWire['messages'] {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', content }]
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...content] }]
}

/** One answer's blocks, as they must be sent back. */
class PausedAnswer {
  readonly content: AnthropicBlockWire[] = []
  readonly #offset: number
  readonly #spent: AnthropicUsageWire
  readonly #json = new Map<number, string>()
  usage: AnthropicUsageWire
  container: string | undefined
  isPaused = false

  constructor(offset: number, spent: AnthropicUsageWire) {
    this.#offset = offset
    this.#spent = spent
    this.usage = spent
  }

  /** Keeps what the event says of a block, and returns the event as the reader should see it. */
  add(event: AnthropicEventWire): AnthropicEventWire | undefined {
    this.container = event.delta?.container?.id ?? event.message?.container?.id ?? this.container
    if (event.delta?.stop_reason === 'pause_turn') this.isPaused = true
    // The reader's answer ends with the last of the requests.
    if (this.isPaused && event.type === 'message_stop') return undefined
    this.#keep(event)
    const message = event.message && { ...event.message, usage: this.#sum(event.message.usage) }
    return {
      ...event,
      ...(event.index === undefined ? {} : { index: event.index + this.#offset }),
      ...(message ? { message } : {}),
      ...(event.usage ? { usage: this.#sum(event.usage) } : {}),
    }
  }

  #keep({ type, index = 0, content_block: opened, delta }: AnthropicEventWire): void {
    if (type === 'content_block_start' && opened) this.content[index] = { ...opened }
    const block = this.content[index]
    if (type !== 'content_block_delta' || !block || !delta) return
    if (delta.type === 'input_json_delta') {
      const json = (this.#json.get(index) ?? '') + (delta.partial_json ?? '')
      this.#json.set(index, json)
      block.input = parsed(json) ?? block.input
      return
    }
    for (const field of ['text', 'thinking', 'signature'] as const) {
      if (delta[field] !== undefined) block[field] = `${block[field] ?? ''}${delta[field]}`
    }
  }

  #sum(usage: AnthropicUsageWire | undefined): AnthropicUsageWire {
    for (const [name, count] of Object.entries(usage ?? {})) {
      if (typeof count !== 'number') continue
      const key = name as 'input_tokens'
      this.usage = { ...this.usage, [key]: (this.#spent[key] ?? 0) + count }
    }
    return { ...usage, ...this.usage }
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
