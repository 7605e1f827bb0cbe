/** How runs are accepted: each by one write, in the order of the calls; and how many work at once. */
import { availableParallelism, totalmem } from 'node:os'
import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { RunHost, RunOpened } from './run-host.js'
import { openInSteps, openingOf, type PreparedRun } from './run-opening.js'
import { runScope } from './run-scope.js'

/** Everything that one write of a store can do for runs; without it nothing is queued in the store. */
export type DurableStore = SessionStore &
  Required<Pick<SessionStore, 'openRun' | 'queueRun' | 'beginRun'>> & {
    runs: Required<Pick<SessionStore['runs'], 'listQueued' | 'listUnfinished' | 'endQueued'>>
  }

/** A run that has begun under a lease. */
export interface BegunRun {
  lease: Lease
  leaveSlot: Leave
  opening: RunOpened | undefined
}

/** Where an accepted run is: it has begun, or is in the queue of its session, or is not due yet, or was known before. */
type Accepted = BegunRun | 'queued' | 'scheduled' | 'known'

/** What may have to end before a run can begin. */
interface AdmissionEnds {
  /** Ends runs whose process is gone. */
  endAll(runIds: readonly string[]): Promise<void>
  /** Ends the run of a session that waits between two rounds. Returns whether there was one. */
  endAsked(key: SessionKey): Promise<boolean>
}

export class Admission {
  readonly #host: RunHost
  readonly #slots: RunSlots
  readonly #ends: AdmissionEnds
  /** For stores that queue nothing. */
  readonly #queue = new SessionQueue()
  readonly #admissions = new Map<string, Promise<unknown>>()

  constructor(host: RunHost, slots: RunSlots, ends: AdmissionEnds) {
    this.#host = host
    this.#slots = slots
    this.#ends = ends
  }

  /** Accepts in the order of the calls: two messages to one session are not exchanged on their way to the store. */
  accept(run: PreparedRun): Promise<Accepted> {
    const { store } = this.#host
    const isLater = run.input.at !== undefined
    if (isLater && !(isDurable(store) && store.runs.releaseDue)) throw cannotWait()
    if (!isDurable(store)) return this.#acceptUnqueued(run)
    const name = sessionName(run.key)
    const before = this.#admissions.get(name)
    const admit = () => (isLater ? this.#keep(store, run) : this.#admit(store, run))
    const accepting = before ? before.then(admit) : admit()
    const ended = () => {
      if (this.#admissions.get(name) === settled) this.#admissions.delete(name)
    }
    const settled = accepting.then(ended, ended)
    this.#admissions.set(name, settled)
    return accepting
  }

  async #admit(store: DurableStore, run: PreparedRun): Promise<Accepted> {
    const { key, input } = run
    const orQueue = input.whenBusy !== 'reject'
    for (let attempt = 1; ; attempt++) {
      const leaveSlot = this.#mayBegin() ? this.#slots.tryEnter() : undefined
      try {
        if (!leaveSlot && !orQueue) await refuseIfBusy(store, key)
        const opening = openingOf(this.#host, run, orQueue || !leaveSlot)
        const opened = leaveSlot ? await store.openRun(opening) : await store.queueRun(opening)
        if ('lease' in opened && leaveSlot) {
          const { message, invocationId } = run
          return { lease: opened.lease, leaveSlot, opening: { message, invocationId, seq: opened.seq } }
        }
        leaveSlot?.()
        if ('queued' in opened) return 'queued'
        if ('unfinished' in opened && attempt <= MOST_ATTEMPTS) await this.#ends.endAll(opened.unfinished)
        else if ('unfinished' in opened) throw busy(key)
        else return await this.#known(run)
      } catch (error) {
        leaveSlot?.()
        // One that queues finds out when its turn comes.
        const isFreed = !orQueue && attempt <= MOST_ATTEMPTS && isBusy(error)
        if (!isFreed || !(await this.#ends.endAsked(key))) throw error
      }
    }
  }

  /** Accepts a run for later. */
  async #keep(store: DurableStore, run: PreparedRun): Promise<Accepted> {
    const kept = await store.queueRun(openingOf(this.#host, run, true))
    if ('known' in kept) return this.#known(run)
    return 'dueAt' in kept ? 'scheduled' : 'queued'
  }

  /** An engine decides when a run begins. A run that a tool of another run starts does not wait: its parent has a place. */
  #mayBegin(): boolean {
    return !this.#host.engine || runScope.getStore() !== undefined
  }

  /** The id belongs to a run already: the same request sent twice is one run. */
  async #known({ runId, key, input }: PreparedRun): Promise<'known'> {
    const known = await this.#host.store.runs.findRun(runId)
    if (known) checkSameSession(runId, known.key, input.sessionId === undefined ? known.key : key, key)
    return 'known'
  }

  /** For a store that queues nothing: the run waits in this process, and is stored when it begins. */
  async #acceptUnqueued(run: PreparedRun): Promise<Accepted> {
    const { key, input } = run
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
      return await this.#known(run)
    } catch (error) {
      leave()
      throw error
    }
  }
}

const MOST_ATTEMPTS = 5

export function isDurable(store: SessionStore): store is DurableStore {
  const { openRun, queueRun, beginRun, runs } = store
  return [openRun, queueRun, beginRun, runs.listQueued, runs.listUnfinished, runs.endQueued].every(Boolean)
}

async function refuseIfBusy(store: DurableStore, key: SessionKey): Promise<void> {
  const [unfinished] = await store.runs.listUnfinished({ appName: key.appName, key, limit: 1 })
  if (unfinished) throw busy(key)
}

/** Gives the turn to the next in the queue. */
export type Leave = () => void

/**
 * One run per session within this process: first come, first served. The lease in the store does this across
 * processes; the queue avoids polling for it within one.
 */
export class SessionQueue {
  /** The sessions that have a run, and the runs that wait for them. */
  readonly #lines = new Map<string, Set<() => void>>()

  /** Waits for the turn of this session. With `reject`, fails at once when another run is queued. */
  async enter(key: SessionKey, whenBusy: 'queue' | 'reject', signal?: AbortSignal): Promise<Leave> {
    if (signal?.aborted) throw aborted()
    const name = sessionName(key)
    const line = this.#lines.get(name)
    if (line && whenBusy === 'reject') throw busy(key)
    if (line) await turnIn(line, signal, () => this.#pass(name))
    else this.#lines.set(name, new Set())
    return once(() => this.#pass(name))
  }

  #pass(name: string): void {
    const [next] = this.#lines.get(name) ?? []
    if (next) next()
    else this.#lines.delete(name)
  }
}

/** Releases at most once. */
export function once(leave: Leave): Leave {
  let isLeft = false
  return () => {
    if (!isLeft) leave()
    isLeft = true
  }
}

/** How many runs of this process may work at once; the others wait, first come, first served. */
export class RunSlots {
  readonly #waiting = new Set<() => void>()
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** A run that a tool of another run starts does not wait: the two would wait for each other. */
  async enter(signal: AbortSignal | undefined): Promise<Leave> {
    const entered = this.tryEnter()
    if (entered) return entered
    await turnIn(this.#waiting, signal, () => this.#pass())
    return once(() => this.#pass())
  }

  /** A slot, if one is free now. */
  tryEnter(): Leave | undefined {
    if (runScope.getStore()) return () => {}
    if (this.#free <= 0) return undefined
    this.#free -= 1
    return once(() => this.#pass())
  }

  /** A slot that becomes free is passed on, so that no later run takes it first. */
  #pass(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#free += 1
  }
}

/** Waits in a line until it is called, or until the signal fires. */
async function turnIn(line: Set<() => void>, signal: AbortSignal | undefined, pass: Leave): Promise<void> {
  let called = () => {}
  const turn = new Promise<void>(resolve => {
    called = resolve
  })
  const next = () => {
    line.delete(next)
    called()
  }
  line.add(next)
  try {
    await raceAbort(turn, signal)
  } catch (error) {
    // A turn that was passed on in the same moment is passed further.
    if (!line.delete(next)) pass()
    throw error
  }
}

/** Runs mostly wait for their models: many per core, as long as there is memory for what they hold. */
export function defaultMaxRunning(): number {
  const byMemory = Math.floor(totalmem() / 2 / MEMORY_PER_RUN)
  return Math.max(LEAST_RUNNING, Math.min(availableParallelism() * RUNS_PER_CORE, byMemory))
}

const RUNS_PER_CORE = 128
const MEMORY_PER_RUN = 8 * 1024 * 1024
const LEAST_RUNNING = 8

function isBusy(error: unknown): boolean {
  return error instanceof AgentError && error.code === 'session-busy'
}

function cannotWait(): AgentError {
  return new AgentError(
    'invalid-argument',
    'The store cannot accept runs for later: it has no `runs.releaseDue`. Omit `at`, or use a store of Lango.',
  )
}

function busy(key: SessionKey): AgentError {
  return new AgentError(
    'session-busy',
    `Session "${key.sessionId}" is busy with another run. Wait for it to finish, or run with whenBusy: 'queue'.`,
    { retryable: true, details: { ...key } },
  )
}

async function raceAbort(waiting: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw aborted()
  if (!signal) return waiting
  let stop = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(aborted())
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    await Promise.race([waiting, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function aborted(): AgentError {
  return new AgentError('aborted', 'The run was stopped while it waited for its session.')
}

/** A session as one text. */
export function sessionName({ appName, userId, sessionId }: SessionKey): string {
  return `${appName}\0${userId}\0${sessionId}`
}

/** How long a run waits for a session that another process is busy with, before it is looked at again. */
export const WAIT_FOR_SESSION_MS = 600_000

/** A run id belongs to one session. */
function checkSameSession(runId: string, known: SessionKey, key: SessionKey, own: SessionKey): void {
  const isOwner = known.appName === own.appName && known.userId === own.userId
  if (isOwner && sessionName(known) === sessionName(key)) return
  throw new AgentError(
    'invalid-argument',
    `Run "${runId}" already exists in another session. Use a new UUID.`,
  )
}
