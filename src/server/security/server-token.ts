/**
 * What a server token is, for the configuration, the command line and the server.
 *
 * A token is written in the configuration as it is, or hashed. The hashed form is the hash of the cookie, and the
 * cookie is a hash of the token: from the configuration neither the token nor a cookie can be computed. A fast hash
 * is right here because generated tokens have 256 random bits; it does not protect a token that can be guessed.
 */
import { createHash, randomBytes } from 'node:crypto'

/** Tokens shorter than this are refused. */
const LEAST_CHARACTERS = 8
/** Tokens shorter than this are accepted with a warning until the next release. */
const SAFE_CHARACTERS = 16
const HASHED_PREFIX = 'lango-sha256:'

/** A new token with 256 random bits. */
export function newToken(): string {
  return `lango_${randomBytes(32).toString('base64url')}`
}

/** The form in which a token is kept in the configuration. */
export function hashToken(token: string): string {
  return `${HASHED_PREFIX}${digestOfToken(token).toString('hex')}`
}

/** What is wrong with an entry of `server.tokens`, as in "must be …"; `undefined` when it is valid. */
export function tokenProblem(entry: string): string | undefined {
  if (/^(lango-)?sha256:/i.test(entry) && !isHashed(entry)) {
    return `must be a hashed token as "lango token new" prints it: ${HASHED_PREFIX} and 64 hexadecimal digits`
  }
  if (entry.length < LEAST_CHARACTERS) return `must be at least ${LEAST_CHARACTERS} characters long`
  return /^[\x21-\x7e]+$/.test(entry) ? undefined : 'must be visible ASCII characters without spaces'
}

/** Whether an entry is too long to be guessed over the network. */
export function isSafeToken(entry: string): boolean {
  return isHashed(entry) || entry.length >= SAFE_CHARACTERS
}

/** What to say about entries that are accepted for now; `undefined` when there are none. */
export function shortTokenWarning(tokens: Readonly<Record<string, string>> | readonly string[]) {
  const entries: readonly string[] = Array.isArray(tokens) ? tokens : Object.keys(tokens)
  const short = entries.filter(entry => !isSafeToken(entry)).length
  if (short === 0) return undefined
  const subject = short === 1 ? '1 token in server.tokens has' : `${short} tokens in server.tokens have`
  return {
    message: `${subject} fewer than ${SAFE_CHARACTERS} characters. The next release refuses such tokens.`,
    fix: "Replace each with one that 'lango token new' generates.",
  }
}

/** What the server compares with: the hash of an entry's cookie. */
export function digestOfEntry(entry: string): Buffer {
  return isHashed(entry) ? Buffer.from(entry.slice(HASHED_PREFIX.length), 'hex') : digestOfToken(entry)
}

export function digestOfToken(token: string): Buffer {
  return digestOfCookie(cookieFor(token))
}

export function digestOfCookie(cookie: string): Buffer {
  return createHash('sha256').update(cookie).digest()
}

/** Made from the token, so that every process accepts it; the token cannot be computed from it. */
export function cookieFor(token: string): string {
  return createHash('sha256').update(`lango cookie\n${token}`).digest('base64url')
}

function isHashed(entry: string): boolean {
  return /^lango-sha256:[0-9a-f]{64}$/i.test(entry)
}
