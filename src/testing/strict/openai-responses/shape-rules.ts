/** The Responses API's checks of keys, types, ids and tools. */
import { own } from '../../../base/own.js'
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { imageUrlFault } from '../openai-chat/image-url.js'
import {
  badPattern,
  emptyArray,
  emptyString,
  missing,
  outOfBounds,
  refuse,
  schemaFault,
  tooLong,
  unknownParameter,
  unsupported,
  wrongType,
} from '../openai-chat/words.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { readItems, typeOf } from './items.js'

const TOP_LEVEL = new Set(
  `background context_management conversation include input instructions max_output_tokens max_tool_calls
  client_metadata metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream
  stream_options temperature text tool_choice tools top_logprobs top_p truncation user`.split(/\s+/),
)

const ITEM_TYPES = `additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction
  compaction_trigger computer_call computer_call_output custom_tool_call custom_tool_call_output
  file_search_call function_call function_call_output image_generation_call item_reference local_shell_call
  local_shell_call_output mcp_approval_request mcp_approval_response mcp_call mcp_list_tools message program
  program_output reasoning shell_call shell_call_output tool_search_call tool_search_output
  web_search_call`.split(/\s+/)

const ITEM_KEYS: Readonly<Record<string, readonly string[]>> = {
  message: ['type', 'role', 'content', 'id', 'status', 'phase'],
  function_call: ['type', 'id', 'call_id', 'name', 'arguments', 'status', 'namespace', 'caller'],
  function_call_output: ['type', 'id', 'call_id', 'output', 'status', 'caller'],
  reasoning: ['type', 'id', 'summary', 'content', 'encrypted_content', 'status'],
  item_reference: ['type', 'id'],
}

const ID_PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fc',
  reasoning: 'rs',
  custom_tool_call: 'ctc',
  web_search_call: 'ws',
}

const INCLUDABLE = `file_search_call.results web_search_call.results web_search_call.action.sources
  message.input_image.image_url computer_call_output.output.image_url code_interpreter_call.outputs
  reasoning.encrypted_content message.output_text.logprobs`.split(/\s+/)

const TOOL_TYPES = `function file_search computer computer_use_preview web_search web_search_2025_08_26 mcp
  code_interpreter programmatic_tool_calling image_generation local_shell shell custom namespace tool_search
  web_search_preview web_search_preview_2025_03_11 apply_patch`.split(/\s+/)

const INPUT_PARTS = ['input_text', 'input_image', 'input_file', 'input_audio']
const OUTPUT_PARTS = ['output_text', 'refusal']

export const hasModel: Rule = body =>
  textOf(body.model) === '' && body.prompt === undefined ? missing('R-schema', 'model') : undefined

export const hasInput: Rule = body => {
  const given = [body.input, body.previous_response_id, body.prompt, body.conversation]
  if (given.some(value => value !== undefined && value !== null)) return undefined
  return refuse(
    'R-schema',
    `One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`,
    null,
    'missing_required_parameter',
  )
}

export const keysKnown: Rule = body => {
  const unknown = Object.keys(body).find(key => !TOP_LEVEL.has(key))
  return unknown === undefined ? undefined : unknownParameter('R-schema', unknown)
}

export const inputTypes: Rule = body => {
  const { input } = body
  if (input === undefined || input === null || typeof input === 'string') return undefined
  if (!Array.isArray(input)) {
    return wrongType('R-schema', 'input', 'one of a string or array of objects', input)
  }
  if (input.length === 0 && body.previous_response_id == null) return emptyArray('R-schema', 'input')
  const broken = firstOf(input, (item, index) =>
    isObject(item) ? undefined : wrongType('R-schema', `input[${index}]`, 'an object', item),
  )
  return broken ?? firstOf(readItems(body), (item, index) => itemFault(item, `input[${index}]`))
}

function itemFault(item: JsonObject, path: string): Violation | undefined {
  const type = typeOf(item)
  if (type === '') return missing('R-schema', `${path}.type`)
  if (!ITEM_TYPES.includes(type)) return unsupported('R-schema', `${path}.type`, type, ITEM_TYPES)
  const unknown = Object.keys(item).find(key => !(own(ITEM_KEYS, type)?.includes(key) ?? true))
  if (unknown !== undefined) return unknownParameter('R-schema', `${path}.${unknown}`)
  return idFault(item, type, path) ?? bodyFault(item, type, path)
}

/** R7. */
function idFault(item: JsonObject, type: string, path: string): Violation | undefined {
  const { id } = item
  if (id === undefined || id === null) {
    return type === 'item_reference' ? missing('R-schema', `${path}.id`) : undefined
  }
  if (typeof id !== 'string') return wrongType('R-schema', `${path}.id`, 'a string', id)
  if (id === '') return emptyString('R-schema', `${path}.id`)
  if (id.length > 64) return tooLong('R8', `${path}.id`, 64, id.length)
  const prefix = own(ID_PREFIXES, type)
  if (prefix !== undefined && !id.startsWith(prefix)) {
    const message = `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`
    return refuse('R7', message, `${path}.id`, 'invalid_value')
  }
  return /^[a-zA-Z0-9_-]+$/.test(id) ? undefined : badPattern('R-schema', `${path}.id`)
}

function bodyFault(item: JsonObject, type: string, path: string): Violation | undefined {
  switch (type) {
    case 'message':
      return messageFault(item, path)
    case 'function_call':
      return callIdFault(item, path) ?? callFault(item, path)
    case 'function_call_output':
      return callIdFault(item, path) ?? outputFault(item.output, `${path}.output`)
    case 'reasoning':
      if (item.summary === undefined) return missing('R-schema', `${path}.summary`)
      return Array.isArray(item.summary)
        ? undefined
        : wrongType('R-schema', `${path}.summary`, 'an array of objects', item.summary)
    default:
      return undefined
  }
}

/** R8. */
function callIdFault(item: JsonObject, path: string): Violation | undefined {
  const id = item.call_id
  if (id === undefined) return missing('R-schema', `${path}.call_id`)
  if (typeof id !== 'string') return wrongType('R-schema', `${path}.call_id`, 'a string', id)
  if (id === '') return emptyString('R-schema', `${path}.call_id`)
  return id.length > 64 ? tooLong('R8', `${path}.call_id`, 64, id.length) : undefined
}

function callFault(item: JsonObject, path: string): Violation | undefined {
  const name = nameFault(item.name, `${path}.name`)
  if (name !== undefined) return name
  if (item.arguments === undefined) return missing('R-schema', `${path}.arguments`)
  if (typeof item.arguments === 'string') return undefined
  return wrongType('R-schema', `${path}.arguments`, 'a string', item.arguments)
}

function nameFault(name: unknown, path: string): Violation | undefined {
  if (name === undefined) return missing('R-schema', path)
  if (typeof name !== 'string') return wrongType('R-schema', path, 'a string', name)
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) return badPattern('C5', path)
  return name.length > 64 ? tooLong('C5', path, 64, name.length) : undefined
}

function outputFault(output: unknown, path: string): Violation | undefined {
  if (output === undefined) return missing('R-schema', path)
  if (typeof output === 'string') return undefined
  if (!Array.isArray(output)) {
    return wrongType('R-schema', path, 'one of a string or array of objects', output)
  }
  return partsFault(output, path, INPUT_PARTS)
}

const ROLES = ['assistant', 'system', 'developer', 'user']

function messageFault(item: JsonObject, path: string): Violation | undefined {
  if (item.role === undefined) return missing('R-schema', `${path}.role`)
  if (!ROLES.includes(textOf(item.role))) return unsupported('C8', `${path}.role`, item.role, ROLES)
  if (item.content === undefined || item.content === null) return missing('R-schema', `${path}.content`)
  if (typeof item.content === 'string') return undefined
  if (!Array.isArray(item.content)) {
    return wrongType('R-schema', `${path}.content`, 'one of a string or array of objects', item.content)
  }
  return partsFault(item.content, `${path}.content`, item.role === 'assistant' ? OUTPUT_PARTS : INPUT_PARTS)
}

function partsFault(
  parts: readonly unknown[],
  path: string,
  supported: readonly string[],
): Violation | undefined {
  return firstOf(parts, (value, index) => {
    const part = objectOf(value)
    const at = `${path}[${index}]`
    if (part.type === undefined) return missing('R-schema', `${at}.type`)
    if (!supported.includes(textOf(part.type))) return unsupported('R-schema', at, part.type, supported)
    const needsText = part.type === 'input_text' || part.type === 'output_text'
    if (needsText && typeof part.text !== 'string') return missing('R-schema', `${at}.text`)
    if (part.type === 'input_image' && part.image_url === undefined && part.file_id === undefined) {
      return missing('R-schema', `${at}.image_url`)
    }
    const url = textOf(part.image_url)
    return url === '' ? undefined : imageUrlFault('R-schema', url, `${at}.image_url`)
  })
}

export const optionsInBounds: Rule = body =>
  outOfBounds('R-schema', 'temperature', body.temperature, { kind: 'decimal', minimum: 0, maximum: 2 }) ??
  outOfBounds('R-schema', 'top_p', body.top_p, { kind: 'decimal', minimum: 0, maximum: 1 }) ??
  outOfBounds('R-schema', 'max_output_tokens', body.max_output_tokens, { kind: 'integer', minimum: 16 }) ??
  firstOf(listOf(body.include), (value, index) =>
    INCLUDABLE.includes(textOf(value))
      ? undefined
      : unsupported('R-schema', `include[${index}]`, value, INCLUDABLE),
  )

export const toolTypes: Rule = body => {
  if (body.tools !== undefined && body.tools !== null && !Array.isArray(body.tools)) {
    return wrongType('R-schema', 'tools', 'an array of objects', body.tools)
  }
  return (
    firstOf(listOf(body.tools), (tool, index) => toolFault(objectOf(tool), `tools[${index}]`)) ?? choice(body)
  )
}

function toolFault(tool: JsonObject, path: string): Violation | undefined {
  if (tool.type === undefined) return missing('R-schema', `${path}.type`)
  if (!TOOL_TYPES.includes(textOf(tool.type)))
    return unsupported('R-schema', `${path}.type`, tool.type, TOOL_TYPES)
  if (tool.type === 'code_interpreter' && tool.container === undefined)
    return missing('R-schema', `${path}.container`)
  if (tool.type !== 'function') return undefined
  // The nested form belongs to Chat Completions.
  if (tool.function !== undefined && tool.name === undefined) return missing('R-schema', `${path}.name`)
  const { name, parameters, strict } = tool
  return (
    nameFault(name, `${path}.name`) ??
    schemaFault('R-schema', { name: textOf(name), parameters, strict, path: `${path}.parameters` })
  )
}

function choice(body: JsonObject): Violation | undefined {
  const { tool_choice: chosen } = body
  if (chosen === undefined || chosen === null) return undefined
  if (typeof chosen === 'string') {
    const values = ['none', 'auto', 'required']
    if (!values.includes(chosen)) return unsupported('R-schema', 'tool_choice', chosen, values)
    if (chosen !== 'required' || listOf(body.tools).length > 0) return undefined
    return refuse(
      'R-schema',
      "Tool choice 'required' must be specified with 'tools' parameter.",
      'tool_choice',
    )
  }
  const { type, name, tools: allowed } = objectOf(chosen)
  if (type === 'allowed_tools') {
    return firstOf(listOf(allowed), tool => choice({ ...body, tool_choice: tool }))
  }
  if (type !== 'function') return undefined
  if (listOf(body.tools).some(tool => objectOf(tool).name === name)) return undefined
  return refuse('R-schema', `Tool choice 'function' not found in 'tools' parameter.`, 'tool_choice')
}
