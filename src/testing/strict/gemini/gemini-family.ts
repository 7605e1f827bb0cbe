import type { Answer, AnswerPlan, AnswerRequest, Family, Frame, HttpError, Route } from '../family.js'
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { geminiMedia } from '../media/media-words.js'
import type { Fault, RequestSummary, SummaryMessage } from '../script.js'
import { freshToken } from '../seal.js'
import { applyRules, type Rule, type Violation } from '../violation.js'
import { field, type ReadContent, readContents, readDeclarations } from './contents.js'
import {
  hasContents,
  matchesSchema,
  namesLegal,
  namesPresent,
  partsInitialized,
  partsPresent,
  responseMediaSupported,
  toolsConsistent,
} from './shape-rules.js'
import { mintCallSignature, mintTextSignature } from './signature.js'
import {
  callsFollowUser,
  callsSigned,
  endsWithUser,
  fitsWindow,
  idsAndNames,
  idsEchoed,
  overflowMessage,
  responsesAlone,
  responsesFollowCalls,
  responsesMatchCalls,
  rolesKnown,
  signaturesGenuine,
  startsWithUser,
} from './turn-rules.js'

/** The order in which Google checks: parser, fields, tools, roles, turns, signatures, size. */
const RULES: readonly Rule[] = [
  matchesSchema,
  hasContents,
  partsPresent,
  partsInitialized,
  namesPresent,
  namesLegal,
  toolsConsistent,
  responseMediaSupported,
  geminiMedia,
  rolesKnown,
  endsWithUser,
  startsWithUser,
  callsFollowUser,
  responsesFollowCalls,
  responsesMatchCalls,
  idsAndNames,
  callsSigned,
  signaturesGenuine,
  fitsWindow,
  responsesAlone,
  idsEchoed,
]

/** Google's generateContent, in three generations. */
export const geminiFamily: Family = {
  baseUrl: origin => origin,
  route: routeGemini,
  keyOf: (headers, query) =>
    headers['x-goog-api-key'] ?? query.get('key') ?? headers.authorization?.replace(/^Bearer /i, ''),
  judge: (body, context) => applyRules(RULES, body, context),
  summarize: (body, route) => summarizeGemini(body, route.model ?? 'gemini', route.stream ?? false),
  render: renderGemini,
  countTokens: (body: JsonObject) => ({ totalTokens: estimateTokens(body) }),
  listModels: (model, only) => (only === undefined ? { models: [describe(model)] } : describe(only)),
  refusal: violation => googleRefusal(violation),
  fault: (fault, context) => googleFault(fault, context.contextWindow),
  streamError: () => `data: ${JSON.stringify(overloaded({ kind: '503' }).body)}\r\n\r\n`,
  notFound: (_method, path) => googleError(404, `Requested entity was not found: ${path}`),
}

function routeGemini(method: string, path: string, query: URLSearchParams): Route | undefined {
  const action = /\/models\/([^/]+):(\w+)$/.exec(path)
  if (method === 'POST' && action !== null) {
    const model = decodeURIComponent(action[1] ?? '')
    const isList = query.get('alt') !== 'sse'
    if (action[2] === 'generateContent') return { kind: 'generate', model, stream: false }
    if (action[2] === 'streamGenerateContent') return { kind: 'generate', model, stream: true, isList }
    if (action[2] === 'countTokens') return { kind: 'count-tokens', model }
  }
  if (method !== 'GET') return undefined
  if (/\/models$/.test(path)) return { kind: 'list-models' }
  const one = /\/models\/([^/:]+)$/.exec(path)
  return one === null ? undefined : { kind: 'get-model', model: decodeURIComponent(one[1] ?? '') }
}

function describe(model: string): JsonObject {
  return {
    name: `models/${model}`,
    version: '001',
    displayName: model,
    description: 'A strict server that plays this model.',
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
  }
}

/** Google's error bodies. */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

function googleError(status: number, message: string, details?: unknown): HttpError {
  const error = { code: status, message, status: STATUS_NAMES[status] ?? 'UNKNOWN' }
  return { status, body: { error: details === undefined ? error : { ...error, details } } }
}

function googleRefusal(violation: Violation): HttpError {
  return googleError(violation.status, violation.message, violation.details)
}

const QUOTA_WORDS =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.'

/** The HTTP error of a fault, or nothing when the fault is not one. */
function googleFault(fault: Fault, contextWindow: number): HttpError | undefined {
  switch (fault.kind) {
    case '429':
      return exhausted(fault.retryAfter ?? 1, 'GenerateRequestsPerMinutePerProjectPerModel')
    case 'quota':
      return exhausted(undefined, 'GenerateRequestsPerDayPerProjectPerModel-FreeTier')
    case '500':
      return googleError(
        500,
        'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
      )
    case 'auth':
      return googleError(400, 'API key not valid. Please pass a valid API key.', [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'API_KEY_INVALID',
          domain: 'googleapis.com',
          metadata: { service: 'generativelanguage.googleapis.com' },
        },
      ])
    case 'context-overflow':
      return googleError(400, overflowMessage(contextWindow + 65_536, contextWindow))
    case '503':
    case '529':
      return overloaded(fault)
    default:
      return undefined
  }
}

function overloaded(fault: Fault): HttpError {
  const error = googleError(503, 'The model is overloaded. Please try again later.')
  if (fault.retryAfter === undefined) return error
  return { ...error, headers: { 'retry-after': String(fault.retryAfter) } }
}

function exhausted(retryAfter: number | undefined, quotaId: string): HttpError {
  const violation = {
    quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
    quotaId,
    quotaDimensions: { location: 'global', model: 'gemini' },
    quotaValue: '10',
  }
  const details: unknown[] = [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [violation] },
  ]
  if (retryAfter === undefined) return googleError(429, QUOTA_WORDS, details)
  details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfter}s` })
  return googleError(429, `${QUOTA_WORDS}\nPlease retry in ${retryAfter}s.`, details)
}

function summarizeGemini(body: JsonObject, model: string, stream: boolean): RequestSummary {
  const contents = readContents(body)
  const lastUser = contents
    .filter(content => content.role === 'user' && content.responses.length === 0)
    .at(-1)
  return {
    model,
    stream,
    system: joinText(listOf(objectOf(field(body, 'systemInstruction')).parts)),
    messages: contents.map(summarizeContent),
    lastUserText: lastUser === undefined ? '' : joinText(lastUser.parts.map(part => part.raw)),
    tools: readDeclarations(body).map(({ declaration }) => ({
      name: textOf(declaration.name),
      parameters: field(declaration, 'parametersJsonSchema') ?? declaration.parameters,
    })),
    toolChoice: toolChoiceOf(body),
    body,
  }
}

function summarizeContent(content: ReadContent): SummaryMessage {
  const role = content.responses.length > 0 ? 'tool' : content.role === 'model' ? 'assistant' : 'user'
  return {
    role,
    text: joinText(content.parts.filter(part => part.raw.thought !== true).map(part => part.raw)),
    toolCalls: content.calls.map(({ call }) => ({
      ...identity(call),
      name: textOf(call?.name),
      args: call?.args ?? {},
    })),
    toolResults: content.responses.map(({ response }) => ({
      ...identity(response),
      name: textOf(response?.name),
      content: JSON.stringify(response?.response ?? null),
    })),
  }
}

function identity(part: JsonObject | undefined): { id?: string } {
  return typeof part?.id === 'string' ? { id: part.id } : {}
}

function joinText(parts: readonly unknown[]): string {
  return parts.map(part => textOf(objectOf(part).text)).join('')
}

function toolChoiceOf(body: JsonObject): RequestSummary['toolChoice'] {
  const config = field(objectOf(field(body, 'toolConfig')), 'functionCallingConfig')
  if (!isObject(config)) return 'auto'
  const mode = textOf(config.mode).toUpperCase()
  if (mode === 'NONE') return 'none'
  if (mode !== 'ANY') return 'auto'
  const only = listOf(field(config, 'allowedFunctionNames'))[0]
  return typeof only === 'string' ? { name: only } : 'required'
}

/** A Gemini answer: whole, and as CRLF-framed chunks without event names and without `[DONE]`. */
type Part = JsonObject

function renderGemini(request: AnswerRequest): Answer {
  const envelope = envelopeOf(request)
  const special = specialAnswer(request)
  if (special !== undefined) {
    const body = { ...special, ...envelope }
    return { json: body, unfinished: body, frames: [frame(body, true)] }
  }
  const calls = callParts(request)
  const { body: pieces, last } = streamedParts(request, calls)
  const finishReason = request.plan.finish === 'length' ? 'MAX_TOKENS' : 'STOP'
  const metadata = metadataOf(request)
  const frames = pieces.map(part => frame({ candidates: [candidate([part])], ...envelope }, false))
  frames.push(frame({ candidates: [{ ...candidate([last]), finishReason, ...metadata }], ...envelope }, true))
  const whole = { ...candidate(wholeParts(request, calls)), ...metadata }
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
    return { functionCall, thoughtSignature: mintCallSignature({ ...call, ...identity }, context.account) }
  })
}

function wholeParts(request: AnswerRequest, calls: readonly Part[]): Part[] {
  const { plan } = request
  const text = plan.text === '' ? [] : [{ text: plan.text, ...textSignature(request) }]
  const parts = [...thoughtParts(request), ...codeParts(request), ...text, ...calls]
  return parts.length > 0 ? parts : [{ text: '', ...textSignature(request) }]
}

function streamedParts(request: AnswerRequest, calls: readonly Part[]): { body: Part[]; last: Part } {
  const streamed = request.quirks.has('partial-args') ? calls.flatMap(inPartialArgs) : calls
  const text = request.plan.deltas.map(delta => ({ text: delta }))
  return {
    body: [...thoughtParts(request), ...codeParts(request), ...text, ...streamed],
    last: { text: '', ...textSignature(request) },
  }
}

/** Gemini 3 signs a text answer too, in a stream on an empty last part. */
function textSignature({ plan, context }: AnswerRequest): Part {
  if (context.profile === 'gemini-2' || plan.toolCalls.length > 0) return {}
  return { thoughtSignature: mintTextSignature(context.account) }
}

function thoughtParts({ plan, body }: AnswerRequest): Part[] {
  const config = objectOf(field(objectOf(field(body, 'generationConfig')), 'thinkingConfig'))
  if (plan.thinking === '' || field(config, 'includeThoughts') !== true) return []
  return [{ text: plan.thinking, thought: true }]
}

/** Code that the server ran, with its output. Gemini 3 signs it. */
function codeParts({ plan, body, context }: AnswerRequest): Part[] {
  if (plan.code === undefined || !declares(body, ['codeExecution'])) return []
  const { code, output } = plan.code
  const signature =
    context.profile === 'gemini-2' ? {} : { thoughtSignature: mintTextSignature(context.account) }
  return [
    { executableCode: { language: 'PYTHON', code }, ...signature },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output } },
  ]
}

const FINDERS = [
  'googleSearch',
  'googleSearchRetrieval',
  'enterpriseWebSearch',
  'googleMaps',
  'urlContext',
  'fileSearch',
  'retrieval',
]

function declares(body: JsonObject, names: readonly string[]): boolean {
  return listOf(body.tools).some(tool => names.some(name => field(objectOf(tool), name) !== undefined))
}

function metadataOf({ plan, body, summary }: AnswerRequest): JsonObject {
  if (plan.sources.length === 0 || !declares(body, FINDERS)) return { ...plan.metadata }
  const groundingChunks = plan.sources.map(({ url, title }) => ({ web: { uri: url, title } }))
  const groundingSupports = plan.sources.map(({ text = plan.text }, index) => {
    const startIndex = Buffer.byteLength(plan.text.slice(0, Math.max(0, plan.text.indexOf(text))))
    const segment = { startIndex, endIndex: startIndex + Buffer.byteLength(text), text }
    return { segment, groundingChunkIndices: [index] }
  })
  const webSearchQueries = [summary.lastUserText]
  return { groundingMetadata: { webSearchQueries, groundingChunks, groundingSupports }, ...plan.metadata }
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
