import type { Family, Route } from '../family.js'
import { estimateTokens, type JsonObject } from '../json.js'
import { applyRules, type Rule } from '../violation.js'
import {
  cacheMarks,
  callIdsUnique,
  callsAnswered,
  endsWell,
  fitsWindow,
  messagesNotEmpty,
  resultsHaveCalls,
  resultsSingle,
  startsWithUser,
  textNotBlank,
  toolsDefined,
} from './conversation-rules.js'
import { anthropicError, anthropicFault, anthropicRefusal } from './errors.js'
import { anthropicFrame, renderAnthropic } from './render.js'
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
import { summarizeAnthropic } from './summarize.js'
import { thinkingGenuine, thinkingLeads, thinkingOptions, thinkingUnmodified } from './thinking-rules.js'

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
  cacheMarks,
  thinkingOptions,
  startsWithUser,
  messagesNotEmpty,
  textNotBlank,
  endsWell,
  callIdsUnique,
  resultsSingle,
  callsAnswered,
  resultsHaveCalls,
  thinkingGenuine,
  thinkingUnmodified,
  thinkingLeads,
  toolsDefined,
  fitsWindow,
]

/** Anthropic's Messages API, before and after prefill was taken away. */
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
