import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../refusal.js'

/** Who someone is without a token, where none are asked for. */
export const DEFAULT_USER = 'user'
export const COOKIE_NAME = 'lango'

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
  for (const pair of header?.split(';') ?? []) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === COOKIE_NAME) return value
  }
  return undefined
}
