/** Which media of a request a refusal names, so that the request can be sent once more without them. */
import { createHash } from 'node:crypto'
import { plainBase64 } from '../base/base64.js'
import { isRecord } from '../base/is-record.js'
import { nodeAt, textsIn } from './body-place.js'
import type { MediaPart, ProviderMessage } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import type { Refused, SentRequest } from './refused.js'
import { mediaBeyond, mediaOf } from './repair/limit-media.js'
import { startsTurn } from './repair/match-results.js'

/**
 * What the refusal names: the media at its place, or, where it names no place, the newest media of this turn. A refusal
 * that the stricter reading of a disputed limit explains makes that reading hold. `undefined`: nothing can be left out.
 */
export function refusedMedia(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
  const all = request.sent.flatMap(mediaOf)
  if (all.length === 0 || refusal.cause === 'seal') return undefined
  const beyond = beyondStrictLimits(request)
  const named = refusal.place ? mediaAt(refusal, request.body, all) : []
  const limits = explains(beyond, named, refusal) ? 'strict' : 'documented'
  const isAbout = refusal.cause === 'media' && refusal.place === undefined
  const newest = isAbout && limits === 'documented' ? newestOfTurn(request.given) : []
  const parts = (named.length > 0 ? named : newest).map(part => [mediaDigest(part), words] as const)
  return parts.length === 0 && limits === 'documented' ? undefined : { parts, limits }
}

/** What a stricter reading of disputed limits would have left out of the request. */
function beyondStrictLimits({ sent, profile, limits }: SentRequest): MediaPart[] {
  if (limits === 'strict') return []
  const beyond = mediaBeyond(sent, profile.media, 'strict')
  return sent.flatMap(mediaOf).filter(part => beyond.next(part) !== undefined)
}

function explains(beyond: readonly MediaPart[], named: readonly MediaPart[], refusal: Refusal): boolean {
  if (named.length > 0) return named.some(part => beyond.includes(part))
  const isUnplaced = (refusal.isVague || refusal.cause === 'media') && !refusal.place
  return beyond.length > 0 && (refusal.isSize || isUnplaced)
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
  'image document pdf image_url input_image input_file file inline_data inlineData file_data fileData'.split(
    ' ',
  ),
)

function isMediaNode(node: unknown): boolean {
  if (!isRecord(node)) return false
  return MEDIA_NAMES.has(String(node.type)) || Object.keys(node).some(key => MEDIA_NAMES.has(key))
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

/** The same for the same bytes, however they are written. */
export function mediaDigest({ data, url = '' }: MediaPart): string {
  const text = data === undefined ? url : (plainBase64(data) ?? data)
  return createHash('sha1').update(text).digest('base64').slice(0, 16)
}
