import { defined } from '../base/defined.js'
import { copyJsonData } from '../base/json.js'
import { tidyTitle } from '../base/title.js'
import { tokenBudgetTruncate } from '../session/budget.js'
import type { Message, Session, SessionKey, StoredMessage } from '../session/message.js'
import type {
  PendingSignal,
  PrunedCounts,
  PruneOptions,
  ResumableRun,
  RunEventRecord,
  RunInputRecord,
  RunRequest,
  RunSignal,
  RunState,
  RunStep,
  RunSummary,
  ToolCallRecord,
} from '../session/run-store.js'
import type { CalibrationStore, EraseCounts, LoadOptions, SessionSummary } from '../session/session-store.js'
import { countMessageTokens } from '../session/tokens.js'
import { storableJson } from './check-input.js'
import { type JournalRow, readEntry } from './journal.js'
import { isReadable, PREVIEW_WINDOW, previewOf } from './listing.js'
import { copyArtifactMap, countArtifacts, type KeptArtifacts } from './memory-artifacts.js'
import { copyMemory, indexAgain, type KeptMemory } from './memory-observations.js'
import { answeredCall } from './sql-event-rows.js'
import { finishOf } from './sql-runs.js'
import { joinState, type StateChange, type StateScope } from './state-scopes.js'

/** A session in memory. */
export interface MemorySession {
  key: SessionKey
  nestedIn?: string | undefined
  /** The id of the variant of the chat that is listed, in the others. */
  variantOf?: string | undefined
  title?: string | undefined
  pk: number
  state: Map<string, string>
  messages: StoredMessage[]
  /** The number of each message id, so that an append need not search. */
  seqById: Map<string, number>
  /** The ledger of tool calls, oldest first. */
  calls: ToolCallRecord[]
  memory?: KeptMemory
  artifacts: KeptArtifacts
  createdAt: number
  updatedAt: number
}

export function emptySession(key: SessionKey, pk: number, title: string | undefined): MemorySession {
  const now = Date.now()
  const { appName, userId, sessionId } = key
  return {
    key: { appName, userId, sessionId },
    pk,
    state: new Map(),
    messages: [],
    seqById: new Map(),
    calls: [],
    artifacts: new Map(),
    title: tidyTitle(title),
    createdAt: now,
    updatedAt: now,
  }
}

function titled({ title }: MemorySession): { title?: string } {
  return title === undefined ? {} : { title }
}

export function summarize(session: MemorySession): SessionSummary {
  const { key, messages, createdAt, updatedAt } = session
  const last = messages.slice(-PREVIEW_WINDOW).findLast(isReadable)
  return {
    key: { ...key },
    totalMessages: messages.length,
    totalTokens: messages.reduce((all, message) => all + message.tokens, 0),
    createdAt,
    updatedAt,
    ...defined({ lastMessageAt: messages.at(-1)?.timestamp }),
    ...titled(session),
    ...(last === undefined ? {} : { preview: previewOf(last.content) }),
  }
}

/** What is deleted with a session. */
export function countsOf({ messages, state, calls, memory, artifacts }: MemorySession): Partial<EraseCounts> {
  return {
    sessions: 1,
    messages: messages.length,
    stateKeys: state.size,
    toolCalls: calls.length,
    observations: memory?.observations.length ?? 0,
    indexed: (memory?.messages.size ?? 0) + (memory?.observed.size ?? 0),
    ...countArtifacts(artifacts),
  }
}

/** Gives a new session what a fork of another has. */
export function copyInto(fork: MemorySession, source: MemorySession, throughSeq: number | undefined): void {
  fork.state = new Map(source.state)
  fork.messages = source.messages.slice(0, throughSeq)
  const { length } = fork.messages
  fork.seqById = new Map([...source.seqById].filter(([, seq]) => seq <= length))
  if (source.memory) fork.memory = copyMemory(source.memory, fork.key.sessionId, length)
  fork.artifacts = copyArtifactMap(source.artifacts)
}

export function add(counts: EraseCounts, more: Partial<EraseCounts>): void {
  for (const [kind, count] of Object.entries(more)) counts[kind as keyof EraseCounts] += count
}

/** A message is JSON data: what JSON cannot express is not stored. */
export function clone<T>(data: T): T {
  return copyJsonData(data, value => storableJson('message', value)) as T
}

/** State of sessions, users and apps as JSON texts. */
export class MemoryState {
  readonly #ofApps = new Map<string, Map<string, string>>()
  readonly #ofUsers = new Map<string, Map<string, string>>()

  apply(session: MemorySession, changes: readonly StateChange[]): void {
    for (const { scope, key, json } of changes) {
      const state = this.of(session, scope)
      if (json === undefined) state.delete(key)
      else state.set(key, json)
    }
  }

  of({ key, state }: MemorySession, scope: StateScope): Map<string, string> {
    if (scope === 'session') return state
    const [shared, name] =
      scope === 'app'
        ? [this.#ofApps, key.appName]
        : [this.#ofUsers, JSON.stringify([key.appName, key.userId])]
    const found = shared.get(name) ?? new Map<string, string>()
    shared.set(name, found)
    return found
  }

  /** Deletes the state of a user and returns how many keys it had. */
  deleteUser(appName: string, userId: string): number {
    const name = JSON.stringify([appName, userId])
    const { size = 0 } = this.#ofUsers.get(name) ?? {}
    this.#ofUsers.delete(name)
    return size
  }
}

/** A session as it is loaded. */
export function viewOf(state: MemoryState, session: MemorySession, options: LoadOptions): Session {
  const { budgetTokens, maxMessages, steady, throughSeq } = options
  const known = throughSeq === undefined ? session.messages : session.messages.slice(0, throughSeq)
  const { messages, cut } = tokenBudgetTruncate(known, budgetTokens, { maxMessages, steady })
  const scopes: readonly StateScope[] = ['app', 'user', 'session']
  const entries = scopes.flatMap(scope =>
    Array.from(state.of(session, scope), ([key, json]) => ({ scope, key, json })),
  )
  return {
    key: { ...session.key },
    state: joinState(entries),
    messages: clone(messages),
    totalMessages: known.length,
    ...defined({ cut }),
    ...titled(session),
    createdAt: session.createdAt,
    updatedAt: session.updatedAt,
  }
}

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

/** JSON text with the time at which it was stored. */
interface Kept {
  json: string
  storedAt: number
}

interface KeptEvent extends Kept {
  isEnd: boolean
}

export interface MemoryRun {
  owner: string | undefined
  key?: SessionKey
  startedAt: number
  /** Of a run that was accepted for later. */
  dueAt?: number | undefined
  afterSeq?: number | undefined
  /** Absent until the first event is stored. */
  state?: RunState | 'handover'
  /** How often it was begun or resumed since it last stored a message. */
  attempt: number
  /** By the id of the entry, in the order in which they were stored; until the run has ended. */
  journal: Map<string, { json: string; seq: number | null }>
  /** Grows with every accepted run. */
  place: number
  /** Until the run has ended; with the message while it is queued. */
  input?: string | undefined
  /** The number of the message that the run answers. */
  questionSeq?: number
  events: Map<number, KeptEvent>
  /** The highest number so far, pruned events included. */
  lastSeq: number
  requests: Map<number, Kept>
  signals: (Kept & { id: number })[]
}

export function newRun(): MemoryRun {
  return {
    owner: undefined,
    startedAt: 0,
    place: 0,
    attempt: 1,
    journal: new Map(),
    events: new Map(),
    lastSeq: -1,
    requests: new Map(),
    signals: [],
  }
}

interface KeptInput {
  message?: Message
  input?: RunInputRecord
}

export function inputOf({ input }: MemoryRun): KeptInput {
  return input === undefined ? {} : (JSON.parse(input) as KeptInput)
}

export function keptEvent(event: RunEventRecord, storedAt: number): KeptEvent & { seq: number } {
  const { seq, type } = event
  return { seq, json: storableJson('events', event), storedAt, isEnd: type === 'run-finish' }
}

/** The events of a run in order, as `readEvents` returns them. */
export function eventsOf(
  run: MemoryRun | undefined,
  { afterSeq = Number.NEGATIVE_INFINITY, limit = 1000 }: { afterSeq?: number; limit?: number },
): RunEventRecord[] {
  return [...(run?.events ?? [])]
    .filter(([seq]) => seq > afterSeq)
    .sort(([one], [other]) => one - other)
    .slice(0, limit)
    .map(([, { json }]) => JSON.parse(json) as RunEventRecord)
}

export function requestsOf(run: MemoryRun | undefined): RunRequest[] {
  return [...(run?.requests ?? [])]
    .sort(([one], [other]) => one - other)
    .map(([step, { json }]) => ({ step, record: JSON.parse(json) as Record<string, unknown> }))
}

/** Counts what is stored about a run. */
export function countGone(
  gone: { runs: number; events: number; requests: number; signals: number; journal: number },
  { events, requests, signals, journal }: MemoryRun,
): void {
  gone.runs += 1
  gone.events += events.size
  gone.requests += requests.size
  gone.signals += signals.length
  gone.journal += journal.size
}

/** The signals of a run that nobody has taken. */
export function pendingSignals(run: MemoryRun | undefined): PendingSignal[] {
  return (run?.signals ?? []).map(({ id, json }) => ({ id, signal: JSON.parse(json) as RunSignal }))
}

function pruneMap(kept: Map<number, Kept>, before: number): number {
  const old = [...kept].filter(([, { storedAt }]) => storedAt < before)
  for (const [number] of old) kept.delete(number)
  return old.length
}

/**
 * Deletes what is older; `false` when the run has not ended, or is of another app. A paused one needs its events when it is
 * continued. A run without a session belongs to no app.
 */
export function pruneRun(run: MemoryRun, { appName, before }: PruneOptions, pruned: PrunedCounts): boolean {
  if (run.key && appName !== undefined && run.key.appName !== appName) return false
  if (run.state === 'waiting' || run.state === 'handover' || run.state === 'scheduled') return false
  pruned.events += pruneMap(run.events, before)
  pruned.requests += pruneMap(run.requests, before)
  const left = run.signals.filter(({ storedAt }) => storedAt >= before)
  pruned.signals += run.signals.length - left.length
  run.signals = left
  return run.state === undefined || run.state === 'finished'
}

export function resumableOf(run: MemoryRun, session: MemorySession | undefined): ResumableRun | undefined {
  const { state, attempt, questionSeq = 0 } = run
  const message = session?.messages[questionSeq - 1]
  const { input } = inputOf(run)
  if (!message || !input) return undefined
  if (state !== 'waiting' && state !== 'running' && state !== 'handover') return undefined
  const journal = Array.from(run.journal.values(), ({ json, seq }) => readEntry(json, seq))
  return { input, message: clone(message), journal, state, attempt }
}

export function runSummary(runId: string, run: MemoryRun, key: SessionKey, place: number): RunSummary {
  const { startedAt, dueAt, afterSeq, events, state = 'finished' } = run
  const lastSeq = Math.max(0, ...events.keys())
  return {
    runId,
    key: { ...key },
    startedAt,
    ...defined({ dueAt, afterSeq }),
    lastSeq,
    ...finishOf(events.get(lastSeq)?.json),
    finished: state === 'finished',
    state: state === 'handover' ? 'running' : state,
    ...(state === 'queued' ? { place } : {}),
  }
}

export function storeProgress(
  run: MemoryRun,
  { pause, events = [] }: RunStep,
  rows: readonly JournalRow[],
  seq: number | undefined,
): void {
  if (seq !== undefined || events.some(event => answeredCall(event) !== undefined)) run.attempt = 1
  for (const { id, json, isOfMessage, seq: given } of rows)
    if (!run.journal.has(id)) run.journal.set(id, { json, seq: isOfMessage ? (seq ?? given) : given })
  if (pause) run.state = pause
}

/** Stores a message, if there is one, and a change of the state, in a session that may be written to. */
export function storeIn(
  state: MemoryState,
  session: MemorySession,
  message: Message | undefined,
  delta: readonly StateChange[],
): { seq: number } {
  const copy = message && clone(message)
  const same = copy?.id === undefined ? undefined : session.seqById.get(copy.id)
  const seq = copy ? (same ?? session.messages.length + 1) : session.messages.length
  if (copy) session.messages[seq - 1] = Object.assign(copy, { seq, tokens: countMessageTokens(copy) })
  if (copy?.id !== undefined) session.seqById.set(copy.id, seq)
  if (same !== undefined) indexAgain(session.memory, same)
  state.apply(session, delta)
  session.updatedAt = Date.now()
  return { seq }
}

/** Whether a process executes the run, or should continue it at once. */
export function isBegun({ state }: Pick<MemoryRun, 'state'>): boolean {
  return state === 'running' || state === 'handover'
}

/** Whether the run waits between two rounds. */
export function isBetween({ journal }: MemoryRun): boolean {
  return [...journal.keys()].some(id => id.startsWith('wait:'))
}

/** The newest time before a moment at which an event of these runs was stored. */
export function newestOf(runs: Iterable<MemoryRun>, moment: number): number | undefined {
  let newest: number | undefined
  for (const { events } of runs)
    for (const { storedAt } of events.values())
      if (storedAt < moment && storedAt > (newest ?? -1)) newest = storedAt
  return newest
}
