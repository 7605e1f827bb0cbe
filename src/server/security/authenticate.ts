import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../refusal.js'

/** Who someone is without a token, where none are asked for. */
export const DEFAULT_USER = 'user'
export const COOKIE_NAME = 'lango'
/** Behind TLS. Browsers take a cookie of such a name from this very host only, so no neighbour can plant one. */
export const SECURE_COOKIE_NAME = `__Host-${COOKIE_NAME}`

export interface Credentials {
  authorization: string | undefined
  cookie: string | undefined
}

/** Knows who may come in. Tokens are compared by their hashes, each with every one, in the same time. */
export class Authenticator {
  readonly #users: readonly { user: string; token: Buffer; cookie: Buffer }[]

  constructor(tokens: Readonly<Record<string, string>>) {
    this.#users = Object.entries(tokens).map(([token, user]) => ({
      user,
      token: hash(token),
      cookie: hash(cookieFor(token)),
    }))
  }

  get asksForTokens(): boolean {
    return this.#users.length > 0
  }

  /** The caller's name. Throws when they have to say who they are and do not. */
  userOf({ authorization, cookie }: Credentials): string {
    if (!this.asksForTokens) return DEFAULT_USER
    const bearer = authorization === undefined ? undefined : /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    const kept = cookieValue(cookie)
    const user =
      (bearer === undefined ? undefined : this.#find(bearer, 'token')) ??
      (kept === undefined ? undefined : this.#find(kept, 'cookie'))
    if (user !== undefined) return user
    const advice = 'Send the header "authorization: Bearer <token>", or open the login link of the server.'
    throw new Refusal('unauthorized', `This server asks for a token. ${advice}`)
  }

  /** The cookie that stands for a token, or `undefined` for one that nobody has. */
  login(token: string): string | undefined {
    return this.#find(token, 'token') === undefined ? undefined : cookieFor(token)
  }

  #find(secret: string, kind: 'token' | 'cookie'): string | undefined {
    const given = hash(secret)
    let found: string | undefined
    for (const entry of this.#users) if (timingSafeEqual(entry[kind], given)) found = entry.user
    return found
  }
}

/** Made from the token, so that every process knows it; the token cannot be read from it. */
function cookieFor(token: string): string {
  return createHash('sha256').update(`lango cookie\n${token}`).digest('base64url')
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function cookieValue(header: string | undefined): string | undefined {
  const pairs = (header?.split(';') ?? []).map(pair => pair.trim().split('=', 2))
  const named = (wanted: string) => pairs.find(([name]) => name === wanted)?.[1]
  return named(SECURE_COOKIE_NAME) ?? named(COOKIE_NAME)
}
