import type { ArtifactStore } from './artifacts.js'
import type { Message, Session, SessionKey, State, StoredMessage } from './message.js'
import type { AcceptedRun, Lease, OpenedRun, RunBegin, RunOpening, RunStore } from './run-store.js'
import type { ScheduleStore } from './schedule-store.js'
import type { SessionMemory } from './session-memory.js'
import type { SpendingStore } from './spending.js'

export type { Lease, Observation } from './run-store.js'

/**
 * The contract of every store: all members are required. All drivers pass the same conformance suite
 * (`test/conformance/store`).
 *
 * - Messages are ordered by a gapless per-session `seq`, never by time.
 * - An append is one transaction: message, counters and state delta, or nothing.
 * - Any text is storable, NUL and lone surrogates included, in messages and in state.
 * - State keys that start with `app:` are shared by an app, with `user:` by a user of an app; `temp:` keys
 *   are never stored; all others belong to the session. A value of `undefined` removes its key.
 * - While a lease is held, only its holder may write to the session.
 */
export interface SessionStore {
  /** Creates an empty session. Fails with `session-exists`. */
  createSession(key: SessionKey, state?: State, options?: CreateOptions): Promise<Session>
  /** The session with the newest messages that fit, or `undefined`. Reads only the tail that it needs. */
  loadSession(key: SessionKey, options?: LoadOptions): Promise<Session | undefined>
  /** Messages in order. With `beforeSeq` alone, the last `limit` messages before it. */
  readMessages(key: SessionKey, options?: ReadOptions): Promise<StoredMessage[]>
  /** Appends, or replaces the message that has the same `id`. `session-not-found`, `lease-lost`, `session-busy`. */
  appendMessage(key: SessionKey, message: Message, options?: AppendOptions): Promise<{ seq: number }>
  /**
   * Appends in order, about a hundred messages per transaction, for imports and copied histories. When it fails, the
   * messages before the failing transaction are stored. The state delta is stored with the last message.
   */
  appendMessages(
    key: SessionKey,
    messages: readonly Message[],
    options?: AppendOptions,
  ): Promise<{ seq: number }[]>
  updateState(key: SessionKey, delta: State, options?: { fence?: number }): Promise<void>
  /**
   * Copies state and messages up to and including `throughSeq` (default: all; 0: none) to a new session of the same app
   * and user, and tool calls of these messages whose outcome is unknown.
   */
  forkSession(key: SessionKey, newSessionId: string, options?: { throughSeq?: number }): Promise<Session>
  /** A session's line in a list, or `undefined`. */
  describeSession(key: SessionKey): Promise<SessionSummary | undefined>
  /** Sets the title for lists and searches; an empty one removes it. `session-not-found`. */
  renameSession(key: SessionKey, title: string): Promise<void>
  /** Newest first. */
  listSessions(query: ListQuery): Promise<SessionPage>
  /** The names of the apps that have sessions, in alphabetical order. */
  listApps(): Promise<string[]>
  /** Deletes the session and everything that belongs to it; `false` when it does not exist. */
  deleteSession(key: SessionKey): Promise<boolean>
  /** Waits for its turn and returns the right to write. `session-busy` after `waitMs`, `aborted` by the signal. */
  acquireLease(key: SessionKey, options?: LeaseOptions): Promise<Lease>
  /**
   * Opens a run in one transaction: the lease, the session if it is new, the run, its message and its first events.
   * Waits for the lease like `acquireLease`, unless the opening says `orQueue`.
   */
  openRun(opening: RunOpening, options?: LeaseOptions): Promise<OpenedRun>
  /** Stores a run that cannot begin yet, at the end of its session's queue, and the session if it is new. */
  queueRun(opening: RunOpening): Promise<AcceptedRun>
  /**
   * Begins a queued run under a lease of its session: its message, its events and the new state, in one transaction.
   * `undefined` when the run is no longer queued.
   */
  beginRun(begin: RunBegin): Promise<{ seq: number } | undefined>
  /**
   * Deletes everything that is stored about a user of an app, and returns what was deleted. Runs of the user lose
   * their leases and cannot store anything afterwards.
   */
  erase(owner: UserKey, options?: EraseOptions): Promise<EraseReceipt>
  /** Deletes sessions and run records by age, by the store's clock. */
  expire(options: ExpireOptions): Promise<ExpireReceipt>
  /** Writes a consistent copy to a new file while the store is in use. Only SQLite can: others refuse (`unsupported`). */
  backup(path: string, options?: BackupOptions): Promise<BackupReceipt>
  readonly runs: RunStore
  readonly calibration: CalibrationStore
  /** Observations and the index of words. */
  readonly memory: SessionMemory
  /** Files of sessions and users. */
  readonly artifacts: ArtifactStore
  /** Variants of chats. */
  readonly variants: SessionVariants
  /** The cost of model calls, and budgets. */
  readonly spending: SpendingStore
  /** The newest tick of each schedule. */
  readonly schedules: ScheduleStore
  /** A random text that was made with the store and stays the same: accounts of providers are recognised by it. */
  secret(): Promise<string>
  /** Fails with `store-unavailable` when the store does not answer, or its file was deleted, replaced or truncated. */
  check(): Promise<void>
  /** Releases leases, connections and timers; afterwards the process can exit by itself. */
  close(): Promise<void>
}

/** The part of a store that reads and writes the messages and the state of sessions. */
export type SessionAccess = Pick<
  SessionStore,
  | 'createSession'
  | 'loadSession'
  | 'readMessages'
  | 'appendMessage'
  | 'updateState'
  | 'listSessions'
  | 'deleteSession'
  | 'acquireLease'
>

/**
 * Sessions that are variants of one chat, such as copies in which a question was answered again. One of them is listed;
 * the others are not, and they are deleted with it. Deleting one that is not listed deletes that one alone.
 */
export interface SessionVariants {
  /** All variants of a chat, oldest first; the session alone when it has none. `session-not-found`. */
  list(key: SessionKey): Promise<VariantSummary[]>
  /**
   * Makes a session the listed variant of the chat that session `of` belongs to, and one of its variants if it is not
   * yet. It takes over the title and the place in the list. `session-not-found`.
   */
  show(key: SessionKey, of: string): Promise<void>
}

export interface VariantSummary {
  sessionId: string
  totalMessages: number
  createdAt: number
  isListed: boolean
}

export interface CreateOptions {
  /** For lists and searches. At most 200 characters are kept. */
  title?: string
  /**
   * The app whose session of the same user and id this one belongs to: an agent that works inside a tool keeps
   * a session of its own. It is not listed, and it is deleted with the session that it belongs to, which must exist.
   */
  nestedIn?: string
  /** Creates the session only while this lease of it is held: `lease-lost` otherwise. */
  fence?: number
}

/** A user of an app. */
export interface UserKey {
  appName: string
  userId: string
}

export interface EraseOptions {
  /**
   * Also rewrites the tables, so that no file keeps bytes of deleted rows: `VACUUM` in SQLite, `VACUUM FULL` in
   * PostgreSQL. Nobody can write meanwhile (in PostgreSQL nobody can read either), and it takes as long as copying the data.
   */
  rewrite?: boolean
}

/** What `erase` deleted, by kind. */
export interface EraseCounts {
  /** Nested ones included. */
  sessions: number
  messages: number
  runs: number
  /** Run events. */
  events: number
  /** Requests to models. */
  requests: number
  /** Parts of requests that the requests of a session share. */
  requestParts: number
  /** Messages to runs: answers of persons, and stops. */
  signals: number
  /** Entries of the logs of sessions. The messages, events, requests and signals are in them. */
  entries: number
  /** Rows of the ledger of tool calls. */
  toolCalls: number
  observations: number
  /** Messages and observations in the index of memory, and the words of the index. */
  indexed: number
  /** Versions of artifacts, and the pieces of their contents. */
  artifacts: number
  artifactPieces: number
  /** Leases that were held. */
  leases: number
  /** Keys of session state and of `user:` state. */
  stateKeys: number
  /** Rows of model calls, sums of budgets, and reservations. */
  usage: number
}

/** The proof of an erasure. It does not name the user, so that it can be kept. */
export interface EraseReceipt extends EraseCounts {
  /** When the last row was deleted, in milliseconds since 1970, by the store's clock. */
  at: number
  /**
   * Where the database's files may still hold deleted bytes: nowhere, in free space that is not overwritten yet
   * (`rewrite` removes it), or in the write-ahead log until it is recycled.
   */
  residue: 'none' | 'free-space' | 'log'
}

export interface ExpireOptions {
  appName: string
  /**
   * Deletes sessions of the app that were not changed for this long and have no active or queued run. A run that waits for
   * a person does not keep its session.
   */
  sessionsMs?: number
  /** Empties run events, requests and signals of the app, of runs that ended longer ago than this. */
  runsMs?: number
  /**
   * Deletes the records of model calls of the app whose day ended longer ago than this, at least a day. What they count in
   * the budget of a session stays counted, and the budget of the current day is not affected.
   */
  usageMs?: number
  /** Deletes also when the clock is far ahead of the stored times. Default false. */
  trustClock?: boolean
  /** Stops between two slices. */
  signal?: AbortSignal
}

export interface ExpireReceipt {
  sessions: number
  events: number
  requests: number
  signals: number
  /** Records of model calls. */
  usage: number
  /** The store's clock, in milliseconds since 1970. */
  now: number
  /** Set when nothing was deleted, because the clock is this far ahead of the newest time stored before the last day. */
  clockAheadMs?: number
}

export interface BackupOptions {
  /** Replaces an existing file. Default false: `invalid-argument`. */
  overwrite?: boolean
  onProgress?: (progress: { donePages: number; totalPages: number }) => void
}

export interface BackupReceipt {
  /** The absolute path of the copy. */
  path: string
  bytes: number
  /** The version of the schema in the copy. */
  schemaVersion: number
  sessions: number
  messages: number
  durationMs: number
}

export interface LoadOptions {
  /** 0 or absent: the default budget. `'off'`: no budget; then `maxMessages` (default 100) holds. */
  budgetTokens?: number | 'off'
  maxMessages?: number
  /** Moves the cut in steps of a quarter of the budget, so that prompt caches hold from one load to the next. */
  steady?: boolean
  /** Leaves out every message after this number, as if it were not stored yet. */
  throughSeq?: number
}

export interface ReadOptions {
  afterSeq?: number
  beforeSeq?: number
  /** Default 1000. */
  limit?: number
}

export interface AppendOptions {
  stateDelta?: State
  fence?: number
}

export interface ListQuery {
  appName: string
  userId?: string
  cursor?: string
  /** Only sessions whose title or id contains this, ignoring case. */
  search?: string
  /** Default 50, at most 1000. */
  limit?: number
}

export interface SessionSummary {
  key: SessionKey
  totalMessages: number
  totalTokens: number
  createdAt: number
  updatedAt: number
  /** The time that the last message has; absent without messages. */
  lastMessageAt?: number
  title?: string
  /** The beginning of the last message that a person would read. */
  preview?: string
}

export interface SessionPage {
  sessions: SessionSummary[]
  nextCursor?: string
}

export interface LeaseOptions {
  /** How long the lease outlives its last renewal. Default 10,000. Renewed every third of it. */
  ttlMs?: number
  /** How long to wait for a lease that another holds. Default 0: `session-busy` at once. */
  waitMs?: number
  signal?: AbortSignal
}

/** How many bytes a token of a model has, measured from the usage that providers report. */
export interface CalibrationStore {
  read(model: string): Promise<{ bytes: number; tokens: number } | undefined>
  /** Adds one observation: a request of that many bytes was counted as that many tokens. */
  record(model: string, bytes: number, tokens: number): Promise<void>
}
