import type { Framing } from './event-stream.js'
import type { JsonObject } from './json.js'
import type {
  Fault,
  Quirk,
  RequestSummary,
  ScriptedCode,
  ScriptedSource,
  ScriptFinish,
  ScriptStep,
  ScriptUsage,
} from './script.js'
import type { JudgeContext, Violation } from './violation.js'

/** One vendor's wire: its routes, its rules, its words and its frames. */
export interface Family {
  /** What the vendor's own SDK takes as base URL, given `http://host:port`. */
  baseUrl(origin: string, context: JudgeContext): string
  route(method: string, path: string, query: URLSearchParams): Route | undefined
  /** The vendor's own request in that of a platform. */
  unwrap?(body: JsonObject, route: Route, headers: Readonly<Record<string, string>>): PlainRequest
  /** How a stream's frames travel. Default: as server-sent events. */
  readonly framing?: Framing
  /** The key that came with the request, if any. */
  keyOf(headers: Readonly<Record<string, string>>, query: URLSearchParams): string | undefined
  judge(body: JsonObject, context: JudgeContext): Violation[]
  summarize(body: JsonObject, route: Route): RequestSummary
  render(request: AnswerRequest): Answer
  countTokens(body: JsonObject): unknown
  listModels(model: string, only?: string): unknown
  refusal(violation: Violation, context: JudgeContext): HttpError
  /** The answer to a fault that is an HTTP error; nothing for faults of another kind. */
  fault(fault: Fault, context: JudgeContext): HttpError | undefined
  /** What the vendor writes into a running stream when it fails. */
  streamError(context: JudgeContext): string
  notFound(method: string, path: string, context: JudgeContext): HttpError
  /** What the platform says of a model that it does not serve. */
  unknownModel?(model: string): HttpError
}

/** A request as the vendor's own server would get it, or what the platform refuses about it. */
export interface PlainRequest {
  readonly body: JsonObject
  /** Headers that the platform takes from elsewhere. */
  readonly headers?: Readonly<Record<string, string>>
  readonly violation?: Violation
}

export interface Route {
  readonly kind: 'generate' | 'count-tokens' | 'list-models' | 'get-model'
  readonly model?: string
  /** Set where the path and not the body says whether to stream. */
  readonly stream?: boolean
  /** The stream is one JSON list, and so are errors (Gemini). */
  readonly isList?: boolean
}

export interface HttpError {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface AnswerRequest {
  readonly plan: AnswerPlan
  readonly summary: RequestSummary
  readonly body: JsonObject
  readonly context: JudgeContext
  readonly quirks: ReadonlySet<Quirk>
  /** True when the vendor answers with nothing instead of refusing. */
  readonly empty: boolean
  /** Keeps an answer so that later requests can refer to it. */
  remember(responseId: string, items: readonly JsonObject[]): void
}

/** A step with its defaults filled in. */
export interface AnswerPlan {
  readonly text: string
  readonly deltas: readonly string[]
  readonly thinking: string
  readonly redactedThinking: boolean
  readonly afterthought: string
  readonly serverTool: ScriptStep['serverTool'] | undefined
  readonly phase: ScriptStep['phase'] | undefined
  readonly toolCalls: readonly {
    readonly name: string
    readonly args: Readonly<Record<string, unknown>>
    readonly id?: string
  }[]
  readonly sources: readonly ScriptedSource[]
  readonly code: ScriptedCode | undefined
  readonly metadata: Readonly<Record<string, unknown>>
  readonly finish: ScriptFinish
  readonly usage: Required<ScriptUsage>
}

/** One answer, whole and in pieces; the server sends whichever was asked for. */
export interface Answer {
  readonly json: unknown
  readonly frames: readonly Frame[]
  /** The whole answer without its ending, for the `no-terminal` fault. */
  readonly unfinished: unknown
}

export interface Frame {
  readonly text: string
  /** True for the events without which a stream is not complete. */
  readonly terminal: boolean
}

/** Fills in what a step leaves open. */
export function planAnswer(step: ScriptStep, inputTokens: number): AnswerPlan {
  const text = step.text ?? step.deltas?.join('') ?? ''
  const toolCalls = (step.toolCalls ?? []).map(call => ({ ...call, args: call.args ?? {} }))
  const outputText = text + (step.thinking ?? '') + JSON.stringify(toolCalls)
  return {
    text,
    deltas: step.deltas ?? splitText(text),
    thinking: step.thinking ?? '',
    redactedThinking: step.redactedThinking ?? false,
    afterthought: step.afterthought ?? '',
    serverTool: step.serverTool,
    phase: step.phase,
    toolCalls,
    sources: step.sources ?? [],
    code: step.code,
    metadata: step.metadata ?? {},
    finish: step.finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
    usage: {
      input: step.usage?.input ?? inputTokens,
      output: step.usage?.output ?? Math.max(1, Math.ceil(Buffer.byteLength(outputText) / 4)),
      cached: step.usage?.cached ?? 0,
      reasoning: step.usage?.reasoning ?? Math.ceil(Buffer.byteLength(step.thinking ?? '') / 4),
    },
  }
}

/** Pieces of at most three words that together are the text. */
export function splitText(text: string): string[] {
  const words = text.match(/\S+\s*|\s+/g) ?? []
  const pieces: string[] = []
  for (let at = 0; at < words.length; at += 3) pieces.push(words.slice(at, at + 3).join(''))
  return pieces
}

/** Pieces of a few characters, as call arguments are streamed; a character is never split. */
export function splitEvery(text: string, length: number): string[] {
  const characters = Array.from(text)
  const pieces: string[] = []
  for (let at = 0; at < characters.length; at += length) {
    pieces.push(characters.slice(at, at + length).join(''))
  }
  return pieces
}
