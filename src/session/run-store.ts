/** The part of the contract of stores that concerns runs: their input, steps, events, signals and tool calls. */
import type { ApprovalAnswer, CallResponse, OutcomeAnswer, ToolEffect } from '../tool.js'
import type { Message, SessionKey, State, StoredMessage } from './message.js'

export interface Lease {
  /** Grows with every lease of the session; handed to `appendMessage`. */
  readonly fence: number
  /** Aborted when renewal failed or the lease expired: its holder must stop writing. */
  readonly lost: AbortSignal
  release(): Promise<void>
  /** The store has ended the lease in another write (`RunStep.release`): nothing is left to release. */
  released(): void
}

/** A request of that many bytes was counted as that many tokens. */
export interface Observation {
  model: string
  bytes: number
  tokens: number
}

/** What the opening of a run stores. */
export interface RunOpening {
  key: SessionKey
  runId: string
  /** The title of the session, if it is new. */
  title?: string
  /** The message that the run answers. */
  message: Message
  events: readonly RunEventRecord[]
  /** What another process needs to execute the run; kept until the run is pruned. */
  input?: RunInputRecord
  /**
   * Does not wait for a session that is busy, or that has queued runs: the run is stored at the end of the queue, with
   * these events instead. The store sets `place` in events of the type `run-queued`: only it knows the place.
   */
  orQueue?: { events: readonly RunEventRecord[] }
  /**
   * Not before this time, in milliseconds since 1970: `queueRun` stores the run outside the queue of its session, and
   * `RunStore.releaseDue` puts it at the end of the queue.
   */
  dueAt?: number
}

/** The input of a run as plain JSON data. */
export type RunInputRecord = Readonly<Record<string, unknown>>

/** Where a queued run stands in its session's queue; 1 is the next one. */
export interface QueuedPlace {
  queued: number
}

/** What `queueRun` has done: the run is in the queue, or not due yet (with the time at which it is), or was known before. */
export type AcceptedRun = QueuedPlace | { dueAt: number } | { known: true }

/**
 * A run that was opened: its lease, the number of its message, and the newest run that the session had before. `known` when the id belongs to a run already;
 * `unfinished` when the session is free but has runs that were begun and not ended: they are settled first, and nothing
 * is stored.
 */
export type OpenedRun =
  | { lease: Lease; seq: number; previousRunId?: string }
  | { known: true }
  | { unfinished: readonly string[] }
  | QueuedPlace

/** The beginning of a queued run. */
export interface RunBegin {
  key: SessionKey
  runId: string
  fence: number
  message: Message
  events: readonly RunEventRecord[]
  /** As `listQueued` returned it: with it, a store need not read it again. */
  input?: RunInputRecord
  /** Only if no other run of the session has begun and not ended. */
  alone?: boolean
}

/** The continuation of a run that was begun. */
export interface RunResume {
  key: SessionKey
  runId: string
  fence: number
  events: readonly RunEventRecord[]
}

/** A run that was accepted and has not begun. */
export interface QueuedRun {
  runId: string
  key: SessionKey
  message: Message
  input: RunInputRecord
  /** Milliseconds since 1970. */
  queuedAt: number
}

/** What one step of a run stores: all of it or nothing. */
export interface RunStep {
  key: SessionKey
  runId: string
  fence: number
  message?: Message
  stateDelta?: State
  /** The nested session that the message and the delta belong to. Default: the session of the run. Needs no lease of its own. */
  at?: SessionKey
  /** Added to the journal of the run. */
  journal?: readonly JournalEntry[]
  events?: readonly RunEventRecord[]
  requests?: readonly RunRequest[]
  calibration?: readonly Observation[]
  /** Changes of the ledger of tool calls, applied in order. They need the lease, like a message. */
  calls?: readonly ToolCallChange[]
  /** Ends the lease. */
  release?: boolean
  /**
   * The process stops working on the run without ending it. `waiting`: a person must answer first, so only a signal makes
   * the run due. `handover`: any process may continue it at once. Comes with `release`.
   */
  pause?: 'waiting' | 'handover'
}

/**
 * What a resumed run needs to know of an event that ADK appended, besides the message that is stored for it. Entries are
 * in the order of the steps; those of one step share its transaction.
 */
export interface JournalEntry {
  /** The id of the event, and of its message if it has one. */
  id: string
  /**
   * `model`: the answer of a model step. `event`: any other. `end`: no event, but the run has begun to end; `delta` has
   * its finish reason and its error. `wait`: no event, but a round of the run is over, and answers open the next one; its
   * id begins with `wait:`.
   */
  kind: 'model' | 'event' | 'end' | 'wait'
  /** The model call gives another answer after this one. */
  more?: true
  /** The tool call whose agent appended it, as the ledger names calls; empty for the run's own session. */
  scope: string
  author: string
  branch: string
  /** The path of the node of a workflow that made it; absent for an event of no node. */
  node?: string
  /** The number of its message in its session. Set by the store; absent for an event that is no message. */
  seq?: number
  /** The nested session that has its message. Default: the session of the run. */
  at?: SessionKey
  /** The change of state that it made, `temp:` keys included. */
  delta?: State
  /** The values of the keys of `delta` before it, as far as there were any; JSON data. */
  before?: State
  /** The failure of the model that the event reports, as JSON data: the event itself keeps only its words. */
  error?: Readonly<Record<string, unknown>>
}

/** What a step has stored. */
export interface SavedStep {
  /** The number of the message, if there was one. */
  seq?: number
  /** The calls of `RunStep.calls` as they are now, in order. */
  calls?: readonly ToolCallPlace[]
}

/**
 * How far a tool call has come: requested by the model, handed to the tool, answered, failed, or begun by a process
 * that is gone, so that nobody knows whether it took effect.
 */
export type ToolCallStatus = 'intent' | 'started' | 'done' | 'failed' | 'unknown'

/**
 * A new tool call of a run, or a change of one. `started` counts an attempt. `intent` adds a call that is not in the
 * ledger, and changes nothing about one that is, unless an attempt is taken back.
 */
export interface ToolCallChange {
  /** The call within its run: the id of the message that holds it, `/`, and the call's own id. */
  id: string
  status: ToolCallStatus
  /** Needed when the call is new. */
  call?: ToolCallFacts
  /** JSON data; kept with `done` and `failed`. */
  result?: unknown
  /** What else the tool requested (state, transfer, escalation …), as ADK names it; JSON data, kept with `done` and `failed`. */
  actions?: Readonly<Record<string, unknown>>
  /** A person's answer about an unknown outcome. */
  answer?: OutcomeAnswer
  /** Replaces the call's number: it repeats a call whose outcome is unknown, and has its idempotency key. */
  ordinal?: number
  /** Another run of the session, whose ledger has the call already. Default: the run of the step. */
  runId?: string
  /** The tool did not begin: the attempt that `started` counted is not counted, and `status` is the one before it. */
  isTakenBack?: true
}

/** What does not change about a tool call. */
export interface ToolCallFacts {
  callId: string
  tool: string
  effect: ToolEffect
  /** Equal calls of a session have equal digests of tool and arguments. */
  digest: string
  args: Readonly<Record<string, unknown>>
}

/** The number of a call among equal calls of its session, and what is known of them. */
export interface ToolCallPlace {
  id: string
  /**
   * How many earlier equal calls of the session there are whose outcome is not unknown. Counted when the call is new;
   * only `ToolCallChange.ordinal` changes it.
   */
  ordinal: number
  /** How often the tool was started for this call. */
  attempt: number
  /** The newest other equal call of the session whose outcome is unknown. */
  unknownTwin?: { runId: string; id: string; attempt: number; answer?: OutcomeAnswer }
}

/** A row of the ledger. */
export interface ToolCallRecord extends ToolCallFacts {
  id: string
  runId: string
  ordinal: number
  attempt: number
  status: ToolCallStatus
  result?: unknown
  actions?: Readonly<Record<string, unknown>>
  answer?: OutcomeAnswer
  /** Milliseconds since 1970. */
  changedAt: number
}

/** The request of one model step. */
export interface RunRequest {
  step: number
  record: Record<string, unknown>
}

/** A stored run event: plain JSON data with its number within the run. */
export interface RunEventRecord {
  seq: number
  [field: string]: unknown
}

/** A message from any process to the process that runs `runId`. */
export type RunSignal =
  | { type: 'stop'; reason?: string }
  | { type: 'approval'; callId: string; answer: ApprovalAnswer }
  /** `result`: what the call returned, with `happened`. */
  | { type: 'outcome'; callId: string; answer: OutcomeAnswer; result?: unknown }
  | { type: 'response'; callId: string; response: CallResponse }

/** A signal that nobody has taken, and its number. */
export interface PendingSignal {
  id: number
  signal: RunSignal
}

/** Where a run is between its acceptance and its end. */
export type RunState = 'scheduled' | 'queued' | 'running' | 'waiting' | 'finished'

/** A run that was begun and has not ended, and what is needed to continue it. */
export interface ResumableRun {
  /** As it was accepted. */
  input: RunInputRecord
  /** The message that the run answers. */
  message: StoredMessage
  /** In the order in which it was stored. */
  journal: readonly JournalEntry[]
  /** `handover` when its last process gave it back. */
  state: 'running' | 'waiting' | 'handover'
  /** How often the run was begun or resumed since it last stored a message. */
  attempt: number
}

/** A run without its events. */
export interface RunSummary {
  runId: string
  key: SessionKey
  /** When it was accepted, or, if it was accepted for later, when it was due; milliseconds since 1970. */
  startedAt: number
  /** Of a run that was accepted for later: not before this time. */
  dueAt?: number
  /** The number of messages in the session when the run began; the run's own follow. Absent until it has begun. */
  afterSeq?: number
  /** The number of its newest event; 0 when they were pruned. */
  lastSeq: number
  /** Its `run-finish` is stored. */
  finished: boolean
  finishReason?: string
  state: RunState
  /** While it is queued: its place in the queue of its session; 1 is the next one. */
  place?: number
}

export interface UnfinishedQuery {
  appName: string
  /** Only those of one session. */
  key?: SessionKey
  /**
   * Only those that a process should look after: of sessions whose lease nobody holds. Runs that wait for a
   * person are among them when they have signals; queued ones when no earlier run of their session waits for a person,
   * or when it waits between two rounds: then the next message ends it.
   */
  abandoned?: boolean
  /** Also those that are not due yet, after the others, by the time at which they are; or only those. Not with `abandoned`. */
  scheduled?: 'also' | 'only'
  /** Default 100. */
  limit?: number
}

export interface AppRunsQuery {
  appName: string
  /** Only those of one user. */
  userId?: string
  /** Default 50. */
  limit?: number
}

/** Which runs that were accepted for later are released. */
export interface DueQuery {
  appName: string
  /** Only this run, and also before its time. */
  runId?: string
  /** How many at most. Default 100. */
  limit?: number
}

export interface ReleasedRuns {
  /** Those that were put into the queues of their sessions, in order. */
  released: readonly { runId: string; key: SessionKey }[]
  /** The time until the next one is due, by the store's clock; absent when there is none. */
  nextInMs?: number
}

/** Events, requests and signals of runs: entries of the log of their session. Their content is pruned, messages are not. */
export interface RunStore {
  /**
   * Stores events by their `seq`; storing a number again changes nothing. A run ends once: what would come after
   * its `run-finish` is refused (`run-interrupted`).
   */
  appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void>
  /**
   * Stores one step of a run in one transaction, under its fence. The step that was stored last, sent again under the same
   * lease, changes nothing. `session-not-found`, `lease-lost`, `run-interrupted`.
   */
  saveStep(step: RunStep): Promise<SavedStep>
  /**
   * Runs of an app that are queued, or begun and not ended, in the order of their acceptance.
   */
  listUnfinished(query: UnfinishedQuery): Promise<RunSummary[]>
  /** The queued runs of a session, in order. Default limit 100. */
  listQueued(key: SessionKey, options?: { limit?: number }): Promise<QueuedRun[]>
  /**
   * Puts runs that are due by the store's clock at the end of the queues of their sessions, in the order of their times:
   * each once, however many processes look.
   */
  releaseDue(query: DueQuery): Promise<ReleasedRuns>
  /** Ends a run that is still queued, or not due yet, with these events; `false` when it is neither. */
  endQueued(runId: string, events: readonly RunEventRecord[]): Promise<boolean>
  /** What is needed to continue a run; `undefined` when it is queued, has ended, or was begun without `input`. */
  readResumable(runId: string): Promise<ResumableRun | undefined>
  /**
   * Continues a run under a lease of its session: stores these events, and counts an attempt unless the run was waiting or
   * handed over. `undefined` when the run has ended. `lease-lost`.
   */
  resumeRun(resume: RunResume): Promise<{ attempt: number } | undefined>
  /** The ledger of a run's tool calls, oldest first. */
  readCalls(runId: string): Promise<ToolCallRecord[]>
  /** The tool calls of a session whose outcome is unknown, oldest first. */
  listUnknownCalls(key: SessionKey): Promise<ToolCallRecord[]>
  /** Events after `afterSeq`, in order. Default limit 1000. */
  readEvents(runId: string, options?: { afterSeq?: number; limit?: number }): Promise<RunEventRecord[]>
  /** The session of a run and its progress; `undefined` when the run is unknown. */
  findRun(runId: string): Promise<RunSummary | undefined>
  /** As `findRun` for many runs, in any order, without those that are unknown. */
  findRuns(runIds: readonly string[]): Promise<RunSummary[]>
  /** The runs of a session without those that are not due yet, newest first. Default limit 50. */
  listRuns(key: SessionKey, options?: { limit?: number }): Promise<RunSummary[]>
  /** The runs of an app, or of one of its users, in every state, the last accepted first. */
  listAppRuns(query: AppRunsQuery): Promise<RunSummary[]>
  /** Keeps the request that was sent in one model step; saving a step again replaces it. */
  saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void>
  readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]>
  sendSignal(runId: string, signal: RunSignal): Promise<void>
  /** Those of the runs that have pending signals. */
  signalled(runIds: readonly string[]): Promise<string[]>
  /**
   * The pending signals, oldest first. They stay: a person's answer is removed in the write that stores the event which
   * records it (`approval-answer`, or `tool-unknown` with an answer), so that no process can end in between.
   */
  readSignals(runId: string): Promise<PendingSignal[]>
  /** Takes the pending signals, each exactly once, oldest first. */
  takeSignals(runId: string): Promise<RunSignal[]>
  /**
   * Empties the records of runs that ended before that time (ms), of an app or of all: events, requests, signals, and the
   * results of tool calls. Messages, rows of the ledger and runs that have not ended are never pruned.
   */
  prune(options: PruneOptions): Promise<PrunedCounts>
}

export interface PruneOptions {
  /** Default: every app of the store. */
  appName?: string | undefined
  /** Milliseconds since 1970. */
  before: number
}

export interface PrunedCounts {
  events: number
  requests: number
  signals: number
}
