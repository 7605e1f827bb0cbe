/**
 * DeepSeek in thinking mode. Its parser is serde's, with serde's words; pairing is checked in words of its
 * own; and a message with calls must bring back its `reasoning_content`, even an empty one.
 */
import { listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { pairingFault } from './conversation-rules.js'
import { hasCalls, type ReadMessage, readMessages } from './messages.js'

const ROLES = ['system', 'user', 'assistant', 'tool']

/** The first fault that serde meets. */
export const deepseekDeserializes: Rule = body => {
  const end = JSON.stringify(body).length
  for (const name of ['model', 'messages']) {
    if (body[name] === undefined) return serde(`missing field \`${name}\``, end)
  }
  return firstOf(readMessages(body), message => messageFault(message, end))
}

function messageFault(message: ReadMessage, end: number): Violation | undefined {
  const path = `messages[${message.index}]`
  const role = textOf(message.role)
  if (message.role === undefined) return serde(`${path}: missing field \`role\``, end)
  if (!ROLES.includes(role)) {
    const expected = ROLES.map(name => `\`${name}\``).join(', ')
    return serde(`${path}.role: unknown variant \`${role}\`, expected one of ${expected}`, end)
  }
  const part = listOf(message.content).find(candidate => objectOf(candidate).type !== 'text')
  if (part !== undefined) {
    return serde(`${path}: unknown variant \`${textOf(objectOf(part).type)}\`, expected \`text\``, end)
  }
  if (role === 'tool' && textOf(message.raw.tool_call_id) === '') {
    return serde(`${path}: missing field \`tool_call_id\``, end)
  }
  if (message.content == null && !hasCalls(message)) return serde(`${path}: missing field \`content\``, end)
  return firstOf(message.calls, call =>
    typeof call.arguments === 'string'
      ? undefined
      : serde(`${path}: invalid type: ${typeof call.arguments}, expected a string`, end),
  )
}

function serde(what: string, column: number): Violation {
  return refuse(
    'X-schema',
    `Failed to deserialize the JSON body into the target type: ${what} at line 1 column ${column}`,
  )
}

/** X2 and X3. */
export const deepseekPairs: Rule = (body, context) => {
  const fault = pairingFault(readMessages(body), context)
  if (fault === undefined) return undefined
  if (fault.kind === 'orphan') {
    return refuse(
      'X3',
      "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    )
  }
  return refuse(
    'X2',
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
  )
}

/** X1. */
export const deepseekReasoning: Rule = body =>
  firstOf(readMessages(body), message => {
    if (!hasCalls(message) || typeof message.raw.reasoning_content === 'string') return undefined
    return refuse('X1', 'The `reasoning_content` in the thinking mode must be passed back to the API.')
  })

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: 'invalid_request_error' }
}
