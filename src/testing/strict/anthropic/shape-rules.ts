/** Anthropic's checks of fields and blocks, in the words of its validator: a path, then what was expected. */
import { isBase64 } from '../../../base/base64.js'
import { own } from '../../../base/own.js'
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import { type ReadMessage, readMessages } from './messages.js'

const TOP_LEVEL = new Set(
  `model messages max_tokens system stream tools tool_choice thinking temperature top_p top_k stop_sequences
  metadata cache_control container diagnostics inference_geo output_config output_format service_tier speed
  user_profile_id workspace_id mcp_servers context_management betas`.split(/\s+/),
)

const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  text: ['type', 'text', 'cache_control', 'citations'],
  image: ['type', 'source', 'cache_control'],
  document: ['type', 'source', 'cache_control', 'citations', 'context', 'title'],
  search_result: ['type', 'content', 'source', 'title', 'cache_control', 'citations'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control', 'caller'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
}

const SERVER_BLOCKS = [
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'container_upload',
]

const TAGS = [...Object.keys(BLOCKS), ...SERVER_BLOCKS].sort()
const RESULT_TAGS = ['document', 'image', 'search_result', 'text', 'tool_reference']
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['source'],
  document: ['source'],
  thinking: ['signature', 'thinking'],
  redacted_thinking: ['data'],
  tool_use: ['id', 'name', 'input'],
  tool_result: ['tool_use_id'],
}

export const hasVersion: Rule = (_body, context) =>
  context.headers['anthropic-version'] === undefined
    ? refuse('A-schema', 'anthropic-version: header is required')
    : undefined

export const hasFields: Rule = (body, context) => {
  const required = context.countOnly ? ['messages', 'model'] : ['max_tokens', 'messages', 'model']
  const absent = required.find(name => own(body, name) === undefined)
  return absent === undefined ? undefined : refuse('A-schema', `${absent}: Field required`)
}

/** Unknown keys, and the sampling parameters that the version of October 2026 took away. */
export const keysKnown: Rule = (body, context) => {
  const removed = isNewVersion(context) ? ['temperature', 'top_p', 'top_k'] : []
  const extra = Object.keys(body).find(key => !TOP_LEVEL.has(key) || removed.includes(key))
  if (extra === undefined) return undefined
  return refuse(removed.includes(extra) ? 'A22' : 'A-schema', `${extra}: Extra inputs are not permitted`)
}

function isNewVersion(context: JudgeContext): boolean {
  return textOf(context.headers['anthropic-version']) >= '2026-10-21'
}

export const numbersInBounds: Rule = body => {
  const { max_tokens: maxTokens, temperature } = body
  if (maxTokens !== undefined && !Number.isInteger(maxTokens)) {
    return refuse('A-schema', 'max_tokens: Input should be a valid integer')
  }
  if (typeof maxTokens === 'number' && maxTokens < 1) {
    return refuse('A-schema', 'max_tokens: Input should be greater than or equal to 1')
  }
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 1)) {
    return refuse('A-schema', 'temperature: range: 0..1')
  }
  if (temperature !== undefined && body.top_p !== undefined) {
    return refuse(
      'A-schema',
      '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    )
  }
  return undefined
}

/** A14 and other roles. From 5.1 on one system message may stand between a user and an assistant. */
export const rolesKnown: Rule = (body, context) =>
  firstOf(readMessages(body), (message, index) => {
    if (message.role === 'user' || message.role === 'assistant') return undefined
    if (message.role === 'system' && context.profile === 'anthropic-5.1') {
      const messages = readMessages(body)
      const after = messages[index + 1]?.role ?? 'assistant'
      if (messages[index - 1]?.role === 'user' && after === 'assistant') return undefined
      return refuse(
        'A14',
        `messages.${message.index}: a "system" message must directly follow a "user" message and precede an "assistant" message or end the list.`,
      )
    }
    if (message.role === 'system') {
      return refuse(
        'A14',
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
      )
    }
    if (message.role === undefined)
      return refuse('A-schema', `messages.${message.index}.role: Field required`)
    return refuse('A-schema', `messages.${message.index}.role: Input should be 'user' or 'assistant'`)
  })

export const messagesPresent: Rule = body => {
  if (body.messages === undefined) return undefined
  if (!Array.isArray(body.messages)) return refuse('A-schema', 'messages: Input should be a valid list')
  return body.messages.length === 0
    ? refuse('A-schema', 'messages: at least one message is required')
    : undefined
}

export const blocksKnown: Rule = body =>
  firstOf(readMessages(body), message => {
    const { content } = message.raw
    const at = `messages.${message.index}`
    if (content === undefined || content === null) return refuse('A-schema', `${at}.content: Field required`)
    if (typeof content !== 'string' && !Array.isArray(content)) {
      return refuse('A-schema', `${at}.content: Input should be a valid list`)
    }
    const unknown = Object.keys(message.raw).find(key => key !== 'role' && key !== 'content')
    if (unknown !== undefined) return refuse('A-schema', `${at}.${unknown}: Extra inputs are not permitted`)
    return firstOf(message.blocks, (block, index) => blockFault(block, `${at}.content.${index}`, TAGS))
  })

function blockFault(block: JsonObject, path: string, tags: readonly string[]): Violation | undefined {
  const type = textOf(block.type)
  if (type === '') return refuse('A-schema', `${path}: Unable to extract tag using discriminator 'type'`)
  if (!tags.includes(type)) {
    const expected = tags.map(tag => `'${tag}'`).join(', ')
    return refuse(
      'A-schema',
      `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  const at = `${path}.${type}`
  const absent = own(REQUIRED, type)?.find(name => own(block, name) === undefined)
  if (absent !== undefined) return refuse('A-schema', `${at}.${absent}: Field required`)
  const extra = Object.keys(block).find(key => !(own(BLOCKS, type)?.includes(key) ?? true))
  if (extra !== undefined) return refuse('A-schema', `${at}.${extra}: Extra inputs are not permitted`)
  return valueFault(block, type, at)
}

/** A5, A20, and the types of what is inside a block. */
function valueFault(block: JsonObject, type: string, at: string): Violation | undefined {
  switch (type) {
    case 'text':
      return typeof block.text === 'string'
        ? undefined
        : refuse('A-schema', `${at}.text: Input should be a valid string`)
    case 'tool_use':
      if (!/^[a-zA-Z0-9_-]+$/.test(textOf(block.id))) return badId('A5', `${at}.id`, '^[a-zA-Z0-9_-]+$')
      if (!/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(block.name))) {
        return badId('A21', `${at}.name`, '^[a-zA-Z0-9_-]{1,128}$')
      }
      return isObject(block.input)
        ? undefined
        : refuse('A-schema', `${at}.input: Input should be a valid dictionary`)
    case 'server_tool_use':
      return /^srvtoolu_[a-zA-Z0-9_]+$/.test(textOf(block.id))
        ? undefined
        : badId('A20', `${at}.id`, '^srvtoolu_[a-zA-Z0-9_]+$')
    case 'tool_result':
      if (!/^[a-zA-Z0-9_-]+$/.test(textOf(block.tool_use_id))) {
        return badId('A5', `${at}.tool_use_id`, '^[a-zA-Z0-9_-]+$')
      }
      return resultFault(block.content, `${at}.content`)
    case 'image':
      return sourceFault(objectOf(block.source), `${at}.source`)
    default:
      return undefined
  }
}

function badId(code: string, path: string, pattern: string): Violation {
  return refuse(code, `${path}: String should match pattern '${pattern}'`)
}

function resultFault(content: unknown, path: string): Violation | undefined {
  if (content === undefined || content === null || typeof content === 'string') return undefined
  if (!Array.isArray(content)) return refuse('A-schema', `${path}: Input should be a valid list`)
  return firstOf(content, (block, index) => blockFault(objectOf(block), `${path}.${index}`, RESULT_TAGS))
}

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

function sourceFault(source: JsonObject, path: string): Violation | undefined {
  const type = textOf(source.type)
  if (type === 'url') {
    return /^https?:\/\//.test(textOf(source.url))
      ? undefined
      : refuse('A-schema', `${path}.url.url: Input should be a valid URL`)
  }
  if (type === 'file') return undefined
  if (type !== 'base64') {
    const expected = "'base64', 'file', 'url'"
    return refuse(
      'A-schema',
      `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  if (!IMAGE_TYPES.includes(textOf(source.media_type))) {
    return refuse(
      'A-schema',
      `${path}.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`,
    )
  }
  const data = textOf(source.data)
  return data !== '' && isBase64(data)
    ? undefined
    : refuse('A-schema', `${path}.base64.data: Invalid base64 data`)
}

/** A21 and the forms of tools and of `tool_choice`. */
export const toolsKnown: Rule = body => {
  const names = new Set<unknown>()
  const fault = firstOf(listOf(body.tools), (value, index) => {
    const tool = objectOf(value)
    if (tool.type !== undefined && tool.type !== null && tool.type !== 'custom')
      return serverToolFault(tool, `tools.${index}`)
    const at = `tools.${index}.custom`
    if (tool.name === undefined) return refuse('A-schema', `${at}.name: Field required`)
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(tool.name))) {
      return badId('A21', `${at}.name`, '^[a-zA-Z0-9_-]{1,128}$')
    }
    if (tool.input_schema === undefined) return refuse('A-schema', `${at}.input_schema: Field required`)
    const { type } = objectOf(tool.input_schema)
    if (type === undefined) return refuse('A-schema', `${at}.input_schema.type: Field required`)
    if (type !== 'object') return refuse('A-schema', `${at}.input_schema.type: Input should be 'object'`)
    if (names.has(tool.name)) return refuse('A-schema', 'tools: Tool names must be unique.')
    names.add(tool.name)
    return undefined
  })
  return fault ?? toolChoiceFault(body, names)
}

/** Tools of Anthropic's own have a type with a date, and one name that belongs to it. */
function serverToolFault(tool: JsonObject, path: string): Violation | undefined {
  const type = textOf(tool.type)
  const name = /^(.+?)_\d{8}$/.exec(type)?.[1]
  if (name === undefined || !SERVER_TOOLS.includes(name)) {
    const expected = [...SERVER_TOOLS, 'custom'].map(tag => `'${tag}'`).join(', ')
    return refuse(
      'A-schema',
      `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  if (!SEARCHES.includes(name) || tool.name === name) return undefined
  return refuse('A-schema', `${path}.${type}.name: Input should be '${name}'`)
}

const SEARCHES = ['web_search', 'web_fetch', 'code_execution']
const SERVER_TOOLS = [
  ...SEARCHES,
  'bash',
  'browser_toolset',
  'computer_toolset',
  'memory',
  'text_editor',
  'tool_search_tool_bm25',
  'tool_search_tool_regex',
]

function toolChoiceFault(body: JsonObject, names: ReadonlySet<unknown>): Violation | undefined {
  const choice = body.tool_choice
  if (choice === undefined || choice === null) return undefined
  const type = textOf(objectOf(choice).type)
  if (!['auto', 'any', 'tool', 'none'].includes(type)) {
    const expected = "'any', 'auto', 'none', 'tool'"
    return refuse(
      'A-schema',
      `tool_choice: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    )
  }
  const { name } = objectOf(choice)
  if (type === 'tool' && !names.has(name)) {
    return refuse('A-schema', `tool_choice: Tool '${textOf(name)}' not found in provided tools`)
  }
  if (listOf(body.tools).length > 0 || type === 'none') return undefined
  return refuse('A-schema', 'tool_choice may only be specified while providing tools')
}

/** The version of October 2026 refuses documents in assistant messages and citations in user messages. */
export const newVersionBlocks: Rule = (body, context) => {
  if (!isNewVersion(context)) return undefined
  return firstOf(readMessages(body), message => newBlockFault(message))
}

function newBlockFault(message: ReadMessage): Violation | undefined {
  return firstOf(message.blocks, (block, index) => {
    const at = `messages.${message.index}.content.${index}`
    if (message.role === 'assistant' && block.type === 'document') {
      return refuse('A23', `${at}: \`document\` blocks are not permitted in assistant messages`)
    }
    if (message.role === 'user' && block.type === 'text' && listOf(block.citations).length > 0) {
      return refuse('A24', `${at}.text.citations: \`citations\` are not permitted in user messages`)
    }
    return undefined
  })
}

export function refuse(code: string, message: string): Violation {
  return { code, status: 400, message }
}
