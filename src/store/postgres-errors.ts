/** What the server's and the network's errors mean: whether another attempt may help, and what to tell the user. */
import { AgentError, messageOf } from '../errors.js'

/** Whether a connection was lost, so that another may do. */
export function isBroken(error: unknown): boolean {
  if (isWaitedFor(error)) return false
  return (
    BROKEN.has(codeOf(error) ?? '') ||
    /^Connection terminated|not queryable/.test(messageOf(error)) ||
    (codeOf(error) === '08P01' && LOST_BY_POOLER.test(messageOf(error)))
  )
}

/** A connection that was waited for in vain is not waited for again at once. */
function isWaitedFor(error: unknown): boolean {
  return messageOf(error).includes('due to connection timeout')
}

/** Whether there is no server right now, or one that does not accept work yet. */
export function isUnreachable(error: unknown): boolean {
  if (isWaitedFor(error)) return false
  if (error instanceof AggregateError) return error.errors.some(isUnreachable)
  return UNREACHABLE.has(codeOf(error) ?? '') || isReadOnly(error)
}

/** Whether the server is there and says that it will accept work soon. */
export function isStarting(error: unknown): boolean {
  return codeOf(error) === STARTING
}

/** Whether a connection is of no use after this error. */
export function endsConnection(error: unknown): boolean {
  return (
    isReadTimeout(error) ||
    isBroken(error) ||
    isUnreachable(error) ||
    codeOf(error)?.startsWith('08') === true
  )
}

/** Whether the connection does not have the prepared statement that the client prepared: a pooler exchanged it. */
export function isLostStatement(error: unknown): boolean {
  return ['26000', '42P05'].includes(codeOf(error) ?? '')
}

/** Also connections that waited too long within a transaction, or between two. */
const BROKEN: ReadonlySet<string> = new Set([
  '57P01',
  '57P02',
  '57P05',
  '25P03',
  '08003',
  '08006',
  'ECONNRESET',
  'EPIPE',
])

/** PgBouncer's messages when its own connection broke. */
const LOST_BY_POOLER =
  /server conn crashed|server closed|cannot connect|server_login_retry|shutting down|terminated/

/** A server that starts or stops, or is not there. */
const STARTING = '57P03'

const UNREACHABLE: ReadonlySet<string> = new Set([
  STARTING,
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
])

/** The primary has become a replica, or a connection has led to one. */
function isReadOnly(error: unknown): boolean {
  return codeOf(error) === '25006' || (error instanceof AgentError && error.details.readOnly === true)
}

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

export function readOnlyServer(shownUrl: string, isReplica: boolean): AgentError {
  const why = isReplica
    ? 'is a replica, which only reads: use the address of the primary'
    : 'only reads (default_transaction_read_only is on): use the address of the primary, or a role that may write'
  return new AgentError('store-unavailable', `${shownUrl} ${why}`, {
    retryable: true,
    details: { readOnly: true },
  })
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
    return unavailable(`does not permit this: ${permissionAdvice(messageOf(error))}`, false)
  if (code === '3F000')
    return unavailable('has no schema for the tables: create it, and name it with ?schema= in the URL', false)
  if (code === '25006') return readOnlyServer(shownUrl, false)
  if (isLostStatement(error)) {
    return unavailable(
      `loses prepared statements (${messageOf(error)}): a pooler hands out other connections. Write ?prepare=off in the URL; ` +
        'PgBouncer keeps them from 1.21 on, with max_prepared_statements',
      false,
    )
  }
  if (code === '08P01' && /startup parameter|statement pooling/.test(messageOf(error))) {
    return unavailable(
      `refused the connection (${messageOf(error)}): a pooler in session or transaction mode is needed, and no options in the URL that it does not know`,
      false,
    )
  }
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
    // A certificate does not become valid by another attempt.
    return unavailable(`cannot be reached (${reasonOf(error)}): ${connectionAdvice(error)}`, !isOfTls(error))
  }
  return new AgentError('internal', `${shownUrl} failed: ${messageOf(error)}`, {
    cause: error,
    details: { code },
  })
}

function permissionAdvice(message: string): string {
  if (/row-level security/.test(message))
    return `${message}. The role is limited to the rows of its app and user`
  return /for (table|sequence|view)/.test(message)
    ? `${message}. Grant the user SELECT, INSERT, UPDATE and DELETE on all tables, and repeat the grants after an update`
    : 'grant the user the right to create tables'
}

/** What to check, by the kind of failure. */
function connectionAdvice(error: unknown): string {
  const reason = `${codeOf(error) ?? ''} ${messageOf(error)}`
  if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return 'check the host name in the URL, and DNS'
  if (isOfTls(error)) {
    return 'check TLS: sslmode in the URL, the certificate of the server, and NODE_EXTRA_CA_CERTS for a private authority'
  }
  if (/timeout exceeded when trying to connect/.test(reason))
    return 'all connections are in use: look for slow statements, or raise ?pool= in the URL and the number of connections of the pooler'
  if (/ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|connection timeout/.test(reason)) {
    return 'check the network, the firewall and the number of connections that the server allows'
  }
  if (/Connection terminated unexpectedly/.test(reason))
    return 'check that the server runs. A pooler in between must be in session or transaction mode: its log says why it closed the connection'
  return 'check that the server runs and the address is correct'
}

function isOfTls(error: unknown): boolean {
  return /\bSSL\b|\bTLS\b|certificate|CERT_/i.test(`${codeOf(error) ?? ''} ${messageOf(error)}`)
}

/** A failed connection to several addresses has no message of its own. */
function reasonOf(error: unknown): string {
  return messageOf(error) || codeOf(error) || 'no reason given'
}
