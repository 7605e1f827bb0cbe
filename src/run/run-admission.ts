/** How runs are accepted: each by one write, in the order of the calls; and how many work at once. */
import { availableParallelism, totalmem } from 'node:os'
import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { RunHost, RunOpened } from './run-host.js'
import { openingOf, type PreparedRun } from './run-opening.js'
import { runScope } from './run-scope.js'

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
  readonly #admissions = new Map<string, Promise<unknown>>()

  constructor(host: RunHost, slots: RunSlots, ends: AdmissionEnds) {
    this.#host = host
    this.#slots = slots
    this.#ends = ends
  }

  /** Accepts in the order of the calls: two messages to one session are not exchanged on their way to the store. */
  accept(run: PreparedRun): Promise<Accepted> {
    const name = sessionName(run.key)
    const before = this.#admissions.get(name)
    const admit = () => (run.input.at === undefined ? this.#admit(run) : this.#keep(run))
    const accepting = before ? before.then(admit) : admit()
    const ended = () => {
      if (this.#admissions.get(name) === settled) this.#admissions.delete(name)
    }
    const settled = accepting.then(ended, ended)
    this.#admissions.set(name, settled)
    return accepting
  }

  async #admit(run: PreparedRun): Promise<Accepted> {
    const { store } = this.#host
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
          const { lease, seq, previousRunId = null } = opened
          return { lease, leaveSlot, opening: { message, invocationId, seq, previousRunId } }
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
  async #keep(run: PreparedRun): Promise<Accepted> {
    const kept = await this.#host.store.queueRun(openingOf(this.#host, run, true))
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
}

const MOST_ATTEMPTS = 5

async function refuseIfBusy(store: SessionStore, key: SessionKey): Promise<void> {
  const [unfinished] = await store.runs.listUnfinished({ appName: key.appName, key, limit: 1 })
  if (unfinished) throw busy(key)
}

/** Gives the turn to the next in the queue. */
export type Leave = () => void

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
    await this.#turn(signal)
    return once(() => this.#pass())
  }

  /** A slot, if one is free now. */
  tryEnter(): Leave | undefined {
    if (runScope.getStore()) return () => {}
    if (this.#free <= 0) return undefined
    this.#free -= 1
    return once(() => this.#pass())
  }

  /** Waits until a slot is passed on, or until the signal fires. */
  async #turn(signal: AbortSignal | undefined): Promise<void> {
    let called = () => {}
    const turn = new Promise<void>(resolve => {
      called = resolve
    })
    const next = () => {
      this.#waiting.delete(next)
      called()
    }
    this.#waiting.add(next)
    try {
      await raceAbort(turn, signal)
    } catch (error) {
      // A slot that was passed on in the same moment is passed further.
      if (!this.#waiting.delete(next)) this.#pass()
      throw error
    }
  }

  /** A slot that becomes free is passed on, so that no later run takes it first. */
  #pass(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#free += 1
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
  return new AgentError('aborted', 'The run was stopped while it waited to begin.')
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
