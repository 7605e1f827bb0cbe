import { DUMMY_SIGNATURE } from '../../../src/base/markers.js'
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

/** One content of `generateContent`. */
export function readGeminiContent(content: unknown): Omit<WireMessage, 'index'> {
  const label = isFields(content) ? stringOf(content.role) : ''
  const parts = isFields(content) ? listOf(content.parts).flatMap(readPart) : []
  const role = label === 'model' ? 'assistant' : parts[0]?.type === 'tool-result' ? 'tool' : 'user'
  return { role, label: label || 'user', parts }
}

function readPart(part: unknown): WirePart[] {
  if (!isFields(part)) return [otherPart(part)]
  const { thoughtSignature: signature } = part
  // A stand-in was made by repair, not by the provider.
  const signed = typeof signature === 'string' && signature !== DUMMY_SIGNATURE ? { signed: true } : {}
  if (isFields(part.functionCall)) {
    const { id, name, args } = part.functionCall
    return [{ ...callPart(id, name, args), ...signed }]
  }
  if (isFields(part.functionResponse)) return readResponse(part.functionResponse)
  if (isFields(part.inlineData)) return [mediaPart(part.inlineData.mimeType, part.inlineData.data)]
  if (isFields(part.fileData)) return [{ type: 'media', text: stringOf(part.fileData.fileUri) }]
  if (typeof part.text === 'string') {
    return [{ type: part.thought === true ? 'reasoning' : 'text', text: part.text, ...signed }]
  }
  return [{ ...otherPart(part), ...signed }]
}

function readResponse(response: Record<string, unknown>): WirePart[] {
  const result: WirePart = {
    type: 'tool-result',
    text: jsonText(response.response),
    callId: stringOf(response.id),
    name: stringOf(response.name),
  }
  return [result, ...listOf(response.parts).flatMap(readPart)]
}
