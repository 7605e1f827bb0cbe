/**
 * DeepSeek in thinking mode. Its parser is serde's, with serde's words; pairing is checked in words of its
 * own; and a message with calls must bring back its `reasoning_content`, even an empty one.
 */

import { own } from '../../../base/own.js'
import { isObject, listOf, objectOf, textOf } from '../json.js'
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
  return refuseDeepseek(
    'X-schema',
    `Failed to deserialize the JSON body into the target type: ${what} at line 1 column ${column}`,
  )
}

/** X2 and X3. */
export const deepseekPairs: Rule = (body, context) => {
  const fault = pairingFault(readMessages(body), context)
  if (fault === undefined) return undefined
  if (fault.kind === 'orphan') {
    return refuseDeepseek(
      'X3',
      "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    )
  }
  return refuseDeepseek(
    'X2',
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
  )
}

/** X1. */
export const deepseekReasoning: Rule = body =>
  firstOf(readMessages(body), message => {
    if (!hasCalls(message) || typeof message.raw.reasoning_content === 'string') return undefined
    return lostReasoning(message.index)
  })

export function lostReasoning(index: number): Violation {
  const words = 'The `reasoning_content` in the thinking mode must be passed back to the API.'
  return { ...refuseDeepseek('X1', words), place: `messages[${index}]` }
}

function refuseDeepseek(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: 'invalid_request_error' }
}

/** Groq checks each message against the shape of its role and lists what is missing, wrong or unsupported. */
const PROPERTIES: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content', 'name'],
  developer: ['role', 'content', 'name'],
  user: ['role', 'content', 'name'],
  assistant: ['role', 'content', 'name', 'tool_calls', 'reasoning', 'refusal', 'annotations'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
}

export const groqRequest: Rule = body => {
  if (textOf(body.model) === '') return refuseGroq('X-schema', "property 'model' is missing")
  if (body.messages === undefined) return refuseGroq('X-schema', "property 'messages' is missing")
  if (!Array.isArray(body.messages)) return refuseGroq('X-schema', "'messages' : value must be an array")
  if (body.messages.length === 0) {
    return refuseGroq('X-schema', "'messages' : minimum number of items is 1")
  }
  return undefined
}

/** X4 and its kin. */
export const groqProperties: Rule = body =>
  firstOf(readMessages(body), message => {
    const role = textOf(message.role)
    const path = `messages.${message.index}`
    const known = own(PROPERTIES, role)
    if (known === undefined)
      return refuseGroq('X-schema', `'${path}' : discriminator property 'role' has invalid value`)
    const unknown = Object.keys(message.raw).find(key => !known.includes(key))
    if (unknown !== undefined) {
      return unsatisfied('X4', role, path, `'${path}' : property '${unknown}' is unsupported`)
    }
    const fault = propertyFault(message, path)
    return fault === undefined ? undefined : unsatisfied('X-schema', role, path, fault)
  })

function propertyFault(message: ReadMessage, path: string): string | undefined {
  if (message.role === 'tool' && textOf(message.raw.tool_call_id) === '') {
    return `'${path}.tool_call_id' : property 'tool_call_id' is missing`
  }
  if (message.content == null && !hasCalls(message))
    return `'${path}.content' : property 'content' is missing`
  const image = listOf(message.content).some(part => objectOf(part).type === 'image_url')
  if (message.role === 'tool' && image) return `'${path}.content' : value must be a string`
  return firstOf(message.calls, call => {
    const at = `${path}.tool_calls.${call.index}`
    if (textOf(call.id) === '') return `'${at}.id' : property 'id' is missing`
    if (call.raw.type === undefined) return `'${at}.type' : property 'type' is missing`
    if (textOf(call.name) === '') return `'${at}.function.name' : property 'name' is missing`
    return typeof call.arguments === 'string'
      ? undefined
      : `'${at}.function.arguments' : value must be a string`
  })
}

function unsatisfied(code: string, role: string, path: string, fault: string): Violation {
  return refuseGroq(code, `'${path}' : for 'role:${role}' the following must be satisfied[(${fault})]`)
}

function refuseGroq(code: string, message: string): Violation {
  return { code, status: 400, message }
}

/** Ollama's OpenAI endpoint, according to its source: no pairing, but content, arguments and images must be readable. */
export const ollamaRequest: Rule = body => {
  if (listOf(body.messages).length === 0) return refuseOllama('X-schema', "[] is too short - 'messages'")
  return textOf(body.model) === '' ? refuseOllama('X-schema', 'model is required') : undefined
}

/** X7. */
export const ollamaContent: Rule = body =>
  firstOf(readMessages(body), message => {
    const { content } = message
    if (typeof content === 'string' || Array.isArray(content) || hasCalls(message)) return undefined
    return refuseOllama('X7', `invalid message content type: ${goType(content)}`)
  })

function goType(value: unknown): string {
  if (value === undefined || value === null) return '<nil>'
  if (typeof value === 'number') return 'float64'
  return isObject(value) ? 'map[string]interface {}' : 'bool'
}

/** X8: arguments are the JSON text of an object. */
export const ollamaArguments: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(message.calls, call => {
      if (typeof call.arguments !== 'string') {
        return refuseOllama(
          'X8',
          `json: cannot unmarshal ${isObject(call.arguments) ? 'object' : typeof call.arguments} into Go struct field .function.arguments of type string`,
        )
      }
      return isObjectText(call.arguments) ? undefined : refuseOllama('X8', 'invalid tool call arguments')
    }),
  )

function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}

/** Remote images are refused, and inline ones must be of a known type. */
export const ollamaImages: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(listOf(message.content), part => {
      if (objectOf(part).type !== 'image_url') return undefined
      const image = objectOf(part).image_url
      const url = textOf(isObject(image) ? image.url : image)
      if (/^https?:/.test(url)) {
        return refuseOllama(
          'X-schema',
          'image URLs are not currently supported, please use base64 encoded data instead',
        )
      }
      return /^data:image\/(jpeg|jpg|png|webp);base64,/.test(url)
        ? undefined
        : refuseOllama('X-schema', 'invalid image input')
    }),
  )

/** Not refused, but a list as the content of a tool message makes Ollama forget which call it answers. */
export const ollamaToolText: Rule = (body, context) => {
  if (context.reading === 'lenient') return undefined
  const lost = readMessages(body).find(message => message.role === 'tool' && Array.isArray(message.content))
  if (lost === undefined) return undefined
  const message = `messages[${lost.index}]: a list as tool content loses its tool_call_id.`
  return { code: 'X10', status: 200, message }
}

function refuseOllama(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: null }
}

/**
 * vLLM asks for little, but it parses the arguments of old calls with Python, and the model's chat template
 * may insist on alternating roles. Tool messages stand between turns and do not count.
 */
export const vllmRequest: Rule = body => {
  if (body.messages === undefined) {
    return refuseVllm(
      'X-schema',
      "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]",
    )
  }
  const roles = readMessages(body).find(message => textOf(message.role) === '')
  if (roles === undefined) return undefined
  const place = `('body', 'messages', ${roles.index}, 'role')`
  return refuseVllm('X-schema', `[{'type': 'missing', 'loc': ${place}, 'msg': 'Field required'}]`)
}

/** X5. */
export const vllmArguments: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(message.calls, call => {
      if (call.arguments === undefined || call.arguments === '') return undefined
      if (typeof call.arguments !== 'string') {
        return refuseVllm('X-schema', 'the JSON object must be str, bytes or bytearray, not dict')
      }
      const fault = pythonJsonError(call.arguments)
      return fault === undefined ? undefined : refuseVllm('X5', fault)
    }),
  )

/** X6, when the template insists: the first turn is the user's, and no role occurs twice in a row. */
export const vllmAlternates: Rule = (body, context) => {
  if (context.reading === 'lenient') return undefined
  const spoken = readMessages(body).filter(message => message.role !== 'system')
  return firstOf(spoken, (message, index) => {
    const previous = spoken[index - 1]?.role
    const starts = index > 0 || message.role === 'user'
    const repeats = message.role !== 'tool' && message.role === previous
    return starts && !repeats
      ? undefined
      : refuseVllm('X6', 'Conversation roles must alternate user/assistant/user/assistant/...')
  })
}

/** Images in tool messages have no place in a template. */
export const vllmImages: Rule = body =>
  firstOf(readMessages(body), message => {
    const image = listOf(message.content).some(part => objectOf(part).type === 'image_url')
    return image && message.role !== 'user'
      ? refuseVllm('X-schema', 'Only user messages can contain images for this model.')
      : undefined
  })

function refuseVllm(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: 400, errorType: 'BadRequestError' }
}

/**
 * The words of Python's JSON decoder, which vLLM passes on. Only asked after JSON.parse has refused a text,
 * so it needs to find the first fault, not to build a value.
 */

/** What Python says about a text that is not JSON; nothing when it is. */
export function pythonJsonError(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch {
    const fault = scan(text)
    return fault === undefined ? undefined : describe(text, fault)
  }
}

interface Fault {
  readonly what: string
  readonly at: number
}

/** A position after a value, or the fault that was met. */
type Scanned = number | Fault

function scan(text: string): Fault | undefined {
  const end = scanValue(text, skipSpace(text, 0))
  if (typeof end !== 'number') return end
  const rest = skipSpace(text, end)
  // Python takes a few texts that JSON.parse does not, such as NaN.
  return rest === text.length ? undefined : { what: 'Extra data', at: rest }
}

function describe(text: string, { what, at }: Fault): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  const column = at - before.lastIndexOf('\n')
  return `${what}: line ${line} column ${column} (char ${at})`
}

function scanValue(text: string, at: number): Scanned {
  const character = text[at]
  if (character === '"') return scanString(text, at + 1)
  if (character === '{') return scanObject(text, at + 1)
  if (character === '[') return scanArray(text, at + 1)
  const literal = /^(?:null|true|false|NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)/.exec(
    text.slice(at),
  )
  return literal === null ? { what: 'Expecting value', at } : at + literal[0].length
}

function scanString(text: string, start: number): Scanned {
  for (let at = start; at < text.length; at += 1) {
    const character = text[at] as string
    if (character === '"') return at + 1
    if (character < ' ') return { what: 'Invalid control character at', at }
    if (character !== '\\') continue
    if (at + 1 >= text.length) break
    const escaped = text[at + 1] as string
    if (escaped === 'u' && !/^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6))) {
      return { what: 'Invalid \\uXXXX escape', at: at + 1 }
    }
    if (!'"\\/bfnrtu'.includes(escaped)) return { what: 'Invalid \\escape', at }
    at += escaped === 'u' ? 5 : 1
  }
  return { what: 'Unterminated string starting at', at: start - 1 }
}

const PROPERTY_EXPECTED = 'Expecting property name enclosed in double quotes'

function scanObject(text: string, start: number): Scanned {
  let at = skipSpace(text, start)
  if (text[at] === '}') return at + 1
  // Each turn reads at least one character, so the loop ends with the text.
  while (at <= text.length) {
    if (text[at] !== '"') return { what: PROPERTY_EXPECTED, at }
    const key = scanString(text, at + 1)
    if (typeof key !== 'number') return key
    at = skipSpace(text, key)
    if (text[at] !== ':') return { what: "Expecting ':' delimiter", at }
    const value = scanValue(text, skipSpace(text, at + 1))
    if (typeof value !== 'number') return value
    at = skipSpace(text, value)
    if (text[at] === '}') return at + 1
    if (text[at] !== ',') return { what: "Expecting ',' delimiter", at }
    at = skipSpace(text, at + 1)
  }
  return { what: PROPERTY_EXPECTED, at }
}

function scanArray(text: string, start: number): Scanned {
  let at = skipSpace(text, start)
  if (text[at] === ']') return at + 1
  while (at <= text.length) {
    const value = scanValue(text, at)
    if (typeof value !== 'number') return value
    at = skipSpace(text, value)
    if (text[at] === ']') return at + 1
    if (text[at] !== ',') return { what: "Expecting ',' delimiter", at }
    at = skipSpace(text, at + 1)
  }
  return { what: 'Expecting value', at }
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1
  return at
}
