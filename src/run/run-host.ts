import type { BaseAgent, BaseSessionService, Content, Event, Part } from '../adk/sdk.js'
import type { Logger } from '../logger.js'
import type { SessionKey, State } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { PriceOf } from '../session/usage.js'
import type { CreateDesk, OnApproval } from './run-approvals.js'
import type { RunEvent } from './run-event.js'
import type { TurnLimitOptions } from './run-limits.js'
import type { RunPlugin } from './run-plugin.js'
import type { SentRequest } from './run-scope.js'
import type { SessionQueue } from './session-queue.js'

/** One message to an agent. */
export interface RunInput {
  /** Generated when absent, and returned in every event. */
  sessionId?: string | undefined
  /** Default `user`. */
  userId?: string | undefined
  text?: string | undefined
  /** Further parts of the message: images, files, function responses. */
  parts?: readonly Part[] | undefined
  /** A model reference that this run uses instead of the agents' own. */
  model?: string | undefined
  stateDelta?: State | undefined
  /** Asked when a tool needs approval; without it, an answer may come as a signal from anywhere. */
  onApproval?: OnApproval | undefined
  /** What to do while another run works on the session. Default `queue`. */
  whenBusy?: 'queue' | 'reject' | undefined
  signal?: AbortSignal | undefined
  /** The run's id, a UUID that no other run has. Generated when absent. */
  runId?: string | undefined
  /** Hears the run's events once they are stored, in order: what a server may send to others. */
  onStored?: ((events: readonly RunEvent[]) => void) | undefined
}

/** What the runtime gives to its runs. */
export interface RunHost {
  readonly appName: string
  readonly store: SessionStore
  readonly queue: SessionQueue
  readonly logger: Logger
  readonly rootAgent: BaseAgent
  readonly limits: TurnLimitOptions
  /** The reference of the model that a run starts with. */
  modelReference(override: string | undefined): string
  /** Throws when a reference names no provider that there is. */
  checkModel(reference: string): void
  sessionService(store: SessionStore, lease: Lease): BaseSessionService
  /** Starts ADK's runner on one message. */
  startAdk(start: AdkStart): AsyncGenerator<Event, void, undefined>
  /** Where tools wait for approval. */
  readonly createDesk: CreateDesk
  /** What a model costs, if that is known. */
  readonly priceOf: PriceOf
  /** Hears every event of every run. */
  observe?(event: RunEvent): void
  /** Hears of every request before it is sent. */
  observeRequest?(runId: string, request: SentRequest): void
  /** Stores an event outside ADK's own loop. */
  appendEvent(key: SessionKey, event: StoredNote, lease: Lease): Promise<void>
}

export interface AdkStart {
  key: SessionKey
  sessions: BaseSessionService
  plugin: RunPlugin
  message: Content
  /** Marks a message that Lango invented. */
  customMetadata?: Record<string, unknown>
  stateDelta?: State
  signal: AbortSignal
}

/** An event that the run itself writes. */
export interface StoredNote {
  author: string
  content: Content
  invocationId?: string
  branch?: string
  customMetadata?: Record<string, unknown>
}
