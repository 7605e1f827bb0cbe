import type { MediaPart, ProviderMessage, ProviderPart } from '../provider/provider.js'
import { sealSignature } from '../provider/provider.js'
import type { Content, Part } from './sdk.js'

/** Neutral messages as ADK's contents: the way back from `convertMessages`. */
export function toContents(messages: readonly ProviderMessage[]): Content[] {
  return messages.map(message => ({
    role: message.role === 'assistant' ? 'model' : 'user',
    parts: message.parts.flatMap(toParts),
  }))
}

function toParts(part: ProviderPart): Part[] {
  switch (part.type) {
    case 'text':
      return [{ text: part.text, ...signatureOf(part) }]
    case 'reasoning':
      return [{ text: part.text, thought: true, ...signatureOf(part) }]
    case 'tool-call': {
      const args = (part.args ?? {}) as Record<string, unknown>
      return [{ functionCall: { id: part.id, name: part.name, args }, ...signatureOf(part) }]
    }
    case 'tool-result': {
      const response = (part.result ?? {}) as Record<string, unknown>
      const media = (part.media ?? []).map(toMedia)
      return [{ functionResponse: { id: part.id, name: part.name, response } }, ...media]
    }
    case 'media':
      return [{ ...toMedia(part), ...signatureOf(part) }]
    case 'vendor':
      return part.vendor === 'gemini'
        ? [{ ...(part.value as Part), ...signatureOf(part) }]
        : [{ text: part.text }]
  }
}

function signatureOf(part: Exclude<ProviderPart, { type: 'tool-result' }>): { thoughtSignature?: string } {
  if (part.signature === undefined) return {}
  const redacted = part.type === 'reasoning' && part.redacted === true
  return { thoughtSignature: sealSignature(part.signature, part.origin ?? { vendor: 'gemini' }, redacted) }
}

function toMedia(part: MediaPart): Part {
  const named = part.name === undefined ? {} : { displayName: part.name }
  if (part.data !== undefined) return { inlineData: { mimeType: part.mimeType, data: part.data, ...named } }
  return { fileData: { mimeType: part.mimeType, fileUri: part.url ?? '', ...named } }
}
