import {
  callPart,
  isFields,
  listOf,
  mediaOfUrl,
  mediaPart,
  otherPart,
  stringOf,
  textOf,
  type WireMessage,
  type WirePart,
} from './wire-part.js'

/** One message of Chat Completions, as OpenAI and every compatible server know it. */
export function readChatMessage(message: unknown): Omit<WireMessage, 'index'> {
  if (!isFields(message)) return { role: 'user', label: '', parts: [otherPart(message)] }
  const label = stringOf(message.role)
  if (label === 'tool') {
    const { tool_call_id: id, name, content } = message
    const named = typeof name === 'string' ? { name } : {}
    const result: WirePart = { type: 'tool-result', text: textOf(content), callId: stringOf(id), ...named }
    return { role: 'tool', label, parts: [result] }
  }
  const reasoning = stringOf(message.reasoning_content) || stringOf(message.reasoning)
  const calls = listOf(message.tool_calls).map(call => {
    const called = isFields(call) && isFields(call.function) ? call.function : {}
    return callPart(isFields(call) ? call.id : '', called.name, called.arguments)
  })
  return {
    role: label === 'assistant' ? 'assistant' : isInstruction(label) ? 'system' : 'user',
    label,
    parts: [
      ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
      ...readContent(message.content),
      ...calls,
    ],
  }
}

function isInstruction(role: string): boolean {
  return role === 'system' || role === 'developer'
}

function readContent(content: unknown): WirePart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listOf(content).map(readBlock)
}

function readBlock(block: unknown): WirePart {
  if (!isFields(block)) return otherPart(block)
  if (typeof block.text === 'string') return { type: 'text', text: block.text }
  if (isFields(block.image_url)) return mediaOfUrl(block.image_url.url)
  if (isFields(block.input_audio)) {
    return mediaPart(`audio/${stringOf(block.input_audio.format)}`, block.input_audio.data)
  }
  if (isFields(block.file)) return mediaOfUrl(block.file.file_data)
  return otherPart(block)
}
