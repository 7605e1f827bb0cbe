import type { Hono } from 'hono'
import type { Authenticator } from '../security/authenticate.js'
import { COOKIE_NAME } from '../security/authenticate.js'
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
    const secure = c.req.header('x-forwarded-proto') === 'https' ? '; Secure' : ''
    const rules = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${THIRTY_DAYS_SECONDS}${secure}`
    c.header('set-cookie', `${COOKIE_NAME}=${cookie}; ${rules}`)
    return c.redirect('/', 303)
  })
  app.post('/logout', c => {
    c.header('set-cookie', `${COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`)
    return c.body(null, 204)
  })
}
