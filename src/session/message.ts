/**
 * What a conversation is: plain data. A `Message` is one stored event. Its named fields are what a person
 * reads in the database; `extra` keeps, only when needed, what they cannot express, so that
 * restoring a message gives back the event that was stored.
 */
import { isRecord } from '../base/is-record.js'
import { own } from '../base/own.js'

/** The roles that Lango writes. */
export type Role = 'user' | 'assistant' | 'tool' | 'system'

/** Roles of older rows, accepted on reading: `model` means `assistant`, `function` means `tool`. */
export type LegacyRole = 'model' | 'function'

/** Any role that a row may hold: histories from elsewhere are stored as they are. */
export type AnyRole = Role | LegacyRole | (string & {})

/** A call to a tool, or the answer to one. `input` and `output` are JSON texts. */
export interface ToolCall {
  id: string
  name: string
  input?: string
  output?: string
  /** The provider's proof that it made this call (Gemini's thought signature), kept byte for byte. */
  signature?: string
  /** Written by Lango. When absent: `output` means a response, both a call and its answer, neither goes by the role. */
  kind?: 'call' | 'response'
}

export interface Message {
  role: AnyRole
  /** Who spoke: `user` or an agent's name. */
  author?: string
  /** The text; for tool results the outputs, one per line. */
  content: string
  toolCalls?: ToolCall[]
  /** Milliseconds since 1970. Never used for order: that is `seq`. */
  timestamp: number
  /** The event's id. Appending an id that the session already has replaces that message. */
  id?: string
  invocationId?: string
  branch?: string
  /** What the fields above cannot express of the event. JSON data. */
  extra?: Record<string, unknown>
}

/** A message as read from a store: its place in the session and its estimated cost. */
export interface StoredMessage extends Message {
  /** 1, 2, 3 … without gaps within a session. */
  seq: number
  tokens: number
}

/** Names one session. The same `sessionId` may exist under several apps and users. */
export interface SessionKey {
  appName: string
  userId: string
  sessionId: string
}

export type State = Record<string, unknown>

/** What a token budget or a message limit left out of a history, and why. */
export interface HistoryCut {
  reason: 'token-budget' | 'message-limit'
  /** How many messages were left out, and what they would have cost. */
  messages: number
  tokens: number
  /** What was kept. */
  keptMessages: number
  keptTokens: number
  budgetTokens?: number
  maxMessages?: number
  /** Tool outputs that were shortened because the current turn alone was over the budget. */
  shortened: ShortenedOutput[]
}

export interface ShortenedOutput {
  /** The call whose output was shortened. */
  callId: string
  name: string
  fromTokens: number
  toTokens: number
}

export interface Session {
  key: SessionKey
  /** App, user and session state in one object; app and user keys carry their prefix `app:` or `user:`. */
  state: State
  messages: StoredMessage[]
  totalMessages: number
  cut?: HistoryCut
  title?: string
  createdAt: number
  updatedAt: number
}

/** What a role means, legacy spellings included. An unknown role is `undefined`. */
export function normalizeRole(role: AnyRole): Role | undefined {
  return ROLES.get(role)
}

const ROLES: ReadonlyMap<string, Role> = new Map([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['model', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
  ['system', 'system'],
])

/** Whether an entry of `toolCalls` is a call, an answer, or (in older rows) both. */
export function toolCallKind(call: ToolCall, role: AnyRole): 'call' | 'response' | 'both' {
  // A call that holds its own answer keeps it, whatever it is called.
  if (call.kind) return call.kind === 'call' && call.output !== undefined ? 'both' : call.kind
  if (call.output !== undefined) return call.input === undefined ? 'response' : 'both'
  if (call.input !== undefined) return 'call'
  return normalizeRole(role) === 'tool' ? 'response' : 'call'
}

/** What an answer is without, because of the limits on its length and its calls. In `customMetadata.lango.leftOut`. */
export interface LeftOutOfAnswer {
  /** How many calls, and how many an answer may have. */
  calls?: number
  mostCalls?: number
  /** The answer was ended after so many characters. */
  cutAt?: number
}

/** What an answer is without, from the `customMetadata` of its event. */
export function leftOutOf(customMetadata: unknown): LeftOutOfAnswer | undefined {
  const lango = isRecord(customMetadata) ? customMetadata.lango : undefined
  // Written by `ResponseAccumulator` only.
  return isRecord(lango) && isRecord(lango.leftOut) ? (lango.leftOut as LeftOutOfAnswer) : undefined
}

/** The tag of the account that has sealed an answer's signatures, from the `customMetadata` of its event. */
export function accountOf(customMetadata: unknown): string | undefined {
  const lango = isRecord(customMetadata) ? customMetadata.lango : undefined
  return isRecord(lango) && typeof lango.account === 'string' ? lango.account : undefined
}

/**
 * The step whose partial answers before this one are void, from the `customMetadata` of a partial answer without text. It
 * takes the way of those that it voids: queues of ADK's may lie between a model and the reader of its answers.
 */
export function restartOf(customMetadata: unknown): number | undefined {
  const lango = isRecord(customMetadata) ? customMetadata.lango : undefined
  return isRecord(lango) && typeof lango.restart === 'number' ? lango.restart : undefined
}

/**
 * Whether a tool's result reports a failure: `error` is truthy, or `isError` is true (the shape of
 * MCP results). Tools that return `{ rows, error: null }` have succeeded. Only the result's own fields count.
 */
export function isToolError(result: unknown): boolean {
  return isRecord(result) && (Boolean(own(result, 'error')) || own(result, 'isError') === true)
}
