/**
 * A session is a log: everything that happened in it is an entry, and messages, run events, requests, open questions and
 * the journal of a run are pure functions of entries. The ledger of tool calls and usage are indexes of them.
 *
 * - `seq` is gapless per session. Messages have a gapless number of their own, per session and per nested session.
 * - One process at a time writes entries of runs: the holder of the session's lease. Its writes are numbered from 1 for
 *   each lease. A number that is stored already, with equal entries, changes nothing and returns what was stored.
 * - A post (an answer, a stop, a message to a run at work) needs no lease and never changes one.
 * - Every condition of a write is on a row that the write has locked.
 */
import type { Message, SessionKey, State } from './message.js'
import type { Observation, RunEventRecord, ToolCallChange, ToolCallPlace } from './run-store.js'

/**
 * - `message`: imported, or appended outside of a run.
 * - `begun`: a run begins; it has the run's message and input. `attempt`: another process continues the run.
 * - `request`: a model request. `answer`: the answer of a model.
 * - `call`: a tool with an effect is about to be called. `result`: its outcome, which may be `unknown`.
 * - `event`: any other event of ADK's, with or without a message. `notice`: a report to the reader of the run.
 * - `question`: the run asks a person. `reply`, `stop`, `steer`: posts.
 * - `replace`: another version of an earlier message, under the number of that message.
 * - `ended`: the run has ended.
 */
export type EntryKind =
  | 'message'
  | 'begun'
  | 'attempt'
  | 'request'
  | 'answer'
  | 'call'
  | 'result'
  | 'event'
  | 'notice'
  | 'question'
  | 'reply'
  | 'stop'
  | 'steer'
  | 'replace'
  | 'ended'

/** JSON data. */
export type EntryData = Readonly<Record<string, unknown>>

/** An entry that is to be appended. */
export interface NewEntry {
  readonly kind: EntryKind
  /** Absent outside of runs. */
  readonly runId?: string
  /** No other entry of the session has it. */
  readonly key?: string
  /** A message of the history. */
  readonly message?: Message
  /** The nested session that the message belongs to. Default: the session of the log. */
  readonly nested?: SessionKey
  readonly data?: EntryData
  /** Run events that are reported with it, in the order of their numbers. */
  readonly events?: readonly RunEventRecord[]
}

/** A stored entry. */
export interface Entry extends NewEntry {
  readonly seq: number
  /** Milliseconds since 1970 by the store's clock. */
  readonly at: number
  /** The number of its message in its session. */
  readonly messageSeq?: number
  /** The rules by which other views are derived from it. */
  readonly version: number
  /** SHA-256 over salt and content. It stays when the content is pruned. */
  readonly digest: string
  /** Absent when the content was pruned. */
  readonly salt?: string
  /** The content was pruned or erased: `message` and `data` are absent. */
  readonly isPruned?: true
}

/** The right to write to a session. */
export interface LogLease {
  readonly key: SessionKey
  /** Grows with every lease of a store, also when a session is deleted and created again. */
  readonly fence: number
}

/** A lease that was granted. */
export interface GrantedLease extends LogLease {
  /** The number of posts that the session has received. */
  readonly posts: number
}

export interface LeaseRequest {
  readonly ttlMs: number
  /** The process, as `lease-process.ts` names it; empty where processes cannot be identified. */
  readonly holder: string
  /** A process that no longer exists: its lease may be taken before it expires. */
  readonly gone?: string
}

/** The lease that refuses a request. */
export interface RefusingLease {
  readonly holder: string
}

/** Entries that are stored together: all of them or none. */
export interface LogWrite {
  readonly key: SessionKey
  /** Required for entries of runs. Without it the write is refused while a lease is valid (`session-busy`). */
  readonly under?: Under
  /** The run that the write belongs to. Nothing is stored when it has ended. */
  readonly runId?: string
  /** It is stored also when the run has ended. */
  readonly mayHaveEnded?: boolean
  readonly entries: readonly NewEntry[]
  readonly also?: AlsoWritten
}

/**
 * A lease, and the number of the write under it. `'next'`: the store counts, and takes a write with the same entries as the
 * one before it for that write sent again. A write without a number is not recognised when it is sent again.
 */
export interface Under {
  readonly fence: number
  readonly number?: number | 'next'
}

/** Changes that become visible together with the entries. */
export interface AlsoWritten {
  readonly run?: RunChange
  /** Session state; keys with `user:` and `app:` are shared. `undefined` removes a key. */
  readonly state?: State
  /** The nested session that the state belongs to. Default: the session of the log. */
  readonly stateOf?: SessionKey
  /** Ends the lease. */
  readonly release?: boolean
  /** Changes of the ledger of tool calls, applied in order. They belong to `LogWrite.runId`. */
  readonly calls?: readonly ToolCallChange[]
  /** Counts of tokens. */
  readonly calibration?: readonly Observation[]
  /** Parts of requests, and how many the session must have had before them. */
  readonly parts?: NewParts
}

/** Parts of requests that the session stores once. */
export interface NewParts {
  readonly before: number
  readonly added: readonly { readonly digest: string; readonly part: string }[]
}

/** A change of the run's row: its status after the entries of the write, as far as it is another one. */
export interface RunChange {
  readonly runId: string
  readonly state: 'running' | 'waiting' | 'handover' | 'finished'
  readonly finishReason?: string
  /** It waits between two rounds. */
  readonly isBetween?: boolean
  /** Default: as it is. */
  readonly attempt?: number
  /** No call of a run that ends has begun without an end. Otherwise the outcome of such calls is unknown. */
  readonly isSettled?: boolean
}

/** A write that was stored. */
export interface Appended {
  /** The number of its first entry; the others follow without a gap. */
  readonly seq: number
  /** The numbers of its messages, in order. */
  readonly messageSeqs: readonly number[]
  /** The number of posts that the session has received. */
  readonly posts: number
  /** The calls of `AlsoWritten.calls` as they are now, in order. */
  readonly calls?: readonly ToolCallPlace[]
}

/** A pause that was not stored: the session has received more posts than its holder has read. */
export interface Unread {
  readonly unread: number
}

/** A message to a run from outside of it. */
export interface Post {
  readonly runId: string
  readonly kind: 'reply' | 'stop' | 'steer'
  /** The same key twice is one post. */
  readonly key?: string
  /** The call that it is about. It is pending until the run has recorded an answer to that call. */
  readonly about?: string
  readonly data?: EntryData
}

/** A run that is to be accepted. */
export interface NewRun {
  readonly key: SessionKey
  readonly runId: string
  readonly message: Message
  /** JSON data that another process needs to execute the run. */
  readonly input?: EntryData
  /** Its first events, if it begins, and those of a run that is queued or scheduled. */
  readonly events?: {
    readonly begun: readonly RunEventRecord[]
    readonly accepted: readonly RunEventRecord[]
  }
  /** The title of the session, if it is new. */
  readonly title?: string
  /** `begin` when the session is free, and `queue` when it is not; `queue` in any case; or not before a time. */
  readonly when: 'begin' | 'begin-or-queue' | 'queue' | { readonly dueAt: number }
}

/** An accepted run. `known`: the id belongs to a run already. `busy`: it can neither begin nor be queued. */
export type Acceptance =
  | {
      readonly begun: GrantedLease
      readonly seq: number
      readonly messageSeq: number
      readonly partCount: number
      /** The newest run that the session had before. */
      readonly previousRunId?: string
    }
  | { readonly queued: number }
  | { readonly dueAt: number }
  /** Runs that were begun, have not ended, and that no process executes: they are settled first. */
  | { readonly unfinished: readonly string[] }
  | 'known'
  | 'busy'

export type RunRowState = 'scheduled' | 'queued' | 'running' | 'waiting' | 'handover' | 'finished'

/** A run without its entries. */
export interface RunRow {
  readonly runId: string
  readonly key: SessionKey
  readonly state: RunRowState
  readonly acceptedAt: number
  readonly dueAt?: number
  /** The first and, once it has ended, the last of its entries. */
  readonly firstSeq?: number
  readonly lastSeq?: number
  readonly finishReason?: string
  /** It has a post that it has not recorded. */
  readonly isPosted: boolean
  /** Of a queued run: its message and input. */
  readonly message?: Message
  readonly input?: EntryData
}

/** Which runs are listed, oldest first. */
export interface RunQuery {
  readonly appName: string
  /** Only those of one session. */
  readonly key?: SessionKey
  readonly states: readonly RunRowState[]
  /** Only those of sessions without a valid lease, and waiting ones only with a post. */
  readonly isAbandoned?: boolean
  readonly limit: number
}

export interface ReadQuery {
  readonly afterSeq?: number
  readonly runId?: string
  readonly kinds?: readonly EntryKind[]
  readonly limit?: number
}

export interface LogStore {
  /**
   * Accepts a run in one write. One that begins gets the lease, the entry `begun` and its message; any other keeps its
   * input in its own row, because acceptance is no position in the history.
   */
  accept(run: NewRun, lease: LeaseRequest): Promise<Acceptance>
  /** One attempt to get the lease of a session, or of a key that has no session yet. */
  acquire(key: SessionKey, lease: LeaseRequest): Promise<GrantedLease | RefusingLease>
  /** Extends leases, also expired ones that nobody has taken, and returns the fences of those that still exist. */
  renew(leases: readonly LogLease[]): Promise<ReadonlySet<number>>
  release(lease: LogLease): Promise<void>
  /** `session-not-found`, `session-busy`, `lease-lost`. A write under a lease also renews it. */
  append(write: LogWrite): Promise<Appended>
  /** As `append`, unless the session has received other posts than these: a reply must not be overlooked. */
  pause(write: LogWrite, posts: number): Promise<Appended | Unread>
  /** Begins a queued run under a lease; `undefined` when it is no longer queued. */
  begin(runId: string, write: LogWrite): Promise<Appended | undefined>
  /** Ends a run that has not begun, with these entries; `false` when it has. */
  endQueued(runId: string, entries: readonly NewEntry[]): Promise<boolean>
  /** `run-not-found`, `run-interrupted` when the run has ended. */
  post(post: Post): Promise<{ seq: number }>
  /** Entries in order. */
  read(key: SessionKey, query?: ReadQuery): Promise<Entry[]>
  /** Entries with these keys. */
  find(key: SessionKey, keys: readonly string[]): Promise<Entry[]>
  findRuns(runIds: readonly string[]): Promise<RunRow[]>
  listRuns(query: RunQuery): Promise<RunRow[]>
  close(): Promise<void>
}
