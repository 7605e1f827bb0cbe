import {
  callPart,
  isFields,
  jsonText,
  listOf,
  mediaPart,
  otherPart,
  stringOf,
  type WireMessage,
  type WirePart,
} from './wire-part.js'

/** One message of Lango's own neutral shape, which the offline demo model is given as it is. */
export function readNeutralMessage(message: unknown): Omit<WireMessage, 'index'> {
  if (!isFields(message)) return { role: 'user', label: '', parts: [otherPart(message)] }
  const label = stringOf(message.role)
  const role = label === 'assistant' || label === 'tool' || label === 'system' ? label : 'user'
  return { role, label, parts: listOf(message.parts).map(readPart) }
}

function readPart(part: unknown): WirePart {
  if (!isFields(part)) return otherPart(part)
  const signed = typeof part.signature === 'string' && part.signature !== '' ? { signed: true } : {}
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, text: stringOf(part.text), ...signed }
    case 'tool-call':
      return { ...callPart(part.id, part.name, part.args), ...signed }
    case 'tool-result':
      return {
        type: 'tool-result',
        text: jsonText(part.result),
        callId: stringOf(part.id),
        name: stringOf(part.name),
        ...(part.isError === true ? { isError: true } : {}),
      }
    case 'media':
      return typeof part.url === 'string'
        ? { type: 'media', text: part.url }
        : mediaPart(part.mimeType, part.data)
    default:
      return otherPart(part)
  }
}
