/**
 * Signing in with a cookie. A link of another site must not sign its visitor in: they would continue under a name
 * that the site's owner reads along with. So the link sets the cookie only when the browser says that it was typed,
 * pasted or opened from this server; otherwise a page asks, and its form is accepted from this server only.
 * Browsers do not say where a link comes from over plain HTTP to another machine: silence counts as another site.
 */
import type { Context, Hono } from 'hono'
import { AgentError } from '../../errors.js'
import { Refusal } from '../refusal.js'
import type { Authenticator } from '../security/authenticate.js'
import { COOKIE_NAME, SECURE_COOKIE_NAME } from '../security/authenticate.js'
import { isSameOrigin } from '../security/check-origin.js'
import type { AddressReader } from '../security/client-address.js'
import { readAtMost } from '../security/guard.js'
import type { ServerEnv } from '../server-context.js'

const THIRTY_DAYS_SECONDS = 30 * 24 * 60 * 60
const MOST_FORM_BYTES = 4096

/** Mounts the login link, its form and the logout. The cookie does not hold the token, and no script can read it. */
export function mountLogin(
  app: Hono<ServerEnv>,
  authenticator: Authenticator,
  addressOf: AddressReader,
): void {
  const signIn = (c: Context<ServerEnv>, token: string) => {
    const cookie = token === '' ? undefined : authenticator.login(token, addressOf(c.env.incoming))
    if (cookie === undefined) {
      return c.text('This login link is not valid. Ask for a new one where it came from.', 401)
    }
    // A client that forges this header gets a stricter cookie, never a weaker one.
    const isSecure = c.req.header('x-forwarded-proto') === 'https'
    const name = isSecure ? SECURE_COOKIE_NAME : COOKIE_NAME
    c.header('set-cookie', cookieLine(name, cookie, THIRTY_DAYS_SECONDS))
    return c.redirect('/', 303)
  }
  app.get('/login', c => {
    c.header('cache-control', 'no-store')
    if (!authenticator.asksForTokens) return c.redirect('/', 303)
    const token = c.req.query('token') ?? ''
    const isOwn = /^(none|same-origin)$/.test(c.req.header('sec-fetch-site') ?? '')
    return isOwn || token === '' ? signIn(c, token) : c.html(confirmPage(token))
  })
  app.post('/login', async c => {
    c.header('cache-control', 'no-store')
    const origin = c.req.header('origin')
    if (origin !== undefined && !isSameOrigin(origin, c.req.header('host'))) {
      throw new Refusal('forbidden', 'A page of another site may not sign its visitors in.')
    }
    return authenticator.asksForTokens ? signIn(c, await tokenOfForm(c)) : c.redirect('/', 303)
  })
  app.post('/logout', c => {
    for (const name of [COOKIE_NAME, SECURE_COOKIE_NAME]) {
      c.header('set-cookie', cookieLine(name, '', 0), { append: true })
    }
    return c.body(null, 204)
  })
}

async function tokenOfForm(c: Context<ServerEnv>): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(c.req.header('content-type') ?? '')) {
    const type = '"content-type: application/x-www-form-urlencoded"'
    throw new AgentError('invalid-argument', `Send the form field "token", with the header ${type}.`)
  }
  const text = await readAtMost(c.env.incoming, MOST_FORM_BYTES)
  return new URLSearchParams(text).get('token') ?? ''
}

/** With the server's own referrer policy a browser would send "Origin: null" with the form. */
function confirmPage(token: string): string {
  const value = token.replaceAll(/[&<>"']/g, character => ENTITIES[character] ?? '')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="strict-origin">
<title>Sign in to Lango</title>
<h1>Sign in to Lango?</h1>
<p>This link was opened from another page. Continue only if you asked for it: what you write will belong to the user of the link.</p>
<form method="post" action="/login"><input type="hidden" name="token" value="${value}"><button>Sign in</button></form>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function cookieLine(name: string, value: string, seconds: number): string {
  const secure = name === SECURE_COOKIE_NAME ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`
}
