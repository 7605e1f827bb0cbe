/**
 * The body of a request, of any vendor, read as a list of messages. Nothing is guessed: what a reader does not
 * know is shown as JSON, and a body of no known shape is an empty list.
 */
import { readAnthropicMessage } from './wire-anthropic.js'
import { readChatMessage } from './wire-chat.js'
import { readGeminiContent } from './wire-gemini.js'
import { readNeutralMessage } from './wire-neutral.js'
import { type Fields, isFields, listOf, textOf, type WireMessage, type WireTool } from './wire-part.js'
import { readResponsesItem } from './wire-responses.js'

export type { WireMessage, WirePart, WireTool } from './wire-part.js'

export interface WireRequest {
  family: WireFamily
  /** The system instruction, wherever the vendor puts it. */
  system: string
  tools: WireTool[]
  messages: WireMessage[]
  /** Everything else that the request says: sampling, thinking, limits. */
  settings: Fields
}

export type WireFamily = 'gemini' | 'openai-chat' | 'openai-responses' | 'anthropic' | 'neutral' | 'unknown'

/** Reads a body. */
export function readWireRequest(body: unknown): WireRequest {
  const family = familyOf(body)
  if (family === 'unknown' || !isFields(body)) {
    return { family: 'unknown', system: '', tools: [], messages: [], settings: isFields(body) ? body : {} }
  }
  const { list, read, system } = READERS[family]
  const all = listOf(body[list]).map((item, index) => ({ ...read(item), index }))
  // Chat Completions knows no other place for the instruction than the head of the list.
  const head = all.findIndex(message => message.role !== 'system')
  const leading = head < 0 ? all : all.slice(0, head)
  const instruction = system ? textOf(body[system]) : ''
  return {
    family,
    system: [instruction, ...leading.map(message => message.parts.map(part => part.text).join('\n'))]
      .filter(text => text !== '')
      .join('\n\n'),
    tools: listOf(body.tools).flatMap(readTools),
    messages: head < 0 ? [] : all.slice(head),
    settings: Object.fromEntries(
      Object.entries(body).filter(([name]) => name !== list && name !== system && name !== 'tools'),
    ),
  }
}

interface Reader {
  list: string
  system?: string
  read(item: unknown): Omit<WireMessage, 'index'>
}

const READERS: Record<Exclude<WireFamily, 'unknown'>, Reader> = {
  gemini: { list: 'contents', system: 'systemInstruction', read: readGeminiContent },
  'openai-chat': { list: 'messages', read: readChatMessage },
  'openai-responses': { list: 'input', system: 'instructions', read: readResponsesItem },
  anthropic: { list: 'messages', system: 'system', read: readAnthropicMessage },
  neutral: { list: 'messages', read: readNeutralMessage },
}

/** Vendors differ in the names of their fields, so the body identifies its vendor. */
function familyOf(body: unknown): WireFamily {
  if (!isFields(body)) return 'unknown'
  if (Array.isArray(body.contents)) return 'gemini'
  if (Array.isArray(body.input)) return 'openai-responses'
  if (!Array.isArray(body.messages)) return 'unknown'
  const first: unknown = body.messages[0]
  if (isFields(first) && Array.isArray(first.parts)) return 'neutral'
  // Anthropic demands a limit and knows no system role; its tools are declared without a wrapper.
  const hasSystemRole = body.messages.some(message => isFields(message) && message.role === 'system')
  const isAnthropic =
    Array.isArray(body.system) || (!hasSystemRole && body.max_tokens !== undefined && !hasChatFields(body))
  return isAnthropic ? 'anthropic' : 'openai-chat'
}

/** A chat request may carry `max_tokens` too; then its messages hold strings where Anthropic's hold blocks. */
function hasChatFields(body: Fields): boolean {
  if (body.stream_options !== undefined || body.max_completion_tokens !== undefined) return true
  return listOf(body.messages).some(
    message =>
      isFields(message) &&
      (message.role === 'tool' || message.tool_calls !== undefined || typeof message.content === 'string'),
  )
}

function readTools(tool: unknown): WireTool[] {
  if (!isFields(tool)) return []
  if (Array.isArray(tool.functionDeclarations)) return tool.functionDeclarations.flatMap(readTools)
  const declared = isFields(tool.function) ? tool.function : tool
  const { name, description } = declared
  const parameters =
    declared.parameters ?? declared.input_schema ?? declared.parametersJsonSchema ?? declared.inputSchema
  return [
    {
      name: typeof name === 'string' ? name : String(tool.type ?? 'tool'),
      description: typeof description === 'string' ? description : '',
      ...(parameters === undefined ? {} : { parameters }),
    },
  ]
}
