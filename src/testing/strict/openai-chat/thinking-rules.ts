/**
 * Models that think between calls: Kimi, GLM, Qwen, MiniMax, DeepSeek V4. They send their thoughts beside the call
 * and want them back with it. A call id that such a server mints proves which thoughts came with the call, so that
 * a request that lost or altered them can be recognised without any memory.
 */
import { isObject, type JsonObject, objectOf, textOf } from '../json.js'
import type { StrictProfile } from '../profile.js'
import { freshNonce, shortMac } from '../seal.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { lostReasoning } from './compatible-rules.js'
import { hasCalls, readMessages } from './messages.js'

/** The id of a call that came with thoughts. */
export function mintReasonedId(thinking: string): string {
  const claim = freshNonce(8) + digestOf(thinking)
  return `call_r${claim}${shortMac('openai', claim, 8)}`
}

function digestOf(thinking: string): string {
  return shortMac('openai', `thinking:${thinking}`, 6)
}

/** The digest of the thoughts that came with a call; nothing when there were none. */
function thoughtsOf(id: unknown): string | undefined {
  const match = /^call_r([0-9a-f]{8}([0-9a-f]{6}))([0-9a-f]{8})$/.exec(textOf(id))
  if (match === null || shortMac('openai', match[1] ?? '', 8) !== match[3]) return undefined
  return match[2]
}

/** X11: with calls, and not empty; some accept an empty text. */
export const kimiReasoning: Rule = (body, context) =>
  firstOf(readMessages(body), message => {
    const { reasoning_content: reasoning } = message.raw
    const isThere = typeof reasoning === 'string' && (reasoning !== '' || context.reading === 'lenient')
    if (!hasCalls(message) || isThere) return undefined
    return refuseThinker(
      'X11',
      `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${message.index}`,
    )
  })

/** X34: a choice that is forced on a model while it thinks, and thinking that cannot be asked for. */
function kimiChoice(body: JsonObject): Violation | undefined {
  const { model, thinking, reasoning_effort: effort, tool_choice: choice } = body
  const name = textOf(model)
  if (thinking !== undefined && effort !== undefined)
    return refuseThinker('X34', "cannot specify both 'thinking' and 'reasoning_effort'")
  const isOff = textOf(objectOf(thinking).type) === 'disabled'
  const alwaysThinks = /kimi-(k[3-9]|k2\.[7-9]|k2-thinking)/.test(name)
  if (isOff && alwaysThinks) return refuseThinker('X34', `thinking cannot be disabled for ${name}`)
  const forced = textOf(objectOf(choice).type) === 'function' ? 'specified' : choice
  const isRefused = forced === 'specified' || (forced === 'required' && !/kimi-k[3-9]/.test(name))
  if (!isRefused || isOff) return undefined
  return refuseThinker('X34', `tool_choice '${forced}' is incompatible with thinking enabled`)
}

const FORCED_WHILE_THINKING: Partial<Readonly<Record<StrictProfile, string>>> = {
  'deepseek-v4': 'Thinking mode does not support this tool_choice',
  qwen: '<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode',
}

/** X34, and X35: thinking is on unless the request says otherwise. */
export const forcedWithoutThinking: Rule = (body, { profile }) => {
  if (profile === 'kimi') return kimiChoice(body)
  const choice = body.tool_choice
  const words = FORCED_WHILE_THINKING[profile]
  const isOff = textOf(objectOf(body.thinking).type) === 'disabled' || body.enable_thinking === false
  if (words === undefined || isOff || !(choice === 'required' || isObject(choice))) return undefined
  return refuseThinker('X35', words)
}

/** X12: not refused, but a model that does not see its own thoughts loses the thread of its calls. */
export const thoughtsReturned: Rule = body => {
  const lost = readMessages(body).find(({ calls, raw }) => {
    const digest = firstOf(calls, call => thoughtsOf(call.id))
    return digest !== undefined && digest !== digestOf(textOf(raw.reasoning_content ?? raw.reasoning))
  })
  if (lost === undefined) return undefined
  const message = `messages[${lost.index}]: the reasoning that came with these calls was not sent back as it was.`
  return { code: 'X12', status: 200, message }
}

/** X1 of V4: every message of the assistant, as soon as tools are declared. */
export const deepseekAllReasoning: Rule = (body, context) => {
  const declares = Array.isArray(body.tools) && body.tools.length > 0 && context.reading === 'strict'
  return firstOf(readMessages(body), message => {
    if (message.role !== 'assistant' || !(declares || hasCalls(message))) return undefined
    if (typeof message.raw.reasoning_content === 'string') return undefined
    return lostReasoning(message.index)
  })
}

/** X13: Mistral's chat template counts turns without calls and results, and takes ids of nine letters or digits. */
export const mistralTemplate: Rule = body => {
  const messages = readMessages(body)
  const ids = messages.flatMap(({ calls, raw }) => [
    ...calls.map(call => textOf(call.id)),
    ...(raw.role === 'tool' ? [textOf(raw.tool_call_id)] : []),
  ])
  if (ids.some(id => !/^[a-zA-Z0-9]{9}$/.test(id))) {
    return refuseThinker('X13', 'Tool call IDs should be alphanumeric strings with length 9!')
  }
  const spoken = messages.filter(
    (message, index) =>
      message.role !== 'tool' && !hasCalls(message) && (index > 0 || message.role !== 'system'),
  )
  const wrong = spoken.some(({ role }, index) => role !== (index % 2 === 0 ? 'user' : 'assistant'))
  if (!wrong) return undefined
  return refuseThinker(
    'X13',
    'After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.',
  )
}

function refuseThinker(code: string, message: string): Violation {
  return { code, status: 400, message, errorType: 'invalid_request_error' }
}
