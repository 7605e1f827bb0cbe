import { timingSafeEqual } from 'node:crypto'
import { Refusal } from '../refusal.js'
import type { AttemptLimit } from './attempt-limit.js'
import { cookieFor, digestOfCookie, digestOfEntry, digestOfToken, isSafeToken } from './server-token.js'

/** The user of requests without a token, on a server without tokens. */
const DEFAULT_USER = 'user'
export const COOKIE_NAME = 'lango'
/** Over TLS. Browsers accept a cookie of this name from this host only, so no sibling domain can set one. */
export const SECURE_COOKIE_NAME = `__Host-${COOKIE_NAME}`

export interface Credentials {
  authorization: string | undefined
  cookie: string | undefined
}

interface Entry {
  user: string
  digest: Buffer
  /** Position in the configuration. */
  number: number
  isSafe: boolean
}

/** Identifies callers. Holds hashes only; each credential is compared with every entry, in constant time. */
export class Authenticator {
  readonly #entries: readonly Entry[]
  readonly #limit: AttemptLimit

  constructor(tokens: Readonly<Record<string, string>>, limit: AttemptLimit) {
    this.#limit = limit
    this.#entries = Object.entries(tokens).map(([entry, user], number) => ({
      user,
      digest: digestOfEntry(entry),
      number,
      isSafe: isSafeToken(entry),
    }))
  }

  get asksForTokens(): boolean {
    return this.#entries.length > 0
  }

  /** The caller's name. Throws when no valid credential was sent, or when the address is limited. */
  userOf({ authorization, cookie }: Credentials, address: string): string {
    if (!this.asksForTokens) return DEFAULT_USER
    const bearer = authorization === undefined ? undefined : /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    const kept = cookieValue(cookie)
    const digests = [
      ...(bearer === undefined ? [] : [digestOfToken(bearer)]),
      ...(kept === undefined ? [] : [digestOfCookie(kept)]),
    ]
    const secondsLeft = this.#limit.secondsLeft(address)
    for (const digest of digests) {
      const entry = this.#check(digest, address)
      if (entry) return entry.user
    }
    if (digests.length > 0 && secondsLeft > 0) throw tooManyAttempts(secondsLeft)
    const advice = 'Send the header "authorization: Bearer <token>", or open the login link of the server.'
    throw new Refusal('unauthorized', `This server asks for a token. ${advice}`)
  }

  /** The cookie for a token, or `undefined` for a wrong one. Throws when the address is limited. */
  login(token: string, address: string): string | undefined {
    const secondsLeft = this.#limit.secondsLeft(address)
    const entry = this.#check(digestOfToken(token), address)
    if (!entry && secondsLeft > 0) throw tooManyAttempts(secondsLeft)
    if (!entry) return undefined
    this.#limit.reset(address)
    return cookieFor(token)
  }

  /**
   * The entry of a credential. At a limited address only what was accepted there before is accepted, and only when
   * it is too long to be guessed: other users of the address stay signed in, and a guess reveals nothing.
   */
  #check(digest: Buffer, address: string): Entry | undefined {
    const entry = this.#find(digest)
    if (this.#limit.secondsLeft(address) > 0) {
      return entry?.isSafe && this.#limit.wasAccepted(address, entry.number) ? entry : undefined
    }
    if (entry) this.#limit.accepted(address, entry.number)
    else this.#limit.failed(address, digest.toString('base64'))
    return entry
  }

  #find(digest: Buffer): Entry | undefined {
    let found: Entry | undefined
    for (const entry of this.#entries) if (timingSafeEqual(entry.digest, digest)) found = entry
    return found
  }
}

function tooManyAttempts(secondsLeft: number): Refusal {
  const message = `Too many wrong tokens from this address. Try again in ${secondsLeft} s.`
  return new Refusal('too-many', message, { retryAfterSeconds: secondsLeft })
}

function cookieValue(header: string | undefined): string | undefined {
  const pairs = (header?.split(';') ?? []).map(pair => pair.trim().split('=', 2))
  const named = (wanted: string) => pairs.find(([name]) => name === wanted)?.[1]
  return named(SECURE_COOKIE_NAME) ?? named(COOKIE_NAME)
}
