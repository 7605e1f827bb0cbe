import type { Family, Route } from '../family.js'
import { estimateTokens, type JsonObject } from '../json.js'
import { chatFault, chatNotFound, chatRefusal } from '../openai-chat/errors.js'
import { describeModel, routeModels } from '../openai-chat/openai-chat-family.js'
import { applyRules, type Rule } from '../violation.js'
import {
  callsHaveOutputs,
  fitsWindow,
  itemsExist,
  itemsUnique,
  outputsHaveCalls,
  previousExists,
  reasoningFollowed,
  reasoningGenuine,
  reasoningPresent,
  responsesOverflow,
} from './conversation-rules.js'
import { renderResponses, responsesFrame } from './render.js'
import { hasInput, hasModel, inputTypes, keysKnown, optionsInBounds, toolTypes } from './shape-rules.js'
import { summarizeResponses } from './summarize.js'

const RULES: readonly Rule[] = [
  hasModel,
  hasInput,
  keysKnown,
  inputTypes,
  optionsInBounds,
  toolTypes,
  previousExists,
  itemsExist,
  reasoningGenuine,
  itemsUnique,
  reasoningFollowed,
  reasoningPresent,
  outputsHaveCalls,
  callsHaveOutputs,
  fitsWindow,
]

/** OpenAI's Responses API. */
export const openaiResponsesFamily: Family = {
  baseUrl: origin => `${origin}/v1`,
  route: routeResponses,
  keyOf: headers => headers.authorization?.replace(/^Bearer /i, '') ?? headers['api-key'],
  judge: (body, context) => applyRules(RULES, body, context),
  summarize: summarizeResponses,
  render: renderResponses,
  countTokens: (body: JsonObject) => ({
    object: 'response.input_tokens',
    input_tokens: estimateTokens(body),
  }),
  listModels: (model, only) =>
    only === undefined ? { object: 'list', data: [describeModel(model)] } : describeModel(only),
  refusal: chatRefusal,
  fault: (fault, context) =>
    fault.kind === 'context-overflow' ? chatRefusal(responsesOverflow(), context) : chatFault(fault, context),
  streamError: () =>
    responsesFrame({
      type: 'error',
      sequence_number: 99,
      error: {
        type: 'server_error',
        code: 'server_error',
        message: 'The server had an error while processing your request. Sorry about that!',
        param: null,
      },
    }),
  notFound: chatNotFound,
}

function routeResponses(method: string, path: string): Route | undefined {
  if (method === 'POST' && path.endsWith('/responses')) return { kind: 'generate' }
  if (method === 'POST' && path.endsWith('/responses/input_tokens')) return { kind: 'count-tokens' }
  return routeModels(method, path)
}
