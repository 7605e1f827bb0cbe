/**
 * Anthropic's thinking signatures. A signature is bound to the text of its block and says which answer the
 * block belongs to, where it stood there, and how many there were: so an edited, dropped or reordered block
 * is distinguished from one that Claude never issued.
 */
import { defined } from '../../../base/defined.js'
import { type JsonObject, textOf } from '../json.js'
import { freshNonce, mintSeal, openSeal, type SealClaims, sealCovers } from '../seal.js'

export interface ThinkingPlace {
  /** The same for all blocks of one answer. */
  readonly turn: string
  readonly index: number
  readonly count: number
  /** The model that made it, and what it is bound to, from Claude 5.1 on. */
  readonly model?: string
  /** The account that it was made for. */
  readonly account?: string | undefined
  readonly prefix?: { readonly full: string; readonly bare: string }
}

export function mintThinkingSignature(
  thinking: string,
  place: ThinkingPlace = { turn: freshNonce(), index: 0, count: 1 },
): string {
  return mintSeal('anthropic', { use: 'thinking', ...claimsOf(place) }, thinking)
}

export function mintRedactedData(place: ThinkingPlace = { turn: freshNonce(), index: 0, count: 1 }): string {
  return mintSeal('anthropic', { use: 'redacted', ...claimsOf(place) }, '')
}

function claimsOf({ turn, index, count, model, account, prefix }: ThinkingPlace): SealClaims {
  const bound = prefix === undefined ? {} : { full: prefix.full, bare: prefix.bare }
  return { turn, index, count, ...defined({ model, account }), ...bound }
}

export interface OpenedThinking extends ThinkingPlace {
  /** False when the text is not the one that was signed. */
  readonly unmodified: boolean
}

/** What a thinking block's seal says; nothing when Claude never made it. */
export function openThinking(block: JsonObject): OpenedThinking | undefined {
  const redacted = block.type === 'redacted_thinking'
  const claims = openSeal('anthropic', textOf(redacted ? block.data : block.signature))
  if (claims?.use !== (redacted ? 'redacted' : 'thinking')) return undefined
  return {
    turn: String(claims.turn),
    index: Number(claims.index),
    count: Number(claims.count),
    ...(claims.model === undefined ? {} : { model: String(claims.model) }),
    ...(claims.account === undefined ? {} : { account: String(claims.account) }),
    ...(claims.full === undefined
      ? {}
      : { prefix: { full: String(claims.full), bare: String(claims.bare) } }),
    unmodified: redacted || sealCovers('anthropic', claims, textOf(block.thinking)),
  }
}

export function isThinking(block: JsonObject): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}
