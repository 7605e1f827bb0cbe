/**
 * Gemini's thought signatures and call ids. A signature on a call is bound to the call's name and arguments
 * and remembers the id that was minted with it; one on a text part is bound to nothing, because a stream may
 * deliver it on an empty part.
 */
import { canonicalJson, type JsonObject } from '../json.js'
import { freshNonce, mintSeal, openSeal, type SealClaims, sealCovers } from '../seal.js'

/** Values that Google documents for calls that no Gemini model has signed. */
const DUMMIES = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'])

export function mintCallSignature(
  call: { readonly name: string; readonly args: unknown; readonly id?: string },
  nonce = freshNonce(),
): string {
  const claims = { use: 'call', nonce, ...(call.id === undefined ? {} : { id: call.id }) }
  return mintSeal('gemini', claims, callContent(call.name, call.args))
}

export function mintTextSignature(nonce = freshNonce()): string {
  return mintSeal('gemini', { use: 'text', nonce }, '')
}

export type SignatureState = 'genuine' | 'dummy' | 'foreign' | 'misplaced'

export function signatureState(signature: unknown, call: JsonObject | undefined): SignatureState {
  if (typeof signature !== 'string') return 'foreign'
  if (DUMMIES.has(signature)) return 'dummy'
  const claims = openGemini(signature)
  if (claims === undefined) return 'foreign'
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
