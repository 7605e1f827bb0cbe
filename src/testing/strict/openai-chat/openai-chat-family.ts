import type { Family, Route } from '../family.js'
import { estimateTokens, type JsonObject } from '../json.js'
import type { StrictProfile } from '../profile.js'
import { applyRules, type Rule } from '../violation.js'
import {
  callsPaired,
  contentPresent,
  fitsWindow,
  imagesFromUser,
  toolMessagesNamed,
} from './conversation-rules.js'
import { deepseekDeserializes, deepseekPairs, deepseekReasoning } from './deepseek-rules.js'
import { chatFault, chatNotFound, chatRefusal, chatStreamError, overflowOf } from './errors.js'
import { groqProperties, groqRequest } from './groq-rules.js'
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
  ollamaArguments,
  ollamaContent,
  ollamaImages,
  ollamaRequest,
  ollamaToolText,
} from './ollama-rules.js'
import { renderChat } from './render.js'
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
import { vllmAlternates, vllmArguments, vllmImages, vllmRequest } from './vllm-rules.js'

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
  contentPresent,
  toolMessagesNamed,
  callsPaired,
  fitsWindow,
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
    mistralIdsMatch,
    mistralWindow,
  ],
  'deepseek-thinking': [deepseekDeserializes, deepseekPairs, deepseekReasoning, windowOf],
  groq: [groqRequest, groqProperties, groqPairs, windowOf],
  vllm: [vllmRequest, vllmArguments, vllmImages, vllmAlternates, windowOf],
  ollama: [ollamaRequest, ollamaContent, ollamaArguments, ollamaImages, windowOf, ollamaToolText],
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
