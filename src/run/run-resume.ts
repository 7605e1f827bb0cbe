/** How a run is continued: what is loaded for it, what its next attempt begins with, and when it is given up. */
import { defined } from '../base/defined.js'
import type { RunTrace } from '../base/trace-context.js'
import { AgentError, messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { RunInputRecord, RunSummary } from '../session/run-store.js'
import type { Lease } from '../session/session-store.js'
import { lastSeqBeforeAttempt, numbered } from './event-numbers.js'
import { freeLease, hasSuccessor, markIfInterrupted, storedEvents } from './interrupted-runs.js'
import { loadResumed, type ResumedRun, waitsBetween } from './resumed-run.js'
import { type BegunRun, type Leave, once, type RunSlots } from './run-admission.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { RunHost } from './run-host.js'
import type { RunEnding } from './run-journal.js'
import { type PreparedRun, preparedFrom } from './run-opening.js'
import { isSignalled } from './run-signals.js'

/** A run that is to be continued. */
export interface Resumption {
  run: PreparedRun
  begun: BegunRun
  resumed: ResumedRun
  /** The first events of the attempt; they are stored. */
  first: readonly RunEvent[]
}

interface ResumerParts {
  host: RunHost
  slots: RunSlots
  /** Executes a run that was taken over. Resolves when this process is done with it. */
  drive(resumption: Resumption): Promise<void>
}

/** What happened to a run that no process worked on. `later`: nothing yet. */
export type Continued = 'resumed' | 'ended' | 'later'

/** The lease of a session and a place among the running runs. */
export interface Held {
  lease: Lease
  leaveSlot: Leave
}

/** Takes over runs whose process is gone, and those that were given back. */
export class RunResumer {
  readonly #parts: ResumerParts
  /** The runs that are being taken over. */
  readonly #taking = new Set<string>()

  constructor(parts: ResumerParts) {
    this.#parts = parts
  }

  /** Continues a run if its session is free, or ends it if it cannot be continued. */
  async continue(run: RunSummary): Promise<Continued> {
    const { host, slots } = this.#parts
    if (this.#taking.has(run.runId)) return 'later'
    this.#taking.add(run.runId)
    try {
      const leaveSlot = slots.tryEnter()
      if (!leaveSlot) return 'later'
      const lease = await freeLease(host.store, run).catch(error => {
        leaveSlot()
        throw error
      })
      if (lease) return await this.takeOver(run, { lease, leaveSlot: once(leaveSlot) })
      leaveSlot()
      // Its process works on it, another one looks after it, or it was left behind by the later run that is active.
      if (!(await hasSuccessor(host.store, run))) return 'later'
      return (await this.#end(run)) ? 'ended' : 'later'
    } finally {
      this.#taking.delete(run.runId)
    }
  }

  /**
   * Continues a run under the lease of its session, or ends it. The lease and the place are released in the end; with
   * `isAwaited`, that is before this resolves.
   */
  async takeOver(given: RunSummary, held: Held, isAwaited = false): Promise<Continued> {
    const { host, drive } = this.#parts
    const { lease, leaveSlot } = held
    let work: Promise<void> | undefined
    try {
      const run = await host.store.runs.findRun(given.runId)
      if (!run || run.finished) return 'ended'
      const prepared = await prepareResume(host, run)
      if (!('resumed' in prepared)) return (await this.#end(run, lease, prepared)) ? 'ended' : 'later'
      const { key, runId } = run
      const events = prepared.first.map(event => ({ ...event }))
      const begun = await host.store.runs.resumeRun({ key, runId, fence: lease.fence, events })
      if (!begun) return 'ended'
      host.logger.info('A run is resumed', { runId, ...key, attempt: begun.attempt })
      const { opening, isBetween } = prepared.resumed
      work = drive({ ...prepared, begun: { lease, leaveSlot, opening: isBetween ? undefined : opening } })
    } finally {
      if (!work) {
        await lease.release().catch(() => {})
        leaveSlot()
      }
    }
    if (isAwaited) await work
    return 'resumed'
  }

  /**
   * Looks for a run of the session that has begun and not ended, before a queued one begins. `'clear'` when there is none
   * any more; `'later'` when it has to end first; otherwise it was executed here.
   */
  async clearWay({ appName, userId, sessionId }: SessionKey, held: Held): Promise<Continued | 'clear'> {
    const key = { appName, userId, sessionId }
    const { store } = this.#parts.host
    const earlier = await store.runs.listUnfinished({ appName, key, limit: CHECKED_RUNS })
    const unfinished = earlier.find(({ state }) => state === 'running' || state === 'waiting')
    if (unfinished?.state === 'running') return this.takeOver(unfinished, held, true)
    return !unfinished || (await this.#endAsked(unfinished, held.lease)) ? 'clear' : 'later'
  }

  /**
   * Ends a run that waits for answers between two rounds, because the next message of its session has come: it may be the
   * answer. `false` when the run waits inside a round, or is answered already.
   */
  async #endAsked(run: RunSummary, lease: Lease): Promise<boolean> {
    const { store, tools, logger } = this.#parts.host
    const resumable = await store.runs.readResumable(run.runId)
    if (!resumable || !waitsBetween(resumable) || (await isSignalled(store, run.runId))) return false
    const ending: RunEnding = { finishReason: 'stop' }
    return markIfInterrupted(store, run, { held: lease, tools, logger, ending })
  }

  /** Ends the only unfinished run of a session, if it waits between two rounds. */
  async freeSession(key: SessionKey): Promise<boolean> {
    const { store, appName } = this.#parts.host
    const [run, other] = await store.runs.listUnfinished({ appName, key, limit: 2 })
    if (run?.state !== 'waiting' || other) return false
    const lease = await freeLease(store, run)
    try {
      return lease !== undefined && (await this.#endAsked(run, lease))
    } finally {
      await lease?.release().catch(() => {})
    }
  }

  async #end(run: RunSummary, held?: Lease, why: NotResumed = {}): Promise<boolean> {
    const { host } = this.#parts
    const { runId } = run
    const stored = host.tracing && (await host.store.runs.readResumable(runId))
    const isEnded = await markIfInterrupted(host.store, run, { ...host, held, ...why })
    if (!isEnded) return false
    host.logger.warn('A run was marked as interrupted: its process is gone', { runId, ...run.key })
    if (stored) await quietly(host, runId, () => traceInterrupted(host, run, stored.input))
    return true
  }
}

/** The oldest unfinished runs of a session that are checked before a queued one begins. */
const CHECKED_RUNS = 20

/** Why a run is ended instead of continued, as far as it is not its process alone. */
interface NotResumed {
  reason?: string
  ending?: RunEnding
}

/** What a run is continued with, or why it is not. */
async function prepareResume(
  host: RunHost,
  run: RunSummary,
): Promise<Pick<Resumption, 'run' | 'resumed' | 'first'> | NotResumed> {
  if (host.resume === false) return {}
  const resumable = await host.store.runs.readResumable(run.runId)
  if (!resumable) return {}
  const isCrash = resumable.state === 'running'
  const { maxAttempts = MAX_ATTEMPTS } = host
  if (isCrash && resumable.attempt >= maxAttempts)
    return { reason: `Its process ended ${resumable.attempt} times before the run stored anything more.` }
  const { input, message } = resumable
  const queued = { key: run.key, runId: run.runId, message, input, queuedAt: run.startedAt }
  const resumed = await loadResumed(host, run, resumable)
  if (resumed.ending) return { ending: resumed.ending }
  const prepared = preparedFrom(host, queued, false)
  const attempt = isCrash ? resumable.attempt + 1 : resumable.attempt
  const first = firstEvents(run, resumed, { attempt, isCrash })
  return { run: { ...prepared, content: resumed.content }, resumed, first }
}

const MAX_ATTEMPTS = 3

/** After a crash the numbers begin above those of deltas that were handed out and not stored. */
function firstEvents(
  { runId, key, lastSeq }: RunSummary,
  { replayedSteps, progress, mayHaveSpoken }: ResumedRun,
  { attempt, isCrash }: { attempt: number; isCrash: boolean },
): RunEvent[] {
  const restarts = (isCrash ? mayHaveSpoken : [...progress.open.keys()]).map(
    (author): RunEventBody => ({ type: 'step-restart', step: progress.step + 1, ...defined({ author }) }),
  )
  const bodies: RunEventBody[] = [{ type: 'run-resumed', attempt, replayedSteps }, ...restarts]
  const after = isCrash ? lastSeqBeforeAttempt(lastSeq) : lastSeq
  return numbered(bodies, { sessionId: key.sessionId, runId }, after)
}

/** Reports the end of a run that was ended as interrupted, with the trace that it was accepted with. */
async function traceInterrupted(
  { store, tracing }: RunHost,
  { runId, key, lastSeq }: RunSummary,
  input: RunInputRecord,
): Promise<void> {
  // As `run-opening` has stored it.
  const { trace } = input as { trace?: RunTrace }
  let [agent, model] = ['', '']
  const last: RunEvent[] = []
  for await (const event of storedEvents(store.runs, runId)) {
    if (event.type === 'run-start') [agent, model] = [event.agent, event.model]
    if (event.seq > lastSeq) last.push(event)
  }
  tracing?.interrupted(
    { runId, sessionId: key.sessionId, agent, model, trace, isResumed: true, text: '' },
    last,
  )
}

/** For callers that look after runs from time to time: a failure is logged, and the run is looked after again. */
export async function quietly(
  { logger }: Pick<RunHost, 'logger'>,
  runId: string,
  work: () => Promise<unknown>,
  failed = 'A run could not be continued',
): Promise<void> {
  try {
    await work()
  } catch (error) {
    logger.warn(failed, { runId, error: messageOf(error) })
  }
}

/** The run cannot be continued. */
export function hasEnded(runId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `Run "${runId}" has ended. Send a message to continue its session.`,
  )
}
