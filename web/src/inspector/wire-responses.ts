import {
  callPart,
  isFields,
  listOf,
  mediaOfUrl,
  otherPart,
  stringOf,
  textOf,
  type WireMessage,
  type WirePart,
} from './wire-part.js'

/** One item of the Responses API: a message, a thought, a call or a result. */
export function readResponsesItem(item: unknown): Omit<WireMessage, 'index'> {
  if (!isFields(item)) return { role: 'user', label: '', parts: [otherPart(item)] }
  switch (item.type) {
    case 'function_call': {
      const { call_id: id, name, arguments: args } = item
      return { role: 'assistant', label: 'function_call', parts: [callPart(id, name, args)] }
    }
    case 'function_call_output':
      return { role: 'tool', label: 'function_call_output', parts: readOutput(item) }
    case 'reasoning': {
      const signed = typeof item.encrypted_content === 'string' ? { signed: true } : {}
      const thought: WirePart = { type: 'reasoning', text: textOf(item.summary), ...signed }
      return { role: 'assistant', label: 'reasoning', parts: [thought] }
    }
    default:
      return readMessage(item)
  }
}

function readMessage(item: Record<string, unknown>): Omit<WireMessage, 'index'> {
  const label = stringOf(item.role)
  if (label === '') return { role: 'assistant', label: stringOf(item.type), parts: [otherPart(item)] }
  const { content } = item
  const parts: WirePart[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).map(readBlock)
  const role = label === 'assistant' ? 'assistant' : label === 'user' ? 'user' : 'system'
  return { role, label, parts }
}

function readOutput(item: Record<string, unknown>): WirePart[] {
  const media = listOf(item.output)
    .map(readBlock)
    .filter(part => part.type === 'media')
  return [{ type: 'tool-result', text: textOf(item.output), callId: stringOf(item.call_id) }, ...media]
}

function readBlock(block: unknown): WirePart {
  if (!isFields(block)) return otherPart(block)
  if (typeof block.text === 'string') return { type: 'text', text: block.text }
  if (block.type === 'input_image') return mediaOfUrl(block.image_url)
  if (block.type === 'input_file') return mediaOfUrl(block.file_data ?? block.file_url)
  return otherPart(block)
}
