/**
 * Mistral's own validation, after its published mistral-common: first the request's fields (422), then the
 * order of roles, then each message. Ids are exactly nine letters or digits.
 */
import { own } from '../../../base/own.js'
import { estimateTokens, isObject, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { hasCalls, type ReadMessage, readMessages } from './messages.js'

const TOP_LEVEL = new Set(
  `model messages temperature top_p max_tokens min_tokens stream stop random_seed response_format tools
  tool_choice presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode safe_prompt
  metadata reasoning_effort guardrails prompt_cache_key`.split(/\s+/),
)

const MESSAGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
}

/** Fields that must be there, and fields that must not: a validation error with its place. */
export const mistralFields: Rule = (body, context) => {
  for (const name of ['model', 'messages']) {
    if (body[name] === undefined) return invalid(['body', name], 'missing', 'Field required', body)
  }
  const tolerated = context.reading === 'lenient' ? ['stream_options'] : []
  const extra = Object.keys(body).find(key => !TOP_LEVEL.has(key) && !tolerated.includes(key))
  if (extra !== undefined) return extraField(['body', extra], body[extra])
  if (!Array.isArray(body.messages)) {
    return invalid(['body', 'messages'], 'list_type', 'Input should be a valid list', body.messages)
  }
  return firstOf(readMessages(body), messageFieldFault)
}

function messageFieldFault(message: ReadMessage): Violation | undefined {
  const role = textOf(message.role)
  const place = ['body', 'messages', message.index]
  const keys = own(MESSAGE_KEYS, role)
  if (keys === undefined) {
    const expected = "'system', 'user', 'assistant', 'tool'"
    return invalid(
      place,
      'union_tag_invalid',
      `Input tag '${role}' found using 'role' does not match any of the expected tags: ${expected}`,
      message.raw,
    )
  }
  const extra = Object.keys(message.raw).find(key => !keys.includes(key))
  if (extra !== undefined) return extraField([...place, role, extra], message.raw[extra])
  return firstOf(message.calls, call => {
    if (typeof call.arguments === 'string' || isObject(call.arguments)) return undefined
    const at = [...place, role, 'tool_calls', call.index, 'function', 'arguments']
    return invalid(at, 'string_type', 'Input should be a valid string', call.arguments)
  })
}

function extraField(place: readonly (string | number)[], input: unknown): Violation {
  return invalid(place, 'extra_forbidden', 'Extra inputs are not permitted', input)
}

function invalid(
  loc: readonly (string | number)[],
  type: string,
  message: string,
  input: unknown,
): Violation {
  return {
    code: 'M-schema',
    status: 422,
    message: `${loc.join('.')}: ${message}`,
    details: [{ type, loc, msg: message, input: input ?? null }],
  }
}

/** M3. */
export const mistralLastRole: Rule = body => {
  const messages = readMessages(body)
  if (messages.length === 0) return order('M-order', 'Conversation must have at least one message')
  const last = messages.at(-1)
  const role = textOf(last?.role)
  if (messages.length === 1) {
    return role === 'user' || role === 'system'
      ? undefined
      : order('M3', 'Conversation must start with a user message or system message')
  }
  if (role === 'user' || role === 'tool' || last?.raw.prefix === true) return undefined
  return order(
    'M3',
    `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${role}`,
  )
}

const SUCCESSORS: Readonly<Record<string, readonly string[]>> = {
  system: ['user', 'assistant', 'system'],
  user: ['assistant', 'system', 'user'],
  assistant: ['assistant', 'user', 'tool'],
  // A user after a tool was refused for years; the hosted API takes it since August 2026.
  tool: ['assistant', 'tool', 'user'],
}

/** M4. */
export const mistralRoleOrder: Rule = body => {
  const messages = readMessages(body)
  return firstOf(messages.slice(1), (message, index) => {
    const previous = textOf(messages[index]?.role)
    const role = textOf(message.role)
    if (own(SUCCESSORS, previous)?.includes(role) ?? true) return undefined
    return order('M4', `Unexpected role '${role}' after role '${previous}'`)
  })
}

/** M2. The check skips the first message, so a conversation cannot start with a call. */
export const mistralCounts: Rule = body => {
  let expected = 0
  const message = 'Not the same number of function calls and responses'
  for (const { index, role, calls } of readMessages(body)) {
    if (index === 0) continue
    if (role === 'tool') expected -= 1
    else if (role === 'assistant') {
      if (expected !== 0) return order('M2', message)
      expected = calls.length
    }
  }
  return expected === 0 ? undefined : order('M2', message)
}

/** M5. */
export const mistralAssistantContent: Rule = body =>
  firstOf(readMessages(body), message => {
    if (message.role !== 'assistant' || hasCalls(message) || !isBlank(message.content)) return undefined
    return {
      code: 'M5',
      status: 400,
      message: 'Assistant message must have either content or tool_calls, but not none.',
      errorType: 'invalid_request_assistant_message',
      errorCode: '3240',
    }
  })

function isBlank(content: unknown): boolean {
  return typeof content === 'string' ? content === '' : listOf(content).length === 0
}

/** M1 and M7. */
export const mistralCallForms: Rule = body =>
  firstOf(readMessages(body), message => {
    const ids = message.role === 'tool' ? [message.raw.tool_call_id] : message.calls.map(call => call.id)
    const wrong = ids.findIndex(id => !/^[a-zA-Z0-9]{9}$/.test(textOf(id)))
    if (wrong !== -1) return badCallId(textOf(ids[wrong]) || 'null')
    const call = message.calls.find(candidate => !isName(candidate.name))
    return call === undefined ? undefined : badName(textOf(call.name))
  }) ??
  firstOf(listOf(body.tools), tool => {
    const name = objectOf(objectOf(tool).function).name
    return isName(name) ? undefined : badName(textOf(name))
  })

function isName(name: unknown): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name))
}

function badCallId(id: string): Violation {
  return {
    code: 'M1',
    status: 400,
    message: `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`,
    errorType: 'invalid_function_call',
    errorCode: '3280',
  }
}

function badName(name: string): Violation {
  return {
    code: 'M7',
    status: 400,
    message: `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
    errorType: 'invalid_function_call',
    errorCode: '3280',
  }
}

/** M6, for models from v13 on: ids are unique in a turn, and results name calls of their turn. */
export const mistralIdsMatch: Rule = (body, context) => {
  if (context.reading === 'lenient') return undefined
  let open: string[] = []
  return firstOf(readMessages(body), message => {
    if (message.role === 'assistant') {
      open = message.calls.map(call => textOf(call.id))
      const repeated = open.find((id, index) => open.indexOf(id) !== index)
      if (repeated !== undefined)
        return order('M6', `Duplicate tool call id ${repeated} in assistant message`)
    }
    if (message.role !== 'tool') return undefined
    const id = textOf(message.raw.tool_call_id)
    if (!open.includes(id)) return order('M6', `Unexpected tool call id ${id} in tool results`)
    open = open.filter(candidate => candidate !== id)
    return undefined
  })
}

/** M8. */
export const mistralWindow: Rule = (body, context) => {
  const tokens = estimateTokens(body)
  return tokens <= context.contextWindow ? undefined : mistralOverflow(tokens, context.contextWindow)
}

export function mistralOverflow(tokens: number, window: number): Violation {
  return {
    code: 'M8',
    status: 400,
    message: `Prompt contains ${tokens} tokens, too large for model with ${window} maximum context length`,
    errorType: 'invalid_request_prompt',
    errorCode: '3051',
  }
}

function order(code: string, message: string): Violation {
  return { code, status: 400, message, errorType: 'invalid_request_message_order', errorCode: '3230' }
}
