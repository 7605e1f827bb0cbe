import {
  callPart,
  isFields,
  listOf,
  mediaPart,
  otherPart,
  stringOf,
  textOf,
  type WireMessage,
  type WirePart,
} from './wire-part.js'

/** One message of Anthropic's Messages API. */
export function readAnthropicMessage(message: unknown): Omit<WireMessage, 'index'> {
  if (!isFields(message)) return { role: 'user', label: '', parts: [otherPart(message)] }
  const label = stringOf(message.role)
  const { content } = message
  const parts: WirePart[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).flatMap(readBlock)
  const role = label === 'assistant' ? 'assistant' : parts[0]?.type === 'tool-result' ? 'tool' : 'user'
  return { role, label, parts }
}

function readBlock(block: unknown): WirePart[] {
  if (!isFields(block)) return [otherPart(block)]
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: stringOf(block.text) }]
    case 'thinking':
      return [{ type: 'reasoning', text: stringOf(block.thinking), signed: stringOf(block.signature) !== '' }]
    case 'redacted_thinking':
      return [{ type: 'reasoning', text: '', signed: true }]
    case 'tool_use':
      return [callPart(block.id, block.name, block.input)]
    case 'tool_result':
      return readResult(block)
    case 'image':
    case 'document':
      return [readSource(block.source)]
    default:
      return [otherPart(block)]
  }
}

function readResult(block: Record<string, unknown>): WirePart[] {
  const media = Array.isArray(block.content)
    ? block.content.flatMap(readBlock).filter(part => part.type === 'media')
    : []
  const result: WirePart = {
    type: 'tool-result',
    text: textOf(block.content),
    callId: stringOf(block.tool_use_id),
    ...(block.is_error === true ? { isError: true } : {}),
  }
  return [result, ...media]
}

function readSource(source: unknown): WirePart {
  if (!isFields(source)) return otherPart(source)
  if (typeof source.url === 'string') return { type: 'media', text: source.url }
  return mediaPart(source.media_type, source.data)
}
