/** What the server's and the network's errors mean: whether another attempt may help, and what to tell the user. */
import { AgentError, messageOf } from '../errors.js'

/** Whether a connection was lost, so that another may do. */
export function isBroken(error: unknown): boolean {
  return BROKEN.has(codeOf(error) ?? '') || /^Connection terminated|not queryable/.test(messageOf(error))
}

/** A connection that was waited for in vain is not waited for again at once. */
export function neverCame(error: unknown): boolean {
  return messageOf(error).includes('due to connection timeout')
}

const BROKEN: ReadonlySet<string> = new Set(['57P01', '57P02', '08003', '08006', 'ECONNRESET', 'EPIPE'])

export function isReadTimeout(error: unknown): boolean {
  return codeOf(error) === undefined && messageOf(error) === 'Query read timeout'
}

export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

export function wrongEncoding(shownUrl: string, encoding: unknown): AgentError {
  return new AgentError(
    'store-unavailable',
    `${shownUrl} stores text as ${String(encoding)}: create a database with ENCODING 'UTF8'`,
  )
}

/** Maps the server's and the network's error codes to AgentErrors. Never shows the user or the password. */
export function toAgentError(
  error: unknown,
  { shownUrl, queryTimeoutMs }: { shownUrl: string; queryTimeoutMs: number },
): unknown {
  // An error of the program itself is not reported as a network error.
  if (error instanceof AgentError || error instanceof TypeError || error instanceof RangeError) return error
  const code = codeOf(error) ?? ''
  const unavailable = (what: string, retryable: boolean) =>
    new AgentError('store-unavailable', `${shownUrl} ${what}`, { cause: error, retryable, details: { code } })
  if (code === '57014' || isReadTimeout(error)) {
    return unavailable(
      `did not finish a statement within ${queryTimeoutMs} ms (${messageOf(error)}): ` +
        'look for locks and load, or raise the limit with ?query_timeout=ms in the URL',
      true,
    )
  }
  if (code.startsWith('28'))
    return unavailable('refused the login: check user and password in the URL', false)
  if (code === '3D000') return unavailable('does not exist: create the database first', false)
  if (code === '42501')
    return unavailable('does not permit this: grant the user the right to create tables', false)
  if (code.startsWith('53'))
    return unavailable(`is out of resources (${messageOf(error)}): try again later`, true)
  if (/^XX00[12]$/.test(code)) {
    return new AgentError(
      'store-corrupt',
      `${shownUrl} is damaged (${messageOf(error)}): restore it from a backup`,
      {
        cause: error,
      },
    )
  }
  const isServersOwn = /^[0-9A-Z]{5}$/.test(code)
  if (!isServersOwn || code.startsWith('08') || code.startsWith('57P')) {
    return unavailable(`cannot be reached (${reasonOf(error)}): ${connectionAdvice(error)}`, true)
  }
  return new AgentError('internal', `${shownUrl} failed: ${messageOf(error)}`, {
    cause: error,
    details: { code },
  })
}

/** What to check, by the kind of failure. */
function connectionAdvice(error: unknown): string {
  const reason = `${codeOf(error) ?? ''} ${messageOf(error)}`
  if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return 'check the host name in the URL, and DNS'
  if (/\bSSL\b|\bTLS\b|certificate|CERT_/i.test(reason)) {
    return 'check TLS: sslmode in the URL, the certificate of the server, and NODE_EXTRA_CA_CERTS for a private authority'
  }
  if (/ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|connection timeout/.test(reason)) {
    return 'check the network, the firewall and the number of connections that the server allows'
  }
  return 'check that the server runs and the address is correct'
}

/** A failed connection to several addresses has no message of its own. */
function reasonOf(error: unknown): string {
  return messageOf(error) || codeOf(error) || 'no reason given'
}
