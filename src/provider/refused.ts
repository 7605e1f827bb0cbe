/**
 * What a provider has refused before, by name: parts of messages, as digests. These are left out of later requests of the
 * session to the same model; the stored messages stay as they are.
 */
import { createHash } from 'node:crypto'
import { plainBase64 } from '../base/base64.js'
import { isRecord } from '../base/is-record.js'
import { DUMMY_SIGNATURE } from '../base/markers.js'
import type { AgentError } from '../errors.js'
import type { MediaPart, ProviderMessage, ProviderPart } from './provider.js'
import type { LimitsReading } from './repair/media-limits.js'

/** Plain JSON data: it is stored with the requests of a session. */
export interface Refused {
  /** By the digest of a part: the provider's words. */
  readonly parts: readonly (readonly [digest: string, words: string])[]
  /** `strict` once a provider has refused what only the stricter reading of a disputed limit refuses. */
  readonly limits: LimitsReading
}

export const NOTHING_REFUSED: Refused = { parts: [], limits: 'documented' }

/** What an error names, where it is a refusal that may be answered by the same request without that. */
export function refusedBy({ details }: AgentError): Refused | undefined {
  const { refused } = details
  return isRecord(refused) && Array.isArray(refused.parts) ? (refused as unknown as Refused) : undefined
}

/** Both together; the very first one when the second adds nothing. */
export function joinRefused(known: Refused, more: Refused): Refused {
  const digests = new Set(known.parts.map(([digest]) => digest))
  const parts = more.parts.filter(([digest]) => !digests.has(digest))
  const isStricter = more.limits === 'strict' && known.limits !== 'strict'
  if (parts.length === 0 && !isStricter) return known
  return { parts: [...known.parts, ...parts], limits: isStricter ? 'strict' : known.limits }
}

/** The messages with the refused parts marked to be left out. The very list when nothing in it was refused. */
export function markRefused(
  messages: readonly ProviderMessage[],
  { parts }: Refused,
): readonly ProviderMessage[] {
  if (parts.length === 0) return messages
  const wordsOf = new Map(parts)
  const mark = <Part extends ProviderPart>(part: Part): Part => {
    if (part.type === 'tool-result') {
      const media = part.media?.map(mark)
      return media?.some((one, index) => one !== part.media?.[index]) ? { ...part, media } : part
    }
    const seal = sealDigest(part)
    const sealRefused = seal === undefined ? undefined : wordsOf.get(seal)
    const sealed = sealRefused === undefined ? part : { ...part, sealRefused }
    const words = part.type === 'media' ? wordsOf.get(mediaDigest(part)) : undefined
    if (words === undefined) return sealed
    const reason = 'the provider refused it'
    return { ...sealed, leftOut: { kind: 'refused-by-provider', reason, source: `“${words}”` } }
  }
  return messages.map(message => {
    const marked = message.parts.map(mark)
    return marked.some((part, index) => part !== message.parts[index])
      ? { ...message, parts: marked }
      : message
  })
}

/** The same for the same bytes, however they are written. */
export function mediaDigest({ data, url = '' }: MediaPart): string {
  const text = data === undefined ? url : (plainBase64(data) ?? data)
  return createHash('sha1').update(text).digest('base64').slice(0, 16)
}

/** The name of what a part has sealed; `undefined` when there is nothing. */
export function sealDigest(part: ProviderPart): string | undefined {
  if (part.type === 'tool-result') return undefined
  if (part.signature && part.signature !== DUMMY_SIGNATURE) return digestOf(part.signature)
  return part.type === 'vendor' && holdsSeal(part.value) ? digestOf(JSON.stringify(part.value)) : undefined
}

/** What a server tool found may be encrypted, such as the pages of a search. */
function holdsSeal(value: unknown): boolean {
  return JSON.stringify(value)?.includes('"encrypted_') ?? false
}

function digestOf(text: string): string {
  return createHash('sha1').update(`seal ${text}`).digest('base64').slice(0, 16)
}
