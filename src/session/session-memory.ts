/**
 * What a store keeps for memory: observations about a session, and an index of its words. Both are views of the messages,
 * which they never change; both can be built again, and are deleted with their session.
 */
import type { SessionKey, StoredMessage } from './message.js'
import { completeUsage, type UsageRecord } from './usage.js'

export interface SessionMemory {
  /** How far memory has got in a session; zeros where it was never on. `undefined` when there is no such session. */
  progress(key: SessionKey): Promise<MemoryProgress | undefined>
  /**
   * Adds the words of messages to the index, in one transaction. `false` when another writer has indexed since
   * `afterSeq` was read: nothing is added, read the progress again.
   */
  index(key: SessionKey, step: IndexStep): Promise<boolean>
  /**
   * Adds observations, and marks those that they supersede, in one transaction. `undefined` when another writer has
   * observed the messages, or superseded an observation, since they were read: nothing is added then. With a fence only
   * while that lease is held: `lease-lost` otherwise.
   */
  observe(key: SessionKey, step: ObservationStep): Promise<StoredObservation[] | undefined>
  /** Observations of a session, oldest first. */
  readObservations(key: SessionKey, options?: ObservationQuery): Promise<StoredObservation[]>
  /**
   * Deletes the texts of observations, and of those that they superseded; returns how many. Numbers and sources remain,
   * marked `forgotten`.
   */
  forget(key: SessionKey, numbers: readonly number[]): Promise<number>
  /** Deletes the index of a session, its observations, or both, and starts again from the first message. */
  reset(key: SessionKey, what: { index?: boolean; observations?: boolean }): Promise<void>
  /**
   * Keeps which observations stand in requests that begin after a message. The first writer decides: returns what is
   * kept for that message.
   */
  keepLog(key: SessionKey, log: ObservationLog): Promise<ObservationLog>
  /** The size of an index, and in how many documents each term occurs; terms that occur nowhere are left out. */
  countTerms(scope: MemoryScope, terms: readonly string[]): Promise<TermCounts>
  /** Indexed terms that begin so, most frequent first. */
  similarTerms(scope: MemoryScope, prefix: string, limit: number): Promise<string[]>
  /** Documents that hold any of the terms, or, without terms, all of the time range; newest first. */
  findDocuments(scope: MemoryScope, query: DocumentQuery): Promise<FoundDocument[]>
  /** The messages with these numbers, in order. */
  readMessages(key: SessionKey, seqs: readonly number[]): Promise<StoredMessage[]>
}

export interface TermCounts {
  documents: number
  /** The length of all documents together. */
  terms: number
  counts: Map<string, number>
}

/** One session, or all sessions of a user. Never more than one user. */
export interface MemoryScope {
  appName: string
  userId: string
  sessionId?: string
}

export interface MemoryProgress {
  totalMessages: number
  /** The rules by which the terms of the index were made; 0 without an index. */
  version: number
  indexedSeq: number
  observedSeq: number
  /** Documents in the index, and their length in terms all together. */
  documents: number
  terms: number
  /** How many observations were ever added; the number of the newest. */
  observations: number
  log?: ObservationLog
  /** What observers have used, by model. */
  usage?: ObserverUsage[]
}

export interface ObserverUsage {
  /** `provider/model` */
  model: string
  calls: number
  inputTokens: number
  outputTokens: number
  /** Dollars, when the price of the model is known. */
  cost?: number
}

/** The observations that stand in requests whose messages begin after `throughSeq`. */
export interface ObservationLog {
  throughSeq: number
  numbers: number[]
}

export interface IndexStep {
  version: number
  /** The last message that was indexed before; those that were indexed after it are replaced. */
  afterSeq: number
  throughSeq: number
  documents: readonly IndexedDocument[]
}

export interface IndexedDocument {
  seq: number
  at: number
  /** Without spaces within a term, repeated as often as they occur. */
  terms: readonly string[]
}

export interface ObservationStep {
  /** The messages that were observed: from the one after `afterSeq` to `throughSeq`. */
  observed?: { afterSeq: number; throughSeq: number }
  /** Numbers of observations that the new ones replace. The first new one is named as their successor. */
  supersedes?: readonly number[]
  observations: readonly Observed[]
  fence?: number
  /** Added to what observers have used in this session, and to the usage of its user. */
  usage?: ObserverUsage
  /** The run whose budget the observer draws from. */
  runId?: string
}

/** The usage of a session with that of one more step. */
export function joinUsage(all: readonly ObserverUsage[], more: ObserverUsage | undefined): ObserverUsage[] {
  if (!more) return [...all]
  const known = all.find(({ model }) => model === more.model)
  const sum = {
    model: more.model,
    calls: (known?.calls ?? 0) + more.calls,
    inputTokens: (known?.inputTokens ?? 0) + more.inputTokens,
    outputTokens: (known?.outputTokens ?? 0) + more.outputTokens,
    ...(more.cost === undefined || (known && known.cost === undefined)
      ? {}
      : { cost: (known?.cost ?? 0) + more.cost }),
  }
  return [...all.filter(({ model }) => model !== more.model), sum]
}

/** What an observer has used, as a record of model calls. */
export function memoryUsage({ model, calls, inputTokens, outputTokens, cost }: ObserverUsage): UsageRecord {
  const tokens = completeUsage({ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens })
  return { kind: 'memory', model, calls, usage: cost === undefined ? tokens : { ...tokens, cost } }
}

/** What an observer says about some messages. */
export interface Observed {
  text: string
  kind: ObservationKind
  /** 1 is the most important, 3 the least. */
  priority: 1 | 2 | 3
  /** When it was said or happened, in milliseconds since 1970. */
  time: number
  fromSeq: number
  toSeq: number
  /** `digest` for the rules, `person` for an edit, otherwise the model. */
  origin: string
  /** As in `IndexedDocument`. */
  terms?: readonly string[]
}

export type ObservationKind =
  | 'fact'
  | 'preference'
  | 'decision'
  | 'event'
  | 'task'
  | 'tool-result'
  | 'reflection'
  | 'forgotten'

export interface StoredObservation extends Omit<Observed, 'terms'> {
  sessionId: string
  /** 1, 2, 3 … without gaps within a session. */
  number: number
  /** The observation that replaced this one. Its own number when it was forgotten. */
  supersededBy?: number
  createdAt: number
}

export interface ObservationQuery {
  numbers?: readonly number[]
  /** Leaves out those that were superseded or forgotten. */
  current?: boolean
  afterNumber?: number
  /** Default 1000. */
  limit?: number
}

export interface DocumentQuery {
  terms: readonly string[]
  /** Milliseconds since 1970; `before` is exclusive. */
  after?: number
  before?: number
  limit: number
}

export interface FoundDocument {
  sessionId: string
  /** Of a message, or the first one of an observation. */
  seq: number
  /** Set for an observation. */
  observation?: number
  at: number
  terms: string[]
}
