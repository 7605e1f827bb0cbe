/** Checks before any route, in this order: headers, origin, user, content type, size. */
import type { IncomingMessage } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { AgentError } from '../../errors.js'
import { checkCount } from '../refusal.js'
import type { ServerEnv, ServerLimits } from '../server-context.js'
import type { Authenticator } from './authenticate.js'
import { checkOrigin, type OriginRules } from './check-origin.js'
import type { AddressReader } from './client-address.js'

/** Headers of all answers. Pages of this server load nothing from other hosts and cannot be framed. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
}

/** Adds the headers, also to errors and streams. */
export function securityHeaders(): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    await next()
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      if (!c.res.headers.has(name)) c.res.headers.set(name, value)
    if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
  }
}

/** Refuses foreign host names and origins; adds CORS headers for allowed origins. */
export function originGuard(rules: OriginRules): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    const allowed = checkOrigin(rules, {
      method: c.req.method,
      host: askedHost(c),
      origin: c.req.header('origin'),
      fetchSite: c.req.header('sec-fetch-site'),
      fetchMode: c.req.header('sec-fetch-mode'),
    })
    if (allowed === undefined) return next()
    if (c.req.method === 'OPTIONS') return preflight(allowed)
    await next()
    c.res.headers.set('access-control-allow-origin', allowed)
    c.res.headers.set('access-control-expose-headers', EXPOSED_HEADERS)
    c.res.headers.set('cross-origin-resource-policy', 'cross-origin')
    c.res.headers.append('vary', 'origin')
    return undefined
  }
}

/** A request may name its host twice: the one in an absolute target takes precedence. */
function askedHost(c: Context<ServerEnv>): string | undefined {
  const target = c.env.incoming.url ?? ''
  if (target.startsWith('/')) return c.req.header('host')
  return URL.canParse(target) ? new URL(target).host : undefined
}

/** Headers that a page may read. Without the last one, the `openai` client in a page would retry a stored message. */
const EXPOSED_HEADERS = 'retry-after, x-lango-session, x-lango-run, x-should-retry, mcp-session-id'

/** Headers that Lango's client, browsers, and the clients of OpenAI and A2A send. */
const ALLOWED_HEADERS = [
  'traceparent',
  'tracestate',
  'a2a-extensions',
  'a2a-version',
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-lango-approvals',
  'x-lango-session',
  'user-agent',
  ...['arch', 'custom-poll-interval', 'helper-method', 'lang', 'os', 'package-version', 'poll-helper'].map(
    name => `x-stainless-${name}`,
  ),
  ...['retry-count', 'runtime', 'runtime-version', 'timeout'].map(name => `x-stainless-${name}`),
].join(', ')

function preflight(origin: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
      'access-control-allow-headers': ALLOWED_HEADERS,
      'access-control-max-age': '600',
      vary: 'origin',
    },
  })
}

/** Sets the user of the request, or refuses it. */
export function userGuard(
  authenticator: Authenticator,
  addressOf: AddressReader,
): MiddlewareHandler<ServerEnv> {
  return async (c, next) => {
    const credentials = { authorization: c.req.header('authorization'), cookie: c.req.header('cookie') }
    c.set('user', authenticator.userOf(credentials, addressOf(c.env.incoming)))
    await next()
  }
}

/** Bodies must be JSON within the size limit. A form of another page cannot send JSON. */
export function bodyGuard(limits: ServerLimits): MiddlewareHandler<ServerEnv> {
  const { maxBodyBytes } = limits
  return async (c, next) => {
    c.set('limits', limits)
    const isChunked = c.req.header('transfer-encoding') !== undefined
    const length = Number(c.req.header('content-length') ?? 0)
    checkCount({ limit: 'maxBodyBytes', most: maxBodyBytes, sent: length })
    const hasBody = c.req.method !== 'GET' && c.req.method !== 'HEAD' && (isChunked || length > 0)
    if (hasBody && !/^application\/(a2a\+)?json\s*(;|$)/i.test(c.req.header('content-type') ?? '')) {
      throw new AgentError('invalid-argument', 'Send JSON, with the header "content-type: application/json".')
    }
    if (hasBody && !/^(identity)?$/i.test(c.req.header('content-encoding') ?? '')) {
      throw new AgentError('invalid-argument', 'Send the body as it is, without a content-encoding.')
    }
    // Node enforces a content-length; a chunked body is counted here.
    if (hasBody && isChunked) {
      const text = await readAtMost(c.env.incoming, maxBodyBytes)
      // Where hono looks for the body; its type omits that it is a promise.
      Reflect.set(c.req.bodyCache, 'text', Promise.resolve(text))
    }
    await next()
  }
}

/** The text of a body; a longer one is refused. */
export async function readAtMost(incoming: IncomingMessage, maxBodyBytes: number): Promise<string> {
  return (await readBytes(incoming, maxBodyBytes)).toString()
}

/** The bytes of a body; a longer one is refused. */
export async function readBytes(incoming: IncomingMessage, maxBodyBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  // Not destroyed when too large: the refusal is sent on the same connection.
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    length += chunk.length
    checkCount({ limit: 'maxBodyBytes', most: maxBodyBytes, sent: length, isAtLeast: true })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
