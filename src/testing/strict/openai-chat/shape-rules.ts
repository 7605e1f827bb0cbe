/** OpenAI's checks of a chat request, in the order of its validator: keys, types, bounds, tools, roles. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { StrictProfile } from '../profile.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import { imageUrlFault } from './image-url.js'
import { type ReadCall, type ReadMessage, readMessages } from './messages.js'
import {
  badPattern,
  emptyArray,
  longArray,
  missing,
  outOfBounds,
  refuse,
  schemaFault,
  tooLong,
  unknownParameter,
  unsupported,
  wrongType,
} from './words.js'

const TOP_LEVEL = new Set(
  `messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
  max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed
  service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
  web_search_options`.split(/\s+/),
)

const MESSAGE_KEYS = new Set(
  'role content name tool_calls tool_call_id refusal audio function_call annotations'.split(' '),
)

/** Additional fields that gateways accept. */
const GATEWAY_KEYS: Partial<Readonly<Record<StrictProfile, readonly string[]>>> = {
  'compatible-gemini': ['extra_content'],
  openrouter: ['reasoning', 'reasoning_details'],
  'openrouter-gemini': ['reasoning', 'reasoning_details'],
}

const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer']
const PART_TYPES = ['text', 'image_url', 'input_audio', 'refusal', 'audio', 'file']

export const hasModel: Rule = body =>
  textOf(body.model) === '' ? refuse('C-schema', 'you must provide a model parameter') : undefined

export const hasMessages: Rule = body =>
  body.messages === undefined ? missing('C-schema', 'messages') : undefined

export const keysKnown: Rule = body => {
  const unknown = Object.keys(body).find(key => !TOP_LEVEL.has(key))
  return unknown === undefined ? undefined : unknownParameter('C-schema', unknown)
}

export const messageTypes: Rule = (body, context) => {
  if (body.messages === undefined) return undefined
  if (!Array.isArray(body.messages)) {
    return wrongType('C-schema', 'messages', 'an array of objects', body.messages)
  }
  if (body.messages.length === 0) return emptyArray('C-schema', 'messages')
  const broken = firstOf(listOf(body.messages), (message, index) =>
    isObject(message) ? undefined : wrongType('C-schema', `messages[${index}]`, 'an object', message),
  )
  if (broken !== undefined) return broken
  return firstOf(readMessages(body), message => messageFault(message, context))
}

function messageFault(message: ReadMessage, { reading, profile }: JudgeContext): Violation | undefined {
  const path = `messages[${message.index}]`
  if (message.role === undefined) return missing('C-schema', `${path}.role`)
  const unknown = Object.keys(message.raw).find(
    key => !MESSAGE_KEYS.has(key) && !GATEWAY_KEYS[profile]?.includes(key),
  )
  if (unknown !== undefined && reading !== 'lenient')
    return unknownParameter('C-schema', `${path}.${unknown}`)
  return contentFault(message, path) ?? callListFault(message, path) ?? callIdFault(message.raw, path)
}

function contentFault(message: ReadMessage, path: string): Violation | undefined {
  const { content } = message
  if (content === undefined || content === null || typeof content === 'string') return undefined
  if (!Array.isArray(content)) {
    return wrongType('C-schema', `${path}.content`, 'one of a string or array of objects', content)
  }
  if (content.length === 0) return emptyArray('C-schema', `${path}.content`)
  return firstOf(content, (part, index) => partFault(objectOf(part), `${path}.content[${index}]`))
}

function partFault(part: JsonObject, path: string): Violation | undefined {
  if (part.type === undefined) return missing('C-schema', `${path}.type`)
  if (!PART_TYPES.includes(textOf(part.type))) {
    return unsupported('C-schema', `${path}.type`, part.type, PART_TYPES)
  }
  if (part.type === 'text' && typeof part.text !== 'string') {
    return part.text === undefined
      ? missing('C-schema', `${path}.text`)
      : wrongType('C-schema', `${path}.text`, 'a string', part.text)
  }
  if (part.type !== 'image_url') return undefined
  if (!isObject(part.image_url))
    return wrongType('C-schema', `${path}.image_url`, 'an object', part.image_url)
  const url = textOf(part.image_url.url)
  if (url === '') return missing('C-schema', `${path}.image_url.url`)
  return imageUrlFault('C-schema', url, `${path}.image_url.url`)
}

/** C7, C4, C5 and the types of a call. */
function callListFault(message: ReadMessage, path: string): Violation | undefined {
  const list = message.raw.tool_calls
  if (list === undefined || list === null) return undefined
  if (!Array.isArray(list)) return wrongType('C-schema', `${path}.tool_calls`, 'an array of objects', list)
  if (list.length === 0) return emptyArray('C7', `${path}.tool_calls`)
  return firstOf(message.calls, call => callFault(call, `${path}.tool_calls[${call.index}]`))
}

function callFault(call: ReadCall, path: string): Violation | undefined {
  if (call.id === undefined) return missing('C-schema', `${path}.id`)
  if (typeof call.id !== 'string') return wrongType('C-schema', `${path}.id`, 'a string', call.id)
  if (call.id.length > 40) return tooLong('C4', `${path}.id`, 40, call.id.length)
  if (call.raw.type === undefined) return missing('C-schema', `${path}.type`)
  if (call.raw.type === 'custom') return undefined
  if (call.raw.type !== 'function') {
    return unsupported('C-schema', `${path}.type`, call.raw.type, ['function', 'custom'])
  }
  const name = nameFault(call.name, `${path}.function.name`)
  if (name !== undefined) return name
  if (call.arguments === undefined) return missing('C-schema', `${path}.function.arguments`)
  if (typeof call.arguments === 'string') return undefined
  return wrongType('C-schema', `${path}.function.arguments`, 'a string', call.arguments)
}

function nameFault(name: unknown, path: string): Violation | undefined {
  if (name === undefined) return missing('C-schema', path)
  if (typeof name !== 'string') return wrongType('C-schema', path, 'a string', name)
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) return badPattern('C5', path)
  return name.length > 64 ? tooLong('C5', path, 64, name.length) : undefined
}

function callIdFault(message: JsonObject, path: string): Violation | undefined {
  const id = message.tool_call_id
  if (id === undefined || id === null) return undefined
  if (typeof id !== 'string') return wrongType('C-schema', `${path}.tool_call_id`, 'a string', id)
  return id.length > 40 ? tooLong('C4', `${path}.tool_call_id`, 40, id.length) : undefined
}

export const numbersInBounds: Rule = body =>
  outOfBounds('C-schema', 'temperature', body.temperature, { kind: 'decimal', minimum: 0, maximum: 2 }) ??
  outOfBounds('C-schema', 'top_p', body.top_p, { kind: 'decimal', minimum: 0, maximum: 1 }) ??
  outOfBounds('C-schema', 'n', body.n, { kind: 'integer', minimum: 1, maximum: 128 }) ??
  outOfBounds('C-schema', 'max_tokens', body.max_tokens, { kind: 'integer', minimum: 1 }) ??
  outOfBounds('C-schema', 'max_completion_tokens', body.max_completion_tokens, {
    kind: 'integer',
    minimum: 1,
  }) ??
  (listOf(body.stop).length > 4 ? longArray('C-schema', 'stop', 4, listOf(body.stop).length) : undefined) ??
  streamOptionsFault(body)

function streamOptionsFault(body: JsonObject): Violation | undefined {
  if (body.stream_options === undefined || body.stream_options === null || body.stream === true)
    return undefined
  return refuse(
    'C-schema',
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    'stream_options',
  )
}

/** C5 for declarations, schemas, and the forms of `tool_choice`. */
export const toolTypes: Rule = body => {
  const { tools } = body
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) {
    return wrongType('C-schema', 'tools', 'an array of objects', tools)
  }
  if (Array.isArray(tools) && tools.length === 0) return emptyArray('C-schema', 'tools')
  if (listOf(tools).length > 128) return longArray('C-schema', 'tools', 128, listOf(tools).length)
  return firstOf(listOf(tools), (tool, index) => toolFault(objectOf(tool), index)) ?? toolChoiceFault(body)
}

function toolFault(tool: JsonObject, index: number): Violation | undefined {
  const path = `tools[${index}]`
  if (tool.type === undefined) return missing('C-schema', `${path}.type`)
  if (tool.type === 'custom') return undefined
  if (tool.type !== 'function') {
    return unsupported('C-schema', `${path}.type`, tool.type, ['function', 'custom'])
  }
  if (!isObject(tool.function)) return missing('C-schema', `${path}.function`)
  const { name, parameters, strict } = tool.function
  return (
    nameFault(name, `${path}.function.name`) ??
    schemaFault('C-schema', { name: textOf(name), parameters, strict, path: `${path}.function.parameters` })
  )
}

function toolChoiceFault(body: JsonObject): Violation | undefined {
  const choice = body.tool_choice
  if (choice === undefined || choice === null) return undefined
  if (listOf(body.tools).length === 0) {
    return refuse(
      'C-schema',
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
      'tool_choice',
    )
  }
  if (typeof choice === 'string') {
    const values = ['none', 'auto', 'required']
    return values.includes(choice) ? undefined : unsupported('C-schema', 'tool_choice', choice, values)
  }
  if (objectOf(choice).type === 'allowed_tools') {
    const allowed = listOf(objectOf(objectOf(choice).allowed_tools).tools)
    return firstOf(allowed, tool => toolChoiceFault({ ...body, tool_choice: tool }))
  }
  const name = textOf(objectOf(objectOf(choice).function).name)
  if (objectOf(choice).type !== 'function') return undefined
  const declared = listOf(body.tools).some(tool => objectOf(objectOf(tool).function).name === name)
  if (declared) return undefined
  return refuse('C-schema', `Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice')
}

/** C8. */
export const rolesKnown: Rule = body =>
  firstOf(readMessages(body), message => {
    if (message.role === undefined || ROLES.includes(textOf(message.role))) return undefined
    return unsupported('C8', `messages[${message.index}].role`, message.role, ROLES)
  })
