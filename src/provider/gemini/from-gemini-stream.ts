/**
 * Gemini's stream → events. Calls are recognised by their part, because the finish reason of a call is `STOP`
 * like any other; a signature may sit on any part, the empty last text included.
 */

import { own } from '../../base/own.js'
import type { Usage } from '../../session/usage.js'
import { AnswerAssembly, type AnswerContext } from '../assemble-stream.js'
import { callObserver } from '../call-observer.js'
import { blockedError } from '../provider-error.js'
import type { AnswerMetadata, FinishReason, StreamEvent } from '../stream-event.js'

export interface GeminiChunkWire {
  responseId?: string
  modelVersion?: string
  candidates?: readonly GeminiCandidateWire[]
  promptFeedback?: { blockReason?: string; blockReasonMessage?: string }
  usageMetadata?: {
    promptTokenCount?: number
    toolUsePromptTokenCount?: number
    candidatesTokenCount?: number
    thoughtsTokenCount?: number
    cachedContentTokenCount?: number
    totalTokenCount?: number
  }
}

interface GeminiCandidateWire extends AnswerMetadata {
  /** The API leaves a zero out. */
  index?: number
  content?: { parts?: readonly GeminiAnswerPartWire[] }
  finishReason?: string
  finishMessage?: string
}

interface GeminiAnswerPartWire {
  text?: string
  thought?: boolean
  thoughtSignature?: string
  functionCall?: GeminiCallWire
  inlineData?: { mimeType?: string; data?: string }
  executableCode?: { code?: string; language?: string }
  codeExecutionResult?: { outcome?: string; output?: string }
  [field: string]: unknown
}

interface GeminiCallWire {
  id?: string
  name?: string
  args?: Record<string, unknown>
  partialArgs?: readonly PartialArgWire[]
  willContinue?: boolean
}

/** Reads a whole answer. */
export async function* fromGeminiStream(
  chunks: AsyncIterable<GeminiChunkWire>,
  context: AnswerContext,
): AsyncGenerator<StreamEvent> {
  const answer = new AnswerAssembly(context)
  const streamed = new StreamedCall(answer)
  const observer = callObserver.getStore()
  for await (const chunk of chunks) {
    observer?.answered({ id: chunk.responseId, model: chunk.modelVersion })
    const blockReason = chunk.promptFeedback?.blockReason
    if (blockReason) {
      throw blockedError(context, blockReason, chunk.promptFeedback?.blockReasonMessage ?? blockReason)
    }
    if (chunk.usageMetadata) answer.usage(toUsage(chunk.usageMetadata))
    // ADK uses the first of several candidates; in a stream each comes in chunks of its own.
    const candidate = chunk.candidates?.find(({ index = 0 }) => index === 0)
    if (candidate) answer.metadata(metadataOf(candidate))
    for (const part of candidate?.content?.parts ?? []) yield* fromPart(part, answer, streamed)
    if (candidate?.finishReason) {
      yield* streamed.close()
      answer.finish(toFinishReason(candidate.finishReason), candidate.finishMessage)
    }
  }
  yield* answer.end()
}

function fromPart(part: GeminiAnswerPartWire, answer: AnswerAssembly, streamed: StreamedCall): StreamEvent[] {
  const signature = part.thoughtSignature
  if (part.functionCall) return streamed.read(part.functionCall, signature)
  if (part.inlineData) {
    return answer.media(
      part.inlineData.mimeType ?? 'application/octet-stream',
      part.inlineData.data ?? '',
      signature,
    )
  }
  const { thoughtSignature: _signature, ...value } = part
  if (part.executableCode) {
    const { code = '', language = '' } = part.executableCode
    const text = `The model ran this code:\n\`\`\`${language.toLowerCase()}\n${code}\n\`\`\``
    return answer.vendor(value, text, signature)
  }
  if (part.codeExecutionResult) {
    const text = `The code answered: ${part.codeExecutionResult.output ?? part.codeExecutionResult.outcome ?? ''}`
    return answer.vendor(value, text, signature)
  }
  // Files, calls that Google's servers have made, and whatever comes next: kept, and sent back as it came.
  const isOther =
    part.text === undefined && !part.thought && Object.values(value).some(field => field !== undefined)
  if (isOther) return answer.vendor(value, JSON.stringify(value), signature)
  return part.thought
    ? answer.reasoning(part.text ?? '', { signature })
    : answer.text(part.text ?? '', { signature })
}

const METADATA = [
  'groundingMetadata',
  'citationMetadata',
  'urlContextMetadata',
  'logprobsResult',
  'avgLogprobs',
  'safetyRatings',
] as const satisfies readonly (keyof AnswerMetadata)[]

function metadataOf(candidate: GeminiCandidateWire): AnswerMetadata {
  const found = METADATA.filter(name => candidate[name] !== undefined && candidate[name] !== null)
  return Object.fromEntries(found.map(name => [name, candidate[name]]))
}

/** A call comes whole, or, on Vertex, as a name and then values at paths until `willContinue` is gone. */
class StreamedCall {
  #open: { name: string; id?: string; args: Record<string, unknown>; signature?: string } | undefined

  readonly #answer: AnswerAssembly

  constructor(answer: AnswerAssembly) {
    this.#answer = answer
  }

  read(call: GeminiCallWire, signature: string | undefined): StreamEvent[] {
    const inPieces = call.partialArgs !== undefined || call.willContinue === true
    if (this.#open === undefined && !inPieces) {
      return this.#answer.call({ id: call.id, name: call.name, args: call.args, signature })
    }
    const closed = call.name && this.#open ? this.close() : []
    this.#open ??= { name: call.name ?? '', args: {} }
    if (call.id !== undefined) this.#open.id = call.id
    if (signature !== undefined) this.#open.signature ??= signature
    this.#open.args = { ...this.#open.args, ...call.args }
    for (const partial of call.partialArgs ?? []) applyPartialArg(this.#open.args, partial)
    return call.willContinue ? closed : [...closed, ...this.close()]
  }

  close(): StreamEvent[] {
    const call = this.#open
    this.#open = undefined
    return call ? this.#answer.call(call) : []
  }
}

function toUsage(usage: NonNullable<GeminiChunkWire['usageMetadata']>): Partial<Usage> {
  const input = (usage.promptTokenCount ?? 0) + (usage.toolUsePromptTokenCount ?? 0)
  return {
    inputTokens: input,
    outputTokens: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
    ...(usage.cachedContentTokenCount === undefined
      ? {}
      : { cachedInputTokens: usage.cachedContentTokenCount }),
    ...(usage.thoughtsTokenCount === undefined ? {} : { reasoningTokens: usage.thoughtsTokenCount }),
    ...(usage.totalTokenCount === undefined ? {} : { totalTokens: usage.totalTokenCount }),
  }
}

function toFinishReason(reason: string): FinishReason {
  return (
    own(FINISH_REASONS, reason) ?? (/SAFETY|BLOCK|PROHIBITED|RECITATION/.test(reason) ? 'blocked' : 'other')
  )
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  CONTINUATION: 'length',
  SAFETY: 'blocked',
  RECITATION: 'blocked',
  BLOCKLIST: 'blocked',
  PROHIBITED_CONTENT: 'blocked',
  SPII: 'blocked',
  LANGUAGE: 'blocked',
  MALFORMED_FUNCTION_CALL: 'malformed-call',
  UNEXPECTED_TOOL_CALL: 'malformed-call',
  TOO_MANY_TOOL_CALLS: 'malformed-call',
}

/** Vertex may stream a call's arguments as values at JSON paths (`$.items[0].name`); this puts them together. */

interface PartialArgWire {
  jsonPath?: string
  stringValue?: string
  numberValue?: number
  boolValue?: boolean
  nullValue?: unknown
  willContinue?: boolean
}

/** Writes one streamed value into the arguments. Text at a path that has text already continues it. */
function applyPartialArg(args: Record<string, unknown>, partial: PartialArgWire): void {
  const path = parsePath(partial.jsonPath ?? '')
  const last = path.pop()
  if (last === undefined) return
  let place: Container = args
  for (const [index, key] of path.entries()) {
    const next = path[index + 1] ?? last
    place = childOf(place, key, typeof next === 'number')
  }
  const before = read(place, last)
  const value = partialValue(partial)
  write(place, last, typeof before === 'string' && typeof value === 'string' ? before + value : value)
}

type Container = Record<string, unknown> | unknown[]

function childOf(place: Container, key: string | number, isArray: boolean): Container {
  const found = read(place, key)
  if (found !== null && typeof found === 'object') return found as Container
  const made: Container = isArray ? [] : {}
  write(place, key, made)
  return made
}

function read(place: Container, key: string | number): unknown {
  return Object.hasOwn(place, key) ? (place as Record<string | number, unknown>)[key] : undefined
}

function write(place: Container, key: string | number, value: unknown): void {
  Object.defineProperty(place, key, { value, enumerable: true, configurable: true, writable: true })
}

function partialValue(partial: PartialArgWire): unknown {
  if (partial.stringValue !== undefined) return partial.stringValue
  if (partial.numberValue !== undefined) return partial.numberValue
  if (partial.boolValue !== undefined) return partial.boolValue
  return null
}

/** `$.a['b c'][0]` → `['a', 'b c', 0]`. An index is bounded, so that no path can ask for a giant array. */
function parsePath(path: string): (string | number)[] {
  const steps: (string | number)[] = []
  for (const match of path.matchAll(/\.([^.[\]]+)|\[(\d{1,5})\]|\[['"](.*?)['"]\]/g)) {
    if (match[2] !== undefined) steps.push(Number(match[2]))
    else steps.push(match[1] ?? match[3] ?? '')
  }
  return steps
}
