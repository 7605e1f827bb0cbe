/**
 * PostgreSQL through `pg`: a pool, named prepared statements, and SQL text with `?` turned into `$1`. A
 * transaction that the server aborts (deadlock, serialization failure) is retried.
 */
import type { Pool, PoolClient, PoolConfig } from 'pg'
import { within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import {
  type Dialect,
  type ForeignDatabase,
  type Row,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
} from './sql-database.js'
import { storeClosed } from './store-errors.js'

export interface PostgresLocation {
  connectionString: string
  poolSize: number
  /** How long one statement may take, waiting for locks included; 0 for any time. */
  queryTimeoutMs: number
  /** The URL as errors may show it: without user and password. */
  shownUrl: string
}

/** Connects once, so that a wrong address or password fails at opening and not during a run. */
export async function openPostgres(location: PostgresLocation): Promise<SqlDatabase> {
  const driver = await loadDriver()
  const pool = new driver.Pool(poolConfig(location, driver))
  // A connection that breaks between two statements is replaced by the pool, and the statement that misses it
  // fails with the reason; without listeners the break itself would end the process.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  const database = new PostgresDatabase(pool, location)
  try {
    const [row] = await database.run(sql('SHOW server_encoding'))
    if (row?.server_encoding !== 'UTF8') throw wrongEncoding(location.shownUrl, row?.server_encoding)
  } catch (error) {
    await database.close()
    throw error
  }
  return database
}

/** Another program's database, for reading only. */
export async function openForeignPostgres(location: PostgresLocation): Promise<ForeignDatabase> {
  const database = await openPostgres(location)
  const rows: ForeignDatabase['rows'] = (text, ...parameters) =>
    database.read(function* (): Task<readonly Row[]> {
      return yield sql(text, ...parameters)
    })
  return {
    // As long as a row was never updated. Programs that write events do not update them.
    insertion: 'ctid',
    tables: async () => {
      const found = await rows(
        'SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ANY (current_schemas(false))',
      )
      const tables = new Map<string, Set<string>>()
      for (const { table_name: table, column_name: column } of found) {
        const columns = tables.get(String(table)) ?? new Set<string>()
        tables.set(String(table), columns.add(String(column)))
      }
      return tables
    },
    rows,
    close: () => database.close(),
  }
}

class PostgresDatabase implements SqlDatabase {
  readonly dialect = POSTGRES
  readonly work = { statements: 0, control: 0, commits: 0 }
  readonly #pool: Pool
  readonly #location: PostgresLocation
  readonly #clients = new Set<PoolClient>()
  readonly #prepared = new Map<string, { name: string; text: string }>()
  #closed = false

  constructor(pool: Pool, location: PostgresLocation) {
    this.#pool = pool
    this.#location = location
    pool.on('connect', client => this.#clients.add(client))
    pool.on('remove', client => this.#clients.delete(client))
  }

  async write<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN', task, () => this.work.commits++)
  }

  async read<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', task)
  }

  async run(statement: Statement): Promise<readonly Row[]> {
    const repeatable = statement.repeatable === true || /^\s*(SELECT|SHOW)\b/.test(statement.text)
    return this.#retrying(
      async () => {
        if (!/^\s*(SELECT|SHOW)\b/.test(statement.text)) this.work.commits++
        return (await this.#pool.query(this.#query(statement))).rows
      },
      () => repeatable,
    )
  }

  async check(): Promise<void> {
    await this.run(sql('SELECT 1 FROM lango_schema LIMIT 1'))
  }

  isDuplicate(error: unknown): boolean {
    return codeOf((error as { cause?: unknown } | undefined)?.cause) === '23505'
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const ended = this.#pool.end()
    await within(CLOSE_TIMEOUT_MS, ended)
    // What still runs is cut off: a connection with a statement at work is dropped, and the statement fails.
    for (const client of this.#clients) void client.end()
    await within(CLOSE_TIMEOUT_MS, ended)
  }

  async #transaction<T>(begin: string, task: () => Task<T>, onCommit = () => {}): Promise<T> {
    let committing = false
    const attempt = async () => {
      const client = await this.#pool.connect()
      let failure: Error | undefined
      try {
        this.work.control += 2
        await client.query(begin)
        const result = await this.#steps(client, task)
        committing = true
        onCommit()
        await client.query('COMMIT')
        return result
      } catch (error) {
        failure = await rollback(client, error)
        throw error
      } finally {
        // A connection whose state is unknown is closed instead of being used again.
        client.release(failure)
      }
    }
    // A transaction that broke before its commit has changed nothing.
    return this.#retrying(attempt, () => !committing)
  }

  async #steps<T>(client: PoolClient, task: () => Task<T>): Promise<T> {
    const steps = task()
    let step = steps.next()
    while (!step.done) step = steps.next((await client.query(this.#query(step.value))).rows)
    return step.value
  }

  async #retrying<T>(attempt: () => Promise<T>, mayRepeat: () => boolean): Promise<T> {
    for (let attempts = 1; ; attempts++) {
      if (this.#closed) throw storeClosed()
      try {
        return await attempt()
      } catch (error) {
        const again =
          RUN_AGAIN.has(codeOf(error) ?? '') || (isBroken(error) && !neverCame(error) && mayRepeat())
        if (!again || attempts === MOST_ATTEMPTS) throw toAgentError(error, this.#location)
        // When a server drops its connections, the pool notices each of them with a delay.
        await new Promise(resume => setTimeout(resume, 10 * attempts))
      }
    }
  }

  #query({ text, parameters }: Statement): { name: string; text: string; values: unknown[] } {
    this.work.statements++
    let prepared = this.#prepared.get(text)
    if (prepared === undefined) {
      let number = 0
      prepared = { name: `lango_${this.#prepared.size}`, text: text.replaceAll('?', () => `$${++number}`) }
      this.#prepared.set(text, prepared)
    }
    return { ...prepared, values: [...parameters] }
  }
}

/** Serialization failure and deadlock: the transaction changed nothing and may be retried. */
const RUN_AGAIN: ReadonlySet<string> = new Set(['40001', '40P01'])
const MOST_ATTEMPTS = 5
const CLOSE_TIMEOUT_MS = 2000
const MOST_CONNECT_MS = 10_000
/** The server cancels a statement that takes too long; if it does not answer, the client does so this much later. */
const NETWORK_GRACE_MS = 5000

const POSTGRES: Dialect = {
  name: 'postgres',
  now: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  identity: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  integer: 'BIGINT',
  real: 'DOUBLE PRECISION',
  roomForUpdates: ' WITH (fillfactor = 70)',
  forUpdate: ' FOR UPDATE',
  forKeyShare: ' FOR KEY SHARE',
  versionTableExists: "SELECT count(to_regclass('lango_schema')) AS present",
  // Two arbitrary numbers identify the lock; they are the same in every release.
  migrationLock: 'SELECT pg_advisory_xact_lock(1280329301, 1)',
  ticketLock: 'SELECT pg_advisory_xact_lock(hashtextextended(?, 1280329301))',
  requestLock: 'SELECT pg_advisory_xact_lock_shared(1280329301, 2)',
  pruneLock: 'SELECT pg_advisory_xact_lock(1280329301, 2)',
  eachValue: 'json_array_elements_text(CAST(? AS json))',
  // Escapes that no text can hold are left as JSON rather than failing the whole view.
  joinedOutputs: `CASE WHEN m.tool_calls ~ '\\\\u(0000|[dD][89a-fA-F])' THEN m.tool_calls ELSE (
        SELECT string_agg(call ->> 'output', chr(10) ORDER BY place)
        FROM json_array_elements(m.tool_calls::json) WITH ORDINALITY AS calls (call, place)
      ) END`,
}

async function loadDriver(): Promise<typeof import('pg')> {
  try {
    // The package is CommonJS: its named exports are not visible to every loader.
    const module = (await import('pg')) as typeof import('pg') & { default?: typeof import('pg') }
    return module.default ?? module
  } catch (cause) {
    throw new AgentError(
      'store-unavailable',
      `The PostgreSQL driver cannot be loaded (${messageOf(cause)}): run npm install pg`,
      { cause },
    )
  }
}

function poolConfig(
  { connectionString, poolSize, queryTimeoutMs }: PostgresLocation,
  { types }: typeof import('pg'),
): PoolConfig {
  return {
    connectionString,
    max: poolSize,
    // A shorter statement timeout also limits the wait for a connection.
    connectionTimeoutMillis: Math.min(MOST_CONNECT_MS, Math.max(queryTimeoutMs || MOST_CONNECT_MS, 1000)),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // 0 means no limit to both.
    statement_timeout: queryTimeoutMs,
    query_timeout: queryTimeoutMs === 0 ? 0 : queryTimeoutMs + NETWORK_GRACE_MS,
    application_name: 'lango',
    // Counters and times stay far below 2^53, so bigints are read as numbers.
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === BIGINT ? Number : types.getTypeParser(type, format as 'text'),
    },
  }
}

const BIGINT = 20

/** The error that makes the connection unusable, if there is one. */
async function rollback(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  // A statement without an answer keeps its connection: whatever is sent after it would wait as well.
  if (reason instanceof Error && isReadTimeout(reason)) return reason
  try {
    await client.query('ROLLBACK')
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new AgentError('internal', messageOf(error), { cause: reason })
  }
}

/** Whether a connection was lost, so that another may do. */
function isBroken(error: unknown): boolean {
  return BROKEN.has(codeOf(error) ?? '') || /^Connection terminated|not queryable/.test(messageOf(error))
}

/** A connection that was waited for in vain is not waited for again at once. */
function neverCame(error: unknown): boolean {
  return messageOf(error).includes('due to connection timeout')
}

const BROKEN: ReadonlySet<string> = new Set(['57P01', '57P02', '08003', '08006', 'ECONNRESET', 'EPIPE'])

function isReadTimeout(error: unknown): boolean {
  return codeOf(error) === undefined && messageOf(error) === 'Query read timeout'
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

function wrongEncoding(shownUrl: string, encoding: unknown): AgentError {
  return new AgentError(
    'store-unavailable',
    `${shownUrl} stores text as ${String(encoding)}: create a database with ENCODING 'UTF8'`,
  )
}

/** Maps the server's and the network's error codes to AgentErrors. Never shows the user or the password. */
function toAgentError(error: unknown, { shownUrl, queryTimeoutMs }: PostgresLocation): unknown {
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
