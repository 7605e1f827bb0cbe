/**
 * Gemini's thought signatures and call ids. A signature on a call is bound to the call's name and arguments
 * and remembers the id that was minted with it; one on a text part is bound to nothing, because a stream may
 * deliver it on an empty part.
 */
import { defined } from '../../../base/defined.js'
import { canonicalJson, type JsonObject } from '../json.js'
import { freshNonce, mintSeal, openSeal, type SealClaims, sealCovers, sealOpensFor } from '../seal.js'

/** Values that Google documents for calls that no Gemini model has signed. */
const DUMMIES = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'])

export function mintCallSignature(
  call: { readonly name: string; readonly args: unknown; readonly id?: string | undefined },
  account?: string,
): string {
  const claims = { use: 'call', nonce: freshNonce(), ...defined({ id: call.id, account }) }
  return mintSeal('gemini', claims, callContent(call.name, call.args))
}

export function mintTextSignature(account?: string): string {
  return mintSeal('gemini', { use: 'text', nonce: freshNonce(), ...defined({ account }) }, '')
}

export type SignatureState = 'genuine' | 'dummy' | 'foreign' | 'misplaced'

export function signatureState(
  signature: unknown,
  call: JsonObject | undefined,
  account?: string,
): SignatureState {
  if (typeof signature !== 'string') return 'foreign'
  if (DUMMIES.has(signature)) return 'dummy'
  const claims = openGemini(signature)
  if (claims === undefined || !sealOpensFor(account, claims)) return 'foreign'
  if (call === undefined) return 'genuine'
  const covers = sealCovers('gemini', claims, callContent(String(call.name ?? ''), call.args ?? {}))
  return claims.use === 'call' && covers ? 'genuine' : 'misplaced'
}

/** The id that was minted together with this signature. */
export function mintedId(signature: unknown): string | undefined {
  const claims = typeof signature === 'string' ? openGemini(signature) : undefined
  return typeof claims?.id === 'string' ? claims.id : undefined
}

/** Bytes fields may come back in the other base64 alphabet. */
function openGemini(signature: string): SealClaims | undefined {
  return openSeal('gemini', signature.replaceAll('-', '+').replaceAll('_', '/'))
}

function callContent(name: string, args: unknown): string {
  return `${name}\n${canonicalJson(args)}`
}
