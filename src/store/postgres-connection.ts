/**
 * The connections of one process to PostgreSQL, direct or through a pooler.
 *
 * - No setting is a parameter of the start of a connection, because poolers refuse those that they do not know.
 * - A connection of our own gets its settings once, after it is opened.
 * - A pooler that hands out connections per transaction gets them with every transaction (`SET LOCAL`), and no prepared
 *   statement: nothing that outlives the transaction is left on a connection that others use.
 * - A server that only reads is refused, so that a primary that has become a replica is not written to.
 */
import type { Writable } from 'node:stream'
import type { ClientBase, Pool, PoolClient, PoolConfig, QueryConfig, QueryResult } from 'pg'
import { within } from '../base/pause.js'
import { AgentError } from '../errors.js'
import { loadOptional } from '../packages.js'
import { isReadTimeout, readOnlyServer, wrongEncoding } from './postgres-errors.js'

export interface PostgresLocation {
  connectionString: string
  poolSize: number
  /** How long one statement may take, waiting for locks included; 0 for any time. */
  queryTimeoutMs: number
  /** The URL as errors may show it: without user and password. */
  shownUrl: string
  /** What hands out the server's connections. Default: found out with the first connection. */
  pooler?: Pooler
  /** Whether statements are prepared. Default: unless a pooler may hand out another connection for the next one. */
  prepare?: boolean
  /** The schema of the tables. Default: the first one of the role's search path. */
  schema?: string
}

export type Pooler = 'none' | 'session' | 'transaction'

export type Driver = typeof import('pg')

/** How statements are sent, as the first connection has shown. */
export interface Sending {
  prepare: boolean
  /** Statements that follow the BEGIN of every transaction. */
  begin: string
  /** Whether a single statement needs a transaction, because of what `begin` sets. */
  wrap: boolean
}

export class PostgresConnections {
  readonly #pool: Pool
  readonly #location: PostgresLocation
  readonly #mayOnlyRead: boolean
  readonly #openedAt = new Map<ClientBase, number>()
  #sending: Sending = { prepare: false, begin: '', wrap: false }
  #wasOpened = false
  #suspectUntil = 0
  #isPrepareRefused = false

  constructor(driver: Driver, location: PostgresLocation, mayOnlyRead: boolean) {
    this.#location = location
    this.#mayOnlyRead = mayOnlyRead
    this.#pool = new driver.Pool({
      ...poolConfig(location, driver),
      onConnect: client => this.#prepareConnection(client),
    })
    // A connection that breaks between two statements is replaced by the pool, and the statement that misses it
    // fails with the reason; without listeners the break itself would end the process.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', client => client.on('error', () => {}))
    this.#pool.on('remove', client => this.#openedAt.delete(client))
  }

  /** Whether the server was ever reached. */
  get wasOpened(): boolean {
    return this.#wasOpened
  }

  get sending(): Sending {
    return this.#sending
  }

  async take(): Promise<PoolClient> {
    for (;;) {
      const client = await this.#pool.connect()
      if ((this.#openedAt.get(client) ?? 0) >= this.#suspectUntil) return client
      client.release(true)
    }
  }

  /** A connection whose state is unknown is closed instead of being used again. */
  release(client: PoolClient, failure: unknown): void {
    // One connection that does not answer shows that the network dropped them: older ones would not answer either.
    if (isReadTimeout(failure)) this.#suspectUntil = performance.now()
    client.release(failure !== undefined)
  }

  /** Sends no prepared statements any more. `false` when the user wants them, or there were none. */
  stopPreparing(): boolean {
    if (this.#location.prepare === true || this.#isPrepareRefused) return false
    this.#isPrepareRefused = true
    this.#sending = { ...this.#sending, prepare: false }
    return true
  }

  async close(): Promise<void> {
    const ended = this.#pool.end()
    await within(CLOSE_TIMEOUT_MS, ended)
    // What still runs is cut off: a connection with a statement at work is dropped, and the statement fails.
    for (const client of this.#openedAt.keys()) void cutOff(client)
    await within(CLOSE_TIMEOUT_MS, ended)
  }

  /** Asks where the connection has led to and sets what its owner may set, in one statement. */
  async #prepareConnection(client: ClientBase): Promise<void> {
    const { pooler, queryTimeoutMs, schema, shownUrl } = this.#location
    client.on('error', () => {})
    const isOwn = pooler === 'none' || pooler === 'session'
    const query = {
      text: OPENED,
      values: [
        ...[ownPid(client), isOwn, pooler !== 'transaction'],
        ...[String(queryTimeoutMs), String(IDLE_IN_TRANSACTION_MS)],
        ...(schema === undefined ? [null, null] : [schema, quoted(schema)]),
      ],
      // The pool's own timeout ends with the login.
      query_timeout: connectTimeoutMs(queryTimeoutMs),
    }
    const { rows } = await client.query(query)
    const opened = rows[0] as Opened
    if (opened.encoding !== 'UTF8') throw wrongEncoding(shownUrl, opened.encoding)
    if (!this.#mayOnlyRead && (opened.replica || opened.read_only))
      throw readOnlyServer(shownUrl, opened.replica)
    if (schema !== undefined && !opened.has_schema) throw schemaMissing(shownUrl, schema)
    this.#sending = sendingFor(this.#location, opened, this.#isPrepareRefused)
    // Three messages in one round trip, where a statement needs a transaction for its settings.
    if (this.#sending.wrap) Object.assign(client, { pipeline: true })
    this.#openedAt.set(client, performance.now())
    this.#wasOpened = true
  }
}

/** What the first statement of a connection returns. */
interface Opened {
  is_own: boolean
  encoding: string
  replica: boolean
  read_only: boolean
  has_schema: boolean
  is_in_schema: boolean | null
  timeout_ms: number
}

/**
 * The number of the server's process tells whether a pooler is in between: it gave the client a number of its own.
 */
const OPENED = `SELECT own.is_own, current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS replica,
    current_setting('default_transaction_read_only') = 'on' AS read_only,
    COALESCE((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = CAST($6 AS text)), false) AS has_schema,
    current_schema() = CAST($6 AS text) AS is_in_schema,
    CAST(extract(epoch FROM CAST(current_setting('statement_timeout') AS interval)) * 1000 AS double precision) AS timeout_ms,
    CASE WHEN own.is_own THEN set_config('statement_timeout', CAST($4 AS text), false) END,
    CASE WHEN own.is_own THEN set_config('idle_in_transaction_session_timeout', CAST($5 AS text), false) END,
    CASE WHEN own.is_own AND CAST($7 AS text) <> '' THEN set_config('search_path', CAST($7 AS text), false) END
  FROM (SELECT CAST($2 AS boolean) OR (CAST($3 AS boolean) AND pg_backend_pid() = CAST($1 AS integer)) AS is_own) AS own`

function sendingFor(location: PostgresLocation, opened: Opened, isPrepareRefused: boolean): Sending {
  const { prepare, queryTimeoutMs, schema } = location
  if (opened.is_own) return { prepare: prepare ?? !isPrepareRefused, begin: '', wrap: false }
  const settings = [
    `SET LOCAL statement_timeout = ${queryTimeoutMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
    ...(schema === undefined ? [] : [`SET LOCAL search_path = ${quoted(schema)}`]),
  ]
  const hasTimeout = queryTimeoutMs === 0 || (opened.timeout_ms > 0 && opened.timeout_ms <= queryTimeoutMs)
  const hasSchema = schema === undefined || opened.is_in_schema === true
  return {
    prepare: prepare ?? false,
    begin: settings.map(text => `; ${text}`).join(''),
    wrap: !hasTimeout || !hasSchema,
  }
}

/** The number that the client was given for its connection. The driver has it; its types do not. */
function ownPid(client: ClientBase): number {
  return (client as unknown as { processID: number | null }).processID ?? 0
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Sends all queries before the first is answered, in one piece: each piece wakes the server and costs a system call. */
export async function pipelined(
  client: ClientBase,
  queries: readonly (string | QueryConfig)[],
): Promise<PromiseSettledResult<QueryResult>[]> {
  // The driver has these; its types do not.
  const pipelining = client as unknown as { pipeline: boolean; connection: { stream: Writable } }
  const { pipeline, connection } = pipelining
  pipelining.pipeline = true
  connection.stream.cork()
  const sent = queries.map(query => client.query(query as QueryConfig))
  connection.stream.uncork()
  const answers = await Promise.allSettled(sent)
  pipelining.pipeline = pipeline
  return answers
}

/** Ends a connection without waiting for its statement. */
function cutOff(client: ClientBase): Promise<void> {
  Object.assign(client, { pipeline: false })
  return (client as unknown as { end(): Promise<void> }).end()
}

function schemaMissing(shownUrl: string, schema: string): AgentError {
  return new AgentError(
    'store-unavailable',
    `${shownUrl} has no schema ${quoted(schema)}, or the user may not use it: CREATE SCHEMA ${quoted(schema)} AUTHORIZATION owner, GRANT USAGE ON SCHEMA ${quoted(schema)} TO user`,
    { details: { schema } },
  )
}

function poolConfig(
  { connectionString, poolSize, queryTimeoutMs }: PostgresLocation,
  { types }: Driver,
): PoolConfig {
  return {
    connectionString: verified(connectionString),
    max: poolSize,
    connectionTimeoutMillis: connectTimeoutMs(queryTimeoutMs),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // 0 means no limit.
    query_timeout: queryTimeoutMs + Math.min(queryTimeoutMs, NETWORK_GRACE_MS),
    application_name: 'lango',
    // Counters and times stay far below 2^53, so bigints are read as numbers.
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === BIGINT ? Number : types.getTypeParser(type, format as 'text'),
    },
  }
}

/**
 * The certificate is verified in every mode but `disable` and `no-verify`. The driver announces weaker meanings of some
 * modes for a later version: here they keep theirs.
 */
function verified(connectionString: string): string {
  const url = new URL(connectionString)
  const isWeaker = ['prefer', 'require', 'verify-ca'].includes(url.searchParams.get('sslmode') ?? '')
  if (isWeaker && url.searchParams.get('uselibpqcompat') !== 'true')
    url.searchParams.set('sslmode', 'verify-full')
  return url.href
}

/** A shorter statement timeout also limits the wait for a connection. */
function connectTimeoutMs(queryTimeoutMs: number): number {
  return Math.min(MOST_CONNECT_MS, Math.max(queryTimeoutMs || MOST_CONNECT_MS, 1000))
}

const CLOSE_TIMEOUT_MS = 2000
const MOST_CONNECT_MS = 10_000
/** A process that is suspended within a transaction keeps its locks for this time at most. */
const IDLE_IN_TRANSACTION_MS = 30_000
/** The server cancels a statement that takes too long; if it does not answer, the client does so this much later. */
const NETWORK_GRACE_MS = 5000
const BIGINT = 20

export async function loadDriver(): Promise<Driver> {
  // The package is CommonJS: its named exports are not visible to every loader.
  const load = () => import('pg') as Promise<Driver & { default?: Driver }>
  const module = await loadOptional('postgres', load, 'store-unavailable')
  return module.default ?? module
}
