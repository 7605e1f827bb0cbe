import { messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun, RunSummary } from '../session/run-store.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../tool.js'
import { markIfInterrupted } from './interrupted-runs.js'
import type { RunEvent } from './run-event.js'
import type { RunFollower } from './run-follower.js'
import type { RunHost, RunInput } from './run-host.js'
import { type EventLists, RunLoop, type RunOpened } from './run-loop.js'
import {
  checkSameSession,
  openInSteps,
  openingOf,
  type PreparedRun,
  preparedFrom,
  prepareRun,
  startEvent,
  stoppedBeforeStart,
} from './run-opening.js'
import {
  busy,
  defaultMaxRunning,
  type Leave,
  QueueWorkers,
  RunSlots,
  SessionQueue,
  sessionName,
  WAIT_FOR_SESSION_MS,
} from './run-queue.js'
import { answerElsewhere, answerStored, stopStored, watchEnds } from './run-signals.js'

/** A run that was accepted: it is on disk. */
export interface StartedRun {
  runId: string
  sessionId: string
}

/** A run that this process has accepted or executes, and that has not ended. */
export interface ActiveRun {
  readonly runId: string
  readonly key: SessionKey
  /** Its loop, while this process executes it. */
  readonly loop?: RunLoop
}

/** Everything that one write of a store can do for runs; without it nothing is queued in the store. */
type DurableStore = SessionStore &
  Required<Pick<SessionStore, 'openRun' | 'queueRun' | 'beginRun'>> & {
    runs: Required<Pick<SessionStore['runs'], 'listQueued' | 'listAbandoned' | 'endQueued'>>
  }

/** Where an accepted run is: begun under a lease, or in the queue of its session, or known before. */
type Accepted = { lease: Lease; leaveSlot: Leave; opening: RunOpened | undefined } | 'queued' | 'known'

interface WaitingRun extends ActiveRun {
  run: PreparedRun
  onEnd(): void
}

/**
 * The runs of a host. A run is accepted by one write: it begins in that write, or it is queued in the store with its
 * whole input. Queued runs of a session are executed in order, by this process or by another one; each holds the
 * session's lease, and is stopped by its caller's signal, by a lost lease, or by a signal from another process.
 *
 * Everything that can fail before the run is accepted (bad input, a busy session, an unreachable store) is thrown;
 * afterwards failures are events. `onEnd` is called when this process has nothing more to do for the run.
 */
export class Runs {
  readonly #host: RunHost
  readonly #store: DurableStore | undefined
  readonly #follower: RunFollower
  readonly #slots: RunSlots
  /** For stores that queue nothing. */
  readonly #queue = new SessionQueue()
  readonly #admissions = new Map<string, Promise<unknown>>()
  readonly #executed = new Map<string, ActiveRun>()
  readonly #waiting = new Map<string, WaitingRun>()
  readonly #workers: QueueWorkers | undefined

  constructor(host: RunHost, follower: RunFollower) {
    this.#host = host
    this.#store = isDurable(host.store) ? host.store : undefined
    this.#follower = follower
    this.#slots = new RunSlots(host.maxRunning ?? defaultMaxRunning())
    const store = this.#store
    this.#workers =
      store &&
      new QueueWorkers({
        store,
        logger: host.logger,
        slots: this.#slots,
        listed: (key, queued) => this.#forgetTaken(key, queued),
        execute: (next, held) => this.#executeNext(store, next, held),
      })
  }

  /**
   * One message, as lists of events. They must be read at once: the run holds its session. Leaving the loop early is an
   * abort.
   */
  async run(input: RunInput, onEnd: () => void = () => {}): Promise<EventLists> {
    const run = prepareRun(this.#host, input)
    if (input.signal?.aborted) return stoppedBeforeStart(this.#host, run)
    const accepted = await this.#accept(run)
    if (accepted === 'known') return this.#follower.follow(run.runId)
    if (accepted === 'queued') {
      this.#enqueue(run, onEnd)
      return this.#followQueued(run)
    }
    const { loop, events } = this.#execute(run, accepted, onEnd)
    this.#executed.set(run.runId, { runId: run.runId, key: run.key, loop })
    return events()
  }

  /** Accepts a run that is executed here, or elsewhere, whether or not anybody follows it. */
  async start(input: RunInput, onEnd: () => void = () => {}): Promise<StartedRun> {
    const run = prepareRun(this.#host, input)
    const { runId, key } = run
    const accepted = await this.#accept(run)
    if (accepted === 'known') {
      onEnd()
      const known = await this.#host.store.runs.findRun(runId)
      return { runId, sessionId: known?.key.sessionId ?? key.sessionId }
    }
    if (accepted === 'queued') this.#enqueue(run, onEnd)
    else void this.#drive(run, accepted, 0, onEnd)
    return { runId, sessionId: key.sessionId }
  }

  /** The runs that this process executes, and those that it accepted and that are still queued. */
  active(): ActiveRun[] {
    return [...this.#executed.values(), ...this.#waiting.values()]
  }

  /** Stops a run of any process. */
  async stop(runId: string): Promise<void> {
    const { loop } = this.#executed.get(runId) ?? {}
    if (loop) loop.stop()
    else await stopStored(this.#host.store, runId)
  }

  /** Answers a call that waits for a person, in any process. */
  async answer(runId: string, callId: string, answer: ApprovalAnswer | OutcomeAnswer): Promise<void> {
    if (this.#executed.get(runId)?.loop?.answer(callId, answer)) return
    await answerStored(this.#host.store, runId, callId, answer)
  }

  /** Looks after a run that shows no progress: a queued one is executed, one whose process is gone is ended. */
  async checkLife(run: RunSummary): Promise<boolean> {
    if (run.finished || this.#executed.has(run.runId)) return false
    if (run.state === 'queued') {
      this.#workers?.work(run.key)
      return false
    }
    const isEnded = await markIfInterrupted(this.#host.store, run, this.#host)
    if (isEnded)
      this.#host.logger.warn('A run was marked as interrupted: its process is gone', {
        runId: run.runId,
        ...run.key,
      })
    return isEnded
  }

  /** Looks after every run of the app that no process works on. */
  async sweep(): Promise<void> {
    const { appName, logger } = this.#host
    try {
      const runs = (await this.#store?.runs.listAbandoned({ appName })) ?? []
      for (const run of runs) await this.checkLife(run)
    } catch (error) {
      logger.warn('Abandoned runs could not be looked for', { error: messageOf(error) })
    }
  }

  /** Executes no further queued runs: they stay in the store. */
  close(): void {
    this.#workers?.close()
    for (const { runId, onEnd } of this.#waiting.values()) {
      this.#waiting.delete(runId)
      onEnd()
    }
  }

  /** Accepts in the order of the calls: two messages to one session are not exchanged on their way to the store. */
  #accept(run: PreparedRun): Promise<Accepted> {
    const store = this.#store
    if (!store) return this.#acceptUnqueued(run)
    const name = sessionName(run.key)
    const before = this.#admissions.get(name)
    const accepting = before ? before.then(() => this.#admit(store, run)) : this.#admit(store, run)
    const ended = () => {
      if (this.#admissions.get(name) === settled) this.#admissions.delete(name)
    }
    const settled = accepting.then(ended, ended)
    this.#admissions.set(name, settled)
    return accepting
  }

  async #admit(store: DurableStore, run: PreparedRun): Promise<Accepted> {
    const { key, runId, input } = run
    const orQueue = input.whenBusy !== 'reject'
    for (let attempt = 1; ; attempt++) {
      const leaveSlot = this.#slots.tryEnter()
      if (!leaveSlot && !orQueue) await refuseIfBusy(store, key)
      try {
        const opening = openingOf(this.#host, run, orQueue || !leaveSlot)
        const opened = leaveSlot ? await store.openRun(opening) : await store.queueRun(opening)
        if ('lease' in opened && leaveSlot) {
          const { message, invocationId } = run
          return { lease: opened.lease, leaveSlot, opening: { message, invocationId, seq: opened.seq } }
        }
        leaveSlot?.()
        if ('queued' in opened) return 'queued'
        if ('unfinished' in opened && attempt <= MOST_ATTEMPTS) await this.#endAll(opened.unfinished)
        else if ('unfinished' in opened) throw busy(key)
        else return await this.#known(runId, key)
      } catch (error) {
        leaveSlot?.()
        throw error
      }
    }
  }

  /** The id belongs to a run already: the same request sent twice is one run. */
  async #known(runId: string, key: SessionKey): Promise<'known'> {
    const known = await this.#host.store.runs.findRun(runId)
    if (known) checkSameSession(runId, known.key, key)
    return 'known'
  }

  async #endAll(runIds: readonly string[]): Promise<void> {
    for (const runId of runIds) {
      const run = await this.#host.store.runs.findRun(runId)
      if (run) await this.checkLife(run)
    }
  }

  /** For a store that queues nothing: the run waits in this process, and is stored when it begins. */
  async #acceptUnqueued(run: PreparedRun): Promise<Accepted> {
    const { key, runId, input } = run
    const { signal, whenBusy = 'queue' } = input
    const leaveQueue = await this.#queue.enter(key, whenBusy, signal)
    let leaveSlot = () => {}
    const leave = () => {
      leaveSlot()
      leaveQueue()
    }
    try {
      leaveSlot = await this.#slots.enter(signal)
      const waitMs = whenBusy === 'queue' ? WAIT_FOR_SESSION_MS : 0
      const opened = await openInSteps(this.#host, run, { waitMs, ...(signal ? { signal } : {}) })
      if ('lease' in opened) return { lease: opened.lease, leaveSlot: leave, opening: undefined }
      leave()
      return await this.#known(runId, key)
    } catch (error) {
      leave()
      throw error
    }
  }

  /** The loop of a run that has begun, and its events, which are to be read. */
  #execute(
    run: PreparedRun,
    { lease, leaveSlot, opening }: Exclude<Accepted, string>,
    onEnd: () => void,
    seq = 1,
  ): { loop: RunLoop; events: () => EventLists } {
    const { key, runId, input } = run
    const host = this.#host
    let stopWatching = () => {}
    const end = async () => {
      stopWatching()
      await lease.release().catch(error => {
        // The lease expires by itself and the answer is stored, so the run does not fail.
        host.logger.warn('A lease could not be released', { ...key, error: messageOf(error) })
      })
      this.#executed.delete(runId)
      leaveSlot()
      onEnd()
    }
    const start = startEvent(host, run, seq)
    const loop = new RunLoop({ host, key, lease, input, start, opening, end })
    stopWatching = watchEnds(loop, { host, key, lease, input })
    return { loop, events: () => loop.events(run.content) }
  }

  /** Executes a run to its end; its events go to its followers. Resolves when it has ended. */
  async #drive(
    run: PreparedRun,
    accepted: Exclude<Accepted, string>,
    lastSeq: number,
    onEnd: () => void,
  ): Promise<void> {
    const { runId, key, input } = run
    const feed = this.#follower.open(runId, key, lastSeq)
    const onStored = (events: readonly RunEvent[]) => {
      feed.add(events)
      input.onStored?.(events)
    }
    try {
      const watched = { ...run, input: { ...input, onStored } }
      const { loop, events } = this.#execute(watched, accepted, onEnd, lastSeq + 1)
      this.#executed.set(runId, { runId, key, loop })
      for await (const _events of events());
    } catch (error) {
      this.#host.logger.error('A run failed outside its events', { runId, error: messageOf(error) })
    } finally {
      this.#follower.close(feed)
    }
  }

  #enqueue(run: PreparedRun, onEnd: () => void): void {
    const { runId, key } = run
    this.#waiting.set(runId, { runId, key, run, onEnd })
    this.#workers?.work(key)
  }

  /** The events of a queued run, executed by whichever process. Its caller's callbacks work all the same. */
  async *#followQueued({ runId, input }: PreparedRun): EventLists {
    const { signal } = input
    const stop = () =>
      void this.stop(runId).catch(error => {
        this.#host.logger.warn('A run could not be stopped', { runId, error: messageOf(error) })
      })
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
    let isOver = false
    try {
      for await (const events of this.#follower.follow(runId)) {
        if (input.onApproval && !this.#executed.has(runId))
          answerElsewhere(events, input.onApproval, this.#host)
        isOver = events.at(-1)?.type === 'run-finish'
        yield events
      }
      // The process is closing: the run stays in the store.
      isOver = true
    } finally {
      signal?.removeEventListener('abort', stop)
      if (!isOver) await this.stop(runId)
    }
  }

  async #executeNext(
    store: DurableStore,
    next: QueuedRun,
    held: { lease: Lease; leaveSlot: Leave },
  ): Promise<void> {
    const { key, runId } = next
    const earlier = await store.runs.listRuns(key, { limit: CHECKED_RUNS })
    for (const run of earlier) if (run.state === 'running') await this.#endUnder(held.lease, run)
    const waiting = this.#waiting.get(runId)
    const run = waiting?.run ?? preparedFrom(this.#host, next)
    const { message } = next
    const begun = await store.beginRun({
      key,
      runId,
      fence: held.lease.fence,
      message,
      events: [{ ...startEvent(this.#host, run, QUEUED_EVENTS + 1) }],
    })
    if (!begun) return
    this.#waiting.delete(runId)
    const opening = { message, invocationId: run.invocationId, seq: begun.seq }
    await this.#drive(run, { ...held, opening }, QUEUED_EVENTS, waiting?.onEnd ?? (() => {}))
  }

  /** Ends a run that was begun by a process that is gone; the lease of its session is held. */
  async #endUnder(lease: Lease, run: RunSummary): Promise<void> {
    await markIfInterrupted(this.#host.store, run, { ...this.#host, held: lease })
  }

  /** Runs that were accepted here and begun or stopped elsewhere: nothing is left to do for them here. */
  #forgetTaken(key: SessionKey, queued: readonly QueuedRun[]): void {
    const ids = new Set(queued.map(({ runId }) => runId))
    for (const { runId, key: own, onEnd } of this.#waiting.values()) {
      if (sessionName(own) !== sessionName(key) || ids.has(runId) || queued.length >= LISTED_RUNS) continue
      this.#waiting.delete(runId)
      onEnd()
    }
  }
}

const MOST_ATTEMPTS = 5
/** The newest runs of a session that are checked before a queued one begins. */
const CHECKED_RUNS = 20
/** How many queued runs a store lists at once. */
const LISTED_RUNS = 100
/** A queued run has one event when it begins. */
const QUEUED_EVENTS = 1

function isDurable(store: SessionStore): store is DurableStore {
  const { openRun, queueRun, beginRun, runs } = store
  return [openRun, queueRun, beginRun, runs.listQueued, runs.listAbandoned, runs.endQueued].every(Boolean)
}

async function refuseIfBusy(store: SessionStore, key: SessionKey): Promise<void> {
  const [newest] = await store.runs.listRuns(key, { limit: 1 })
  if (newest && !newest.finished) throw busy(key)
}
