import type { AgentError, AgentErrorCode } from '../errors.js'
import type { Usage } from '../session/usage.js'

/**
 * What a provider yields while it answers. Order: `request` first, always; then deltas and calls as they
 * come; then `metadata` and `usage` (each at most once) and `done`, or `error`. Calls come whole, never in pieces.
 */
export type StreamEvent =
  | RequestEvent
  | { type: 'text-delta'; text: string; signature?: string; origin?: Origin; block?: number }
  | {
      type: 'reasoning-delta'
      text: string
      signature?: string
      origin?: Origin
      redacted?: boolean
      /** Deltas of one block become one part; a new number opens a new part. */
      block?: number
    }
  | {
      type: 'tool-call'
      id: string
      name: string
      args: Record<string, unknown>
      signature?: string
      origin?: Origin
    }
  | { type: 'media'; mimeType: string; data: string; signature?: string; origin?: Origin }
  | { type: 'vendor'; vendor: Vendor; value: unknown; text: string; signature?: string; origin?: Origin }
  /** What the provider itself changed in the request, as it reports it with the answer. */
  | { type: 'receipts'; repairs: readonly Repair[] }
  /** The request waits: for its turn under a rate limit, or to be sent again. */
  | { type: 'wait'; waitMs: number; reason: AgentErrorCode }
  /**
   * Everything of the answer so far is void: its stream failed with `error`, and the request is sent again. Only where
   * `GenerateRequest.takesBack` is set.
   */
  | { type: 'restart'; error: AgentError }
  | { type: 'metadata'; metadata: AnswerMetadata }
  | { type: 'usage'; usage: Usage }
  | { type: 'done'; finishReason: FinishReason; message?: string }
  | { type: 'error'; error: AgentError }

/** What a vendor says about its answer. The forms are Gemini's for every vendor. */
export interface AnswerMetadata {
  /** Sources, and which text they support. */
  groundingMetadata?: Readonly<Record<string, unknown>>
  /** Works that the answer quotes. */
  citationMetadata?: Readonly<Record<string, unknown>>
  /** Pages that were fetched. */
  urlContextMetadata?: Readonly<Record<string, unknown>>
  logprobsResult?: Readonly<Record<string, unknown>>
  avgLogprobs?: number
  safetyRatings?: readonly unknown[]
}

/** What is about to be sent: the receipts of the repair, ids as the wire sees them, and the body. */
export interface RequestEvent {
  type: 'request'
  model: string
  profile: string
  repairs: readonly Repair[]
  /** Why the request does not extend the one before it. In this release these are in `repairs`, too; read them here. */
  breaks?: readonly Repair[]
  /** Stored call id → id on the wire, only where they differ. */
  mappedIds: Readonly<Record<string, string>>
  /** The wire body, without keys. */
  body: unknown
}

/** Why the model stopped. `malformed-call`: it tried to call a tool and failed; nothing of it should be stored. */
export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'blocked' | 'malformed-call' | 'other'

/** Which model of which account made a part: signatures are valid only there. */
export interface Origin {
  /** The vendor whose signatures these are. */
  vendor: Vendor
  model?: string
  /** The tag of the account that it was made for; absent where it was not known. */
  account?: string
}

export type Vendor = 'gemini' | 'openai' | 'anthropic' | (string & {})

/** One change made to a history before it was sent. */
export interface Repair {
  /** The step of the pipeline: `pair-calls`, `drop-orphans`, … */
  step: string
  /** What was done: `synthesize-result`, `move`, `merge`, `drop`, `rename`, … */
  kind: string
  /** Index of the message in the history that was given. */
  at: number
  /** A sentence for people. */
  detail: string
  /** Of a `prefix-break`: why the request does not extend the one before it. */
  reason?: PrefixBreakReason
  /** Of a `prefix-break`: how many tokens of the request before cannot be read from a cache any more. */
  tokens?: number
  /** What it is about, where that has names: the options that were left out. */
  names?: readonly string[]
}

/**
 * Why a request does not extend the one before it. `budget`: older messages were left out or shortened; `repair`: a
 * message that was sent before is sent differently, such as a call that has its result now.
 */
export type PrefixBreakReason = 'budget' | 'instruction' | 'tools' | 'model' | 'repair'
