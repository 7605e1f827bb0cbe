/** The processes of a fleet, seen from one of them: what is dispatched, and what those that are gone have left behind. */
import type { DBOSClient, WorkflowStatus } from '@dbos-inc/dbos-sdk'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { DispatchedRun, EngineWork } from '../run/run-engine.js'
import type { SessionKey } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import {
  type DbosPlace,
  hasEnded,
  listExecutors,
  MODEL_TURN,
  prune,
  queuedOfOthers,
  RUN,
  remove,
  requeue,
  runQueue,
  userMark,
  workflowsById,
} from './dbos-client.js'

interface FleetParts {
  client: DBOSClient
  place: DbosPlace
  store: SessionStore
  logger: Logger
  work: EngineWork
  executorId: string
  /** Of the code of this process. */
  version: string
  oldVersions: 'continue' | 'wait'
  /** How long workflows that have ended are kept. */
  keepMs: number
}

export class DbosFleet {
  readonly #parts: FleetParts
  /** The versions of the processes that are there. */
  #versions: ReadonlySet<string>
  #checkedAt = 0
  #prunedAt = 0

  constructor(parts: FleetParts) {
    this.#parts = parts
    this.#versions = new Set([parts.version])
  }

  /** A workflow that has ended is queued again: its run waited for a person or for another run. */
  async dispatch(runs: readonly DispatchedRun[]): Promise<void> {
    const { client, executorId } = this.#parts
    const known = await workflowsById(
      client,
      runs.map(({ runId }) => runId),
    )
    let isElsewhere = false
    for (const run of runs) {
      const workflow = known.get(run.runId)
      if (!workflow) await this.#start(run)
      else if (hasEnded(workflow)) await this.#again(workflow, this.#versionFor(workflow, run.isBegun))
      else isElsewhere ||= workflow.status === 'PENDING' && workflow.executorId !== executorId
    }
    // The run belongs to an executor, and nobody works on it.
    if (isElsewhere && Date.now() - this.#checkedAt > CHECK_MS) await this.#checkExecutors()
  }

  /** Queues again what executors that are gone have begun, and what only versions that are gone would execute. */
  async sweep(): Promise<void> {
    await this.#checkExecutors()
    await this.#adoptOldVersions()
    const { client, keepMs } = this.#parts
    if (Date.now() - this.#prunedAt < PRUNE_MS) return
    this.#prunedAt = Date.now()
    await prune(client, new Date(Date.now() - keepMs))
  }

  /** The same id twice is one workflow. */
  async #start({ runId, userId }: DispatchedRun): Promise<void> {
    const { client, place, version } = this.#parts
    const user = userMark(place, userId)
    await client.enqueue(
      {
        workflowName: RUN,
        workflowID: runId,
        queueName: runQueue(place),
        queuePartitionKey: user,
        authenticatedUser: user,
        appVersion: version,
      },
      runId,
    )
  }

  /** Queues a workflow that has ended again, from its beginning. */
  async #again({ workflowID, queuePartitionKey }: WorkflowStatus, applicationVersion: string): Promise<void> {
    const { client, place, logger } = this.#parts
    const queue = { queueName: runQueue(place), ...(queuePartitionKey ? { queuePartitionKey } : {}) }
    try {
      await client.rewindWorkflow(workflowID, { startStep: 0, applicationVersion, ...queue })
    } catch (error) {
      // Another process was first, or will look after it.
      logger.debug('A workflow was not queued again', { runId: workflowID, error: messageOf(error) })
    }
  }

  /** A run that has begun stays with its version, as long as that is there or is to be waited for. */
  #versionFor({ applicationVersion: old }: WorkflowStatus, isBegun: boolean): string {
    const { version, oldVersions } = this.#parts
    const stays = old !== undefined && isBegun && (oldVersions === 'wait' || this.#versions.has(old))
    return stays ? old : version
  }

  async #checkExecutors(): Promise<void> {
    const { client, store, place, executorId: own, version, logger } = this.#parts
    this.#checkedAt = Date.now()
    const versions = new Set([version])
    for (const { workflowID, executorId = '', applicationVersion } of await listExecutors(client)) {
      if (executorId === own) continue
      const lease = await freeLease(store, place.app, executorId)
      if (!lease && applicationVersion !== undefined) versions.add(applicationVersion)
      if (!lease) continue
      try {
        const count = await requeue(client, executorId)
        await remove(client, [workflowID])
        logger.info('A process that executed runs is gone: its workflows were queued again', {
          executorId,
          count,
        })
      } finally {
        await lease.release().catch(() => {})
      }
    }
    this.#versions = versions
  }

  /** Workflows in a queue that no process of their version takes. */
  async #adoptOldVersions(): Promise<void> {
    const { client, work, version, oldVersions } = this.#parts
    for (const workflow of await queuedOfOthers(client, this.#versions)) {
      const { workflowID, workflowName } = workflow
      const state = workflowName === MODEL_TURN ? undefined : await work.stateOf(workflowID)
      if (state === undefined) await remove(client, [workflowID])
      else if (state === 'queued' || oldVersions === 'continue') {
        await client.cancelWorkflow(workflowID)
        await this.#again(workflow, version)
      }
    }
  }
}

/** How often executors are looked for between two sweeps. */
const CHECK_MS = 1000
const PRUNE_MS = 600_000

/** Sessions of this user do not exist: the name is for leases. */
const EXECUTORS = 'lango.executors'

function keyOf(appName: string, executorId: string): SessionKey {
  return { appName, userId: EXECUTORS, sessionId: executorId }
}

/** Processes start one after the other: DBOS' first migration fails when several execute it at once. */
export async function launching(store: SessionStore, launch: () => Promise<void>): Promise<void> {
  const lease = await store.acquireLease(keyOf(EXECUTORS, 'launch'), { waitMs: LAUNCH_MS })
  try {
    await launch()
  } finally {
    await lease.release().catch(() => {})
  }
}

const LAUNCH_MS = 60_000

/** The lease of an executor, if it is gone. */
async function freeLease(store: SessionStore, app: string, executorId: string): Promise<Lease | undefined> {
  try {
    return await store.acquireLease(keyOf(app, executorId), { waitMs: 0 })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-busy') return undefined
    throw error
  }
}

/** The sign of life of this process. A process that was frozen has lost it, and takes it again. */
export class ExecutorLease {
  /** The workflows that stand for this process. */
  readonly announced: string[] = []
  readonly #acquire: () => Promise<Lease>
  readonly #logger: Logger
  readonly #released = new AbortController()
  #lease: Lease
  #announce: () => Promise<string> = async () => ''

  static async hold(
    store: SessionStore,
    app: string,
    executorId: string,
    logger: Logger,
  ): Promise<ExecutorLease> {
    const acquire = () => store.acquireLease(keyOf(app, executorId), { waitMs: REACQUIRE_MS })
    return new ExecutorLease(acquire, await acquire(), logger)
  }

  private constructor(acquire: () => Promise<Lease>, lease: Lease, logger: Logger) {
    this.#acquire = acquire
    this.#logger = logger
    this.#lease = lease
    this.#watch()
  }

  /** Announces this process, now and whenever it was taken for dead. */
  async announce(announce: () => Promise<string>): Promise<void> {
    this.#announce = announce
    this.announced.push(await announce())
  }

  async release(): Promise<void> {
    this.#released.abort()
    await this.#lease.release().catch(() => {})
  }

  #watch(): void {
    this.#lease.lost.addEventListener('abort', () => void this.#renew(), { once: true })
  }

  async #renew(): Promise<void> {
    await this.#untilDone(async () => {
      this.#lease = await this.#acquire()
    })
    if (this.#released.signal.aborted) return void this.#lease.release().catch(() => {})
    this.#watch()
    await this.#untilDone(async () => void this.announced.push(await this.#announce()))
  }

  async #untilDone(work: () => Promise<void>): Promise<void> {
    while (!this.#released.signal.aborted) {
      try {
        return await work()
      } catch (error) {
        this.#logger.warn('The lease of this process could not be taken again', { error: messageOf(error) })
        await new Promise(resolve => setTimeout(resolve, RETRY_MS).unref())
      }
    }
  }
}

const REACQUIRE_MS = 30_000
const RETRY_MS = 1000
