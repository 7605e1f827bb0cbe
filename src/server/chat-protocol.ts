/**
 * The native API under `/api`, as types: what the server answers, and what `lango/client` and the web chat read.
 *
 * The call that starts a run returns at once; its events are a separate stream, which every client of the user can
 * open, any number of times, from any event number. Each server-sent event has the event's `seq` as its id and the
 * JSON of a `RunEvent` as its data. Reconnecting with `Last-Event-ID` (or `?after=`) returns exactly the missed
 * events, then the live ones. The stream ends after `run-finish`.
 */

import type { AgentErrorCode } from '../errors.js'
import type { InspectedStep, RunInspection } from '../observe/inspect.js'
import type { RunQuestion } from '../run/open-questions.js'
import type { RunEvent } from '../run/run-event.js'
import type { CheckedText } from '../runtime/check/check-text.js'
import type { AsItIs, GalleryEntry } from '../runtime/gallery.js'
import type { ModelChoice, ProfileLint, RuntimeInfo, SessionFinding, SessionLint } from '../runtime/info.js'
import type { ChatMessage, ChatPart } from '../session/chat-message.js'
import type { FoundMessage, FoundMessages } from '../session/search-messages.js'
import type { MemoryProgress, ObserverUsage, StoredObservation } from '../session/session-memory.js'
import type { EraseReceipt } from '../session/session-store.js'
import type { RunUsage } from '../session/usage.js'
import type { RunAnswer } from '../tool.js'

export type {
  ChatMessage,
  ChatPart,
  CheckedText,
  EraseReceipt,
  FoundMessage,
  FoundMessages,
  InspectedStep,
  ModelChoice,
  ProfileLint,
  RunEvent,
  RunInspection,
  RunQuestion,
  RunUsage,
  SessionFinding,
  SessionLint,
}

/** `GET /api/sessions/{id}/memory`: what is noted about a session, and how far memory has got. */
export interface MemoryPage extends Pick<MemoryProgress, 'totalMessages' | 'indexedSeq' | 'observedSeq'> {
  /** What observers have used. */
  usage: ObserverUsage[]
  /** Current notes, oldest first. */
  notes: StoredObservation[]
}

/** `GET /api/gallery`: broken histories to try. */
export interface BrokenHistories {
  histories: BrokenHistory[]
}

export type BrokenHistory = GalleryEntry

/** `POST /api/gallery/{id}/send`: what a provider answers to a broken history that is sent as it is. */
export type SentAsItIs = AsItIs

/** `POST /api/lint`: a history as text, in any format that `lango lint` reads. */
export interface CheckRequest {
  text: string
  /** The format, when the text fits several. */
  format?: string
}

/** `POST /api/import`: a file of any format that `lango sessions import` reads. */
export interface ImportRequest {
  /** The name of the file. */
  name: string
  /** Base64. */
  data: string
  /** The format, when the file fits several. */
  format?: string | undefined
  /** Names of agents in the file, and those that they are stored under. */
  authors?: Record<string, string> | undefined
  /** Reads the file and stores nothing. */
  dryRun?: boolean | undefined
}

export interface ImportedSession {
  sessionId: string
  title?: string
  messages: number
  notes: string[]
  /** Fields of the file that are not stored. */
  leftOut: string[]
}

export interface ImportedFile {
  stored: boolean
  sessions: ImportedSession[]
  /** The agents here, the root first. */
  agents: string[]
  /** Authors of answers that are no agents here: a model gets a description in words of what they said and called. */
  unknownAgents: string[]
}

/** Tokens and cost of one model answer. */
export type ChatUsage = RunUsage

/** `GET /api/info`: what is served, and the caller's user name. */
export interface ServerInfo extends RuntimeInfo {
  version: string
  /** The caller's user name. */
  user: string
  /** With the demo model: the shell command that sets a key. */
  keyHint?: string
  /** The largest request body in bytes: attachments must fit. */
  maxBodyBytes: number
}

/** `GET /api/models`. */
export interface ModelList {
  default: string
  models: ModelChoice[]
}

/** One line of the session list. */
export interface SessionItem {
  sessionId: string
  title?: string
  preview?: string
  totalMessages: number
  totalTokens: number
  createdAt: number
  updatedAt: number
  /** A run of the session is running, as far as this server process knows. */
  running?: true
  /** A run of the session waits for a person's answer. */
  waiting?: true
}

/** `GET /api/sessions?search=&cursor=&limit=`, newest first. */
export interface SessionList {
  sessions: SessionItem[]
  nextCursor?: string
}

/** `GET /api/sessions/{id}`. */
export interface SessionDetail extends SessionItem {
  /** Over all stored answers. */
  usage: RunUsage
  /** The run that is running or waits for a person, or else the next queued one: follow its events from the beginning. */
  activeRun?: RunItem
  /** The newest run, finished or not. */
  lastRun?: RunItem
  /** The next run that is not due yet. */
  nextRun?: RunItem
}

/** `POST /api/sessions`. */
export interface NewSession {
  sessionId?: string
  title?: string
}

/** `PATCH /api/sessions/{id}`. */
export interface SessionChange {
  title?: string
  /**
   * Another session of the caller: this one becomes a variant of the same chat, and the one that is listed. The others
   * stay as they are; they are not listed, and they are deleted with the listed one.
   */
  variantOf?: string
}

/** A variant of a chat. */
export interface VariantItem {
  sessionId: string
  totalMessages: number
  createdAt: number
  /** Whether it is the one in the list of sessions. */
  listed: boolean
  /** How many of its first messages are those of the session that was asked about. */
  sharedMessages: number
}

/** `GET /api/sessions/{id}/variants`: oldest first, the session itself included. */
export interface VariantList {
  variants: VariantItem[]
}

/** `GET /api/sessions/{id}/messages?beforeSeq=&afterSeq=&limit=`: in order; without a bound, the newest. */
export interface MessagePage {
  messages: ChatMessage[]
  totalMessages: number
}

/** `POST /api/sessions/{id}/fork`: a copy up to and including `throughSeq` (0: an empty one; absent: all). */
export interface ForkRequest {
  throughSeq?: number
  sessionId?: string
  title?: string
}

/** A run of a session. Its messages are those after `afterSeq`, up to the next run's. */
export interface RunItem {
  runId: string
  sessionId: string
  startedAt: number
  /** How many messages the session had when the run began. */
  afterSeq?: number
  /** The number of the newest stored event. */
  lastSeq: number
  /** `scheduled`: it is not due yet (`dueAt`). */
  status: 'scheduled' | 'queued' | 'running' | 'waiting' | 'finished'
  /** Of a run that was accepted for later: not before this time, in milliseconds since 1970. */
  dueAt?: number
  /** While it is queued: its place in the queue of its session; 1 is the next one. */
  place?: number
  /** While it waits for a person: the calls to answer. Only of a single run and of `activeRun`, not in lists. */
  waitsFor?: RunQuestion[]
  finishReason?: string
}

/** `GET /api/sessions/{id}/runs?limit=`: those that are not due yet, the next one first, then the others, newest first; of both at most 50, or `limit` (up to 500). */
export interface RunList {
  runs: RunItem[]
}

/** `POST /api/sessions/{id}/runs`. The session is created if it does not exist. */
export interface RunRequest {
  text?: string
  /** Attachments: base64 without a prefix. */
  files?: { mimeType: string; data: string; name?: string }[]
  model?: string
  /** How much the model thinks. */
  thinking?: 'off' | 'low' | 'medium' | 'high'
  temperature?: number
  maxOutputTokens?: number
  /** A JSON schema of an object: the answer is JSON that satisfies it, and `output` of `run-finish`. */
  outputSchema?: Record<string, unknown>
  /** Models that answer, in this order, while the model before them cannot. */
  fallback?: string[]
  /** What the run may cost. Limits of sessions and users are the server's. */
  budget?: { perRunUsd: number }
  stateDelta?: Record<string, unknown>
  /** Default `reject`: 409 `session-busy` while another run works on the session. */
  whenBusy?: 'queue' | 'reject'
  /** Not before this time: ISO 8601 with its offset from UTC, or milliseconds since 1970. */
  at?: string | number
  /** A UUID chosen by the caller: sending the same request twice starts one run. */
  runId?: string
}

/** 202: the run has begun, is queued, or is stored for later. */
export interface StartedRun {
  runId: string
  sessionId: string
}

/**
 * `POST /api/runs/{runId}/approvals/{callId}`: answers a request for approval, or says whether a call with an unknown
 * outcome took effect. The second is possible after the run as well, and counts when the call is repeated. An object is the
 * result of a long-running tool, or a confirmation of ADK's with a payload.
 */
export interface ApprovalReply {
  answer: RunAnswer
}

/** Every error: RFC 9457, media type `application/problem+json`. */
export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code:
    | AgentErrorCode
    | 'unauthorized'
    | 'forbidden'
    | 'not-found'
    | 'wrong-method'
    | 'too-large'
    | 'too-complex'
    | 'too-many'
    | 'shutting-down'
  retryable: boolean
  details?: Record<string, unknown>
}

/** `GET /api/usage?model=&from=&to=`: the calls of the caller, oldest day first. Days are those of UTC. */
export interface UsageList {
  lines: UsageLine[]
}

/** The model calls of one day with one model. `memory`: those of the observer. */
export interface UsageLine {
  day: string
  userId: string
  model: string
  kind: 'run' | 'memory'
  calls: number
  usage: RunUsage
  unpricedCalls: number
}

/** `GET /api/schedules`: those whose runs are the caller's. */
export interface ScheduleList {
  schedules: ScheduleItem[]
}

/** Times are milliseconds since 1970. */
export interface ScheduleItem {
  name: string
  cron: string
  timeZone: string
  session: string
  text: string
  model?: string
  missed: 'skip' | 'latest' | 'all'
  overlap: 'queue' | 'skip'
  /** The next ticks. */
  next: number[]
  /** The newest tick that was dealt with. */
  lastTick?: number
  lastRunId?: string
  lastStatus?: RunItem['status']
}
