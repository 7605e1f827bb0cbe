/** The size of a request, for what it may cost at most. */
import type { GenerateRequest, ProviderPart } from '../provider/provider.js'
import { CALL_TOKENS, estimateTokens, MEDIA_TOKENS, MESSAGE_TOKENS, utf8Length } from '../session/tokens.js'

/** The estimated tokens of everything that is sent. */
export function countRequest({ messages, tools = [], options, serverTools = [] }: GenerateRequest): number {
  const parts = messages.flatMap(message => message.parts)
  const bytes = parts.reduce((all, part) => all + bytesOf(part), 0)
  const others = jsonLength(tools.map(({ gemini: _twin, ...tool }) => tool)) + jsonLength(serverTools)
  const schema = jsonLength(options?.responseSchema ?? {})
  return (
    Math.ceil((bytes + others + schema) / BYTES_PER_TOKEN) +
    2 * messages.length * MESSAGE_TOKENS +
    FRAME_TOKENS
  )
}

/** What vendors add to every request. */
const FRAME_TOKENS = 32

function bytesOf(part: ProviderPart): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return bytesOfText(part.text)
    case 'tool-call':
      return CALL_BYTES + part.name.length + jsonLength(part.args)
    case 'tool-result':
      return [...(part.media ?? [])].reduce(
        (all, one) => all + bytesOf(one),
        CALL_BYTES + part.name.length + jsonLength(part.result),
      )
    case 'media':
      // An image has one or two thousand tokens, whatever its size; documents and sound grow with theirs.
      return (
        BYTES_PER_TOKEN *
        (2 * MEDIA_TOKENS + (part.mimeType.startsWith('image/') ? 0 : (part.data?.length ?? 0) / 32))
      )
    case 'vendor':
      return jsonLength(part.value)
  }
}

const BYTES_PER_TOKEN = 4
/** Ids and names of fields, in calls and results. */
const CALL_BYTES = 2 * CALL_TOKENS * BYTES_PER_TOKEN

function jsonLength(value: unknown): number {
  return bytesOfText(JSON.stringify(value) ?? '')
}

/** A reservation is the worst case: the higher of the estimate and a quarter of the bytes. */
function bytesOfText(text: string): number {
  return Math.max(utf8Length(text), Math.ceil(BYTES_PER_TOKEN * estimateTokens(text)))
}
