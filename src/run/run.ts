import { Share, Turns } from '../base/pause.js'
import { messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { QueuedRun, RunSummary } from '../session/run-store.js'
import type { RunAnswer } from '../tool.js'
import { DueRuns } from './due-runs.js'
import { EngineWorkers } from './engine-workers.js'
import { seqBefore } from './event-numbers.js'
import type { ResumedRun } from './resumed-run.js'
import { Admission, type BegunRun, defaultMaxRunning, RunSlots } from './run-admission.js'
import { continued, endedByWaiting } from './run-and-collect.js'
import type { EngineWork } from './run-engine.js'
import type { RunEvent } from './run-event.js'
import type { RunFeed } from './run-feed.js'
import { type FollowOptions, type RunFollower, unknownRun } from './run-follower.js'
import type { EventLists, RunHost, RunInput } from './run-host.js'
import { RunLoop } from './run-loop.js'
import {
  abortedBefore,
  deletedRun,
  type PreparedRun,
  preparedFrom,
  prepareRun,
  type StartedRun,
  startEvent,
  stoppedBeforeStart,
  tracedEvents,
} from './run-opening.js'
import { FirstRuns, OwnQueue, type OwnRun, QueueWorkers, type Workers } from './run-queue.js'
import { type Held, hasEnded, quietly, RunResumer } from './run-resume.js'
import {
  answerElsewhere,
  answerKept,
  isInterruption,
  isSignalled,
  leaveToOthers,
  SignalPoller,
  stopStored,
  watchEnds,
} from './run-signals.js'
import { followRun } from './until-waiting.js'

/** A run that this process has accepted or executes, and that has not ended. */
export interface ActiveRun {
  readonly runId: string
  readonly key: SessionKey
  /** Its loop, while this process executes it. */
  readonly loop?: RunLoop
  /** Whether another process accepted it. */
  readonly isForeign?: boolean
  readonly over?: Promise<void>
}

interface WaitingRun extends ActiveRun, OwnRun {
  run: PreparedRun
}

interface DriveOptions {
  /** The feed of the run's followers. */
  feed?: RunFeed
  /** The first events of the run or of this attempt; they are stored. */
  first: readonly RunEvent[]
  resumed?: ResumedRun | undefined
  onEnd: () => void
  isForeign?: boolean
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
  readonly #follower: RunFollower
  readonly #slots: RunSlots
  readonly #admission: Admission
  readonly #signals: SignalPoller
  readonly #resumer: RunResumer
  readonly #executed = new Map<string, ActiveRun>()
  readonly #waiting = new OwnQueue<WaitingRun>()
  readonly #firsts = new FirstRuns()
  readonly #workers: Workers
  /** The same, where an engine decides when and where runs are executed. */
  readonly #engine: EngineWorkers | undefined
  readonly #due: DueRuns
  readonly #turns = new Turns(new Share())

  constructor(host: RunHost, follower: RunFollower) {
    this.#host = host
    this.#follower = follower
    this.#slots = new RunSlots(host.maxRunning ?? defaultMaxRunning())
    this.#signals = new SignalPoller(host)
    this.#admission = new Admission(host, this.#slots, {
      endAll: runIds => this.#endAll(runIds),
      endAsked: key => this.#resumer.freeSession(key),
    })
    this.#resumer = new RunResumer({
      host,
      slots: this.#slots,
      drive: ({ run, begun, resumed, first }) =>
        this.#drive(run, begun, { first, resumed, onEnd: () => {}, isForeign: true }),
    })
    this.#due = new DueRuns({
      ...{ store: host.store, appName: host.appName, logger: host.logger },
      work: key => this.#workers.work(key),
      stop: runId => this.#stopQuietly(runId),
    })
    const workers = this.#workersOf(host)
    this.#workers = workers
    this.#engine = workers instanceof EngineWorkers ? workers : undefined
  }

  #workersOf(host: RunHost): QueueWorkers | EngineWorkers {
    const execute = (next: QueuedRun, held: Held) => this.#executeNext(next, held)
    const parts = { host, slots: this.#slots, own: this.#waiting, execute }
    return host.engine
      ? new EngineWorkers({ ...parts, engine: host.engine, resumer: this.#resumer })
      : new QueueWorkers(parts)
  }

  /** What an engine executes runs with. */
  get work(): EngineWork | undefined {
    return this.#engine
  }

  /**
   * One message, as lists of events. They must be read at once: the run holds its session. Leaving the loop early is an
   * abort. With `untilWaiting` they end when the run waits for a person; without it, when it does so between two rounds.
   */
  async run(input: RunInput, onEnd: () => void = () => {}, untilWaiting = false): Promise<EventLists> {
    const lists = await this.#open(input, onEnd, untilWaiting || 'round')
    return untilWaiting ? lists : endedByWaiting(lists)
  }

  async #open(input: RunInput, onEnd: () => void, untilWaiting: true | 'round'): Promise<EventLists> {
    const run = prepareRun(this.#host, input)
    if (input.signal?.aborted) return stoppedBeforeStart(this.#host, run)
    const accepted = await this.#admission.accept(run)
    if (accepted === 'known') return this.#follower.follow(run.runId, { signal: input.signal })
    if (accepted === 'queued') this.#enqueue(run, onEnd)
    if (accepted === 'scheduled') this.#due.keep(run, onEnd)
    if (accepted === 'queued' || accepted === 'scheduled') return this.#followQueued(run, { untilWaiting })
    const { loop, events } = this.#execute(run, accepted, { first: [startEvent(this.#host, run, 1)], onEnd })
    this.#executed.set(run.runId, { runId: run.runId, key: run.key, loop })
    return this.#whole(run, loop, events(), untilWaiting)
  }

  /** The events of a run to its end, also when another attempt continues it. */
  #whole(run: PreparedRun, loop: RunLoop, own: EventLists, untilWaiting: true | 'round'): EventLists {
    return continued(own, lastSeq => loop.leftFor && this.#afterLoop(run, loop, untilWaiting, lastSeq))
  }

  /** What comes after the events of a loop that has left its run. */
  async *#afterLoop(run: PreparedRun, loop: RunLoop, mode: true | 'round', afterSeq: number): EventLists {
    if (loop.leftFor === 'lost' && !(await this.#host.store.runs.findRun(run.runId)))
      return yield deletedRun(run, afterSeq)
    const isAsked = loop.leftFor === 'round' || (mode === true && loop.leftFor === 'waiting')
    if (!isAsked && !this.#workers.isClosing) yield* this.#followQueued(run, { afterSeq, untilWaiting: mode })
  }

  /** Accepts a run that is executed here, or elsewhere, whether or not anybody follows it. */
  async start(input: RunInput, onEnd: () => void = () => {}): Promise<StartedRun> {
    const run = prepareRun(this.#host, input)
    if (input.signal?.aborted) throw abortedBefore(input.signal)
    const { runId, key } = run
    const accepted = await this.#admission.accept(run)
    if (accepted === 'known') {
      onEnd()
      const known = await this.#host.store.runs.findRun(runId)
      return { runId, sessionId: known?.key.sessionId ?? key.sessionId }
    }
    if (accepted === 'queued') this.#enqueue(run, onEnd)
    else if (accepted === 'scheduled') {
      this.#due.keep(run)
      onEnd()
    } else void this.#drive(run, accepted, { first: [startEvent(this.#host, run, 1)], onEnd })
    return { runId, sessionId: key.sessionId }
  }

  /** The runs that this process executes, and those that it accepted and that are still queued. */
  active(): ActiveRun[] {
    return [...this.#executed.values(), ...this.#waiting.values()]
  }

  /** Stops a run of any process. */
  async stop(runId: string): Promise<void> {
    const { loop } = this.#executed.get(runId) ?? {}
    if (loop) return loop.stop()
    await stopStored(this.#host.store, runId)
    await this.#engine?.stopped(runId)
  }

  /** Answers a call that waits for a person, in any process. */
  async answer(runId: string, callId: string, answer: RunAnswer): Promise<void> {
    const { loop } = this.#executed.get(runId) ?? {}
    if (await answerKept(this.#host.store, loop, { runId, callId, answer })) return
    const run = await this.#host.store.runs.findRun(runId)
    if (run) await quietly(this.#host, runId, () => this.checkLife(run))
  }

  /** Continues a run that no process works on, without waiting for it to be looked after. */
  async resume(runId: string): Promise<StartedRun> {
    const run = await this.#host.store.runs.findRun(runId)
    if (!run) throw unknownRun(runId)
    if (run.finished) throw hasEnded(runId)
    if (run.state === 'scheduled') await this.#due.releaseNow(runId)
    else if (run.state === 'queued' || this.#engine) this.#workers.work(run.key)
    else if (!this.#executed.has(runId)) await this.#resumer.continue(run)
    return { runId, sessionId: run.key.sessionId }
  }

  /**
   * Looks after a run that shows no progress: a queued one is executed, one whose process is gone is continued, or ended.
   * Returns whether it was ended.
   */
  async checkLife(run: RunSummary): Promise<boolean> {
    if (run.finished || this.#executed.has(run.runId) || this.#workers.isClosing) return false
    if (run.state === 'scheduled') {
      this.#due.expect(run.dueAt ?? 0)
      return false
    }
    // Its turn is waited for here.
    if (run.state === 'queued' && !this.#engine && this.#waiting.get(run.runId)) return false
    if (run.state === 'waiting' && !(await isSignalled(this.#host.store, run.runId))) return false
    if (run.state === 'queued' || this.#engine) {
      this.#workers.work(run.key)
      return false
    }
    return (await this.#resumer.continue(run)) === 'ended'
  }

  /** Looks after every run of the app that no process works on. */
  async sweep(): Promise<void> {
    const { appName, logger, store } = this.#host
    try {
      await this.#due.release()
      if (this.#engine) return await this.#engine.sweep()
      const runs = await store.runs.listUnfinished({ appName, abandoned: true })
      for (const run of runs) await quietly(this.#host, run.runId, () => this.checkLife(run))
    } catch (error) {
      logger.warn('Abandoned runs could not be looked for', { error: messageOf(error) })
    }
  }

  /**
   * Executes no further queued runs: they stay in the store. Runs that are executed for other processes are handed over
   * after `graceMs`; where that is not possible they may end, and are interrupted then.
   */
  async close(graceMs: number): Promise<void> {
    this.#due.close()
    const drained = this.#workers.close()
    for (const { runId } of this.#waiting.values()) this.#waiting.take(runId)?.onEnd()
    const others = () => [...this.#executed.values()].filter(({ isForeign }) => isForeign)
    await leaveToOthers(drained, others, graceMs)
  }

  async #endAll(runIds: readonly string[]): Promise<void> {
    for (const runId of runIds) {
      const run = await this.#host.store.runs.findRun(runId)
      const isLeft = run && !run.finished && !this.#executed.has(runId) && !this.#workers.isClosing
      if (isLeft) await this.#resumer.continue(run)
    }
  }

  /** The loop of a run that has begun, and its events, which are to be read. */
  #execute(
    run: PreparedRun,
    { lease, leaveSlot, opening }: BegunRun,
    { first, resumed, onEnd, feed }: DriveOptions,
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
      this.#engine?.work(key)
    }
    const loop = new RunLoop({ ...run, host, lease, first, resumed, opening, feed, turns: this.#turns, end })
    stopWatching = watchEnds(loop, { signals: this.#signals, key, lease, input })
    return { loop, events: () => tracedEvents(host, run, loop.events(run.content), resumed !== undefined) }
  }

  /** Executes a run to its end; its events go to its followers. Resolves when it has ended. */
  #drive(run: PreparedRun, accepted: BegunRun, options: DriveOptions): Promise<void> {
    let resolve = () => {}
    const over = new Promise<void>(resolved => {
      resolve = resolved
    })
    void this.#consume(run, accepted, { ...options, over }).finally(resolve)
    return over
  }

  async #consume(
    run: PreparedRun,
    accepted: BegunRun,
    options: DriveOptions & { over: Promise<void> },
  ): Promise<void> {
    const { runId, key } = run
    const { first, over, isForeign } = options
    const feed = this.#follower.open(runId, key, first[0] ? seqBefore(first[0]) : 0)
    try {
      const { loop, events } = this.#execute(run, accepted, { ...options, feed })
      this.#executed.set(runId, { runId, key, loop, over, ...(isForeign ? { isForeign } : {}) })
      const lists = events()
      await lists.next()
      // Requests for further runs come first: their callers wait.
      await this.#turns.wait()
      for await (const _events of lists);
    } catch (error) {
      this.#host.logger.error('A run failed outside its events', { runId, error: messageOf(error) })
    } finally {
      this.#follower.close(feed)
    }
  }

  /** Until it begins, an abort ends the run; a process that ends leaves it in the store. */
  #enqueue(run: PreparedRun, onEnd: () => void): void {
    const { runId, key, input } = run
    const { signal } = input
    const aborted = () => {
      if (isInterruption(signal?.reason)) this.#waiting.take(runId)?.onEnd()
      else this.#stopQuietly(runId)
    }
    signal?.addEventListener('abort', aborted, { once: true })
    const left = () => signal?.removeEventListener('abort', aborted)
    this.#waiting.add({ runId, key, run, onEnd, left })
    if (signal?.aborted) aborted()
    this.#workers.work(key)
  }

  /** The events of a queued run, executed by whichever process. Its caller's callbacks work all the same. */
  async *#followQueued({ runId, input }: PreparedRun, options: FollowOptions): EventLists {
    let isOver = false
    try {
      const followed = { follower: this.#follower, runs: this.#host.store.runs, runId }
      for await (const events of followRun(followed, options)) {
        if (input.onApproval && !this.#executed.has(runId))
          answerElsewhere(events, input.onApproval, this.#host)
        isOver = events.at(-1)?.type === 'run-finish'
        yield events
      }
      // The process is closing: the run stays in the store.
      isOver = true
    } finally {
      if (!isOver) await this.stop(runId)
    }
  }

  /** `false` when the run has to wait for an earlier one. */
  async #executeNext(next: QueuedRun, held: Held): Promise<boolean> {
    const { key, runId, message } = next
    const waiting = this.#waiting.get(runId)
    // Mostly no other run of the session has begun, and beginning this one is the way to find out.
    let run = waiting?.run
    let begun = run && (await this.#begin(next, { run, held, alone: true }))
    if (!begun) {
      const earlier = await this.#resumer.clearWay(key, held)
      if (earlier !== 'clear') return earlier !== 'later'
      run ??= preparedFrom(this.#host, next, this.#firsts.isOverdue(next))
      begun = await this.#begin(next, { run, held })
    }
    if (!begun || !run) return false
    this.#waiting.take(runId)
    this.#firsts.forget(key)
    const opening = { message, invocationId: run.invocationId, seq: begun.seq }
    const { onEnd = () => {} } = waiting ?? {}
    const first = [startEvent(this.#host, run, FIRST_SEQ)]
    await this.#drive(run, { ...held, opening }, { first, onEnd, isForeign: !waiting })
    return true
  }

  async #begin(
    { key, runId, message, input }: QueuedRun,
    { run, held, alone = false }: { run: PreparedRun; held: Held; alone?: boolean },
  ): Promise<{ seq: number } | undefined> {
    const events = [{ ...startEvent(this.#host, run, FIRST_SEQ) }]
    const begin = { key, runId, fence: held.lease.fence, message, events, input, alone }
    return this.#workers.begin(() => this.#host.store.beginRun(begin))
  }

  #stopQuietly(runId: string): void {
    void quietly(this.#host, runId, () => this.stop(runId), 'A run could not be stopped')
  }
}

/** A queued run has one event when it begins. */
const FIRST_SEQ = 2
