import { defined } from '../../base/defined.js'
import { mintRedactedData, mintThinkingSignature, type ThinkingPlace } from './anthropic/signature.js'
import { mintCallSignature, mintTextSignature } from './gemini/signature.js'
import { mintEncryptedContent, mintItemId } from './openai-responses/items.js'
import { freshNonce } from './seal.js'

/** What a Gemini signature is for: a call, or (when absent) a text part. */
export interface GeminiSubject {
  readonly name: string
  readonly args: unknown
  /** The id that Gemini 3 would have minted with the call. */
  readonly id?: string
}

/** Whom a signature is made for. */
export interface SignatureOwner {
  /** The account, as the strict server that would make it is given one. Default: any. */
  readonly account?: string | undefined
}

/** What an Anthropic signature is for: the text of a thinking block, or withheld thinking. */
export type AnthropicSubject = ({ readonly thinking: string } | { readonly redacted: true }) &
  Partial<ThinkingPlace>

/** What OpenAI's encrypted content is for: a reasoning item; `added` is the early blob that must not be kept. */
export interface OpenaiSubject {
  readonly itemId?: string
  readonly stage?: 'added' | 'done'
}

/**
 * A signature that every strict server of the vendor accepts: for tests that build histories by hand.
 *
 * ```ts
 * import { mintSignature } from 'lango/testing'
 *
 * const thoughtSignature = mintSignature('gemini', { name: 'weather', args: { city: 'Oslo' }, id: 'k3j9x2ab' })
 * ```
 */
export function mintSignature(vendor: 'gemini', subject?: GeminiSubject, owner?: SignatureOwner): string
export function mintSignature(vendor: 'anthropic', subject: AnthropicSubject, owner?: SignatureOwner): string
export function mintSignature(vendor: 'openai', subject?: OpenaiSubject, owner?: SignatureOwner): string
export function mintSignature(
  vendor: 'gemini' | 'anthropic' | 'openai',
  subject?: GeminiSubject | AnthropicSubject | OpenaiSubject,
  { account }: SignatureOwner = {},
): string {
  if (vendor === 'gemini') {
    return subject === undefined
      ? mintTextSignature(account)
      : mintCallSignature(subject as GeminiSubject, account)
  }
  if (vendor === 'anthropic')
    return mintAnthropic({ ...(subject as AnthropicSubject), ...defined({ account }) })
  const { itemId = mintReasoningId(), stage = 'done' } = (subject ?? {}) as OpenaiSubject
  return mintEncryptedContent(itemId, stage, freshNonce(16), { account })
}

function mintAnthropic(subject: AnthropicSubject): string {
  const { turn = freshNonce(), index = 0, count = 1, account } = subject
  const place = { turn, index, count, account }
  return 'redacted' in subject ? mintRedactedData(place) : mintThinkingSignature(subject.thinking, place)
}

/**
 * The id of a reasoning item as the Responses server mints it.
 *
 * ```ts
 * import { mintReasoningId, mintSignature } from 'lango/testing'
 *
 * const encrypted = mintSignature('openai', { itemId: mintReasoningId() })
 * ```
 */
export function mintReasoningId(stored = false): string {
  return mintItemId({ prefix: 'rs', group: freshNonce(20), index: 0, stored, reasoned: true })
}
