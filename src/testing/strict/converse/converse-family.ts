import { EVENT_STREAM } from '../event-stream.js'
import {
  type Answer,
  type AnswerPlan,
  type AnswerRequest,
  type Family,
  type Frame,
  type HttpError,
  type PlainRequest,
  type Route,
  splitEvery,
} from '../family.js'
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { converseMedia } from '../media/media-words.js'
import type { Fault, RequestSummary, SummaryMessage } from '../script.js'
import { freshToken } from '../seal.js'
import { applyRules, type Rule } from '../violation.js'
import {
  alternates,
  blocksKnown,
  documentsNamed,
  endsWithUser,
  fitsWindow,
  idsLegal,
  keysKnown,
  noReasoning,
  nothingBlank,
  refuse,
  resultsAlone,
  resultsMatch,
  startsWithUser,
  toolsDefined,
} from './converse-rules.js'

const RULES: readonly Rule[] = [
  keysKnown,
  blocksKnown,
  documentsNamed,
  startsWithUser,
  alternates,
  nothingBlank,
  idsLegal,
  toolsDefined,
  converseMedia,
  resultsMatch,
  endsWithUser,
  resultsAlone,
  noReasoning,
  fitsWindow,
]

/** Bedrock's Converse, for models of any maker. */
export const converseFamily: Family = {
  baseUrl: origin => origin,
  route: routeConverse,
  keyOf: awsKey,
  judge: (body, context) => applyRules(RULES, body, context),
  summarize: (body, route) => summarizeConverse(body, route.model ?? '', route.stream ?? false),
  render: renderConverse,
  unwrap: (body, route) => withoutStream(body, route),
  framing: EVENT_STREAM,
  countTokens: (body: JsonObject) => ({ inputTokens: estimateTokens(body) }),
  listModels: model => ({ modelSummaries: [{ modelId: model }] }),
  refusal: violation => awsError(violation.status, 'ValidationException', violation.message),
  fault: awsFault,
  streamError: () => frameText('serviceUnavailableException', { message: UNAVAILABLE }),
  unknownModel: () => awsError(400, 'ValidationException', 'The provided model identifier is invalid.'),
  notFound: () =>
    awsError(404, 'UnknownOperationException', 'The requested operation is not recognized by the service.'),
}

function routeConverse(method: string, path: string): Route | undefined {
  const found = /\/model\/([^/]+)\/(converse|converse-stream)$/.exec(path)
  if (method !== 'POST' || found === null) return undefined
  return { kind: 'generate', model: decodeURIComponent(found[1] ?? ''), stream: found[2] !== 'converse' }
}

/** B13: Llama's models call tools only when they are not streamed. */
function withoutStream(body: JsonObject, { model = '', stream }: Route): PlainRequest {
  if (!stream || body.toolConfig === undefined || !/llama/.test(model)) return { body }
  return { body, violation: refuse('B13', "This model doesn't support tool use in streaming mode.") }
}

/** The key, or the account of a signed request. */
export function awsKey(headers: Readonly<Record<string, string>>): string | undefined {
  const { authorization = '' } = headers
  const [, account] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/[\w-]+\/bedrock\/aws4_request, /.exec(authorization) ?? []
  return account ?? (/^Bearer (.+)$/.exec(authorization)?.[1] || undefined)
}

/** AWS's error bodies: the name of the exception travels in a header. */
export function awsError(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  return {
    status,
    body: { message },
    headers: { 'x-amzn-errortype': type, 'x-amzn-requestid': freshToken(24), ...headers },
  }
}

const UNAVAILABLE = 'Bedrock is unable to process your request.'

/** The HTTP error of a fault, or nothing when the fault is not one. */
export function awsFault(fault: Fault): HttpError | undefined {
  const wait: Record<string, string> =
    fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
  switch (fault.kind) {
    case '429':
      return awsError(429, 'ThrottlingException', 'Too many requests, please wait before trying again.', {
        'retry-after': String(fault.retryAfter ?? 1),
      })
    case 'quota':
      return awsError(
        400,
        'ServiceQuotaExceededException',
        'Your request exceeds the service quota for your account.',
      )
    case '500':
      return awsError(
        500,
        'InternalServerException',
        'The system encountered an unexpected error during processing. Try your request again.',
      )
    case '503':
    case '529':
      return awsError(503, 'ServiceUnavailableException', UNAVAILABLE, wait)
    case 'auth':
      return awsError(
        403,
        'UnrecognizedClientException',
        'The security token included in the request is invalid.',
      )
    case 'context-overflow':
      return awsError(
        400,
        'ValidationException',
        refuse('B12', 'Input is too long for requested model.').message,
      )
    default:
      return undefined
  }
}

function summarizeConverse(body: JsonObject, model: string, stream: boolean): RequestSummary {
  const messages = listOf(body.messages).map(objectOf)
  const spoken = messages.filter(({ role, content }) => role === 'user' && textIn(content) !== '')
  const { tools, toolChoice } = objectOf(body.toolConfig)
  return {
    model,
    stream,
    system: textIn(body.system),
    messages: messages.map(summarizeMessage),
    lastUserText: textIn(spoken.at(-1)?.content),
    tools: listOf(tools).map(tool => {
      const { name, inputSchema } = objectOf(objectOf(tool).toolSpec)
      return { name: textOf(name), parameters: objectOf(inputSchema).json }
    }),
    toolChoice: choiceOf(toolChoice),
    body,
  }
}

function summarizeMessage({ role, content }: JsonObject): SummaryMessage {
  const blocks = listOf(content).map(objectOf)
  const calls = blocks.flatMap(({ toolUse }) => (isObject(toolUse) ? [toolUse] : []))
  const results = blocks.flatMap(({ toolResult }) => (isObject(toolResult) ? [toolResult] : []))
  return {
    role: results.length > 0 ? 'tool' : role === 'assistant' ? 'assistant' : 'user',
    text: textIn(content),
    toolCalls: calls.map(({ toolUseId, name, input }) => ({
      id: textOf(toolUseId),
      name: textOf(name),
      args: input,
    })),
    toolResults: results.map(result => ({ id: textOf(result.toolUseId), content: textIn(result.content) })),
  }
}

function textIn(content: unknown): string {
  return listOf(content)
    .map(block => textOf(objectOf(block).text))
    .join('')
}

function choiceOf(choice: unknown): RequestSummary['toolChoice'] {
  const { any, tool } = objectOf(choice)
  if (isObject(tool)) return { name: textOf(tool.name) }
  return any === undefined ? 'auto' : 'required'
}

/** A message: whole, and as named events. */
function renderConverse({ plan }: AnswerRequest): Answer {
  const blocks = plan.finish === 'blocked' ? [] : blocksOf(plan)
  const usage = usageOf(plan)
  const output = { message: { role: 'assistant', content: blocks.map(({ whole }) => whole) } }
  const whole = { output, usage, metrics: { latencyMs: 1 } }
  return {
    json: { ...whole, stopReason: stopReason(plan) },
    unfinished: { ...whole, stopReason: '' },
    frames: framesOf(blocks, plan, usage),
  }
}

interface Block {
  readonly whole: JsonObject
  readonly start?: JsonObject
  readonly deltas: readonly JsonObject[]
}

function blocksOf(plan: AnswerPlan): Block[] {
  const broken = plan.finish === 'malformed-call'
  const thought = {
    whole: { reasoningContent: { reasoningText: { text: plan.thinking } } },
    deltas: splitEvery(plan.thinking, 16).map(text => ({ reasoningContent: { text } })),
  }
  return [
    ...(plan.thinking === '' ? [] : [thought]),
    ...(plan.text === ''
      ? []
      : [{ whole: { text: plan.text }, deltas: plan.deltas.map(text => ({ text })) }]),
    ...plan.toolCalls.map(({ id = `tooluse_${freshToken(22)}`, name, args }) => {
      const json = JSON.stringify(args)
      const sent = broken ? json.slice(0, Math.max(1, json.length - 2)) : json
      return {
        // A whole message cannot hold half an object.
        whole: { toolUse: { toolUseId: id, name, input: broken ? {} : args } },
        start: { toolUse: { toolUseId: id, name } },
        deltas: splitEvery(sent, 8).map(input => ({ toolUse: { input } })),
      }
    }),
  ]
}

function stopReason({ finish }: AnswerPlan): string {
  switch (finish) {
    case 'tool-calls':
      return 'tool_use'
    case 'blocked':
      return 'content_filtered'
    case 'length':
      return 'max_tokens'
    case 'malformed-call':
      return 'malformed_tool_use'
    default:
      return 'end_turn'
  }
}

/** Tokens that were read from the cache are not part of `inputTokens`. */
function usageOf({ usage }: AnswerPlan): JsonObject {
  const inputTokens = Math.max(0, usage.input - usage.cached)
  return {
    inputTokens,
    outputTokens: usage.output,
    totalTokens: usage.input + usage.output,
    ...(usage.cached > 0 ? { cacheReadInputTokens: usage.cached } : {}),
  }
}

function framesOf(blocks: readonly Block[], plan: AnswerPlan, usage: JsonObject): Frame[] {
  const begun = blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
    ...(start ? [frameText('contentBlockStart', { contentBlockIndex, start })] : []),
    ...deltas.map(delta => frameText('contentBlockDelta', { contentBlockIndex, delta })),
    frameText('contentBlockStop', { contentBlockIndex }),
  ])
  const ending = [
    frameText('messageStop', { stopReason: stopReason(plan) }),
    frameText('metadata', { usage, metrics: { latencyMs: 1 } }),
  ]
  return [
    ...[frameText('messageStart', { role: 'assistant' }), ...begun].map(text => ({ text, terminal: false })),
    ...ending.map(text => ({ text, terminal: true })),
  ]
}

function frameText(name: string, data: JsonObject): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
