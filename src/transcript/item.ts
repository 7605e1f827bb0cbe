/**
 * What a person reads of a conversation: a flat list of items, built from stored messages (`from-messages.ts`) or
 * from the events of a run (`from-events.ts`) by the same rules. The page, the terminal chat and exports show it.
 *
 * - Results belong to calls as `session/pair-calls.ts` says.
 * - Hidden: system messages, messages that Lango wrote to the model, ADK's transfers and questions as calls.
 *   A transfer, a question and a stopped answer are shown as marks.
 * - A call is answered when its tool gave a result. The filler that Lango stores for a call without one is no result.
 * - The outcome of a call is unknown when its run reported that, or when the words that the model got say so.
 * - The duration of a call is what the run measured, without the wait for an approval.
 */
import { isRecord } from '../base/is-record.js'
import { NO_RESPONSE_MARKER, OUTCOME_UNKNOWN } from '../base/markers.js'
import { isRequestTool, TRANSFER_TOOL } from '../base/names.js'
import { own } from '../base/own.js'
import type { BudgetState, RunRepair, WrapUpReason } from '../run/run-event.js'
import type { ChatPart } from '../session/chat-message.js'
import type { HistoryCut } from '../session/message.js'
import type { Source } from '../session/sources.js'
import { type RunUsage, sumUsage } from '../session/usage.js'
import type { ApprovalOutcome, OnUnknown, OutcomeAnswer } from '../tool.js'
import type { QuestionForm } from './question-form.js'

export type TranscriptItem =
  | UserItem
  | TextItem
  | ReasoningItem
  | ToolItem
  | MediaItem
  | SourcesItem
  | MarkItem
  | ErrorItem
  | FooterItem

interface ItemIdentity {
  /** Unique in its list and never changed, so that folds, heights and drawn lines can be kept. */
  readonly key: string
}

export type MediaPart = Extract<ChatPart, { type: 'media' }>

export interface UserItem extends ItemIdentity {
  readonly kind: 'user'
  readonly text: string
  readonly media: readonly MediaPart[]
  /** Absent until it is stored. */
  readonly seq?: number
}

/** Text of an agent's answer. */
export interface TextItem extends ItemIdentity {
  readonly kind: 'text'
  readonly author: string
  readonly text: string
  /** More may follow. */
  readonly streaming?: boolean
}

export interface ReasoningItem extends ItemIdentity {
  readonly kind: 'reasoning'
  readonly author: string
  readonly text: string
  readonly redacted?: boolean
  readonly streaming?: boolean
}

/**
 * `waiting`: for a person's approval. `pending`: for something outside the run, which may end before it.
 * `unanswered`: the run ended without a result. `unknown`: it is not known whether the call took effect.
 */
export type ToolStatus = 'running' | 'waiting' | 'pending' | 'done' | 'failed' | 'unanswered' | 'unknown'

/** What is known about a call whose outcome is, or was, unknown. */
export interface UnknownOutcome {
  /** The run that the call belongs to: an answer names both. */
  readonly runId: string
  readonly idempotencyKey: string
  readonly policy: OnUnknown
  /** The run waits for a person's answer. */
  readonly asks?: true
  /** With `asks`: that it happened is answered with its result. */
  readonly needsResult?: boolean
  /** What a person has answered. */
  readonly answer?: OutcomeAnswer
  /** The ledger's status of the call, once it is not `unknown` any more. */
  readonly resolved?: 'done' | 'failed'
}

/** What a person can answer about an unknown outcome, as people read it. */
export const OUTCOME_WORDS: Readonly<Record<OutcomeAnswer, string>> = {
  happened: 'it happened',
  run: 'it did not, run it',
  leave: 'leave it',
}

/** A call, with its result once there is one. A result whose call is not in the list has no arguments. */
export interface ToolItem extends ItemIdentity {
  readonly kind: 'tool'
  readonly author: string
  readonly callId: string
  readonly name: string
  readonly args: unknown
  readonly status: ToolStatus
  readonly result?: unknown
  /** Pictures and files that came with the result, once it is stored: the events of a run do not carry them. */
  readonly media?: readonly MediaPart[]
  /** Why approval is requested; only while it is. */
  readonly reason?: string
  /** The approval cannot be given for later calls: ADK asks for each. Only while it is requested. */
  readonly onceOnly?: true
  /** What the tool asks for; only while it does. */
  readonly form?: QuestionForm & { readonly id: string }
  readonly approval?: ApprovalOutcome
  readonly outcome?: UnknownOutcome
  /** Milliseconds since 1970, of a call that is open and was seen when it began. */
  readonly startedAt?: number
  readonly durationMs?: number
}

/** A picture or file in an answer. */
export interface MediaItem extends ItemIdentity {
  readonly kind: 'media'
  readonly author: string
  readonly media: MediaPart
}

/** Where an answer comes from. */
export interface SourcesItem extends ItemIdentity {
  readonly kind: 'sources'
  readonly author: string
  readonly sources: readonly Source[]
}

/** What happened around the answer. */
export type Mark =
  | { readonly type: 'transfer'; readonly from: string; readonly to: string }
  /** A question of ADK's to a person: the name of ADK's call, and of the tool that it is about, if it says so. */
  | { readonly type: 'question'; readonly call: string; readonly tool: string }
  | { readonly type: 'warning'; readonly turns: number; readonly maxTurns: number }
  | {
      readonly type: 'wrap-up'
      readonly reason: WrapUpReason
      readonly turns: number
      readonly maxTurns: number
      /** Which budget is used up. */
      readonly budget?: BudgetState
    }
  | { readonly type: 'repair'; readonly profile: string; readonly repairs: readonly RunRepair[] }
  /** The request does not extend the one before it. */
  | { readonly type: 'break'; readonly breaks: readonly RunRepair[] }
  /** A history is fitted when it is loaded and again before it is sent: cuts that follow each other are one mark. */
  | { readonly type: 'history-cut'; readonly cuts: readonly HistoryCut[] }
  /** Only until the run begins; 1 is the next place. */
  | { readonly type: 'queued'; readonly place: number }
  /** Only until the run begins: not before this time, in milliseconds since 1970. */
  | { readonly type: 'scheduled'; readonly dueAt: number }
  /** A process has continued the run of another one. */
  | { readonly type: 'resumed'; readonly attempt: number }
  /** Another model answers, because the one before it failed, or because the first has recovered. */
  | { readonly type: 'model-switch'; readonly from: string; readonly to: string; readonly reason: string }
  /** The model call waits for its turn, or to be sent again. */
  | { readonly type: 'model-wait'; readonly model: string; readonly waitMs: number; readonly reason: string }
  /** The tools of an MCP server are missing, because it is not available. */
  | { readonly type: 'tools-missing'; readonly server: string; readonly problem: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'note'; readonly text: string }

export interface MarkItem extends ItemIdentity {
  readonly kind: 'mark'
  readonly mark: Mark
  /** The run that it happened in, where that is known. */
  readonly runId?: string
}

export interface ShownError {
  readonly code: string
  readonly message: string
}

export interface ErrorItem extends ItemIdentity {
  readonly kind: 'error'
  readonly error: ShownError
  readonly runId?: string
}

/** What an answer has used: its model calls, without those of agents inside tools. */
export interface AnswerUsage {
  readonly model?: string
  readonly totalTokens: number
  /** Dollars; absent once the price of one call is unknown. */
  readonly cost?: number
}

/** The end of a stored answer. */
export interface FooterItem extends ItemIdentity, AnswerUsage {
  readonly kind: 'footer'
  /** The newest message of the answer. */
  readonly seq: number
  /** The message that it answers, when it is loaded. */
  readonly userSeq?: number
  readonly text: string
  readonly timestamp: number
}

/** What a run reported besides its messages: with it, stored messages give the items that its events gave. */
export interface RunNotes {
  readonly runId: string
  /** Messages up to here were stored before the run. */
  readonly afterSeq: number
  /** `anchor` is the id of the call that the mark followed; empty: before the first. */
  readonly marks: readonly { readonly anchor: string; readonly mark: Mark }[]
  /** How long tools took, by call id. */
  readonly durations?: Readonly<Record<string, number>>
  /** How requests for approval ended, by call id. */
  readonly approvals?: Readonly<Record<string, ApprovalOutcome>>
  /** Calls whose outcome is or was unknown, by call id. */
  readonly outcomes?: Readonly<Record<string, NotedOutcome>>
  readonly error?: ShownError
  /** Text that was streamed when the run ended early: no complete answer of it was stored. */
  readonly unfinished?: readonly { readonly author: string; readonly text: string }[]
}

export interface NotedOutcome extends UnknownOutcome {
  /** The call itself, when it is in no message of the session: an agent inside a tool made it. */
  readonly call?: Pick<ToolItem, 'author' | 'name' | 'args'>
}

/** Code that ran on the vendor's servers, or what it printed, as Markdown. It is no part of the answer's text. */
export function codeText({ code, language = '', output = '' }: CodeFacts): string {
  const [body, name] = code === undefined ? [output, 'text'] : [code, language]
  const ticks = '`'.repeat(Math.max(3, 1 + Math.max(0, ...(body.match(/`+/g) ?? []).map(run => run.length))))
  return `${ticks}${name}\n${body.replace(/\n$/, '')}\n${ticks}`
}

interface CodeFacts {
  code?: string
  language?: string
  output?: string
}

/** Whether an address may be opened. */
export function isLink(url: string): boolean {
  return url.startsWith('https://') || url.startsWith('http://')
}

/** A source in one line. */
export function sourceLabel({ url, title }: Source): string {
  return title ?? url.replace(/^https?:\/\//i, '')
}

/** Calls that are shown as marks and never as calls; their results are not shown. */
export function isHiddenCall(name: string): boolean {
  return name === TRANSFER_TOOL || isRequestTool(name)
}

/** The question that a hidden call of ADK's asks; `undefined` for a transfer. */
export function questionOf(name: string, args: unknown): Mark | undefined {
  if (!isRequestTool(name)) return undefined
  const original = isRecord(args) ? args.originalFunctionCall : undefined
  const tool = isRecord(original) ? original.name : undefined
  return { type: 'question', call: name, tool: typeof tool === 'string' ? tool : '' }
}

/** What people read of a run that was resumed. Attempts are counted since it last stored a message. */
export function resumedText({ attempt }: Extract<Mark, { type: 'resumed' }>): string {
  return attempt > 1 ? `The run was resumed (attempt ${attempt})` : 'The run was resumed'
}

/** What people read when another model answers. */
export function switchText({
  from,
  to,
  reason,
}: Omit<Extract<Mark, { type: 'model-switch' }>, 'type'>): string {
  if (reason === 'recovered') return `${to} answers again instead of ${from}`
  return `${to} answers instead of ${from} (${own(FAILURES, reason) ?? reason})`
}

/** What people read when a model call waits. */
export function waitText({
  model,
  waitMs,
  reason,
}: Omit<Extract<Mark, { type: 'model-wait' }>, 'type'>): string {
  const seconds = Math.max(1, Math.round(waitMs / 1000))
  return `Waits ${seconds} s for ${model} (${own(FAILURES, reason) ?? reason})`
}

/** What people read when a server of tools is not available. */
export function missingText({
  server,
  problem,
}: Omit<Extract<Mark, { type: 'tools-missing' }>, 'type'>): string {
  return `The tools of MCP server ${server} are missing: ${problem}`
}

const FAILURES: Readonly<Record<string, string>> = {
  'provider-overloaded': 'overloaded',
  'provider-unavailable': 'not available',
  'provider-rate-limit': 'rate limit',
  'provider-quota': 'no credit left',
  'provider-auth': 'key refused',
  'provider-stream': 'stream broken',
}

/** The status of a call with this result, and the result as far as there is one to show. */
export function answered(result: unknown, isError: boolean): Answered {
  const error = isRecord(result) ? result.error : undefined
  const words = typeof error === 'string' ? error : ''
  const isUnknown = words.endsWith(OUTCOME_UNKNOWN)
  if (words.startsWith(NO_RESPONSE_MARKER)) return { status: isUnknown ? 'unknown' : 'unanswered' }
  return { status: isUnknown ? 'unknown' : isError ? 'failed' : 'done', result }
}

type Answered = Pick<ToolItem, 'status' | 'result' | 'media'>

/** A result, or the lack of one, with what the run reported about the outcome. */
export function withOutcome(
  found: Answered,
  outcome: UnknownOutcome | undefined,
): Answered & Pick<ToolItem, 'outcome'> {
  if (!outcome) return found
  if (outcome.answer === 'happened' || outcome.answer === 'run') return { ...found, outcome }
  // A result of another call with the same id, or of a tool that may simply be called again.
  if (found.status === 'done' || (found.status === 'failed' && outcome.policy === 'retry')) return found
  return { ...found, status: 'unknown', outcome }
}

/** The sum of an answer's model calls, and the model of the last. */
export function answerUsage(used: readonly RunUsage[], model: string | undefined): AnswerUsage {
  const { totalTokens, cost } = sumUsage(used)
  const known = cost === undefined || used.length === 0 ? {} : { cost }
  return { totalTokens, ...known, ...(model === undefined ? {} : { model }) }
}

/** Whether a mark says that the run has not begun. */
export function isWait(mark: Mark): boolean {
  return mark.type === 'queued' || mark.type === 'scheduled'
}

/** The items of a run that has begun. */
export function withoutWaits(items: readonly TranscriptItem[]): readonly TranscriptItem[] {
  return items.filter(item => item.kind !== 'mark' || !isWait(item.mark))
}
