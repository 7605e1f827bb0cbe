import type { SessionKey } from '../session/message.js'
import type {
  AppRunsQuery,
  DueQuery,
  PendingSignal,
  QueuedRun,
  ReleasedRuns,
  ResumableRun,
  RunBegin,
  RunEventRecord,
  RunOpening,
  RunResume,
  RunSignal,
  RunState,
  RunStep,
  RunStore,
  RunSummary,
  ToolCallRecord,
  UnfinishedQuery,
} from '../session/run-store.js'
import type { EraseCounts, UserKey } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import type { OpeningAttempt } from './hold-lease.js'
import type { JournalRow } from './journal.js'
import { forgetResults, settled } from './memory-calls.js'
import { dueRuns, isLater, isOf, newestRuns, queuedRun, toEnd, unfinishedRuns } from './memory-due.js'
import {
  clone,
  countGone,
  eventsOf,
  inputOf,
  isBegun,
  isBetween,
  keptEvent,
  type MemoryRun,
  type MemorySession,
  newestOf,
  newRun,
  pendingSignals,
  pruneRun,
  requestsOf,
  resumableOf,
  runSummary,
  storeProgress,
} from './memory-sessions.js'
import type { MemorySpending } from './memory-spending.js'
import { keyText } from './memory-tickets.js'
import { DAY_MS } from './sql-database.js'
import { answeredCall, answersOneOf, withPlace } from './sql-event-rows.js'
import { runHasEnded, runOfAnotherSession } from './store-errors.js'

/** What runs need of the store that holds them. */
interface RunHost {
  assertOpen(): void
  sessionOf(key: SessionKey): MemorySession | undefined
  sessions(): Iterable<MemorySession>
  /** Whether anyone holds the lease of a session, or waits for it. */
  isLeased(key: SessionKey): boolean
  /** Fails unless the session exists and the lease is held. */
  checkLease(key: SessionKey, fence: number): void
  saveStep: NonNullable<RunStore['saveStep']>
  spending: MemorySpending
}

/** Run events, requests and signals in memory. */
export class MemoryRuns implements RunStore {
  readonly saveStep: NonNullable<RunStore['saveStep']>
  readonly #host: RunHost
  readonly #runs = new Map<string, MemoryRun>()
  /** The runs of each session that have not ended, in the order of their acceptance. */
  readonly #unfinished = new Map<string, Set<string>>()
  /** Runs whose session was deleted, and when: what they store afterwards is dropped. */
  readonly #deleted = new Map<string, number>()

  #lastPlace = 0
  #lastSignal = 0

  constructor(host: RunHost) {
    this.#host = host
    this.saveStep = host.saveStep
  }

  /** Stores a run whose session exists: one that begins at once, or one that is queued. Returns its place in the queue. */
  accept({ key, runId, message, input, ...opening }: RunOpening, state: RunState): number {
    const isLater = state !== 'running'
    const json = storableJson('input', isLater ? { message, input } : { input })
    const events = isLater ? (opening.orQueue?.events ?? opening.events) : opening.events
    const place = this.unfinishedOf(key).filter(run => run.state === 'queued').length + 1
    this.storeEvents(key, runId, state === 'queued' ? withPlace(events, place) : events)
    const run = this.#runs.get(runId)
    if (run?.state === undefined) return place
    if (run.state !== 'finished') Object.assign(run, { state, input: json })
    if (isLater) run.afterSeq = undefined
    if (state === 'scheduled') run.dueAt = opening.dueAt
    return place
  }

  /** Whether the run is queued in that session, and no earlier run waits for a person, or is unfinished. */
  mayBegin({ key, runId, alone }: RunBegin): boolean {
    const run = this.#runs.get(runId)
    if (alone && this.unfinishedOf(key).some(other => isBegun(other) || other.state === 'waiting'))
      return false
    return run?.owner === keyText(key) && run.state === 'queued' && !this.#isHeldUp(run)
  }

  /** Whether an earlier run of the session waits for a person; with `isDue`, only inside a round. */
  #isHeldUp({ key, place }: MemoryRun, isDue = false): boolean {
    const others = (key ? this.unfinishedOf(key) : []).map(({ runId }) => this.#run(runId))
    return others.some(run => run.state === 'waiting' && run.place < place && !(isDue && isBetween(run)))
  }

  /** Records the number of the message that a run answers. */
  answers(runId: string, seq: number): void {
    this.#run(runId).questionSeq = seq
  }

  /** Lets a queued run begin; its message is stored by the caller. */
  begin({ key, runId, events }: RunBegin): void {
    this.storeEvents(key, runId, events)
    const run = this.#runs.get(runId)
    if (run?.state !== 'queued') return
    run.state = 'running'
    run.afterSeq = this.#host.sessionOf(key)?.messages.length
    run.input = storableJson('input', { input: inputOf(run).input })
  }

  /** The runs of a session that have not ended, in the order of their acceptance. */
  unfinishedOf(key: SessionKey): { runId: string; state: NonNullable<MemoryRun['state']> }[] {
    return [...(this.#unfinished.get(keyText(key)) ?? [])].flatMap(runId => {
      const state = this.#runs.get(runId)?.state
      return state === undefined ? [] : [{ runId, state }]
    })
  }

  /** Whether no run of the session waits for its turn or its time. */
  isQueueEmpty(key: SessionKey): boolean {
    return !this.unfinishedOf(key).some(({ state }) => state === 'queued' || state === 'scheduled')
  }

  /** Why a run is not opened now, if it is not. `isFree`: nobody else holds the lease. */
  answerTo({ key, runId, orQueue }: RunOpening, isFree: boolean): OpeningAttempt | 'queue' | undefined {
    if (this.isKnown(runId)) return { answer: { known: true } }
    const others = this.unfinishedOf(key)
    const running = others.flatMap(other => (isBegun(other) ? [other.runId] : []))
    if (isFree && running.length > 0) return { answer: { unfinished: running } }
    const comesLater = others.some(({ state }) => state === 'queued' || state === 'waiting')
    if (orQueue && (comesLater || !isFree)) return 'queue'
    return isFree && comesLater ? 'busy' : undefined
  }

  #end(runId: string, run: MemoryRun): void {
    run.state = 'finished'
    run.input = undefined
    run.journal.clear()
    const session = run.key && this.#host.sessionOf(run.key)
    if (session) session.calls = settled(session.calls, runId)
    this.#forgetUnfinished(runId, run)
  }

  #forgetUnfinished(runId: string, { owner = '' }: MemoryRun): void {
    const unfinished = this.#unfinished.get(owner)
    unfinished?.delete(runId)
    if (unfinished?.size === 0) this.#unfinished.delete(owner)
  }

  async listUnfinished(query: UnfinishedQuery): Promise<RunSummary[]> {
    this.#host.assertOpen()
    return this.#summaries(unfinishedRuns(this.#runs, query, run => this.#isDue(run)))
  }

  /** Whether a process should look after a run that has not ended. */
  #isDue(run: MemoryRun): boolean {
    if (run.key === undefined || isLater(run) || this.#host.isLeased(run.key)) return false
    if (run.state === 'waiting') return run.signals.length > 0
    return run.state !== 'queued' || !this.#isHeldUp(run, true)
  }

  async listQueued(key: SessionKey, { limit = 100 }: { limit?: number } = {}): Promise<QueuedRun[]> {
    this.#host.assertOpen()
    const queued = this.unfinishedOf(key).filter(({ state }) => state === 'queued')
    return queued.slice(0, limit).flatMap(({ runId }) => queuedRun(runId, this.#runs.get(runId)))
  }

  async releaseDue(query: DueQuery): Promise<ReleasedRuns> {
    this.#host.assertOpen()
    const now = Date.now()
    const { due, ...next } = dueRuns(this.#runs, query, now)
    for (const entry of due) {
      toEnd(entry, this.#unfinished.get(entry[1].owner ?? ''), { place: ++this.#lastPlace, startedAt: now })
      const session = entry[1].key && this.#host.sessionOf(entry[1].key)
      if (session) session.updatedAt = now
    }
    return { released: due.flatMap(([runId, { key }]) => (key ? [{ runId, key: { ...key } }] : [])), ...next }
  }

  async endQueued(runId: string, events: readonly RunEventRecord[]): Promise<boolean> {
    this.#host.assertOpen()
    const run = this.#runs.get(runId)
    if (run?.key === undefined || (run.state !== 'queued' && !isLater(run))) return false
    this.storeEvents(run.key, runId, events)
    this.#end(runId, run)
    return true
  }

  async readResumable(runId: string): Promise<ResumableRun | undefined> {
    this.#host.assertOpen()
    const run = this.#runs.get(runId)
    return run?.key && resumableOf(run, this.#host.sessionOf(run.key))
  }

  async resumeRun({ key, runId, fence, events }: RunResume): Promise<{ attempt: number } | undefined> {
    this.#host.assertOpen()
    this.#host.checkLease(key, fence)
    const run = this.#runs.get(runId)
    const isBefore = run?.state === 'queued' || run?.state === 'scheduled'
    if (run?.owner !== keyText(key) || isBefore || run.state === 'finished') return undefined
    const isCrash = run.state === 'running'
    this.storeEvents(key, runId, events)
    if (isCrash) run.attempt += 1
    if (this.#unfinished.get(keyText(key))?.has(runId)) run.state = 'running'
    return { attempt: run.attempt }
  }

  /** Whether the step was stored before: its acknowledgement was lost. */
  isStored({ runId, events = [] }: RunStep): boolean {
    const { seq } = events.at(-1) ?? {}
    return seq !== undefined && this.#runs.get(runId)?.events.has(seq) === true
  }

  /** The part of a step that concerns the continuation of its run. `seq`: the number of its message. */
  storeProgress(step: RunStep, rows: readonly JournalRow[], seq: number | undefined): void {
    const run = this.#runs.get(step.runId)
    if (run?.state !== undefined && run.state !== 'finished') storeProgress(run, step, rows, seq)
  }

  async readCalls(runId: string): Promise<ToolCallRecord[]> {
    this.#host.assertOpen()
    const key = this.#runs.get(runId)?.key
    const sessions = key ? [this.#host.sessionOf(key)] : this.#host.sessions()
    return [...sessions].flatMap(session => clone(session?.calls.filter(call => call.runId === runId) ?? []))
  }

  async listUnknownCalls(key: SessionKey): Promise<ToolCallRecord[]> {
    this.#host.assertOpen()
    return clone(this.#host.sessionOf(key)?.calls.filter(({ status }) => status === 'unknown') ?? [])
  }

  async appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    this.#host.assertOpen()
    this.storeEvents(key, runId, events)
  }

  /** As `appendEvents`, for a write that consists of several. */
  storeEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): void {
    const storedAt = Date.now()
    const kept = events.map(event => keptEvent(event, storedAt))
    if (this.#deleted.has(runId)) return
    const owner = keyText(key)
    const messages = this.#host.sessionOf(key)?.messages.length
    // A run whose session was deleted before its first event is not stored.
    if (messages === undefined && this.#runs.get(runId)?.owner === undefined) return
    const run = this.#run(runId)
    if (run.owner === undefined) {
      const { appName, userId, sessionId } = key
      const known = { owner, key: { appName, userId, sessionId }, startedAt: storedAt, afterSeq: messages }
      Object.assign(run, { ...known, state: 'running', place: ++this.#lastPlace })
      this.#unfinished.set(owner, (this.#unfinished.get(owner) ?? new Set()).add(runId))
    }
    if (run.owner !== owner) throw runOfAnotherSession(runId)
    const last = run.events.get(run.lastSeq)
    // A number that holds another event belongs to an end that another process wrote.
    const isLate = kept.some(
      ({ seq, json }) => seq > run.lastSeq || (run.events.get(seq)?.json ?? json) !== json,
    )
    if (last?.isEnd && isLate) throw runHasEnded(runId)
    for (const { seq, ...event } of kept) {
      if (!run.events.has(seq)) run.events.set(seq, event)
      run.lastSeq = Math.max(run.lastSeq, seq)
    }
    for (const event of events) if (event.type === 'usage') this.#host.spending.keepEvent(key, runId, event)
    const answered = events.flatMap(event => answeredCall(event) ?? [])
    run.signals = run.signals.filter(({ json }) => !answersOneOf(answered, json))
    if (kept.some(({ isEnd }) => isEnd)) this.#end(runId, run)
  }

  async readEvents(
    runId: string,
    options: { afterSeq?: number; limit?: number } = {},
  ): Promise<RunEventRecord[]> {
    this.#host.assertOpen()
    return eventsOf(this.#runs.get(runId), options)
  }

  isKnown(runId: string): boolean {
    return this.#deleted.has(runId) || this.#runs.get(runId)?.key !== undefined
  }

  async findRun(runId: string): Promise<RunSummary | undefined> {
    return (await this.findRuns([runId]))[0]
  }

  async findRuns(runIds: readonly string[]): Promise<RunSummary[]> {
    this.#host.assertOpen()
    return this.#summaries(runIds.map(runId => [runId, this.#runs.get(runId)]))
  }

  async listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    this.#host.assertOpen()
    const due = [...this.#runs].filter(([, run]) => !isLater(run))
    return this.#summaries(newestRuns(due, key, options.limit))
  }

  async listAppRuns(query: AppRunsQuery): Promise<RunSummary[]> {
    this.#host.assertOpen()
    return this.#summaries(newestRuns(this.#runs, query, query.limit))
  }

  async saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    this.#host.assertOpen()
    this.storeRequest(runId, step, record)
  }

  storeRequest(runId: string, step: number, record: Record<string, unknown>): void {
    const json = storableJson('record', record)
    if (!this.#deleted.has(runId)) this.#run(runId).requests.set(step, { json, storedAt: Date.now() })
  }

  async readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    this.#host.assertOpen()
    return requestsOf(this.#runs.get(runId))
  }

  async sendSignal(runId: string, signal: RunSignal): Promise<void> {
    this.#host.assertOpen()
    const id = ++this.#lastSignal
    this.#run(runId).signals.push({ id, json: storableJson('signal', signal), storedAt: Date.now() })
  }

  async signalled(runIds: readonly string[]): Promise<string[]> {
    this.#host.assertOpen()
    return runIds.filter(runId => (this.#runs.get(runId)?.signals.length ?? 0) > 0)
  }

  async readSignals(runId: string): Promise<PendingSignal[]> {
    this.#host.assertOpen()
    return pendingSignals(this.#runs.get(runId))
  }

  async takeSignals(runId: string): Promise<RunSignal[]> {
    this.#host.assertOpen()
    const pending = pendingSignals(this.#runs.get(runId))
    this.#runs.get(runId)?.signals.splice(0)
    return pending.map(({ signal }) => signal)
  }

  async prune({ appName, before }: Parameters<RunStore['prune']>[0]): ReturnType<RunStore['prune']> {
    this.#host.assertOpen()
    const pruned = { events: 0, requests: 0, signals: 0 }
    for (const [runId, run] of this.#runs) {
      if (!pruneRun(run, { appName, before }, pruned)) continue
      if (run.events.size === 0) forgetResults(run.key && this.#host.sessionOf(run.key), runId, before)
      if (run.events.size + run.requests.size + run.signals.length === 0) this.#runs.delete(runId)
    }
    return pruned
  }

  /** Deletes everything about the runs of one session, or of all sessions of a user. */
  deleteRunsOf(owner: UserKey & { sessionId?: string }): Partial<EraseCounts> {
    const now = Date.now()
    const gone = { runs: 0, events: 0, requests: 0, signals: 0, journal: 0 }
    for (const [runId, deletedAt] of this.#deleted) if (deletedAt < now - DAY_MS) this.#deleted.delete(runId)
    for (const [runId, run] of this.#runs) {
      if (!isOf(run, owner)) continue
      countGone(gone, run)
      this.#runs.delete(runId)
      this.#forgetUnfinished(runId, run)
      this.#deleted.set(runId, now)
    }
    return gone
  }

  /** The newest time before a moment at which an event was stored. */
  newestBefore(moment: number): number | undefined {
    return newestOf(this.#runs.values(), moment)
  }

  #summaries(entries: readonly [runId: string, run: MemoryRun | undefined][]): RunSummary[] {
    return entries.flatMap(([runId, run]) => {
      if (run?.key === undefined || run.state === undefined) return []
      const queue = this.unfinishedOf(run.key).filter(({ state }) => state === 'queued')
      return [runSummary(runId, run, run.key, queue.findIndex(other => other.runId === runId) + 1)]
    })
  }

  #run(runId: string): MemoryRun {
    const run = this.#runs.get(runId) ?? newRun()
    this.#runs.set(runId, run)
    return run
  }
}
