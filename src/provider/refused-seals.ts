/** Which sealed data of a request (signatures, encrypted reasoning) a refusal names. */
import { createHash } from 'node:crypto'
import { isRecord } from '../base/is-record.js'
import { DUMMY_SIGNATURE } from '../base/markers.js'
import { nodeAt, textsIn } from './body-place.js'
import type { ProviderPart } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import type { Refused, SentRequest } from './refused.js'
import { openFields } from './sealed-fields.js'

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
export function refusedSeals(refusal: Refusal, request: SentRequest, words: string): Refused | undefined {
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
