/**
 * DBOS as the engine of runs: a run is a workflow under its own id, and its only step executes it. What a run has done is
 * in Lango's store, not in DBOS: a step that is repeated continues the run from its record, and repeats no effect.
 *
 * DBOS recovers the workflows of an executor that starts again under its own name. Here every process has a name of its
 * own, which it holds as a lease in Lango's store: when the lease is free, the process is gone, and another one queues
 * its workflows again.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { DBOSClient, DLogger } from '@dbos-inc/dbos-sdk'
import type { Pool } from 'pg'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { loadOptional } from '../packages.js'
import type { DispatchedRun, EngineWork, Executed, RunEngine } from '../run/run-engine.js'
import type { SessionStore } from '../session/session-store.js'
import {
  applicationOf,
  type DbosPlace,
  DEFAULT_SCHEMA,
  EXECUTOR,
  MODEL_TURN,
  modelQueue,
  RUN,
  remove,
  removeUser,
  requeue,
  runQueue,
} from './dbos-client.js'
import { DbosFleet, ExecutorLease, launching } from './dbos-fleet.js'
import type { DbosOptions } from './engine-options.js'

type Sdk = typeof import('@dbos-inc/dbos-sdk')

export interface DbosParts {
  options: DbosOptions
  place: DbosPlace
  store: SessionStore
  logger: Logger
  /** How many runs may work at once in this process. */
  maxRunning: number
  /** Used when the options name no version. */
  version: string
}

/** The engine of this process. DBOS itself is there once in a process. */
export async function openDbosEngine(parts: DbosParts): Promise<RunEngine> {
  const sdk = await loadDbos()
  if (sdk.DBOS.isInitialized() || isOpen) {
    throw new AgentError(
      'invalid-config',
      'DBOS is in use in this process already, and there is one of it in a process. Close the runtime that uses it, or create this one in another process.',
    )
  }
  return new DbosEngine(sdk, parts)
}

/** Another engine in this process has DBOS. */
let isOpen = false

class DbosEngine implements RunEngine {
  readonly #sdk: Sdk
  readonly #parts: DbosParts
  readonly #executorId = randomUUID()
  #pool: Pool | undefined
  #client: DBOSClient | undefined
  #fleet: DbosFleet | undefined
  #lease: ExecutorLease | undefined
  #isPaused = false

  constructor(sdk: Sdk, parts: DbosParts) {
    this.#sdk = sdk
    this.#parts = parts
  }

  async open(work: EngineWork): Promise<void> {
    const { place, store, logger, options } = this.#parts
    isOpen = true
    try {
      this.#lease = await ExecutorLease.hold(store, place.app, this.#executorId, logger)
      this.#pool = await openPool(place, POOL_SIZE, logger)
      const executor = this.#register(work)
      await launching(store, async () => {
        await this.#launch()
        await this.#registerQueues()
      })
      this.#client = await openClient(this.#sdk, place, this.#pool, logger)
      await this.#lease.announce(() => this.#announce(executor))
      this.#fleet = new DbosFleet({
        ...{ client: this.#client, place, store, logger, work, executorId: this.#executorId },
        version: this.#version,
        oldVersions: options.oldVersions ?? 'continue',
        keepMs: (options.keepHours ?? KEEP_HOURS) * HOUR_MS,
      })
    } catch (cause) {
      await this.close().catch(() => {})
      if (cause instanceof AgentError) throw cause
      const problem = messageOf(cause)
      throw new AgentError('store-unavailable', `DBOS could not be started: ${problem}. ${ADVICE}`, { cause })
    }
  }

  /** Versions have names that no other app of the database has. */
  get #version(): string {
    const { place, options, version } = this.#parts
    return `${applicationOf(place)}@${options.version ?? version}`
  }

  async dispatch(runs: readonly DispatchedRun[]): Promise<void> {
    await this.#fleet?.dispatch(runs)
  }

  async sweep(): Promise<void> {
    await this.#fleet?.sweep()
  }

  pause(): void {
    this.#isPaused = true
  }

  async close(): Promise<void> {
    this.#isPaused = true
    const { logger } = this.#parts
    try {
      await this.#sdk.DBOS.shutdown({ deregister: true })
      // What has not ended is executed by the next process that is free.
      if (this.#client) {
        await requeue(this.#client, this.#executorId)
        await remove(this.#client, this.#lease?.announced ?? [])
      }
    } catch (error) {
      logger.warn('Workflows could not be queued again; other processes will do it', {
        error: messageOf(error),
      })
    } finally {
      await this.#client?.destroy().catch(() => {})
      await this.#pool?.end().catch(() => {})
      await this.#lease?.release()
      isOpen = false
    }
  }

  /** Registers the workflows. Returns the one that stands for this process. */
  #register(work: EngineWork): () => Promise<void> {
    const { DBOS } = this.#sdk
    const { options, place } = this.#parts
    const execute = (runId: string) => DBOS.runStep(() => this.#execute(work, runId), { name: 'execute' })
    // A function is registered once: each workflow has its own.
    const modelTurn = DBOS.registerWorkflow((runId: string) => execute(runId), {
      name: MODEL_TURN,
      ...RECOVERED,
    })
    const inModelQueue = async (runId: string): Promise<Executed> => {
      const model = await DBOS.runStep(() => work.modelOf(runId), { name: 'model' })
      const workflowID = `${runId}.${await DBOS.randomUUID()}`
      const queued = {
        workflowID,
        queueName: modelQueue(place),
        enqueueOptions: { queuePartitionKey: model },
      }
      const turn = await DBOS.startWorkflow(modelTurn, queued)(runId)
      return turn.getResult({ pollingIntervalMs: RESULT_POLL_MS })
    }
    const isLimited = options.queues?.perModel !== undefined
    DBOS.registerWorkflow(isLimited ? inModelQueue : execute, { name: RUN, ...RECOVERED })
    return DBOS.registerWorkflow(() => never(), { name: EXECUTOR, ...RECOVERED })
  }

  /** Nothing of an error is stored in DBOS: it may quote what users wrote. */
  async #execute(work: EngineWork, runId: string): Promise<Executed> {
    let executed: Executed = 'later'
    try {
      if (!this.#isPaused) executed = await work.execute(runId)
    } catch (error) {
      this.#parts.logger.warn('A run could not be executed', { runId, error: messageOf(error) })
    }
    // The workflow stays begun, and is queued again when this process closes.
    return executed === 'later' && this.#isPaused ? never() : executed
  }

  async #launch(): Promise<void> {
    const { DBOS } = this.#sdk
    const { options, place, logger } = this.#parts
    DBOS.setConfig({
      name: applicationOf(place),
      systemDatabaseUrl: place.url,
      systemDatabaseSchemaName: place.schema,
      ...(this.#pool ? { systemDatabasePool: this.#pool } : {}),
      // Nothing waits for notifications, which do not survive poolers.
      useListenNotify: false,
      runMigrations: options.migrate ?? true,
      applicationVersion: this.#version,
      executorID: this.#executorId,
      listenQueues: [runQueue(place), modelQueue(place)],
      schedulerPollingIntervalMs: HOUR_MS,
      enableOTLP: false,
      logger: loggerFor(logger, () => this.#isPaused),
    })
    await DBOS.launch()
  }

  async #registerQueues(): Promise<void> {
    const { DBOS } = this.#sdk
    const { place, maxRunning, options } = this.#parts
    const { fleet, perUser, perModel } = options.queues ?? {}
    const common = { minPollingIntervalMs: options.pollMs ?? POLL_MS, onConflict: 'always_update' } as const
    const workerConcurrency = fleet === undefined ? maxRunning : Math.min(maxRunning, fleet)
    await DBOS.registerQueue(runQueue(place), {
      ...common,
      workerConcurrency,
      ...(fleet === undefined ? {} : { globalConcurrency: fleet }),
      ...(perUser === undefined ? {} : { partitionConcurrency: Math.min(perUser, fleet ?? perUser) }),
    })
    if (perModel === undefined) return
    await DBOS.registerQueue(modelQueue(place), { ...common, partitionConcurrency: perModel })
  }

  /** Lets the other processes know that this one executes runs. */
  async #announce(executor: () => Promise<void>): Promise<string> {
    const workflowID = `executor.${randomUUID()}`
    await this.#sdk.DBOS.startWorkflow(executor, { workflowID })()
    return workflowID
  }
}

const POOL_SIZE = 8
const POLL_MS = 200
const RESULT_POLL_MS = 200
const HOUR_MS = 3_600_000
const KEEP_HOURS = 24
/** A workflow that ends its process is ended by `runs.maxAttempts`, with an event, and not by DBOS. */
const RECOVERED = { maxRecoveryAttempts: 1_000_000 }
const ADVICE =
  'Check the URL, and that the role may create the schema of DBOS; or create it beforehand (docs/engines.md) and set `engine.migrate` to false.'

/** Neither resolves nor keeps the process alive. */
function never(): Promise<never> {
  return new Promise(() => {})
}

/** The version of processes with equal agents. */
export function versionOf(agents: unknown): string {
  return createHash('sha256').update(JSON.stringify(agents)).digest('hex').slice(0, 16)
}

/** Removes what DBOS has about the runs of a user: their ids, and a digest of the user's. */
export async function eraseFromDbos(place: DbosPlace, userId: string, logger: Logger): Promise<void> {
  const pool = await openPool(place, 1, logger)
  const client = await openClient(await loadDbos(), place, pool, logger)
  try {
    await removeUser(client, place, userId)
  } catch (error) {
    // Without its tables DBOS was never started here.
    if (!isMissing(error)) throw error
  } finally {
    await client.destroy()
    await pool.end()
  }
}

function isMissing(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  return code === '42P01' || code === '3F000' || (cause !== undefined && isMissing(cause))
}

export interface MigrateDbosOptions {
  /** The URL of the database, with a role that may create schemas. */
  url: string
  /** Default `dbos`. */
  schema?: string | undefined
  /** The role of the processes that execute runs: it gets the rights that they need, and no others. */
  role?: string | undefined
}

/**
 * Creates or migrates the tables of DBOS, so that the processes that execute runs need no right to do it
 * (`engine.migrate: false`).
 *
 * ```ts
 * import { migrateDbos } from 'lango/dbos'
 *
 * export async function prepare(adminUrl: string): Promise<void> {
 *   await migrateDbos({ url: adminUrl, role: 'lango_app' })
 * }
 * ```
 */
export async function migrateDbos({ url, schema = DEFAULT_SCHEMA, role }: MigrateDbosOptions): Promise<void> {
  const { DBOS } = await loadDbos()
  await DBOS.migrate(url, { schemaName: schema, ...(role ? { applicationRole: role } : {}) })
}

function loadDbos(): Promise<Sdk> {
  return loadOptional('dbos', () => import('@dbos-inc/dbos-sdk'))
}

/** A connection that is lost ends the process where nobody listens, which DBOS does not everywhere. */
async function openPool({ url }: DbosPlace, max: number, logger: Logger): Promise<Pool> {
  const { Pool } = await loadDriver()
  const pool = new Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 10_000,
    idle_in_transaction_session_timeout: 60_000,
  })
  const lost = (error: Error) => logger.debug('A connection of DBOS was lost', { error: messageOf(error) })
  pool.on('error', lost)
  pool.on('connect', client => void client.on('error', lost))
  return pool
}

async function loadDriver(): Promise<typeof import('pg')> {
  const load = () => import('pg')
  const module = (await loadOptional('postgres', load)) as Awaited<ReturnType<typeof load>> & {
    default?: typeof import('pg')
  }
  return module.default ?? module
}

function openClient(sdk: Sdk, place: DbosPlace, pool: Pool, logger: Logger): Promise<DBOSClient> {
  return sdk.DBOSClient.create({
    systemDatabaseUrl: place.url,
    systemDatabasePool: pool,
    systemDatabaseSchemaName: place.schema,
    applicationName: applicationOf(place),
    logger: loggerFor(logger),
  })
}

/** DBOS reports each of its steps: only its warnings and errors are for people, and only until it is closed. */
function loggerFor(logger: Logger, isClosing = () => false): DLogger {
  const words = (entry: unknown) => `DBOS: ${typeof entry === 'string' ? entry : messageOf(entry)}`
  return {
    debug: () => {},
    info: entry => logger.debug(words(entry)),
    warn: entry => (isClosing() ? logger.debug(words(entry)) : logger.warn(words(entry))),
    error: entry => logger.error(words(entry)),
  }
}
