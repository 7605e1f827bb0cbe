/**
 * PostgreSQL through `pg`: named prepared statements, and SQL text with `?` turned into `$1`. A transaction that the
 * server aborts (deadlock, serialization failure) is retried, and so is what certainly did not happen because the
 * server could not be reached: a restart or a failover of some seconds is not noticed.
 */
import type { PoolClient, QueryResult } from 'pg'
import { AgentError, messageOf } from '../errors.js'
import { loadDriver, PostgresConnections, type PostgresLocation, pipelined } from './postgres-connection.js'
import { PostgresDialect } from './postgres-dialect.js'
import {
  codeOf,
  endsConnection,
  isBroken,
  isLostStatement,
  isStarting,
  isUnreachable,
  toAgentError,
} from './postgres-errors.js'
import { GroupCommit } from './postgres-group.js'
import {
  type ForeignDatabase,
  type Row,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
} from './sql-database.js'
import { cannotBackUp, storeClosed } from './store-errors.js'

/** Connects once, so that a wrong address or password fails at opening and not during a run. */
export async function openPostgres(
  location: PostgresLocation,
  { mayOnlyRead = false } = {},
): Promise<SqlDatabase> {
  const database = new PostgresDatabase(await connectionsTo(location, mayOnlyRead), location)
  try {
    await database.connect()
  } catch (error) {
    await database.close()
    throw error
  }
  return database
}

/** A certificate that cannot be read fails here. */
async function connectionsTo(location: PostgresLocation, mayOnlyRead: boolean): Promise<PostgresConnections> {
  const driver = await loadDriver()
  try {
    return new PostgresConnections(driver, location, mayOnlyRead)
  } catch (error) {
    throw toAgentError(error, location)
  }
}

/** Another program's database, for reading only. */
export async function openForeignPostgres(location: PostgresLocation): Promise<ForeignDatabase> {
  const database = await openPostgres(location, { mayOnlyRead: true })
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
  readonly dialect = new PostgresDialect()
  readonly work = { statements: 0, control: 0, commits: 0, trips: 0 }
  isFull = false
  readonly #connections: PostgresConnections
  readonly #location: PostgresLocation
  readonly #prepared = new Map<string, { name: string; text: string }>()
  readonly #groups: GroupCommit<PoolClient>
  #closed = false

  constructor(connections: PostgresConnections, location: PostgresLocation) {
    this.#connections = connections
    this.#location = location
    this.#groups = new GroupCommit({
      // Few connections make large groups: with all ten, a hundred runs cost the server a third more processor time.
      connections: Math.ceil(location.poolSize / 2),
      take: () => connections.take(),
      release: (client, failure) => connections.release(client, failure),
      sendAlone: (client, statements) => this.#sendAlone(client, statements),
      sendGroup: (client, statements) => this.#sendGroup(client, statements),
      endsConnection,
    })
  }

  async connect(): Promise<void> {
    await this.#retrying(
      async () => this.#connections.release(await this.#connections.take(), undefined),
      () => true,
    )
  }

  async write<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN', task, () => this.work.commits++)
  }

  async read<T>(task: () => Task<T>): Promise<T> {
    return this.#transaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', task)
  }

  async run(statement: Statement): Promise<readonly Row[]> {
    return this.#runSingle(statement, OUTAGE_MS)
  }

  search(statement: Statement): Promise<readonly Row[]> {
    return this.run(statement)
  }

  async emptyLog(): Promise<boolean> {
    return true
  }

  /** Makes the space of deleted rows reusable; only a rewrite removes their bytes. */
  async vacuum(tables: ReadonlySet<string>, rewrite: boolean): Promise<'log' | 'free-space'> {
    for (const table of tables) {
      try {
        await this.run(sql(`VACUUM ${rewrite ? '(FULL) ' : ''}${table}`))
      } catch (error) {
        // The server makes space reusable by itself, too.
        if (rewrite) throw rewriteFailed(table, error)
      }
    }
    return rewrite ? 'log' : 'free-space'
  }

  async backup(): Promise<never> {
    throw cannotBackUp('postgres')
  }

  async batch(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    const [first] = statements
    let isSent = false
    const onSent = () => {
      isSent = true
    }
    const attempt = () => {
      isSent = false
      if (first?.joining) return this.#groups.run(statements, first.joining, onSent)
      return this.#connected(client => {
        onSent()
        return this.#sendAlone(client, statements)
      })
    }
    return this.#retrying(attempt, () => !isSent || first?.repeatable === true)
  }

  async check(): Promise<void> {
    await this.#runSingle(sql('SELECT 1 FROM lango_schema LIMIT 1'), 0)
  }

  isDuplicate(error: unknown): boolean {
    return codeOf((error as { cause?: unknown } | undefined)?.cause) === '23505'
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#connections.close()
  }

  async #runSingle(statement: Statement, outageMs: number): Promise<readonly Row[]> {
    const isRead = /^\s*(SELECT|SHOW)\b/.test(statement.text)
    let isSent = false
    return this.#retrying(
      async () => {
        isSent = false
        const onSent = () => {
          isSent = true
        }
        if (statement.joining) {
          const [rows = []] = await this.#groups.run([statement], statement.joining, onSent)
          return rows
        }
        return this.#connected(client => {
          onSent()
          if (!isRead) this.work.commits++
          return this.#sendSingle(client, statement)
        })
      },
      () => !isSent || isRead || statement.repeatable === true,
      outageMs,
    )
  }

  async #sendSingle(client: PoolClient, statement: Statement): Promise<readonly Row[]> {
    const { wrap, begin } = this.#connections.sending
    // A vacuum has no transaction.
    this.work.trips++
    if (!wrap || /^VACUUM\b/.test(statement.text)) return (await client.query(this.#query(statement))).rows
    this.work.control += 2
    const answers = await pipelined(client, [`BEGIN${begin}`, this.#query(statement), 'COMMIT'])
    // When the statement failed, the COMMIT has rolled it back.
    return rowsOf(answers, 1)
  }

  /** The statements of one write. A single one needs no transaction of its own. */
  async #sendAlone(
    client: PoolClient,
    statements: readonly Statement[],
  ): Promise<readonly (readonly Row[])[]> {
    this.work.commits++
    const [only, ...others] = statements
    if (only && others.length === 0) return [await this.#sendSingle(client, only)]
    this.work.trips++
    this.work.control += 2
    const begin = `BEGIN${this.#connections.sending.begin}`
    const answers = await pipelined(client, [begin, ...statements.map(each => this.#query(each)), 'COMMIT'])
    // When a statement failed, the COMMIT has rolled all of them back.
    return statements.map((_, index) => rowsOf(answers, index + 1))
  }

  #sendGroup(client: PoolClient, statements: readonly Statement[]) {
    this.work.trips++
    this.work.control += 2
    this.work.commits++
    const begin = `BEGIN${this.#connections.sending.begin}; SET LOCAL lock_timeout = ${GROUP_LOCK_MS}`
    return pipelined(client, [begin, ...statements.map(statement => this.#query(statement)), 'COMMIT'])
  }

  async #transaction<T>(begin: string, task: () => Task<T>, onCommit = () => {}): Promise<T> {
    let committing = false
    const attempt = () => {
      committing = false
      return this.#connected(async client => {
        this.work.control += 2
        const result = await this.#steps(client, `${begin}${this.#connections.sending.begin}`, task)
        committing = true
        onCommit()
        this.work.trips++
        await client.query('COMMIT')
        return result
      }, rollback)
    }
    // A transaction that broke before its commit has changed nothing.
    return this.#retrying(attempt, () => !committing)
  }

  /** `cleanUp` returns why the connection cannot be used again, if so. */
  async #connected<T>(
    work: (client: PoolClient) => Promise<T>,
    cleanUp: (client: PoolClient) => Promise<unknown> = async () => {},
  ): Promise<T> {
    const client = await this.#connections.take()
    let failure: unknown
    try {
      return await work(client)
    } catch (error) {
      // A statement without an answer keeps its connection: whatever is sent after it would wait as well.
      failure = endsConnection(error) ? error : await cleanUp(client)
      throw error
    } finally {
      this.#connections.release(client, failure)
    }
  }

  /** The first statement does not wait for the BEGIN. */
  async #steps<T>(client: PoolClient, begin: string, task: () => Task<T>): Promise<T> {
    const steps = task()
    let step = steps.next()
    this.work.trips++
    const answers = await pipelined(client, [begin, ...(step.done ? [] : [this.#query(step.value)])])
    const rows = rowsOf(answers, 1)
    if (!step.done) step = steps.next(rows)
    while (!step.done) {
      this.work.trips++
      step = steps.next((await client.query(this.#query(step.value))).rows)
    }
    return step.value
  }

  async #retrying<T>(
    attempt: () => Promise<T>,
    mayRepeat: () => boolean,
    outageMs: number = OUTAGE_MS,
  ): Promise<T> {
    const startedAt = performance.now()
    for (let attempts = 1; ; attempts++) {
      if (this.#closed) throw storeClosed()
      try {
        return await attempt()
      } catch (error) {
        // A server that was reached before may be on its way back; one that starts says so.
        const waitedMs = performance.now() - startedAt
        const isOut = this.#connections.wasOpened
          ? waitedMs < outageMs
          : isStarting(error) && waitedMs < START_MS
        const isFirst = attempts < MOST_ATTEMPTS
        const again =
          (RUN_AGAIN.has(codeOf(error) ?? '') && isFirst) ||
          (isLostStatement(error) && this.#connections.stopPreparing()) ||
          (isBroken(error) && (isFirst || isOut) && mayRepeat()) ||
          (isUnreachable(error) && isOut && mayRepeat())
        if (codeOf(error) === DISK_FULL) this.isFull = true
        if (!again) throw toAgentError(error, this.#location)
        // When a server drops its connections, the pool notices each of them with a delay.
        await new Promise(resume => setTimeout(resume, Math.min(10 * attempts, MOST_PAUSE_MS)))
      }
    }
  }

  #query({ text, parameters }: Statement): { name?: string; text: string; values: unknown[] } {
    this.work.statements++
    let prepared = this.#prepared.get(text)
    if (prepared === undefined) {
      let number = 0
      prepared = { name: nameOf(text), text: text.replaceAll('?', () => `$${++number}`) }
      this.#prepared.set(text, prepared)
    }
    const values = [...parameters]
    return this.#connections.sending.prepare ? { ...prepared, values } : { text: prepared.text, values }
  }
}

function rewriteFailed(table: string, cause: unknown): AgentError {
  return new AgentError(
    'store-unavailable',
    `The rows were deleted, but the table ${table} could not be rewritten (${messageOf(cause)}): erase again with rewrite`,
    { cause, retryable: true, details: { table } },
  )
}

/** The rows of the answer at `index`, if all succeeded. The first failure explains those that follow it. */
function rowsOf(answers: readonly PromiseSettledResult<QueryResult>[], index: number): Row[] {
  const failed = answers.find(answer => answer.status === 'rejected')
  if (failed) throw failed.reason
  const answer = answers[index]
  return answer?.status === 'fulfilled' ? answer.value.rows : []
}

/** Equal names mean equal statements in every process: behind a pooler, a connection may know those of others. */
function nameOf(text: string): string {
  return `lango_${process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('base64url').slice(0, 22)}`
}

/** Serialization failure and deadlock: the transaction changed nothing and may be retried. */
const RUN_AGAIN: ReadonlySet<string> = new Set(['40001', '40P01'])
const DISK_FULL = '53100'
const MOST_ATTEMPTS = 5
const MOST_PAUSE_MS = 250
/** How long a server that was reached before is waited for: less than a lease lasts. */
const OUTAGE_MS = 9000
/** How long a server that is starting is waited for when a store is opened. */
const START_MS = 15_000

/** A write whose session is locked for longer goes on alone: the others of its group do not wait for it. */
const GROUP_LOCK_MS = 500

function rollback(client: PoolClient): Promise<unknown> {
  return client.query('ROLLBACK').then(
    () => undefined,
    (error: unknown) => error,
  )
}
