import type { Hono } from 'hono'
import type { Authenticator } from '../security/authenticate.js'
import { COOKIE_NAME, SECURE_COOKIE_NAME } from '../security/authenticate.js'
import type { ServerEnv } from '../server-context.js'

const THIRTY_DAYS_SECONDS = 30 * 24 * 60 * 60

/**
 * The login link: trades a token for a cookie that no script can read and no other site can use, and leads to
 * a URL without the token.
 */
export function mountLogin(app: Hono<ServerEnv>, authenticator: Authenticator): void {
  app.get('/login', c => {
    c.header('cache-control', 'no-store')
    if (!authenticator.asksForTokens) return c.redirect('/', 303)
    const cookie = authenticator.login(c.req.query('token') ?? '')
    if (cookie === undefined) {
      return c.text('This login link is not valid. Ask whoever runs the server for a new one.', 401)
    }
    // Only ever stricter than what was asked for, so the header of a proxy may be believed.
    const isSecure = c.req.header('x-forwarded-proto') === 'https'
    c.header(
      'set-cookie',
      cookieLine(isSecure ? SECURE_COOKIE_NAME : COOKIE_NAME, cookie, THIRTY_DAYS_SECONDS),
    )
    return c.redirect('/', 303)
  })
  app.post('/logout', c => {
    for (const name of [COOKIE_NAME, SECURE_COOKIE_NAME]) {
      c.header('set-cookie', cookieLine(name, '', 0), { append: true })
    }
    return c.body(null, 204)
  })
}

function cookieLine(name: string, value: string, seconds: number): string {
  const secure = name === SECURE_COOKIE_NAME ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`
}
