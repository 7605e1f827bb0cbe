import type { Family, Route } from '../family.js'
import { estimateTokens, type JsonObject } from '../json.js'
import type { Rule } from '../violation.js'
import { applyRules } from '../violation.js'
import { googleError, googleFault, googleRefusal, overloaded } from './errors.js'
import { renderGemini } from './render.js'
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
import { summarizeGemini } from './summarize.js'
import {
  callsFollowUser,
  callsSigned,
  endsWithUser,
  fitsWindow,
  idsEchoed,
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
  rolesKnown,
  endsWithUser,
  startsWithUser,
  callsFollowUser,
  responsesFollowCalls,
  responsesMatchCalls,
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

function routeGemini(method: string, path: string): Route | undefined {
  const action = /\/models\/([^/]+):(\w+)$/.exec(path)
  if (method === 'POST' && action !== null) {
    const model = decodeURIComponent(action[1] ?? '')
    if (action[2] === 'generateContent') return { kind: 'generate', model, stream: false }
    if (action[2] === 'streamGenerateContent') return { kind: 'generate', model, stream: true }
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
