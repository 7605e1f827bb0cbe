import { defined } from '../base/defined.js'
import type { SessionKey } from '../session/message.js'
import type { RunEventRecord, RunSignal, RunStore, RunSummary } from '../session/run-store.js'
import type { CalibrationStore, EraseCounts, UserKey } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { keyText } from './memory-tickets.js'
import { DAY_MS } from './sql-database.js'
import { finishOf } from './sql-runs.js'
import { runHasEnded, runOfAnotherSession } from './store-errors.js'

/** JSON text with the time at which it was stored. */
interface Kept {
  json: string
  storedAt: number
}

interface KeptEvent extends Kept {
  isEnd: boolean
}

interface MemoryRun {
  owner: string | undefined
  key?: SessionKey
  startedAt: number
  afterSeq?: number | undefined
  events: Map<number, KeptEvent>
  /** The highest number so far, pruned events included. */
  lastSeq: number
  requests: Map<number, Kept>
  signals: Kept[]
}

/** Run events, requests and signals in memory. */
export class MemoryRuns implements RunStore {
  readonly saveStep: NonNullable<RunStore['saveStep']>
  readonly #assertOpen: () => void
  readonly #countMessages: (key: SessionKey) => number | undefined
  readonly #runs = new Map<string, MemoryRun>()
  /** Runs whose session was deleted, and when: what they store afterwards is dropped. */
  readonly #deleted = new Map<string, number>()

  constructor(
    assertOpen: () => void,
    countMessages: (key: SessionKey) => number | undefined,
    saveStep: NonNullable<RunStore['saveStep']>,
  ) {
    this.#assertOpen = assertOpen
    this.#countMessages = countMessages
    this.saveStep = saveStep
  }

  async appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    this.#assertOpen()
    this.storeEvents(key, runId, events)
  }

  /** As `appendEvents`, for a write that consists of several. */
  storeEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): void {
    const storedAt = Date.now()
    const kept = events.map(event => ({
      seq: event.seq,
      json: storableJson('events', event),
      storedAt,
      isEnd: event.type === 'run-finish',
    }))
    if (this.#deleted.has(runId)) return
    const owner = keyText(key)
    const messages = this.#countMessages(key)
    // A run whose session was deleted before its first event is not stored.
    if (messages === undefined && this.#runs.get(runId)?.owner === undefined) return
    const run = this.#run(runId)
    if (run.owner === undefined) {
      const { appName, userId, sessionId } = key
      run.owner = owner
      run.key = { appName, userId, sessionId }
      run.startedAt = storedAt
      run.afterSeq = messages
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
  }

  async readEvents(
    runId: string,
    options: { afterSeq?: number; limit?: number } = {},
  ): Promise<RunEventRecord[]> {
    this.#assertOpen()
    const { afterSeq = Number.NEGATIVE_INFINITY, limit = 1000 } = options
    return [...(this.#runs.get(runId)?.events ?? [])]
      .filter(([seq]) => seq > afterSeq)
      .sort(([one], [other]) => one - other)
      .slice(0, limit)
      .map(([, { json }]) => JSON.parse(json) as RunEventRecord)
  }

  isKnown(runId: string): boolean {
    return this.#runs.get(runId)?.key !== undefined
  }

  async findRun(runId: string): Promise<RunSummary | undefined> {
    this.#assertOpen()
    const run = this.#runs.get(runId)
    return run && summarize(runId, run)
  }

  async listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    this.#assertOpen()
    return [...this.#runs]
      .filter(([, { owner }]) => owner === keyText(key))
      .flatMap(([runId, run]) => summarize(runId, run) ?? [])
      .reverse()
      .sort((one, other) => other.startedAt - one.startedAt)
      .slice(0, options.limit ?? 50)
  }

  async saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    this.#assertOpen()
    this.storeRequest(runId, step, record)
  }

  storeRequest(runId: string, step: number, record: Record<string, unknown>): void {
    const json = storableJson('record', record)
    if (!this.#deleted.has(runId)) this.#run(runId).requests.set(step, { json, storedAt: Date.now() })
  }

  async readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    this.#assertOpen()
    return [...(this.#runs.get(runId)?.requests ?? [])]
      .sort(([one], [other]) => one - other)
      .map(([step, { json }]) => ({ step, record: JSON.parse(json) as Record<string, unknown> }))
  }

  async sendSignal(runId: string, signal: RunSignal): Promise<void> {
    this.#assertOpen()
    this.#run(runId).signals.push({ json: storableJson('signal', signal), storedAt: Date.now() })
  }

  async takeSignals(runId: string): Promise<RunSignal[]> {
    this.#assertOpen()
    const waiting = this.#runs.get(runId)?.signals.splice(0) ?? []
    return waiting.map(({ json }) => JSON.parse(json) as RunSignal)
  }

  async prune({
    before,
  }: {
    before: number
  }): Promise<{ events: number; requests: number; signals: number }> {
    this.#assertOpen()
    const pruned = { events: 0, requests: 0, signals: 0 }
    for (const [runId, run] of this.#runs) {
      pruned.events += pruneMap(run.events, before)
      pruned.requests += pruneMap(run.requests, before)
      const left = run.signals.filter(({ storedAt }) => storedAt >= before)
      pruned.signals += run.signals.length - left.length
      run.signals = left
      if (run.events.size + run.requests.size + left.length === 0) this.#runs.delete(runId)
    }
    return pruned
  }

  /** Deletes everything about the runs of one session, or of all sessions of a user. */
  deleteRunsOf({ appName, userId, sessionId }: UserKey & { sessionId?: string }): Pick<EraseCounts, RunKind> {
    const now = Date.now()
    const gone = { runs: 0, events: 0, requests: 0, signals: 0 }
    for (const [runId, deletedAt] of this.#deleted) if (deletedAt < now - DAY_MS) this.#deleted.delete(runId)
    for (const [runId, { key, events, requests, signals }] of this.#runs) {
      if (key?.appName !== appName || key.userId !== userId) continue
      if (key.sessionId !== (sessionId ?? key.sessionId)) continue
      gone.runs += 1
      gone.events += events.size
      gone.requests += requests.size
      gone.signals += signals.length
      this.#runs.delete(runId)
      this.#deleted.set(runId, now)
    }
    return gone
  }

  /** The newest time before a moment at which an event was stored. */
  newestBefore(moment: number): number | undefined {
    let newest: number | undefined
    for (const { events } of this.#runs.values()) {
      for (const { storedAt } of events.values())
        if (storedAt < moment && storedAt > (newest ?? -1)) newest = storedAt
    }
    return newest
  }

  #run(runId: string): MemoryRun {
    const found = this.#runs.get(runId)
    if (found !== undefined) return found
    const run: MemoryRun = {
      owner: undefined,
      startedAt: 0,
      events: new Map(),
      lastSeq: -1,
      requests: new Map(),
      signals: [],
    }
    this.#runs.set(runId, run)
    return run
  }
}

type RunKind = 'runs' | 'events' | 'requests' | 'signals'

/** Token calibration in memory. */
export class MemoryCalibration implements CalibrationStore {
  readonly #assertOpen: () => void
  readonly #models = new Map<string, { bytes: number; tokens: number }>()

  constructor(assertOpen: () => void) {
    this.#assertOpen = assertOpen
  }

  async read(model: string): Promise<{ bytes: number; tokens: number } | undefined> {
    this.#assertOpen()
    const found = this.#models.get(model)
    return found === undefined ? undefined : { ...found }
  }

  async record(model: string, bytes: number, tokens: number): Promise<void> {
    this.#assertOpen()
    const sum = this.#models.get(model) ?? { bytes: 0, tokens: 0 }
    this.#models.set(model, { bytes: sum.bytes + bytes, tokens: sum.tokens + tokens })
  }
}

function summarize(runId: string, { key, startedAt, afterSeq, events }: MemoryRun): RunSummary | undefined {
  if (key === undefined) return undefined
  const lastSeq = Math.max(0, ...events.keys())
  return {
    runId,
    key: { ...key },
    startedAt,
    ...defined({ afterSeq }),
    lastSeq,
    ...finishOf(events.get(lastSeq)?.json),
  }
}

function pruneMap(kept: Map<number, Kept>, before: number): number {
  let pruned = 0
  for (const [number, { storedAt }] of kept) {
    if (storedAt >= before) continue
    kept.delete(number)
    pruned++
  }
  return pruned
}
