/** Which parts of a request a refusal names, so that the request can be sent once more without them. */
import { isRecord } from '../base/is-record.js'
import type { MediaPart, ProviderMessage, ProviderPart } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import { mediaDigest, type Refused, sealDigest } from './refused.js'
import { mediaBeyond, mediaOf } from './repair/choose-media.js'
import { startsTurn } from './repair/match-results.js'
import type { LimitsReading } from './repair/media-limits.js'
import type { Profile } from './repair/profile.js'
import { openFields } from './sealed-fields.js'

/** A request as it was refused. */
export interface SentRequest {
  /** As they were given, to know where this turn begins. */
  readonly given: readonly ProviderMessage[]
  /** How many of them, from the first, the model has answered before. */
  readonly answered: number
  /** As they were written into the body. */
  readonly sent: readonly ProviderMessage[]
  readonly body: unknown
  readonly profile: Profile
  readonly limits: LimitsReading
}

/** What a refusal names, so that the request can be sent once more without it. `undefined`: nothing can be left out. */
export function refusedParts(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
  return refusedMedia(refusal, request, words) ?? refusedSeals(refusal, request, words)
}

/**
 * What the refusal names: the media at its place, or, where it names no place, the newest media of this turn. A turn without
 * media is refused for those of earlier turns, where the model has not answered them: the turn was aborted, or another
 * model's. A refusal that the stricter reading of a disputed limit explains makes that reading hold. `undefined`: nothing can be left out.
 */
function refusedMedia(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
  const all = request.sent.flatMap(mediaOf)
  if (all.length === 0 || refusal.cause === 'seal') return undefined
  const beyond = beyondStrictLimits(request)
  const named = refusal.place ? mediaAt(refusal, request.body, all) : []
  const limits = explains(beyond, named, refusal) ? 'strict' : 'documented'
  const isAbout = refusal.cause === 'media' && refusal.place === undefined
  const suspected = isAbout && limits === 'documented' ? suspects(request, all) : []
  const parts = (named.length > 0 ? named : suspected).map(part => [mediaDigest(part), words] as const)
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

/**
 * The media of this turn that no answer follows yet, several messages when tools ran in parallel; otherwise those of the
 * newest message of this turn that has some; otherwise all that the model has not answered.
 */
function suspects({ given, answered }: SentRequest, sent: readonly MediaPart[]): readonly MediaPart[] {
  const digests = new Set(sent.map(mediaDigest))
  const mediaIn = (messages: readonly ProviderMessage[]) =>
    messages.flatMap(mediaOf).filter(part => !part.leftOut && digests.has(mediaDigest(part)))
  const start = Math.max(
    0,
    given.findLastIndex((message, at) => startsTurn({ message, at })),
  )
  const newest = mediaIn(given.slice(Math.max(start, lastAnswer(given) + 1)))
  if (newest.length > 0) return newest
  const ofTurn = given.slice(start).findLast(message => mediaIn([message]).length > 0)
  return mediaIn(ofTurn ? [ofTurn] : given.slice(answered))
}

function lastAnswer(messages: readonly ProviderMessage[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant')
}

interface Seal {
  readonly part: Exclude<ProviderPart, { type: 'tool-result' }>
  readonly digest: string
  /** The index of the message. */
  readonly message: number
}

/**
 * What the refusal names: the seal at its place, and those of the same origin that follow, because a provider names the
 * first that it cannot read and the request is sent again only once. Without a place, all of them. `undefined`: the refusal
 * is about something else, or nothing is sealed.
 */
function refusedSeals(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
  const all = sealsOf(request)
  const first = all.find(seal => isNamed(seal, refusal, request))
  if (first === undefined && refusal.cause !== 'seal') return undefined
  const refused = first ? all.filter(seal => isLikeOrAfter(seal, first)) : all
  if (refused.length === 0) return undefined
  const digests = [...new Set(refused.map(({ digest }) => digest))]
  return { parts: digests.map(digest => [digest, words] as const), limits: 'documented' }
}

function isLikeOrAfter({ part, message }: Seal, first: Seal): boolean {
  return message >= first.message && part.origin?.account === first.part.origin?.account
}

function sealsOf({ sent }: SentRequest): Seal[] {
  return sent.flatMap(({ parts }, message) =>
    parts.flatMap(sealable).flatMap(part => {
      const digest = sealDigest(part)
      return digest === undefined ? [] : [{ part, digest, message }]
    }),
  )
}

function sealable(part: ProviderPart): readonly Seal['part'][] {
  return part.type === 'tool-result' ? (part.media ?? []) : [part]
}

/** Gateways name places of the body that they have made of ours. */
function isNamed({ part }: Seal, { cause, place }: Refusal, { body, profile }: SentRequest): boolean {
  if (place === undefined || cause === 'media' || profile.byMaker) return false
  const { node, names } = nodeAt(body, place)
  if (cause !== 'seal' && !names.some(name => SEAL_NAMES.has(name)) && !isSealedNode(node)) return false
  const texts = textsIn(node)
  return secretsOf(part).some(secret => texts.includes(secret))
}

const SEAL_NAMES: ReadonlySet<string> = new Set(
  'thinking redacted_thinking signature thought_signature thoughtSignature encrypted_content encryptedContent reasoning_details reasoningContent'.split(
    ' ',
  ),
)

function isSealedNode(node: unknown): boolean {
  return isRecord(node) && /^(redacted_)?thinking$|^reasoning$/.test(String(node.type))
}

/** The texts of a part that only its maker can read, as they stand in a body. */
function secretsOf(part: Seal['part']): string[] {
  if (part.type === 'vendor') return textsIn(part.value).filter(text => text.length >= LEAST_SECRET)
  const { signature = '' } = part
  const fields = openFields(signature)
  return fields === undefined ? [signature] : textsIn(fields).filter(text => text.length >= LEAST_SECRET)
}

/** Shorter texts of a seal are names and types. */
const LEAST_SECRET = 32

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

/** All texts below a node. */
function textsIn(node: unknown, depth = 0): string[] {
  if (typeof node === 'string') return [node]
  if (typeof node !== 'object' || node === null || depth > DEEPEST) return []
  return Object.values(node).flatMap(value => textsIn(value, depth + 1))
}
