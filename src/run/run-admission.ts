/** How runs are accepted: each by one write, in the order of the calls. */
import type { SessionKey } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { RunHost } from './run-host.js'
import type { RunOpened } from './run-loop.js'
import { checkSameSession, openInSteps, openingOf, type PreparedRun } from './run-opening.js'
import {
  busy,
  type Leave,
  type RunSlots,
  SessionQueue,
  sessionName,
  WAIT_FOR_SESSION_MS,
} from './run-queue.js'

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

/** Where an accepted run is: it has begun, or is in the queue of its session, or was known before. */
type Accepted = BegunRun | 'queued' | 'known'

export class Admission {
  readonly #host: RunHost
  readonly #slots: RunSlots
  /** Ends runs whose process is gone. */
  readonly #endAll: (runIds: readonly string[]) => Promise<void>
  /** For stores that queue nothing. */
  readonly #queue = new SessionQueue()
  readonly #admissions = new Map<string, Promise<unknown>>()

  constructor(host: RunHost, slots: RunSlots, endAll: (runIds: readonly string[]) => Promise<void>) {
    this.#host = host
    this.#slots = slots
    this.#endAll = endAll
  }

  /** Accepts in the order of the calls: two messages to one session are not exchanged on their way to the store. */
  accept(run: PreparedRun): Promise<Accepted> {
    const { store } = this.#host
    if (!isDurable(store)) return this.#acceptUnqueued(run)
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
}

const MOST_ATTEMPTS = 5

export function isDurable(store: SessionStore): store is DurableStore {
  const { openRun, queueRun, beginRun, runs } = store
  return [openRun, queueRun, beginRun, runs.listQueued, runs.listUnfinished, runs.endQueued].every(Boolean)
}

async function refuseIfBusy(store: SessionStore, key: SessionKey): Promise<void> {
  const [newest] = await store.runs.listRuns(key, { limit: 1 })
  if (newest && !newest.finished) throw busy(key)
}
