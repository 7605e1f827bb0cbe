/** What the fake model says, and how its server misbehaves: the same words for every vendor. */

/** One answer of the model. Everything is optional; an empty step is an empty answer. */
export interface ScriptStep {
  readonly text?: string
  /** The pieces in which the text is streamed. Default: the text in pieces of a few words. */
  readonly deltas?: readonly string[]
  /** Reasoning before the answer; vendors that sign reasoning sign it. */
  readonly thinking?: string
  /** Adds reasoning that the vendor withholds (Anthropic). */
  readonly redactedThinking?: boolean
  /** Reasoning after the text, as an answer has it that is cut off while the model thinks again (Anthropic). */
  readonly afterthought?: string
  /** A tool that the vendor runs itself, before the text (Anthropic). Without `result` the question stays open. */
  readonly serverTool?: { readonly name: string; readonly input?: unknown; readonly result?: unknown }
  readonly toolCalls?: readonly ScriptedCall[]
  /** OpenAI's mark on its own messages: is this text on the way, or the answer? */
  readonly phase?: 'commentary' | 'final_answer'
  /** Pages that a server tool finds and the text cites. Only for requests that declare a tool which finds some. */
  readonly sources?: readonly ScriptedSource[]
  /** Code that a server tool runs before the text. Only for requests that declare a tool which runs code. */
  readonly code?: ScriptedCode
  /** Fields of Gemini's candidate: `citationMetadata`, `urlContextMetadata`, `logprobsResult`, … */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Default: `tool-calls` when there are calls, otherwise `stop`. */
  readonly finish?: ScriptFinish
  readonly usage?: ScriptUsage
}

export interface ScriptedCall {
  readonly name: string
  /** Default: none. */
  readonly args?: Readonly<Record<string, unknown>>
  /** Default: an id in the form that the vendor mints. */
  readonly id?: string
}

export interface ScriptedSource {
  readonly url: string
  readonly title: string
  /** The text that the page supports. Default: the whole answer. */
  readonly text?: string
}

export interface ScriptedCode {
  readonly code: string
  readonly output: string
}

/** `paused`: the vendor wants the answer back, to continue it (Anthropic). */
export type ScriptFinish = 'stop' | 'tool-calls' | 'length' | 'blocked' | 'malformed-call' | 'paused'

export interface ScriptUsage {
  readonly input?: number
  readonly output?: number
  readonly cached?: number
  readonly reasoning?: number
}

/**
 * Steps in order, or a function that is asked each time. A step of a list is used up by an answer that was
 * delivered: requests that were refused or faulted do not count, so a retry gets the step that it missed.
 * After the last step the default model answers. A function is given the index of the request in `requests`.
 */
export type Script =
  | readonly ScriptStep[]
  | ((request: RequestSummary, index: number) => ScriptStep | Promise<ScriptStep>)

/** What a request says, in one form for all vendors. */
export interface RequestSummary {
  readonly model: string
  readonly stream: boolean
  readonly system: string
  readonly messages: readonly SummaryMessage[]
  /** The text of the last user message, '' when there is none. */
  readonly lastUserText: string
  readonly tools: readonly { readonly name: string; readonly parameters: unknown }[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly body: unknown
}

export interface SummaryMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly text: string
  readonly toolCalls: readonly { readonly id?: string; readonly name: string; readonly args: unknown }[]
  readonly toolResults: readonly { readonly id?: string; readonly name?: string; readonly content: string }[]
}

export const FAULT_KINDS = [
  '429',
  'quota',
  '500',
  '503',
  '529',
  'auth',
  'context-overflow',
  'error-in-stream',
  'cut',
  'hang',
  'garbage',
  'slow-drip',
  'no-terminal',
  'blocked',
  'malformed-call',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number]

/** Something that goes wrong on request. */
export interface Fault {
  readonly kind: FaultKind
  /** Index in `requests`; when absent, every request. */
  readonly at?: number
  /** Seconds, for `429`, `503` and `529`. Default: 1 for `429`, none for the others. */
  readonly retryAfter?: number
  /** How many stream events are sent before the fault. Default 1. */
  readonly afterEvents?: number
}

export const QUIRKS = [
  'index-missing',
  'index-zero',
  'id-missing',
  'id-repeated',
  'whole-arguments',
  'role-in-every-delta',
  'finish-twice',
  'empty-choices',
  'usage-on-finish',
  'no-done',
  'comments',
  'calls-with-finish',
  'partial-args',
  'old-vertex',
] as const

/**
 * Ways in which servers differ without being wrong. All but the last two are for Chat Completions streams;
 * `partial-args` makes Gemini stream call arguments as Vertex does, `old-vertex` makes it refuse call ids.
 */
export type Quirk = (typeof QUIRKS)[number]
