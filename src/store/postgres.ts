/**
 * PostgreSQL through `pg`: a pool, named prepared statements, and SQL text with `?` turned into `$1`. A
 * transaction that the server aborts (deadlock, serialization failure) is retried.
 */
import type { Pool, PoolClient, PoolConfig } from 'pg'
import { within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import { codeOf, isBroken, isReadTimeout, neverCame, toAgentError, wrongEncoding } from './postgres-errors.js'
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
