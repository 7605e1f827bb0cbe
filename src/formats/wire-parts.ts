/** What the readers of foreign formats have in common: neutral messages with their place, and parts of several wires. */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import type {
  MediaPart,
  Origin,
  ProviderMessage,
  ProviderPart,
  ReasoningPart,
  ToolResultPart,
} from '../provider/provider.js'

export type Fields = Record<string, unknown>

/** A neutral message, and where it is in the file. */
export interface WireMessage extends ProviderMessage {
  place: string
  /** Set when the wire has no such role: what it should have said. */
  wrongRole?: { role: string; right: string }
  /** When it was written, in milliseconds, where the file says so. */
  timestamp?: number
}

/** A neutral message that is written in the form of another program. */
export interface SourceMessage extends ProviderMessage {
  id: string
  timestamp: number
}

/**
 * A result as the tool gave it. What is no object is stored inside one, as ADK does it: `{ result }`, or `{ error }` of a
 * failure.
 */
export function bareResult({ result, isError = false }: ToolResultPart): {
  result: unknown
  isError: boolean
} {
  const [name, ...others] = isRecord(result) ? Object.keys(result) : []
  const isWrapped = others.length === 0 && (name === 'result' || (isError && name === 'error'))
  return { result: isWrapped && isRecord(result) ? result[name] : result, isError }
}

/** Arguments are a text on some wires: what is not the text of an object is judged as it is. */
export function argumentsOf(written: unknown): unknown {
  return typeof written === 'string' ? parseJson(written) : written
}

export function reasoningPart(words: string, signature: string | undefined, vendor: string): ReasoningPart {
  return reasoningFrom(words, signature, { vendor })
}

export function reasoningFrom(
  words: string,
  signature: string | undefined,
  origin: Origin | undefined,
): ReasoningPart {
  return {
    type: 'reasoning',
    text: words,
    ...(signature === undefined ? {} : { signature }),
    ...(origin === undefined ? {} : { origin }),
  }
}

/** An address or a data URL. */
export function mediaFrom(address: string, fallback: string): MediaPart {
  const inline = /^data:([^;,]*)[^,]*,/.exec(address)
  if (inline) return { type: 'media', mimeType: inline[1] || fallback, data: address.slice(inline[0].length) }
  return { type: 'media', mimeType: fallback, url: address }
}

/** A result: a text, or the texts of its parts, with its images and files. Parts that are neither are kept as JSON. */
export function toolResult(
  id: string,
  name: string,
  content: unknown,
  readPart: (part: Fields) => ProviderPart | undefined,
): ToolResultPart {
  if (!Array.isArray(content)) return { type: 'tool-result', id, name, result: content ?? '' }
  const texts: string[] = []
  const media: MediaPart[] = []
  for (const part of content) {
    if (!isRecord(part)) texts.push(typeof part === 'string' ? part : JSON.stringify(part))
    else if (typeof part.text === 'string') texts.push(part.text)
    else {
      const read = readPart(part)
      if (read?.type === 'media') media.push(read)
      else texts.push(read?.type === 'text' ? read.text : JSON.stringify(part))
    }
  }
  return {
    type: 'tool-result',
    id,
    name,
    result: texts.join('\n'),
    ...(media.length > 0 ? { media } : {}),
  }
}

/** Whether a part is a text: the wires differ only in what they call it. */
export function isTextPart(part: Fields): boolean {
  return typeof part.text === 'string' && /^(text|input_text|output_text|undefined)$/.test(String(part.type))
}

/** A part of a framework's own that no other program reads. */
export function foreignPart(vendor: string, value: unknown, words?: string): ProviderPart {
  return { type: 'vendor', vendor, value, text: words ?? JSON.stringify(value) }
}

/** What a text cites, as a part after it. */
export function citations(vendor: string, annotations: unknown): ProviderPart[] {
  const cited = recordsOf(annotations)
  if (cited.length === 0) return []
  const words = cited.map(source => [text(source.title), text(source.url)].filter(Boolean).join(', '))
  return [foreignPart(vendor, { type: 'annotations', annotations: cited }, `[Sources: ${words.join('; ')}]`)]
}

/** Milliseconds of a number or of a date as text. */
export function timeOf(value: unknown): { timestamp?: number } {
  const time = typeof value === 'string' ? Date.parse(value) : value
  return typeof time === 'number' && Number.isFinite(time) && time > 0 ? { timestamp: time } : {}
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function recordsOf(value: unknown): Fields[] {
  return listOf(value).filter(isRecord)
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function textOr(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
