/**
 * Signatures that prove themselves. A seal is base64 of a vendor-like prefix, a MAC and claims; the key is
 * fixed per vendor, so a seal minted by one server is accepted by another of the same vendor in another
 * process, while a foreign, altered or re-used one is recognised. The keys protect nothing: they only tell
 * genuine from made up.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { isObject } from './json.js'

export type SealingVendor = 'gemini' | 'anthropic' | 'openai'

/** What a seal says of itself: a label for its use, and whatever its vendor binds it to. */
export type SealClaims = Readonly<Record<string, string | number | boolean>>

/** Bytes that make a seal look like the vendor's: `Co0C…`, `ErUB…`, `gAAAAA…`. */
const PREFIXES: Readonly<Record<SealingVendor, Buffer>> = {
  gemini: Buffer.from([0x0a, 0x8d, 0x02]),
  anthropic: Buffer.from([0x12, 0xb5, 0x01]),
  openai: Buffer.from([0x80, 0x00, 0x00, 0x00, 0x00, 0x69]),
}

const MAC_BYTES = 18

export function mintSeal(vendor: SealingVendor, claims: SealClaims, content: string): string {
  const payload = Buffer.from(JSON.stringify({ ...claims, content: digest(vendor, content) }))
  const bytes = Buffer.concat([PREFIXES[vendor], mac(vendor, payload), payload])
  return vendor === 'openai' ? bytes.toString('base64url') : bytes.toString('base64')
}

const opened = new Map<string, SealClaims | undefined>()
const OPENED_LIMIT = 4096

/** The claims of a genuine seal, otherwise nothing. Histories repeat their seals, so answers are kept a while. */
export function openSeal(vendor: SealingVendor, seal: string): SealClaims | undefined {
  const key = `${vendor} ${seal}`
  if (opened.has(key)) return opened.get(key)
  if (opened.size >= OPENED_LIMIT) opened.clear()
  const claims = readSeal(vendor, seal)
  opened.set(key, claims)
  return claims
}

function readSeal(vendor: SealingVendor, seal: string): SealClaims | undefined {
  const prefix = PREFIXES[vendor]
  const bytes = Buffer.from(seal, 'base64')
  const payload = bytes.subarray(prefix.length + MAC_BYTES)
  // Decoding ignores what is not base64, so the text itself must be the one that was minted.
  const text = vendor === 'openai' ? bytes.toString('base64url') : bytes.toString('base64')
  if (text !== seal || payload.length === 0) return undefined
  if (!bytes.subarray(0, prefix.length).equals(prefix)) return undefined
  if (!bytes.subarray(prefix.length, prefix.length + MAC_BYTES).equals(mac(vendor, payload))) return undefined
  const claims: unknown = JSON.parse(payload.toString())
  return isObject(claims) ? (claims as SealClaims) : undefined
}

/** True when the seal was minted over this content. */
export function sealCovers(vendor: SealingVendor, claims: SealClaims, content: string): boolean {
  return claims.content === digest(vendor, content)
}

/** True when the seal was made for this account. One that names none, and a reader that has none, are of any account. */
export function sealOpensFor(account: string | undefined, seal: { readonly account?: unknown }): boolean {
  return account === undefined || seal.account === undefined || seal.account === account
}

/** A short MAC in hexadecimal digits, for ids that prove themselves. */
export function shortMac(vendor: SealingVendor, text: string, digits: number): string {
  return createHmac('sha256', keyOf(vendor)).update(text).digest('hex').slice(0, digits)
}

/** Random hexadecimal digits: what makes two answers with the same text different. */
export function freshNonce(digits = 20): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits)
}

const ALPHANUMERIC = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** Random letters and digits, as most vendors' call ids are made of. */
export function freshToken(length: number): string {
  let token = ''
  for (const byte of randomBytes(length)) token += ALPHANUMERIC[byte % ALPHANUMERIC.length]
  return token
}

function mac(vendor: SealingVendor, payload: Buffer): Buffer {
  return createHmac('sha256', keyOf(vendor)).update(payload).digest().subarray(0, MAC_BYTES)
}

function digest(vendor: SealingVendor, content: string): string {
  return createHmac('sha256', keyOf(vendor)).update(`content:${content}`).digest('base64url').slice(0, 22)
}

const KEYS: Readonly<Record<SealingVendor, KeyObject>> = {
  gemini: keyFor('gemini'),
  anthropic: keyFor('anthropic'),
  openai: keyFor('openai'),
}

function keyOf(vendor: SealingVendor): KeyObject {
  return KEYS[vendor]
}

function keyFor(vendor: SealingVendor): KeyObject {
  return createSecretKey(Buffer.from(`lango strict server, ${vendor}, signatures are for tests only`))
}
