import {
  type Answer,
  type AnswerPlan,
  type AnswerRequest,
  type Family,
  type Frame,
  type Route,
  splitEvery,
} from '../family.js'
import { estimateTokens, type JsonObject, objectOf } from '../json.js'
import { openaiMedia } from '../media/media-words.js'
import type { StrictProfile } from '../profile.js'
import type { Quirk } from '../script.js'
import { freshNonce, freshToken } from '../seal.js'
import { applyRules, type Rule } from '../violation.js'
import {
  deepseekDeserializes,
  deepseekPairs,
  deepseekReasoning,
  groqProperties,
  groqRequest,
  ollamaArguments,
  ollamaContent,
  ollamaImages,
  ollamaRequest,
  ollamaToolText,
  vllmAlternates,
  vllmArguments,
  vllmImages,
  vllmRequest,
} from './compatible-rules.js'
import {
  callsPaired,
  contentPresent,
  fitsWindow,
  imagesFromUser,
  toolMessagesNamed,
} from './conversation-rules.js'
import { chatFault, chatNotFound, chatRefusal, chatStreamError, overflowOf } from './errors.js'
import {
  type Details,
  detailsGenuine,
  detailsPresent,
  detailsReturned,
  extraContentSigned,
  mintDetailedId,
  mintDetails,
  mintExtraContent,
} from './gateway-rules.js'
import { hostedNotEmpty, hostedPairs, parametersGiven } from './hosted-rules.js'
import {
  mistralAssistantContent,
  mistralCallForms,
  mistralCounts,
  mistralFields,
  mistralIdsMatch,
  mistralLastRole,
  mistralRoleOrder,
  mistralWindow,
} from './mistral-rules.js'
import {
  hasMessages,
  hasModel,
  keysKnown,
  messageTypes,
  numbersInBounds,
  rolesKnown,
  toolTypes,
} from './shape-rules.js'
import { summarizeChat } from './summarize.js'
import {
  deepseekAllReasoning,
  forcedWithoutThinking,
  kimiReasoning,
  mintReasonedId,
  mistralTemplate,
  thoughtsReturned,
} from './thinking-rules.js'

const windowOf: Rule = (body, context) => {
  const tokens = estimateTokens(body)
  if (tokens <= context.contextWindow) return undefined
  return overflowOf(context.profile, tokens, context.contextWindow)
}

/** Whether Groq pairs calls is not known for all its models, so only the strict reading asks for it. */
const groqPairs: Rule = (body, context) =>
  context.reading === 'strict' ? callsPaired(body, context) : undefined

const OPENAI_RULES: readonly Rule[] = [
  hasModel,
  hasMessages,
  keysKnown,
  messageTypes,
  numbersInBounds,
  toolTypes,
  rolesKnown,
  imagesFromUser,
  openaiMedia,
  contentPresent,
  toolMessagesNamed,
  callsPaired,
  fitsWindow,
]

/** Servers that put a history through the model's chat template. */
const TEMPLATED: readonly Rule[] = [vllmRequest, vllmArguments, vllmImages, openaiMedia, vllmAlternates]

/** Further checks of the makers' own APIs. */
const HOSTED: readonly Rule[] = [hostedPairs, hostedNotEmpty]

/** Checks of every gateway, before those of a maker's own server. */
const GATEWAY: readonly Rule[] = [
  hasModel,
  hasMessages,
  messageTypes,
  toolTypes,
  rolesKnown,
  openaiMedia,
  contentPresent,
  toolMessagesNamed,
  callsPaired,
]

/** The rules of each server, in the order in which it checks. */
const RULES: Partial<Readonly<Record<StrictProfile, readonly Rule[]>>> = {
  'openai-chat': OPENAI_RULES,
  mistral: [
    mistralFields,
    mistralLastRole,
    mistralRoleOrder,
    mistralCounts,
    mistralAssistantContent,
    mistralCallForms,
    openaiMedia,
    mistralIdsMatch,
    mistralWindow,
  ],
  'deepseek-thinking': [deepseekDeserializes, deepseekPairs, deepseekReasoning, windowOf],
  'deepseek-v4': [
    deepseekDeserializes,
    forcedWithoutThinking,
    deepseekPairs,
    deepseekAllReasoning,
    windowOf,
    thoughtsReturned,
  ],
  kimi: [...TEMPLATED, ...HOSTED, kimiReasoning, forcedWithoutThinking, windowOf, thoughtsReturned],
  glm: [...TEMPLATED, ...HOSTED, windowOf, thoughtsReturned],
  qwen: [...TEMPLATED, ...HOSTED, forcedWithoutThinking, windowOf, thoughtsReturned],
  minimax: [...TEMPLATED, ...HOSTED, parametersGiven, windowOf, thoughtsReturned],
  cohere: [...GATEWAY, hostedNotEmpty, windowOf],
  'mistral-template': [...TEMPLATED, mistralTemplate, windowOf],
  'compatible-gemini': [...GATEWAY, extraContentSigned, windowOf],
  openrouter: [...GATEWAY, detailsGenuine, windowOf, detailsReturned],
  'openrouter-gemini': [...GATEWAY, detailsPresent, windowOf],
  groq: [groqRequest, groqProperties, openaiMedia, groqPairs, windowOf],
  vllm: [...TEMPLATED, windowOf],
  ollama: [
    ollamaRequest,
    ollamaContent,
    ollamaArguments,
    ollamaImages,
    openaiMedia,
    windowOf,
    ollamaToolText,
  ],
}

/** Chat Completions, as OpenAI and the servers compatible with it understand it. */
export const openaiChatFamily: Family = {
  baseUrl: origin => `${origin}/v1`,
  route: routeChat,
  keyOf: headers => headers.authorization?.replace(/^Bearer /i, '') ?? headers['api-key'],
  judge: (body, context) => applyRules(RULES[context.profile] ?? OPENAI_RULES, body, context),
  summarize: summarizeChat,
  render: renderChat,
  countTokens: (body: JsonObject) => ({ total_tokens: estimateTokens(body) }),
  listModels: (model, only) =>
    only === undefined ? { object: 'list', data: [describeModel(model)] } : describeModel(only),
  refusal: chatRefusal,
  fault: chatFault,
  streamError: chatStreamError,
  notFound: chatNotFound,
}

function routeChat(method: string, path: string): Route | undefined {
  if (method === 'POST' && path.endsWith('/chat/completions')) return { kind: 'generate' }
  return routeModels(method, path)
}

/** The model routes that every OpenAI-like server has. */
export function routeModels(method: string, path: string): Route | undefined {
  if (method !== 'GET') return undefined
  if (path.endsWith('/models')) return { kind: 'list-models' }
  const one = /\/models\/(.+)$/.exec(path)
  return one === null ? undefined : { kind: 'get-model', model: decodeURIComponent(one[1] ?? '') }
}

export function describeModel(model: string): JsonObject {
  return { id: model, object: 'model', created: 1_767_225_600, owned_by: 'strict-server' }
}

/** A chat completion: whole, and as `data:` frames that end with `[DONE]`, with every quirk that is asked for. */
interface Call {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly extraContent?: JsonObject
}

interface Writing {
  readonly request: AnswerRequest
  readonly quirks: ReadonlySet<Quirk>
  readonly calls: readonly Call[]
  readonly details: Details
  readonly head: JsonObject
  readonly finish: string
  readonly usage: JsonObject
}

/** How each server differs without being asked to. */
const HABITS: Partial<Readonly<Record<StrictProfile, readonly Quirk[]>>> = {
  mistral: ['calls-with-finish', 'usage-on-finish'],
  'deepseek-thinking': ['usage-on-finish'],
  'deepseek-v4': ['usage-on-finish'],
  'compatible-gemini': ['whole-arguments', 'index-missing'],
  groq: ['whole-arguments'],
  ollama: ['whole-arguments'],
}

function renderChat(request: AnswerRequest): Answer {
  const { plan, summary, context } = request
  const habits = HABITS[context.profile] ?? []
  const calls = callsOf(request)
  const writing: Writing = {
    request,
    quirks: new Set([...habits, ...request.quirks]),
    calls,
    details: mintDetails(
      request,
      calls.map(({ id }) => id),
    ),
    head: {
      id: `chatcmpl-${freshToken(29)}`,
      created: Math.floor(Date.now() / 1000),
      model: summary.model,
    },
    finish: finishReason(request),
    usage: usageOf(plan),
  }
  return {
    json: wholeAnswer(writing, writing.finish),
    unfinished: wholeAnswer(writing, null),
    frames: frames(writing),
  }
}

function callsOf(request: AnswerRequest): Call[] {
  const { plan, context, summary } = request
  return plan.toolCalls.map((call, index) => {
    const text = JSON.stringify(call.args)
    return {
      index,
      id:
        call.id ??
        (plan.thinking !== '' && context.profile === 'openrouter'
          ? mintDetailedId(plan.thinking, summary.model, context.account)
          : ECHOED.has(context.profile) && plan.thinking !== ''
            ? mintReasonedId(plan.thinking)
            : callId(context.profile)),
      name: call.name,
      ...(context.profile === 'compatible-gemini' && index === 0
        ? { extraContent: mintExtraContent(request) }
        : {}),
      // The model stopped in the middle of its call.
      arguments: plan.finish === 'malformed-call' ? text.slice(0, Math.max(1, text.length - 2)) : text,
    }
  })
}

/** Servers that want the reasoning of their calls back. */
const ECHOED: ReadonlySet<StrictProfile> = new Set(['deepseek-v4', 'kimi', 'glm', 'qwen', 'minimax'])

function callId(profile: StrictProfile): string {
  switch (profile) {
    case 'mistral':
    case 'mistral-template':
      return freshToken(9)
    case 'vllm':
      return `chatcmpl-tool-${freshNonce(32)}`
    case 'compatible-gemini':
      return freshToken(8).toLowerCase()
    case 'openrouter-gemini':
      return `tool_${freshToken(20)}`
    case 'ollama':
      return `call_${freshToken(8).toLowerCase()}`
    case 'deepseek-thinking':
      return `call_00_${freshToken(24)}`
    default:
      return `call_${freshToken(24)}`
  }
}

/** A call that was forced by name ends with `stop` at OpenAI, although there is a call. */
function finishReason({ plan, summary, context }: AnswerRequest): string {
  switch (plan.finish) {
    case 'tool-calls':
      return typeof summary.toolChoice === 'object' && context.profile === 'openai-chat'
        ? 'stop'
        : 'tool_calls'
    case 'malformed-call':
      return plan.toolCalls.length > 0 ? 'tool_calls' : 'stop'
    case 'blocked':
      return 'content_filter'
    case 'paused':
      return 'stop'
    default:
      return plan.finish
  }
}

function usageOf({ usage }: AnswerPlan): JsonObject {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning, audio_tokens: 0 },
  }
}

function reasoningField({ context, plan }: AnswerRequest): string | undefined {
  if (plan.thinking === '') return undefined
  if (ECHOED.has(context.profile)) return 'reasoning_content'
  if (context.profile === 'deepseek-thinking' || context.profile === 'vllm') return 'reasoning_content'
  return REASONS.has(context.profile) ? 'reasoning' : undefined
}

/** Servers whose field for thoughts is `reasoning`. */
const REASONS: ReadonlySet<StrictProfile> = new Set(['ollama', 'groq', 'openrouter', 'openrouter-gemini'])

/** An answer without calls is signed as a whole. */
function messageExtra({ request, calls }: Writing): JsonObject {
  const isSigned = request.context.profile === 'compatible-gemini' && calls.length === 0
  return isSigned ? { extra_content: mintExtraContent(request) } : {}
}

function wholeAnswer(writing: Writing, finish: string | null): JsonObject {
  const { request, head, calls, details, usage } = writing
  const { plan } = request
  const reasoning = reasoningField(request)
  const message = {
    role: 'assistant',
    content: plan.text === '' && calls.length > 0 ? null : plan.text,
    ...(reasoning === undefined ? {} : { [reasoning]: plan.thinking }),
    ...(details.whole.length === 0 ? {} : { reasoning_details: details.whole }),
    ...messageExtra(writing),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(wholeCall) }),
    ...(request.context.profile === 'openai-chat' ? { refusal: null } : {}),
  }
  const choice = { index: 0, message, logprobs: null, finish_reason: finish }
  return { ...head, object: 'chat.completion', choices: [choice], usage, system_fingerprint: 'fp_strict' }
}

function wholeCall(call: Call): JsonObject {
  const { id, name, extraContent } = call
  const extra = extraContent === undefined ? {} : { extra_content: extraContent }
  return { id, type: 'function', function: { name, arguments: call.arguments }, ...extra }
}

function frames(writing: Writing): Frame[] {
  const { quirks, request, finish } = writing
  const body = deltas(writing).map(delta => chunk(writing, delta, null))
  if (quirks.has('empty-choices')) body.splice(1, 0, { ...chunk(writing, {}, null), choices: [] })
  const last = quirks.has('calls-with-finish') && writing.calls.length > 0
  const ending = chunk(
    writing,
    last ? { tool_calls: writing.calls.map(call => callDelta(call)) } : {},
    finish,
  )
  const endings: JsonObject[] = [
    quirks.has('usage-on-finish') ? { ...ending, usage: writing.usage } : ending,
    ...(quirks.has('finish-twice') ? [chunk(writing, {}, finish)] : []),
  ]
  const wantsUsage = objectOf(request.body.stream_options).include_usage === true
  if (wantsUsage && !quirks.has('usage-on-finish')) {
    endings.push({ ...ending, choices: [], usage: writing.usage })
  }
  const written = [
    ...body.map(value => frame(value, false, quirks)),
    ...endings.map(value => frame(value, true, quirks)),
  ]
  if (!quirks.has('no-done')) written.push({ text: 'data: [DONE]\n\n', terminal: true })
  return written
}

function deltas(writing: Writing): JsonObject[] {
  const { request, quirks, calls } = writing
  const reasoning = reasoningField(request)
  const role = { role: 'assistant', content: calls.length > 0 ? null : '' }
  const parts: JsonObject[] = [
    role,
    ...(reasoning === undefined ? [] : [{ [reasoning]: request.plan.thinking }]),
    ...writing.details.fragments.map(detail => ({ reasoning_details: [detail] })),
    ...request.plan.deltas.map(content => ({ content })),
    ...[messageExtra(writing)].filter(({ extra_content: extra }) => extra !== undefined),
    ...(quirks.has('calls-with-finish') ? [] : calls.flatMap(call => callDeltas(call, quirks))),
  ]
  return quirks.has('role-in-every-delta') ? parts.map(part => ({ role: 'assistant', ...part })) : parts
}

/** The first delta names the call; the later ones bring its arguments in pieces. */
function callDeltas(call: Call, quirks: ReadonlySet<Quirk>): JsonObject[] {
  if (quirks.has('whole-arguments')) return [{ tool_calls: [quirky(callDelta(call), call, quirks, true)] }]
  const first = { ...callDelta(call), function: { name: call.name, arguments: '' } }
  const pieces = splitEvery(call.arguments, 8).map(piece => ({
    index: call.index,
    function: { arguments: piece },
  }))
  return [first, ...pieces].map((delta, at) => ({ tool_calls: [quirky(delta, call, quirks, at === 0)] }))
}

function callDelta(call: Call): JsonObject {
  return { index: call.index, ...wholeCall(call) }
}

function quirky(delta: JsonObject, call: Call, quirks: ReadonlySet<Quirk>, first: boolean): JsonObject {
  const { index, id, ...rest } = delta
  const place = quirks.has('index-missing') ? {} : { index: quirks.has('index-zero') ? 0 : index }
  const named = quirks.has('id-missing') ? false : first || quirks.has('id-repeated')
  return { ...place, ...(named ? { id: id ?? call.id } : {}), ...rest }
}

function chunk({ head, request }: Writing, delta: JsonObject, finish: string | null): JsonObject {
  const wantsUsage = objectOf(request.body.stream_options).include_usage === true
  return {
    ...head,
    object: 'chat.completion.chunk',
    system_fingerprint: 'fp_strict',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(wantsUsage ? { usage: null } : {}),
  }
}

function frame(value: JsonObject, terminal: boolean, quirks: ReadonlySet<Quirk>): Frame {
  const comment = quirks.has('comments') ? ': PROCESSING\n\n' : ''
  return { text: `${comment}data: ${JSON.stringify(value)}\n\n`, terminal }
}
