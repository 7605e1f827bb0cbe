/**
 * What the chat shows, as a flat list: one entry per thing that a reader sees. Flat, so that a run of a
 * thousand tool calls is virtualised as well as a thousand short answers.
 */
import type { MediaPart } from './api.js'

export type Entry =
  | UserEntry
  | TextEntry
  | ReasoningEntry
  | ToolEntry
  | MediaEntry
  | MarkEntry
  | ErrorEntry
  | FooterEntry
  | WorkingEntry

interface EntryIdentity {
  /** Never changes while the entry is shown, so that folds and heights are kept. */
  key: string
}

export interface UserEntry extends EntryIdentity {
  kind: 'user'
  text: string
  media: readonly MediaPart[]
  /** Absent until it is stored; only a stored message can be edited. */
  seq?: number
}

export interface TextEntry extends EntryIdentity {
  kind: 'text'
  author: string
  text: string
  /** More may come. */
  streaming?: boolean
}

export interface ReasoningEntry extends EntryIdentity {
  kind: 'reasoning'
  author: string
  text: string
  redacted?: boolean
  streaming?: boolean
}

/** What is known of a call: it runs, waits for a person, has an answer, failed, or was never answered. */
export type ToolStatus = 'running' | 'waiting' | 'done' | 'failed' | 'unanswered'

export interface ToolEntry extends EntryIdentity {
  kind: 'tool'
  author: string
  callId: string
  name: string
  args: unknown
  status: ToolStatus
  result?: unknown
  /** Why a person is asked, in the tool's words. */
  reason?: string
  /** How the person answered. */
  approval?: string
  startedAt?: number
  durationMs?: number
}

export interface MediaEntry extends EntryIdentity {
  kind: 'media'
  author: string
  media: MediaPart
}

/** A small line in the flow; a click opens the inspector. */
export type Mark =
  | { type: 'transfer'; from: string; to: string }
  | { type: 'warning'; turns: number; maxTurns: number }
  | { type: 'wrap-up'; reason: string; turns: number; maxTurns: number }
  | { type: 'repair'; count: number; profile: string; detail: string }
  | { type: 'history-cut'; messages: number; tokens: number; shortened: number }
  | { type: 'stopped' }
  | { type: 'note'; text: string }

export interface MarkEntry extends EntryIdentity {
  kind: 'mark'
  mark: Mark
  runId?: string
}

export interface ShownError {
  code: string
  message: string
}

export interface ErrorEntry extends EntryIdentity {
  kind: 'error'
  error: ShownError
  runId?: string
}

/** The end of an answer: what it cost and what can be done with it. */
export interface FooterEntry extends EntryIdentity {
  kind: 'footer'
  /** The newest message of the answer. */
  seq: number
  /** The message that it answers, when it is loaded. */
  userSeq?: number
  text: string
  timestamp: number
  model?: string
  totalTokens: number
  cost?: number
}

export interface WorkingEntry extends EntryIdentity {
  kind: 'working'
  label: string
}

/** What a run said besides its messages. `anchor` is the call that it followed; empty: before the first. */
export interface RunNotes {
  runId: string
  afterSeq: number
  marks: readonly { anchor: string; mark: Mark }[]
  /** How long tools took, by call id; stored messages also count the wait for a person. */
  durations?: Readonly<Record<string, number>>
  error?: ShownError
  /** What was being said when the run ended early. It is in the events only: no complete answer was stored. */
  unfinished?: readonly { author: string; text: string }[]
}

/** What Lango stores in the place of an answer that was stopped; shown as a mark. */
export const STOPPED_TEXT = '[The user stopped this answer before it was complete.]'

/** ADK's own tool for handing over; shown as a mark, not as a card. */
export const TRANSFER_TOOL = 'transfer_to_agent'
