/**
 * A store in plain objects that implements the whole contract: for tests, examples and runs that need not be kept.
 * Input and output are copied, so that callers cannot change stored data.
 */

import { defined } from '../base/defined.js'
import { tidyTitle } from '../base/title.js'
import type { Message, Session, SessionKey, State, StoredMessage } from '../session/message.js'
import type {
  AcceptedRun,
  OpenedRun,
  RunBegin,
  RunOpening,
  RunStep,
  SavedStep,
} from '../session/run-store.js'
import type {
  AppendOptions,
  CreateOptions,
  EraseCounts,
  EraseReceipt,
  ExpireOptions,
  ExpireReceipt,
  Lease,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  SessionPage,
  SessionStore,
  SessionSummary,
  UserKey,
} from '../session/session-store.js'
import { LeaseHolder, type OpeningAttempt } from './hold-lease.js'
import { journalRows } from './journal.js'
import { MemoryArtifacts } from './memory-artifacts.js'
import { changeCalls, settled } from './memory-calls.js'
import { appNames, sessionPage } from './memory-listing.js'
import { MemoryObservations } from './memory-observations.js'
import { MemoryRuns } from './memory-runs.js'
import {
  add,
  clone,
  copyInto,
  countsOf,
  emptySession,
  MemoryCalibration,
  type MemorySession,
  MemoryState,
  storeIn,
  summarize,
  viewOf,
} from './memory-sessions.js'
import { MemorySpending } from './memory-spending.js'
import { keyText, MemoryTickets } from './memory-tickets.js'
import { belongingTo, isChatBefore, MemoryVariants } from './memory-variants.js'
import { MemorySchedules } from './schedules.js'
import { DAY_MS } from './sql-database.js'
import { clockAheadMs, noCounts } from './sql-erase.js'
import { type StateChange, splitDelta } from './state-scopes.js'
import {
  leaseLost,
  sessionBusy,
  sessionExists,
  sessionNotFound,
  storeClosed,
  throughSeqOutOfRange,
} from './store-errors.js'

/** One write to a session. */
interface Change {
  message?: Message | undefined
  delta: readonly StateChange[]
  fence: number | undefined
}

export class MemoryStore implements SessionStore {
  readonly #sessions: Map<string, MemorySession>
  readonly #state: MemoryState
  readonly #tickets: MemoryTickets
  readonly #leases: LeaseHolder
  readonly runs: MemoryRuns
  readonly calibration: MemoryCalibration
  readonly memory: MemoryObservations
  readonly artifacts: MemoryArtifacts
  readonly variants: MemoryVariants
  readonly spending: MemorySpending
  readonly schedules: MemorySchedules
  readonly #pk: { last: number }
  #closed = false

  /**
   * `now`: milliseconds of a clock for leases. `shares`: another store whose content this one has too. Each has leases of
   * its own, like two processes on one database.
   */
  constructor({ now = () => performance.now(), shares }: { now?: () => number; shares?: MemoryStore } = {}) {
    this.#sessions = shares ? shares.#sessions : new Map()
    this.#state = shares ? shares.#state : new MemoryState()
    this.#tickets = shares ? shares.#tickets : new MemoryTickets(now)
    this.#pk = shares ? shares.#pk : { last: 0 }
    this.#leases = new LeaseHolder(this.#tickets)
    this.spending = shares?.spending ?? new MemorySpending(this.#places())
    this.runs = shares?.runs ?? this.#ownRuns()
    this.calibration = shares?.calibration ?? new MemoryCalibration(() => this.#assertOpen())
    this.memory = shares?.memory ?? new MemoryObservations(this.#places())
    this.schedules = shares?.schedules ?? new MemorySchedules(() => this.#assertOpen())
    this.variants = new MemoryVariants(this.#places())
    this.artifacts = shares?.artifacts ?? new MemoryArtifacts(this.#places())
  }

  async createSession(key: SessionKey, state: State = {}, options: CreateOptions = {}): Promise<Session> {
    this.#assertOpen()
    const changes = splitDelta('state', state)
    this.#checkMayCreate(key, options)
    if (this.#sessions.has(keyText(key))) throw sessionExists(key)
    const session = this.#newSession(key, options.title)
    session.nestedIn = options.nestedIn
    this.#state.apply(session, changes)
    return viewOf(this.#state, session, {})
  }

  async loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    this.#assertOpen()
    const session = this.#sessions.get(keyText(key))
    return session === undefined ? undefined : viewOf(this.#state, session, options)
  }

  async readMessages(key: SessionKey, options: ReadOptions = {}): Promise<StoredMessage[]> {
    this.#assertOpen()
    const messages = this.#sessions.get(keyText(key))?.messages ?? []
    const { afterSeq = 0, beforeSeq = Number.POSITIVE_INFINITY, limit = 1000 } = options
    const range = messages.slice(afterSeq, Math.min(messages.length, Math.max(0, beforeSeq - 1)))
    const fromEnd = options.beforeSeq !== undefined && options.afterSeq === undefined
    return clone(fromEnd ? range.slice(-limit) : range.slice(0, limit))
  }

  async appendMessage(
    key: SessionKey,
    message: Message,
    { fence, stateDelta }: AppendOptions = {},
  ): Promise<{ seq: number }> {
    this.#assertOpen()
    return this.#change(key, { message, delta: splitDelta('stateDelta', stateDelta), fence })
  }

  async updateState(key: SessionKey, delta: State, options: { fence?: number } = {}): Promise<void> {
    this.#assertOpen()
    this.#change(key, { delta: splitDelta('delta', delta), fence: options.fence })
  }

  async forkSession(
    key: SessionKey,
    newSessionId: string,
    { throughSeq }: { throughSeq?: number } = {},
  ): Promise<Session> {
    this.#assertOpen()
    const newKey = { ...key, sessionId: newSessionId }
    const source = this.#existing(key)
    const total = source.messages.length
    if (throughSeq !== undefined && throughSeq > total) throw throughSeqOutOfRange(throughSeq, total)
    if (this.#sessions.has(keyText(newKey))) throw sessionExists(newKey)
    const fork = this.#newSession(newKey, source.title)
    copyInto(fork, source, throughSeq)
    return viewOf(this.#state, fork, {})
  }

  async describeSession(key: SessionKey): Promise<SessionSummary | undefined> {
    this.#assertOpen()
    const session = this.#sessions.get(keyText(key))
    return session && summarize(session)
  }

  async renameSession(key: SessionKey, title: string): Promise<void> {
    this.#assertOpen()
    this.#existing(key).title = tidyTitle(title)
  }

  async listSessions(query: ListQuery): Promise<SessionPage> {
    this.#assertOpen()
    return sessionPage(this.#sessions.values(), query)
  }

  async listApps(): Promise<string[]> {
    this.#assertOpen()
    return appNames(this.#sessions.values())
  }

  async deleteSession(key: SessionKey): Promise<boolean> {
    this.#assertOpen()
    const counts = noCounts()
    this.#remove(key, counts)
    return counts.sessions > 0
  }

  async erase({ appName, userId }: UserKey): Promise<EraseReceipt> {
    this.#assertOpen()
    const counts = noCounts()
    const apps = new Set([appName])
    for (const { key, nestedIn } of [...this.#sessions.values()]) {
      const isOurs = key.appName === appName || nestedIn === appName
      if (isOurs && key.userId === userId) for (const app of this.#remove(key, counts)) apps.add(app)
    }
    add(counts, this.runs.deleteRunsOf({ appName, userId }))
    add(counts, this.artifacts.deleteUser({ appName, userId }))
    add(counts, this.spending.deleteUser({ appName, userId }))
    for (const app of apps) {
      const own = [...this.#sessions.values()].some(({ key }) => key.appName === app && key.userId === userId)
      if (!own) counts.stateKeys += this.#state.deleteUser(app, userId)
    }
    return { ...counts, at: Date.now(), residue: 'none' }
  }

  async expire({ appName, sessionsMs, runsMs, usageMs, trustClock }: ExpireOptions): Promise<ExpireReceipt> {
    this.#assertOpen()
    const now = Date.now()
    const nothing = { sessions: 0, events: 0, requests: 0, signals: 0, usage: 0, now }
    const own = [...this.#sessions.values()].filter(({ key }) => key.appName === appName)
    const times = own.map(({ updatedAt }) => updatedAt).filter(time => time < now - DAY_MS)
    const newest = Math.max(-1, ...times, this.runs.newestBefore(now - DAY_MS) ?? -1)
    const aheadMs = clockAheadMs(now, newest < 0 ? undefined : newest)
    if (aheadMs !== undefined && trustClock !== true) return { ...nothing, clockAheadMs: aheadMs }
    const isIdle = (session: MemorySession) =>
      isChatBefore(session, own, now - (sessionsMs ?? now)) &&
      !this.#tickets.isTaken(session.key) &&
      this.runs.isQueueEmpty(session.key)
    const idle = own.filter(isIdle)
    for (const { key } of idle) this.#remove(key, noCounts())
    const pruned =
      runsMs === undefined ? nothing : await this.runs.prune({ appName, before: Math.max(0, now - runsMs) })
    const usage = usageMs === undefined ? 0 : this.spending.expire(appName, now - usageMs)
    return { ...nothing, ...pruned, sessions: idle.length, usage }
  }

  async acquireLease(key: SessionKey, options: LeaseOptions = {}): Promise<Lease> {
    this.#assertOpen()
    return this.#leases.acquire(key, options)
  }

  readonly check = async (): Promise<void> => this.#assertOpen()

  async openRun(opening: RunOpening, options: LeaseOptions = {}): Promise<OpenedRun> {
    this.#assertOpen()
    return this.#leases.openRun(opening.key, options, {
      open: async ttlMs => {
        const answer = this.#answerTo(opening, !this.#tickets.isValid(opening.key))
        if (answer !== undefined) return answer
        const { ticket, isFirst } = this.#tickets.enter(opening.key, ttlMs)
        return isFirst ? this.#open(opening, ticket) : { ticket }
      },
      begin: async ticket => this.#answerTo(opening, true) ?? this.#open(opening, ticket),
    })
  }

  async queueRun(opening: RunOpening): Promise<AcceptedRun> {
    this.#assertOpen()
    if (this.runs.isKnown(opening.runId)) return { known: true }
    const queued = this.#queue(opening)
    return opening.dueAt === undefined ? { queued } : { dueAt: opening.dueAt }
  }

  async beginRun(begin: RunBegin): Promise<{ seq: number } | undefined> {
    this.#assertOpen()
    const { key, message, fence } = begin
    this.#writable(key, fence)
    if (!this.runs.mayBegin(begin)) return undefined
    this.runs.begin({ ...begin, message: clone(message) })
    return this.#ask(begin, fence)
  }

  #answerTo(opening: RunOpening, isFree: boolean): OpeningAttempt | undefined {
    this.#assertOpen()
    const answer = this.runs.answerTo(opening, isFree)
    return answer === 'queue' ? { answer: { queued: this.#queue(opening) } } : answer
  }

  #open(opening: RunOpening, ticket: number): OpeningAttempt {
    const { key, message, title } = opening
    try {
      const copy = clone(message)
      if (!this.#sessions.has(keyText(key))) this.#newSession(key, title)
      this.runs.accept(opening, 'running')
      return { ticket, ...this.#ask({ ...opening, message: copy }, ticket) }
    } catch (error) {
      void this.#tickets.giveBack(key, ticket)
      throw error
    }
  }

  /** Stores the message that a run answers. */
  #ask({ key, runId, message }: RunBegin | RunOpening, fence: number): { seq: number } {
    const { seq } = this.#change(key, { message, delta: [], fence })
    this.runs.answers(runId, seq)
    return { seq }
  }

  #queue(opening: RunOpening): number {
    clone(opening.message)
    const session = this.#sessions.get(keyText(opening.key)) ?? this.#newSession(opening.key, opening.title)
    session.updatedAt = Date.now()
    return this.runs.accept(opening, opening.dueAt === undefined ? 'queued' : 'scheduled')
  }

  /** Everything that can refuse comes first. */
  async #saveStep(step: RunStep): Promise<SavedStep> {
    this.#assertOpen()
    const { key, runId, fence, message, stateDelta, events, requests, calibration, at = key } = step
    const session = this.#writable(key, fence)
    const inner = message || stateDelta ? this.#existing(at) : undefined
    const delta = splitDelta('stateDelta', stateDelta)
    const journal = journalRows(step)
    const isRepeated = this.runs.isStored(step)
    const { ledger, places: calls } = step.calls ? changeCalls(session, step, isRepeated) : {}
    if (events?.length) this.runs.storeEvents(key, runId, events)
    const { seq } = inner ? storeIn(this.#state, inner, message, delta) : {}
    this.runs.storeProgress(step, journal, message && seq)
    for (const request of requests ?? []) this.runs.storeRequest(runId, request.step, request.record)
    for (const { model, bytes, tokens } of calibration ?? [])
      await this.calibration.record(model, bytes, tokens)
    const isEnd = events?.some(({ type }) => type === 'run-finish') ?? false
    if (ledger) session.calls = isEnd ? settled(ledger, runId) : ledger
    if (step.release) await this.#tickets.giveBack(key, fence)
    return { ...(message && seq !== undefined ? { seq } : {}), ...defined({ calls }) }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#leases.close()
  }

  /** Deletes a session and those nested in it, counts them, and returns the apps of the nested ones. */
  #remove(key: SessionKey, counts: EraseCounts): string[] {
    const session = this.#sessions.get(keyText(key))
    const apps: string[] = []
    for (const { key: inner } of belongingTo(this.#sessions.values(), key))
      apps.push(inner.appName, ...this.#remove(inner, counts))
    counts.leases += this.#tickets.deleteAll(key)
    add(counts, this.runs.deleteRunsOf(key))
    if (!session) return apps
    this.#sessions.delete(keyText(key))
    add(counts, countsOf(session))
    return apps
  }

  #checkMayCreate(key: SessionKey, { fence, nestedIn }: CreateOptions): void {
    if (fence !== undefined && !this.#tickets.isHeld(key, fence)) throw leaseLost(key, fence)
    const outer = nestedIn === undefined ? undefined : { ...key, appName: nestedIn }
    if (outer && !this.#sessions.has(keyText(outer))) throw sessionNotFound(outer)
  }

  #ownRuns(): MemoryRuns {
    return new MemoryRuns({
      ...this.#places(),
      isLeased: key => this.#tickets.isValid(key),
      checkLease: (key, fence) => void this.#writable(key, fence),
      saveStep: step => this.#saveStep(step),
    })
  }

  #places() {
    return {
      assertOpen: () => this.#assertOpen(),
      sessionOf: (key: SessionKey) => this.#sessions.get(keyText(key)),
      sessions: () => this.#sessions.values(),
      existing: (key: SessionKey) => this.#existing(key),
      spending: this.spending,
      writable: (key: SessionKey, fence: number | undefined) =>
        fence === undefined ? this.#existing(key) : this.#writable(key, fence),
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw storeClosed()
  }

  #newSession(key: SessionKey, title?: string): MemorySession {
    const session = emptySession(key, ++this.#pk.last, title)
    this.#sessions.set(keyText(key), session)
    return session
  }

  /** Stores a message, if there is one, and a change of the state. Refuses before it changes anything. */
  #change(key: SessionKey, { message, delta, fence }: Change): { seq: number } {
    return storeIn(this.#state, this.#writable(key, fence), message, delta)
  }

  #existing(key: SessionKey): MemorySession {
    const session = this.#sessions.get(keyText(key))
    if (session === undefined) throw sessionNotFound(key)
    return session
  }

  #writable(key: SessionKey, fence: number | undefined): MemorySession {
    const session = this.#existing(key)
    if (fence !== undefined && !this.#tickets.isHeld(key, fence)) throw leaseLost(key, fence)
    if (fence === undefined && this.#tickets.isTaken(key)) throw sessionBusy(key)
    return session
  }
}
