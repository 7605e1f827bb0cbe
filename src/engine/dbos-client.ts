/** What Lango says to DBOS: which workflows there are, and how they are found again. It never says what a run is about. */
import { createHash } from 'node:crypto'
import type { DBOSClient, WorkflowStatus } from '@dbos-inc/dbos-sdk'
import type { DbosOptions } from './engine-options.js'

/** The names under which DBOS knows the workflows. */
export const RUN = 'lango.run'
export const MODEL_TURN = 'lango.model-turn'
export const EXECUTOR = 'lango.executor'

export const DEFAULT_SCHEMA = 'dbos'

/** Where the tables of DBOS are, and under which application. */
export interface DbosPlace {
  url: string
  schema: string
  app: string
}

export function placeOf(
  { url, schema = DEFAULT_SCHEMA }: DbosOptions,
  store: string,
  app: string,
): DbosPlace {
  return { url: url ?? store, schema, app }
}

/** The application of DBOS: apps of one database do not see each other's workflows. */
export function applicationOf({ app }: Pick<DbosPlace, 'app'>): string {
  return `lango:${app}`
}

export function runQueue(place: Pick<DbosPlace, 'app'>): string {
  return `${applicationOf(place)}:runs`
}

export function modelQueue(place: Pick<DbosPlace, 'app'>): string {
  return `${applicationOf(place)}:models`
}

/** Users are distinguished by a digest: DBOS' tables name nobody. */
export function userMark({ app }: Pick<DbosPlace, 'app'>, userId: string): string {
  return createHash('sha256')
    .update(JSON.stringify([app, userId]))
    .digest('hex')
    .slice(0, 32)
}

const ENDED = ['SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'] as const

export function hasEnded({ status }: WorkflowStatus): boolean {
  return ENDED.some(each => each === status)
}

/** Without inputs and outputs. */
const BARE = { loadInput: false, loadOutput: false } as const

/** Workflows by their ids. */
export async function workflowsById(
  client: DBOSClient,
  workflowIDs: readonly string[],
): Promise<Map<string, WorkflowStatus>> {
  const found = await client.listWorkflows({ workflowIDs: [...workflowIDs], ...BARE })
  return new Map(found.map(workflow => [workflow.workflowID, workflow]))
}

/** The processes that execute runs, or did. */
export function listExecutors(client: DBOSClient): Promise<WorkflowStatus[]> {
  return client.listWorkflows({ workflowName: EXECUTOR, status: 'PENDING', ...BARE })
}

/** Queues everything again that an executor has begun. */
export async function requeue(client: DBOSClient, executorId: string): Promise<number> {
  const begun = await client.listWorkflows({
    ...{ workflowName: [RUN, MODEL_TURN], status: 'PENDING', executorId },
    ...BARE,
  })
  const byQueue = new Map<string | undefined, string[]>()
  for (const { workflowID, queueName } of begun)
    byQueue.set(queueName, [...(byQueue.get(queueName) ?? []), workflowID])
  for (const [queueName, ids] of byQueue) await client.resumeWorkflows(ids, queueName ? { queueName } : {})
  return begun.length
}

/** Removes workflows, whatever their state. */
export async function remove(client: DBOSClient, workflowIds: readonly string[]): Promise<void> {
  if (workflowIds.length === 0) return
  await client.cancelWorkflows([...workflowIds])
  await client.deleteWorkflows([...workflowIds])
}

/** Workflows of versions other than these that wait in a queue. */
export async function queuedOfOthers(
  client: DBOSClient,
  versions: ReadonlySet<string>,
): Promise<WorkflowStatus[]> {
  const queued = await client.listWorkflows({
    ...{ workflowName: [RUN, MODEL_TURN], status: 'ENQUEUED', limit: MOST_LISTED },
    ...BARE,
  })
  return queued.filter(({ applicationVersion }) => !versions.has(applicationVersion ?? ''))
}

/** Removes the records of workflows that ended before that time. */
export async function prune(client: DBOSClient, before: Date): Promise<void> {
  const ended = await client.listWorkflows({
    ...{ workflowName: [RUN, MODEL_TURN, EXECUTOR], status: [...ENDED], limit: MOST_LISTED },
    completedBefore: before.toISOString(),
    ...BARE,
  })
  if (ended.length > 0) await client.deleteWorkflows(ended.map(({ workflowID }) => workflowID))
}

/** Removes everything that DBOS has about the runs of a user. */
export async function removeUser(client: DBOSClient, place: DbosPlace, userId: string): Promise<void> {
  const authenticatedUser = userMark(place, userId)
  for (;;) {
    const found = await client.listWorkflows({ authenticatedUser, limit: MOST_LISTED, ...BARE })
    await remove(
      client,
      found.map(({ workflowID }) => workflowID),
    )
    if (found.length < MOST_LISTED) return
  }
}

const MOST_LISTED = 500
