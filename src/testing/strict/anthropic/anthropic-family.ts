import { defined } from '../../../base/defined.js'
import {
  type Answer,
  type AnswerPlan,
  type AnswerRequest,
  type Family,
  type Frame,
  type HttpError,
  type Route,
  splitEvery,
} from '../family.js'
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { claudeMedia } from '../media/media-words.js'
import type { Fault, RequestSummary, SummaryMessage } from '../script.js'
import { freshNonce, freshToken } from '../seal.js'
import { applyRules, type Rule, type Violation } from '../violation.js'
import { alwaysThinks, checkThinking, hasBindingBeta, type PrefixDigest, thinkingBound } from './binding.js'
import {
  cacheMarks,
  callIdsUnique,
  callsAnswered,
  endsWell,
  fitsWindow,
  messagesNotEmpty,
  promptTooLong,
  resultsHaveCalls,
  resultsSingle,
  serverToolsPaired,
  startsWithUser,
  textNotBlank,
  thinkingGenuine,
  thinkingLeads,
  thinkingOptions,
  thinkingUnmodified,
  toolsDefined,
} from './conversation-rules.js'
import { type ReadMessage, readMessages } from './messages.js'
import { type Block, containerFor, searches, serverBlocks } from './server-blocks.js'
import {
  blocksKnown,
  hasFields,
  hasVersion,
  keysKnown,
  messagesPresent,
  newVersionBlocks,
  numbersInBounds,
  rolesKnown,
  toolsKnown,
} from './shape-rules.js'
import { mintRedactedData, mintThinkingSignature, type ThinkingPlace } from './signature.js'

/** The order in which Anthropic checks: fields, blocks, options, shape of the conversation, thinking, size. */
const RULES: readonly Rule[] = [
  hasVersion,
  hasFields,
  keysKnown,
  numbersInBounds,
  messagesPresent,
  rolesKnown,
  blocksKnown,
  toolsKnown,
  newVersionBlocks,
  claudeMedia,
  cacheMarks,
  alwaysThinks,
  thinkingOptions,
  startsWithUser,
  messagesNotEmpty,
  textNotBlank,
  endsWell,
  callIdsUnique,
  resultsSingle,
  callsAnswered,
  resultsHaveCalls,
  serverToolsPaired,
  thinkingGenuine,
  thinkingUnmodified,
  thinkingBound,
  thinkingLeads,
  toolsDefined,
  fitsWindow,
]

/** Anthropic's Messages API: with prefill, without it, and with thinking that is bound to its prefix. */
export const anthropicFamily: Family = {
  baseUrl: origin => origin,
  route: routeAnthropic,
  keyOf: headers => headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /i, ''),
  judge: (body, context) => applyRules(RULES, body, context),
  summarize: summarizeAnthropic,
  render: renderAnthropic,
  countTokens: (body: JsonObject) => ({ input_tokens: estimateTokens(body) }),
  listModels: (model, only) =>
    only === undefined
      ? { data: [describe(model)], has_more: false, first_id: model, last_id: model }
      : describe(only),
  refusal: violation => anthropicRefusal(violation),
  fault: (fault, context) => anthropicFault(fault, context.contextWindow),
  streamError: () =>
    anthropicFrame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  notFound: (_method, path) => anthropicError(404, 'not_found_error', `Not found: ${path}`),
}

function routeAnthropic(method: string, path: string): Route | undefined {
  if (method === 'POST' && path.endsWith('/messages')) return { kind: 'generate' }
  if (method === 'POST' && path.endsWith('/messages/count_tokens')) return { kind: 'count-tokens' }
  if (method !== 'GET') return undefined
  if (path.endsWith('/models')) return { kind: 'list-models' }
  const one = /\/models\/([^/]+)$/.exec(path)
  return one === null ? undefined : { kind: 'get-model', model: decodeURIComponent(one[1] ?? '') }
}

function describe(model: string): JsonObject {
  return { type: 'model', id: model, display_name: model, created_at: '2026-01-01T00:00:00Z' }
}

/** Anthropic's error bodies. */
function anthropicError(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  const requestId = `req_${freshToken(24)}`
  return {
    status,
    body: { type: 'error', error: { type, message }, request_id: requestId },
    headers: { 'request-id': requestId, ...headers },
  }
}

function anthropicRefusal(violation: Violation): HttpError {
  return anthropicError(violation.status, violation.errorType ?? 'invalid_request_error', violation.message)
}

/** The HTTP error of a fault, or nothing when the fault is not one. */
function anthropicFault(fault: Fault, contextWindow: number): HttpError | undefined {
  const wait: Record<string, string> =
    fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
  switch (fault.kind) {
    case '429':
      return anthropicError(
        429,
        'rate_limit_error',
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute (org: strict, model: claude). For details, refer to: https://docs.claude.com/en/api/rate-limits.",
        {
          'retry-after': String(fault.retryAfter ?? 1),
          'anthropic-ratelimit-input-tokens-limit': '50000',
          'anthropic-ratelimit-input-tokens-remaining': '0',
        },
      )
    case 'quota':
      return anthropicError(
        402,
        'billing_error',
        'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
      )
    case '500':
      return anthropicError(500, 'api_error', 'Internal server error')
    case '503':
      return anthropicError(503, 'api_error', 'Service temporarily unavailable', wait)
    case '529':
      return anthropicError(529, 'overloaded_error', 'Overloaded', wait)
    case 'auth':
      return anthropicError(401, 'authentication_error', 'invalid x-api-key')
    case 'context-overflow':
      return anthropicRefusal(promptTooLong(contextWindow + 13_462, contextWindow))
    default:
      return undefined
  }
}

function summarizeAnthropic(body: JsonObject): RequestSummary {
  const messages = readMessages(body)
  const lastUser = messages
    .filter(message => message.role === 'user' && blockText(message.blocks) !== '')
    .at(-1)
  return {
    model: textOf(body.model),
    stream: body.stream === true,
    system: typeof body.system === 'string' ? body.system : blockText(listOf(body.system).map(objectOf)),
    messages: messages.map(summarizeMessage),
    lastUserText: blockText(lastUser?.blocks ?? []),
    tools: listOf(body.tools).flatMap(tool => {
      const { name, input_schema: parameters } = objectOf(tool)
      return parameters === undefined ? [] : [{ name: textOf(name), parameters }]
    }),
    toolChoice: toolChoiceOf(body.tool_choice),
    body,
  }
}

function summarizeMessage(message: ReadMessage): SummaryMessage {
  const results = message.blocks.filter(block => block.type === 'tool_result')
  const calls = message.blocks.filter(block => block.type === 'tool_use')
  return {
    role: results.length > 0 ? 'tool' : message.role === 'assistant' ? 'assistant' : 'user',
    text: blockText(message.blocks),
    toolCalls: calls.map(block => ({ id: textOf(block.id), name: textOf(block.name), args: block.input })),
    toolResults: results.map(block => ({
      id: textOf(block.tool_use_id),
      content: resultText(block.content),
    })),
  }
}

function resultText(content: unknown): string {
  return typeof content === 'string' ? content : blockText(listOf(content).map(objectOf))
}

function blockText(blocks: readonly JsonObject[]): string {
  return blocks.map(block => (block.type === 'text' ? textOf(block.text) : '')).join('')
}

function toolChoiceOf(choice: unknown): RequestSummary['toolChoice'] {
  if (!isObject(choice)) return 'auto'
  if (choice.type === 'none') return 'none'
  if (choice.type === 'any') return 'required'
  return choice.type === 'tool' ? { name: textOf(choice.name) } : 'auto'
}

/** A message: whole, and as named events. */

function renderAnthropic(request: AnswerRequest): Answer {
  const { plan, summary, body, context } = request
  const { transformations, prefix } = checkThinking(body, context)
  const binds = context.profile === 'anthropic-5.1'
  const blocks = plan.finish === 'blocked' ? [] : blocksOf(request, binds ? prefix : undefined)
  const head = {
    id: `msg_01${freshToken(22)}`,
    type: 'message',
    role: 'assistant',
    model: summary.model,
    ...(binds && hasBindingBeta(context) ? { input_transformations: transformations } : {}),
    ...defined({ container: containerFor(request) }),
  }
  const whole = {
    ...head,
    content: blocks.map(block => block.whole),
    stop_sequence: null,
    usage: usageOf(plan),
  }
  return {
    json: { ...whole, stop_reason: stopReason(plan) },
    unfinished: { ...whole, stop_reason: null },
    frames: framesOf(head, blocks, plan),
  }
}

function blocksOf(request: AnswerRequest, prefix: PrefixDigest | undefined): Block[] {
  const { plan } = request
  const { model } = request.summary
  const turn = freshNonce()
  const count = [plan.thinking !== '', plan.redactedThinking, plan.afterthought !== ''].filter(Boolean).length
  const blocks: Block[] = []
  let index = 0
  const push = (block: Block) => {
    blocks.push(block)
    prefix?.add('assistant', block.whole)
  }
  const { account } = request.context
  const place = () => ({
    ...{ turn, index: index++, count, account },
    ...(prefix ? { model, prefix: prefix.now() } : {}),
  })
  if (plan.thinking !== '') push(thinkingBlock(plan.thinking, place()))
  if (plan.redactedThinking) push(wholeBlock({ type: 'redacted_thinking', data: mintRedactedData(place()) }))
  for (const block of serverBlocks(request)) push(block)
  if (plan.text !== '') push(textBlock(plan, searches(request)))
  if (plan.afterthought !== '') push(thinkingBlock(plan.afterthought, place()))
  for (const call of plan.toolCalls) push(callBlock(call, plan.finish === 'malformed-call'))
  return blocks
}

function wholeBlock(whole: JsonObject): Block {
  return { whole, start: whole, deltas: [] }
}

function thinkingBlock(thinking: string, place: ThinkingPlace): Block {
  const signature = mintThinkingSignature(thinking, place)
  return {
    whole: { type: 'thinking', thinking, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...splitEvery(thinking, 16).map(piece => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  }
}

function textBlock(plan: AnswerPlan, cites: boolean): Block {
  const citations = cites
    ? plan.sources.map(({ url, title, text = plan.text }) => ({
        type: 'web_search_result_location',
        url,
        title,
        cited_text: text,
        encrypted_index: freshToken(16),
      }))
    : []
  return {
    whole: { type: 'text', text: plan.text, ...(cites ? { citations } : {}) },
    start: { type: 'text', text: '', ...(cites ? { citations: [] } : {}) },
    deltas: [
      ...citations.map(citation => ({ type: 'citations_delta', citation })),
      ...plan.deltas.map(text => ({ type: 'text_delta', text })),
    ],
  }
}

function callBlock(call: AnswerPlan['toolCalls'][number], broken: boolean): Block {
  const head = { type: 'tool_use', id: call.id ?? `toolu_01${freshToken(22)}`, name: call.name }
  const text = JSON.stringify(call.args)
  const sent = broken ? text.slice(0, Math.max(1, text.length - 2)) : text
  return {
    // A whole message cannot hold half an object.
    whole: { ...head, input: broken ? {} : call.args },
    start: { ...head, input: {} },
    deltas: ['', ...splitEvery(sent, 8)].map(piece => ({ type: 'input_json_delta', partial_json: piece })),
  }
}

function stopReason(plan: AnswerPlan): string {
  switch (plan.finish) {
    case 'stop':
      return 'end_turn'
    case 'tool-calls':
      return 'tool_use'
    case 'blocked':
      return 'refusal'
    case 'paused':
      return 'pause_turn'
    default:
      return 'max_tokens'
  }
}

/** Tokens that were read from the cache are not part of `input_tokens`. */
function usageOf({ usage }: AnswerPlan): JsonObject {
  return {
    input_tokens: Math.max(0, usage.input - usage.cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output,
    service_tier: 'standard',
  }
}

function framesOf(head: JsonObject, blocks: readonly Block[], plan: AnswerPlan): Frame[] {
  const usage = usageOf(plan)
  const begun = {
    ...head,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 1 },
  }
  const events: JsonObject[] = [{ type: 'message_start', message: begun }]
  blocks.forEach((block, index) => {
    events.push({ type: 'content_block_start', index, content_block: block.start })
    if (index === 0) events.push({ type: 'ping' })
    for (const delta of block.deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
  })
  const ending: JsonObject[] = [
    {
      type: 'message_delta',
      delta: {
        stop_reason: stopReason(plan),
        stop_sequence: null,
        ...defined({ container: head.container }),
      },
      usage,
    },
    { type: 'message_stop' },
  ]
  return [
    ...events.map(event => ({ text: anthropicFrame(event), terminal: false })),
    ...ending.map(event => ({ text: anthropicFrame(event), terminal: true })),
  ]
}

function anthropicFrame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
