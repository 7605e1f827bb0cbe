/**
 * Which parts of a request a refusal names, so that the request can be sent once more without them, and what a provider
 * has refused before, by name: parts of messages, as digests. These are left out of later requests of the session to the
 * same model; the stored messages stay as they are.
 */

import { createHash } from 'node:crypto'
import { plainBase64 } from '../base/base64.js'
import { isRecord } from '../base/is-record.js'
import type { AgentError } from '../errors.js'
import type { MediaPart, ProviderMessage, ProviderPart } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import { mediaBeyondLimits } from './repair/choose-media.js'
import { itemsOf, mediaOf } from './repair/limit-media.js'
import { startsTurn } from './repair/match-results.js'
import type { LimitsReading } from './repair/media-limits.js'
import type { MediaRules } from './repair/profile.js'

/** A request as it was refused. */
export interface SentRequest {
  /** As they were given, to know where this turn begins. */
  readonly given: readonly ProviderMessage[]
  /** As they were written into the body. */
  readonly sent: readonly ProviderMessage[]
  readonly body: unknown
  readonly media: MediaRules
  readonly limits: Refused['limits']
}

/**
 * What the refusal names: the media at its place, or, where it names no place, the newest media of this turn. A refusal
 * that the stricter reading of a disputed limit explains makes that reading hold. `undefined`: nothing can be left out.
 */
export function refusedMedia(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
  const all = request.sent.flatMap(mediaOf)
  if (all.length === 0) return undefined
  const beyond = beyondStrictLimits(request)
  const named = refusal.place ? mediaAt(refusal, request.body, all) : []
  const limits = explains(beyond, named, refusal) ? 'strict' : 'documented'
  const isAbout = refusal.cause === 'media' && refusal.place === undefined
  const newest = isAbout && limits === 'documented' ? newestOfTurn(request.given) : []
  const parts = (named.length > 0 ? named : newest).map(part => [mediaDigest(part), words] as const)
  return parts.length === 0 && limits === 'documented' ? undefined : { parts, limits }
}

/** What a stricter reading of disputed limits would have left out of the request. */
function beyondStrictLimits({ sent, media, limits }: SentRequest): MediaPart[] {
  if (limits === 'strict') return []
  const items = itemsOf(sent)
  const out = mediaBeyondLimits(items, media.limits, 'strict')
  return sent.flatMap(mediaOf).filter((_, index) => out.has(index))
}

function explains(beyond: readonly MediaPart[], named: readonly MediaPart[], refusal: Refusal): boolean {
  if (named.length > 0) return named.some(part => beyond.includes(part))
  return beyond.length > 0 && (refusal.isSize || (refusal.cause === 'media' && !refusal.place))
}

/** The media that stand at a place of the body. */
function mediaAt({ place = [], cause }: Refusal, body: unknown, all: readonly MediaPart[]): MediaPart[] {
  const { node, names } = nodeAt(body, place)
  // Other faults of a result that holds a picture are not faults of the picture.
  if (cause !== 'media' && !names.some(name => MEDIA_NAMES.has(name)) && !isMediaNode(node)) return []
  const texts = textsIn(node)
  return all.filter(({ data, url }) => texts.some(text => holds(text, data ?? url ?? '')))
}

const MEDIA_NAMES: ReadonlySet<string> = new Set(
  'image document image_url input_image input_file file inline_data inlineData file_data fileData'.split(' '),
)

function isMediaNode(node: unknown): boolean {
  if (!isRecord(node)) return false
  return MEDIA_NAMES.has(String(node.type)) || Object.keys(node).some(key => MEDIA_NAMES.has(key))
}

/** As far as the place can be followed; names of union members that the body does not have are passed over. */
function nodeAt(body: unknown, place: readonly string[]): { node: unknown; names: readonly string[] } {
  // Places of AWS's validation count from one.
  const first = place.includes('member') ? 1 : 0
  let node = body
  for (const name of place) {
    const next = Array.isArray(node) ? node[Number(name) - first] : childOf(node, name)
    if (next !== null && typeof next === 'object') node = next
    else if (/^\d+$/.test(name)) return { node: undefined, names: [] }
  }
  return { node, names: place }
}

function childOf(node: unknown, name: string): unknown {
  if (!isRecord(node)) return undefined
  const camel = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  return node[name] ?? node[camel]
}

const DEEPEST = 12

function textsIn(node: unknown, depth = 0): string[] {
  if (typeof node === 'string') return [node]
  if (typeof node !== 'object' || node === null || depth > DEEPEST) return []
  return Object.values(node).flatMap(value => textsIn(value, depth + 1))
}

/** Base64 alone or at the end of a data URL. */
function holds(text: string, data: string): boolean {
  return data !== '' && (text === data || (text.startsWith('data:') && text.endsWith(data)))
}

/** The media of the newest message of this turn that has some. */
function newestOfTurn(messages: readonly ProviderMessage[]): readonly MediaPart[] {
  const start = messages.findLastIndex((message, at) => startsTurn({ message, at }))
  const newest = messages.slice(Math.max(start, 0)).findLast(message => shownIn(message).length > 0)
  return newest ? shownIn(newest) : []
}

function shownIn(message: ProviderMessage): MediaPart[] {
  return mediaOf(message).filter(part => part.leftOut === undefined)
}

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
    const words = part.type === 'media' ? wordsOf.get(mediaDigest(part)) : undefined
    if (words === undefined) return part
    const reason = 'the provider refused it'
    return { ...part, leftOut: { kind: 'refused-by-provider', reason, source: `“${words}”` } }
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
