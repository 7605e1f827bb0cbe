import type { ApprovalOutcome } from '../../tool.js'

/** One thing in the transcript. Its texts are what models, tools and people said; they are made plain when shown. */
export type ChatItem = ChatItemBody & { readonly id: number }

export type ChatItemBody =
  | { readonly kind: 'user'; readonly text: string }
  | { readonly kind: 'answer'; readonly author: string; readonly text: string; readonly live: boolean }
  | { readonly kind: 'reasoning'; readonly author: string; readonly text: string; readonly live: boolean }
  | ToolItem
  | { readonly kind: 'notice'; readonly tone: NoticeTone; readonly text: string }
  /** What a command shows: lines that keep their spaces. */
  | { readonly kind: 'panel'; readonly title: string; readonly lines: readonly string[] }

export type NoticeTone = 'quiet' | 'warning' | 'error'

export interface ToolItem {
  readonly kind: 'tool'
  readonly callId: string
  readonly author: string
  readonly name: string
  readonly args: unknown
  readonly status: ToolStatus
  /** Milliseconds; absent for calls of earlier runs. The time that a person took to answer is not counted. */
  readonly startedAt?: number
  readonly tookMs?: number
  readonly result?: unknown
  readonly approval?: ApprovalOutcome
}

/** `asking` waits for a person, `pending` for something outside the run. */
export type ToolStatus = 'running' | 'asking' | 'pending' | 'done' | 'failed' | 'stopped'
