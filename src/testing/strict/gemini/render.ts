/** A Gemini answer: whole, and as CRLF-framed chunks without event names and without `[DONE]`. */
import type { Answer, AnswerPlan, AnswerRequest, Frame } from '../family.js'
import { isObject, type JsonObject, objectOf } from '../json.js'
import { freshToken } from '../seal.js'
import { field } from './contents.js'
import { mintCallSignature, mintTextSignature } from './signature.js'

type Part = JsonObject

export function renderGemini(request: AnswerRequest): Answer {
  const envelope = envelopeOf(request)
  const special = specialAnswer(request)
  if (special !== undefined) {
    const body = { ...special, ...envelope }
    return { json: body, unfinished: body, frames: [frame(body, true)] }
  }
  const calls = callParts(request)
  const { body: pieces, last } = streamedParts(request, calls)
  const finishReason = request.plan.finish === 'length' ? 'MAX_TOKENS' : 'STOP'
  const frames = pieces.map(part => frame({ candidates: [candidate([part])], ...envelope }, false))
  frames.push(frame({ candidates: [{ ...candidate([last]), finishReason }], ...envelope }, true))
  const whole = candidate(wholeParts(request, calls))
  return {
    json: { candidates: [{ ...whole, finishReason }], ...envelope },
    unfinished: { candidates: [whole], ...envelope },
    frames,
  }
}

/** Answers without parts: nothing, a blocked prompt, a call that the model failed to write. */
function specialAnswer({ plan, empty }: AnswerRequest): JsonObject | undefined {
  if (empty) return { candidates: [{ ...candidate([{ text: '' }]), finishReason: 'STOP' }] }
  if (plan.finish === 'blocked') return { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }
  if (plan.finish !== 'malformed-call') return undefined
  const name = plan.toolCalls[0]?.name ?? 'unknown'
  return {
    candidates: [
      {
        content: {},
        finishReason: 'MALFORMED_FUNCTION_CALL',
        finishMessage: `Malformed function call: print(default_api.${name}(`,
        index: 0,
      },
    ],
  }
}

function callParts({ plan, context }: AnswerRequest): Part[] {
  const signs = context.profile !== 'gemini-2' || plan.thinking !== ''
  return plan.toolCalls.map((call, index) => {
    const id = call.id ?? (context.profile === 'gemini-2' ? undefined : freshToken(8).toLowerCase())
    const identity = id === undefined ? {} : { id }
    const functionCall = { ...identity, name: call.name, args: call.args }
    // Only the first call of a step is signed, however many there are.
    if (index > 0 || !signs) return { functionCall }
    return { functionCall, thoughtSignature: mintCallSignature({ ...call, ...identity }) }
  })
}

function wholeParts(request: AnswerRequest, calls: readonly Part[]): Part[] {
  const { plan } = request
  const text = plan.text === '' ? [] : [{ text: plan.text, ...textSignature(request) }]
  const parts = [...thoughtParts(request), ...text, ...calls]
  return parts.length > 0 ? parts : [{ text: '', ...textSignature(request) }]
}

function streamedParts(request: AnswerRequest, calls: readonly Part[]): { body: Part[]; last: Part } {
  const streamed = request.quirks.has('partial-args') ? calls.flatMap(inPartialArgs) : calls
  const text = request.plan.deltas.map(delta => ({ text: delta }))
  return {
    body: [...thoughtParts(request), ...text, ...streamed],
    last: { text: '', ...textSignature(request) },
  }
}

/** Gemini 3 signs a text answer too, in a stream on an empty last part. */
function textSignature({ plan, context }: AnswerRequest): Part {
  if (context.profile === 'gemini-2' || plan.toolCalls.length > 0) return {}
  return { thoughtSignature: mintTextSignature() }
}

function thoughtParts({ plan, body }: AnswerRequest): Part[] {
  const config = objectOf(field(objectOf(field(body, 'generationConfig')), 'thinkingConfig'))
  if (plan.thinking === '' || field(config, 'includeThoughts') !== true) return []
  return [{ text: plan.thinking, thought: true }]
}

/** Vertex streams arguments by path; the name comes first and alone, an empty call comes last. */
function inPartialArgs(part: Part): Part[] {
  const call = objectOf(part.functionCall)
  const identity = call.id === undefined ? {} : { id: call.id }
  const head = { ...part, functionCall: { ...identity, name: call.name, willContinue: true } }
  const leaves = leavesOf(call.args, '$').flatMap(({ path, value }) => pathChunks(path, value))
  const chunks = leaves.map(partial => ({ functionCall: { partialArgs: [partial], willContinue: true } }))
  return [head, ...chunks, { functionCall: {} }]
}

function pathChunks(jsonPath: string, value: unknown): JsonObject[] {
  if (typeof value === 'number') return [{ jsonPath, numberValue: value }]
  if (typeof value === 'boolean') return [{ jsonPath, boolValue: value }]
  if (typeof value !== 'string') return [{ jsonPath, nullValue: 'NULL_VALUE' }]
  const half = Math.ceil(value.length / 2)
  return [
    { jsonPath, stringValue: value.slice(0, half), willContinue: true },
    { jsonPath, stringValue: value.slice(half), willContinue: true },
    { jsonPath, stringValue: '' },
  ]
}

function leavesOf(value: unknown, path: string): { path: string; value: unknown }[] {
  if (Array.isArray(value)) return value.flatMap((entry, index) => leavesOf(entry, `${path}[${index}]`))
  if (!isObject(value)) return [{ path, value }]
  return Object.entries(value).flatMap(([key, entry]) => leavesOf(entry, `${path}.${key}`))
}

function candidate(parts: readonly Part[]): JsonObject {
  return { content: { parts, role: 'model' }, index: 0 }
}

function envelopeOf({ plan, summary }: AnswerRequest): JsonObject {
  return { usageMetadata: usageOf(plan), modelVersion: summary.model, responseId: freshToken(22) }
}

function usageOf({ usage }: AnswerPlan): JsonObject {
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: Math.max(0, usage.output - usage.reasoning),
    totalTokenCount: usage.input + usage.output,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
    ...(usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
  }
}

function frame(body: unknown, terminal: boolean): Frame {
  return { text: `data: ${JSON.stringify(body)}\r\n\r\n`, terminal }
}
