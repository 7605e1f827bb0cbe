/**
 * Fields in which gateways carry what is signed, because Chat Completions has none: `reasoning_details` (OpenRouter) and
 * `extra_content` (Google's endpoint with OpenAI's API, and gateways before it). They are kept in the signature of a part,
 * as base64 of their JSON, and sent back as they came.
 */
import { isRecord } from '../../base/is-record.js'
import { DUMMY_SIGNATURE } from '../../base/markers.js'
import type { ProviderPart, TextPart, ToolCallPart } from '../provider.js'
import { openDetails, openFields, type ReasoningDetail, sealFields } from '../sealed-fields.js'

/** Gathers the details of a stream, in which one entry may come in fragments that share their type and index. */
export class StreamedDetails {
  readonly #details: Record<string, unknown>[] = []

  /** Adds those of one delta, and returns the words in them. */
  add(details: readonly unknown[] | null | undefined): string {
    let words = ''
    for (const detail of details ?? []) {
      if (!isRecord(detail)) continue
      words += wordsOf(detail)
      const begun = this.#details.findLast(other => isContinued(other, detail))
      if (begun) append(begun, detail)
      else this.#details.push({ ...detail })
    }
    return words
  }

  /** All of them as a signature; `undefined` when there were none. */
  get seal(): string | undefined {
    return this.#details.length === 0 ? undefined : sealFields(this.#details)
  }
}

function wordsOf({ text, summary }: ReasoningDetail): string {
  if (typeof text === 'string') return text
  return typeof summary === 'string' ? summary : ''
}

function isContinued(begun: ReasoningDetail, { type, index, id }: ReasoningDetail): boolean {
  if (begun.type !== type || typeof index !== 'number' || begun.index !== index) return false
  return begun.id == null || id == null || begun.id === id
}

const STREAMED: ReadonlySet<string> = new Set(['text', 'summary', 'data'])

function append(begun: Record<string, unknown>, fragment: ReasoningDetail): void {
  for (const [key, value] of Object.entries(fragment)) {
    if (value === null || value === undefined) continue
    const before = begun[key]
    if (STREAMED.has(key) && typeof before === 'string' && typeof value === 'string')
      begun[key] = before + value
    else if (before === null || before === undefined || key === 'signature') begun[key] = value
  }
}

/** The details of an assistant message, with the stand-ins for calls that have none. */
export function detailsOf(parts: readonly ProviderPart[]): ReasoningDetail[] {
  return parts.flatMap(part => {
    if (part.type === 'reasoning') return openDetails(part.signature)
    return part.type === 'tool-call' && part.signature === DUMMY_SIGNATURE ? [standIn(part)] : []
  })
}

function standIn({ id }: ToolCallPart): ReasoningDetail {
  return { type: 'reasoning.encrypted', id, data: DUMMY_SIGNATURE, format: 'google-gemini-v1', index: 0 }
}

/** The `extra_content` of a call or of a text, where it has one. */
export function extraContentOf(part: ToolCallPart | TextPart | undefined): {
  extra_content?: Record<string, unknown>
} {
  if (part?.signature === DUMMY_SIGNATURE)
    return { extra_content: { google: { thought_signature: DUMMY_SIGNATURE } } }
  const fields = openFields(part?.signature)
  return isRecord(fields) ? { extra_content: fields } : {}
}
