/**
 * Neutral messages as stored ones, for an import. Each becomes the content that ADK would have had for it, so that
 * thoughts, signatures, media and the parts of other programs are stored as those of a run are.
 */

import { eventToMessage } from '../adk/session/event-to-message.js'
import { isRecord } from '../base/is-record.js'
import { DEFAULT_AGENT_NAME } from '../base/names.js'
import { type MediaPart, type ProviderPart, sealSignature } from '../provider/provider.js'
import type { Message } from '../session/message.js'
import type { Fields, WireMessage } from './wire-parts.js'

export interface StoredFrom {
  /** The agent that the answers are stored under. Default: Lango's default agent. */
  author?: string | undefined
  /** When the messages were written that have no time of their own. */
  now: number
}

export function neutralToMessages(
  messages: readonly WireMessage[],
  { author = DEFAULT_AGENT_NAME, now }: StoredFrom,
): Message[] {
  return messages.flatMap(({ role, parts, timestamp = now }) => {
    const isUser = role === 'user' || role === 'system'
    const event = {
      author: isUser && !parts.some(part => part.type === 'tool-result') ? 'user' : author,
      content: { role: role === 'assistant' ? 'model' : 'user', parts: parts.map(toPart) },
      timestamp,
    }
    // The converter reads the fields that are there.
    const { id: _id, ...message } =
      eventToMessage(event as unknown as Parameters<typeof eventToMessage>[0]) ?? {}
    if (!isMessage(message)) return []
    return [role === 'system' ? { ...message, role } : message]
  })
}

function isMessage(message: Partial<Message>): message is Message {
  return message.role !== undefined
}

function toPart(part: ProviderPart): Fields {
  const signed = signatureOf(part)
  switch (part.type) {
    case 'text':
      return { text: part.text, ...signed }
    case 'reasoning':
      return { text: part.text, thought: true, ...signed }
    case 'tool-call':
      return { functionCall: { id: part.id, name: part.name, args: part.args }, ...signed }
    case 'tool-result': {
      const { id, name, result, isError, media = [] } = part
      const response = isRecord(result) ? result : isError ? { error: result } : { result }
      const parts = media.map(toMedia)
      return { functionResponse: { id, name, response, ...(parts.length > 0 ? { parts } : {}) } }
    }
    case 'media':
      return { ...toMedia(part), ...signed }
    case 'vendor':
      if (part.vendor === 'gemini' && isRecord(part.value)) return { ...part.value, ...signed }
      return { text: part.text, partMetadata: { lango: { vendor: part.vendor, value: part.value } } }
    default:
      // A part of no kind, from a malformed file: what it holds is kept as text.
      part satisfies never
      return { text: JSON.stringify(part) }
  }
}

function toMedia({ mimeType, data, url, name }: MediaPart): Fields {
  const displayName = name === undefined ? {} : { displayName: name }
  if (data !== undefined) return { inlineData: { mimeType, data, ...displayName } }
  return { fileData: { mimeType, fileUri: url ?? '', ...displayName } }
}

function signatureOf(part: ProviderPart): { thoughtSignature?: string } {
  if (part.type === 'tool-result' || !('origin' in part || 'signature' in part)) return {}
  const { signature, origin = { vendor: 'gemini' } } = part
  if (signature === undefined && origin.vendor === 'gemini') return {}
  const redacted = part.type === 'reasoning' && part.redacted === true
  return { thoughtSignature: sealSignature(signature, origin, redacted) }
}
