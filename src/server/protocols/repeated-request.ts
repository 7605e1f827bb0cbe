/**
 * Recognises a request that was sent before, so that a client that repeats one does not start a second run. The id of
 * a run is derived from its request; every process on the store derives the same one, also after a restart.
 *
 * - With `Idempotency-Key`, from the app, the user and the key.
 * - Otherwise from the user, the route, the session and the bytes of the body, and from an earlier run of the session:
 *   equal bytes that are sent at once are one run, and equal messages after two answers are two runs.
 *
 * A repeated request gets the run that it repeats: one that has not ended; within `retryMs` after its end one that has
 * failed, whose caller lost the connection before the answer or was asked to repeat the request, or that another process
 * has continued; and, by a key or by the count of retries that OpenAI's clients send, one that has answered.
 */
import type { Context } from 'hono'
import { AgentError } from '../../errors.js'
import { digest, uuidOf } from '../../runtime/derived-id.js'
import type { SessionKey } from '../../session/message.js'
import type { RunItem } from '../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../server-context.js'

/** What a request is recognised by. */
export interface RequestMark {
  /** A digest of the user, the route, the session and the body. */
  fingerprint: string
  /** The id of the run that the request's key names. */
  keyedRunId?: string
  /** The client says that it has sent the request before. */
  isRetry: boolean
}

/** The run of a request: one that exists, with its session, or the id of a new one. */
export interface RequestedRun {
  runId: string
  known?: SessionKey
}

export async function markOf(c: Context<ServerEnv>, context: ServerContext): Promise<RequestMark> {
  const { app } = context.info
  const user = context.userOf(c)
  const session = c.req.header('x-lango-session') ?? ''
  const fingerprint = digest([app, user, c.req.method, c.req.path, session, await c.req.text()])
  const key = c.req.header('idempotency-key')
  if (key !== undefined) checkKey(key)
  return {
    fingerprint,
    ...(key === undefined ? {} : { keyedRunId: uuidOf(['key', app, user, key]) }),
    isRetry: Number(c.req.header('x-stainless-retry-count') ?? 0) > 0,
  }
}

function checkKey(key: string): void {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return
  const message = 'The header Idempotency-Key must have 1 to 255 printable ASCII characters.'
  throw new AgentError('invalid-argument', message)
}

interface RepeatOptions {
  /** Whether a run that has just failed is the answer. Default true. */
  afterFailure?: boolean
  /** Stores what a new run needs before it starts. */
  prepare?(runId: string): Promise<void>
}

/** The run of a request in a session. */
export async function runOfRequest(
  context: ServerContext,
  mark: RequestMark,
  key: SessionKey,
  { afterFailure = true, prepare }: RepeatOptions = {},
): Promise<RequestedRun> {
  const requested = await findRun(context, mark, key, afterFailure)
  if (requested.known || !prepare) return requested
  try {
    await prepare(requested.runId)
    return requested
  } catch (error) {
    // An equal request may have begun the run meanwhile: then the session is busy with it.
    const again = await findRun(context, mark, key, afterFailure)
    if (again.known) return again
    throw error
  }
}

async function findRun(
  context: ServerContext,
  mark: RequestMark,
  key: SessionKey,
  afterFailure: boolean,
): Promise<RequestedRun> {
  if (mark.keyedRunId !== undefined) return keyedRun(context, mark, mark.keyedRunId, key.userId)
  const runs = await context.hub.list(key, LISTED)
  for (const [index, run] of runs.entries()) {
    const isFailureFinal = afterFailure || mark.isRetry
    if (!isOf(mark, runs, index) || !(await isAnswer(context, mark, { run, key, isFailureFinal }))) continue
    return { runId: run.runId, known: key }
  }
  return { runId: derivedId(mark, runs[0]?.runId ?? '') }
}

/** The newest runs of a session among which the run of a repeated request is looked for. */
const LISTED = 20

/** Whether a run was started by the same request: its id is derived from an earlier run, mostly the one before it. */
function isOf(mark: RequestMark, runs: readonly RunItem[], index: number): boolean {
  const earlier = runs.slice(index + 1).map(({ runId }) => runId)
  const all = runs.length < LISTED ? [...earlier, ''] : earlier
  return all.some(runId => derivedId(mark, runId) === runs[index]?.runId)
}

function derivedId({ fingerprint }: RequestMark, earlier: string): string {
  return uuidOf(['request', fingerprint, earlier])
}

interface Candidate {
  run: RunItem
  key: SessionKey
  isFailureFinal: boolean
  /** The run has a session of its own, which is deleted when its answer was delivered. */
  isAlone?: boolean
}

async function isAnswer(
  context: ServerContext,
  { isRetry }: RequestMark,
  { run, key, isFailureFinal, isAlone = false }: Candidate,
): Promise<boolean> {
  if (run.status !== 'finished') return true
  const { runtime, limits } = context
  // The store keeps no time of a run's end: the last change of its session is the closest.
  const session = await runtime.store.describeSession(key)
  if (Date.now() - Math.max(run.startedAt, session?.updatedAt ?? 0) > limits.retryMs) return false
  const hasFailed = run.finishReason === 'error' || (isAlone && run.finishReason === 'aborted')
  if (isRetry || (isFailureFinal && hasFailed)) return true
  const isDelivered = deliveries.get(run.runId)
  return isDelivered === undefined ? isAlone || (await wasResumed(context, run.runId)) : !isDelivered
}

/** True if a run was continued after its process had ended: then its caller lost the connection. */
async function wasResumed({ hub }: ServerContext, runId: string): Promise<boolean> {
  for await (const { type } of hub.stored(runId)) if (type === 'run-resumed') return true
  return false
}

/** The newest answers of this process, by run: whether the caller got all of it, or lost the connection before. */
const deliveries = new Map<string, boolean>()
const MOST_DELIVERIES = 10_000

/** Ids of lone runs whose sessions this process has deleted, or is about to: an id is used once. */
const answered = new Set<string>()

/** The session of a lone run is deleted: an equal request is a new one. */
export function forgetRun(runId: string): void {
  answered.add(runId)
  const [oldest] = answered
  if (answered.size > MOST_DELIVERIES && oldest !== undefined) answered.delete(oldest)
}

/** Resolves when the response is over: whether the caller of the run got all of it. `isCut`: it was asked to repeat the request. */
export function watchDelivery(
  c: Context<ServerEnv>,
  runId: string,
  isCut: () => boolean = () => false,
): Promise<boolean> {
  const { outgoing } = c.env
  return new Promise(resolve => {
    outgoing.once('close', () => {
      // 503 asks for the request once more.
      const isDelivered = outgoing.writableFinished && outgoing.statusCode !== 503 && !isCut()
      deliveries.delete(runId)
      deliveries.set(runId, isDelivered)
      const [oldest] = deliveries.keys()
      if (deliveries.size > MOST_DELIVERIES && oldest !== undefined) deliveries.delete(oldest)
      resolve(isDelivered)
    })
  })
}

/** The run of a request that names no session. Those that were answered are deleted, so that equal requests are different runs. */
export async function runOfLoneRequest(
  context: ServerContext,
  mark: RequestMark,
  { userId, isKept = false }: { userId: string; isKept?: boolean },
): Promise<RequestedRun> {
  if (mark.keyedRunId !== undefined) return keyedRun(context, mark, mark.keyedRunId, userId)
  // Sessions that are kept would make the search longer with every equal request: it goes back as far as retries do.
  const now = Math.floor(Date.now() / context.limits.retryMs)
  for (const name of isKept ? [`kept ${now - 1}`, `kept ${now}`] : ['alone']) {
    for (let count = 0; count < MOST_DELIVERIES + LISTED; count++) {
      const runId = derivedId(mark, `${name} ${count}`)
      if (answered.has(runId)) continue
      const found = await context.hub.find(runId)
      if (!found && name === `kept ${now - 1}`) break
      if (found?.key.userId !== userId) return { runId }
      const candidate = { run: found.item, key: found.key, isFailureFinal: true, isAlone: true }
      if (await isAnswer(context, mark, candidate)) return { runId, known: found.key }
    }
  }
  throw new AgentError(
    'session-busy',
    'The same request was sent too often within a minute. Wait a moment.',
    {
      retryable: true,
    },
  )
}

async function keyedRun(
  context: ServerContext,
  mark: RequestMark,
  runId: string,
  userId: string,
): Promise<RequestedRun> {
  const found = await context.hub.find(runId)
  if (!found) return { runId }
  if (found.key.userId !== userId) throw usedKey()
  await checkSameRequest(context, mark, runId)
  return { runId, known: found.key }
}

/** Refuses a key that another request was sent with. A run that is queued or was pruned does not say which that was. */
export async function checkSameRequest(
  { runtime }: ServerContext,
  { fingerprint, keyedRunId }: RequestMark,
  runId: string,
): Promise<void> {
  if (keyedRunId === undefined) return
  const first = await runtime.store.runs.readEvents(runId, { limit: 2 })
  if (first.some(({ request }) => typeof request === 'string' && request !== fingerprint)) throw usedKey()
}

function usedKey(): AgentError {
  const message =
    'The Idempotency-Key was sent before, with another request. Use a new key for a new request.'
  return new AgentError('invalid-argument', message)
}
