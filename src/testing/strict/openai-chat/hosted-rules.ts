/**
 * The APIs of the makers of open models are stricter than vLLM with the same models: every result follows its call, and no
 * message is empty.
 */
import { listOf, objectOf, textOf } from '../json.js'
import type { StrictProfile } from '../profile.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { callsPaired } from './conversation-rules.js'
import { hasCalls, type ReadMessage, readMessages } from './messages.js'

type Words = (message: ReadMessage) => string

/** The words of each maker for calls and results that do not match. */
const UNPAIRED: Partial<Readonly<Record<StrictProfile, string>>> = {
  minimax: "invalid params, tool result's tool id not found (2013)",
  qwen: '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a preceeding message with "tool_calls".',
}

/** X17. */
export const hostedPairs: Rule = (body, context) => {
  const violation = callsPaired(body, context)
  const message = UNPAIRED[context.profile]
  return violation && message !== undefined ? { ...violation, code: 'X17', message } : violation
}

const EMPTY: Partial<Readonly<Record<StrictProfile, Words>>> = {
  kimi: ({ index, role }) =>
    `Invalid request: the message at position ${index} with role '${textOf(role)}' must not be empty`,
  glm: () => 'The prompt parameter was not received normally. (1214)',
  minimax: () => 'invalid params, chat content is empty (2013)',
  qwen: () => '<400> InternalError.Algo.InvalidParameter: content should not be empty.',
  cohere: () => 'invalid request: all elements in messages must have content or tool calls.',
}

/** X18. */
export const hostedNotEmpty: Rule = (body, context) =>
  firstOf(readMessages(body), message => {
    const words = EMPTY[context.profile]
    if (words === undefined || hasCalls(message) || !isBlank(message.content)) return undefined
    return refuseAt(message, 'X18', words(message))
  })

function isBlank(content: unknown): boolean {
  if (Array.isArray(content))
    return content.every(part => objectOf(part).type === 'text' && textOf(objectOf(part).text).trim() === '')
  return textOf(content).trim() === ''
}

/** X19: MiniMax refuses a tool without parameters, even one that takes none. */
export const parametersGiven: Rule = body =>
  firstOf(listOf(body.tools), tool =>
    objectOf(objectOf(tool).function).parameters === undefined
      ? refuse('X19', 'invalid params, function parameters is empty (2013)')
      : undefined,
  )

/** A refusal whose words do not say which message it is about. */
export function refuseAt({ index }: ReadMessage, code: string, message: string): Violation {
  return { ...refuse(code, message), place: `messages[${index}]` }
}

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message, errorType: 'invalid_request_error' }
}
