/**
 * Request bodies of four wires as neutral messages, to be judged. Nothing is put right here: what is odd on the
 * wire is odd in what comes out. Only a result's tool, which some wires do not name, is looked up.
 */

import { isRecord } from '../base/is-record.js'
import type { ProviderPart, ToolCallPart } from '../provider/provider.js'
import { gatewayProfile } from '../provider/repair/profile-for-model.js'
import { sealFields } from '../provider/sealed-fields.js'
import { VENDORS } from '../provider/vendors.js'
import {
  argumentsOf,
  type Fields,
  isTextPart,
  listOf,
  mediaFrom,
  reasoningPart,
  text,
  textOr,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

/** Reads the contents of a Gemini request. */
export function readGemini(body: Fields): WireMessage[] {
  const instruction = body.systemInstruction ?? body.system_instruction
  const contents = listOf(body.contents)
  return named([
    ...leadingSystem(instruction, 'systemInstruction', partsOf(instruction)),
    ...contents.map((content, index) => {
      const place = `contents[${index}]`
      const role = isRecord(content) ? content.role : undefined
      const parts = partsOf(content)
      if (role === 'user' || role === undefined) return { role: 'user', parts, place }
      if (role === 'model') return { role: 'assistant', parts, place }
      const right = role === 'assistant' ? 'model' : 'user'
      const wrongRole = { role: String(role), right }
      return { role: right === 'model' ? 'assistant' : 'user', parts, place, wrongRole }
    }),
  ])
}

/** Reads the messages of an OpenAI Chat Completions request. */
export function readChat(body: Fields): WireMessage[] {
  const messages = listOf(body.messages).map((message, index): WireMessage => {
    const fields = isRecord(message) ? message : {}
    const place = `messages[${index}]`
    const role = String(fields.role ?? '')
    if (role === 'tool' || role === 'function') {
      const id = text(fields.tool_call_id)
      return { role: 'tool', parts: [toolResult(id, text(fields.name), fields.content, chatPart)], place }
    }
    const reasoning = chatReasoning(fields, text(body.model))
    const calls = listOf(fields.tool_calls).map(chatCall)
    const parts = [...reasoning, ...wireParts(fields.content, chatPart), ...calls]
    return { role: role === 'developer' ? 'system' : role, parts, place }
  })
  return named(messages)
}

function chatReasoning(fields: Fields, model: string): ProviderPart[] {
  const thought = text(fields.reasoning_content ?? fields.reasoning)
  if (Array.isArray(fields.reasoning_details)) {
    const vendor = gatewayProfile(model, true) ?? ''
    return [reasoningPart(thought, sealFields(fields.reasoning_details), vendor)]
  }
  return thought === '' ? [] : [reasoningPart(thought, undefined, 'deepseek')]
}

/** Reads the input of an OpenAI Responses request. */
export function readResponses(body: Fields): WireMessage[] {
  const { instructions, input } = body
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input)
  const system = wireParts(instructions, () => undefined)
  return named([
    ...leadingSystem(instructions, 'instructions', system),
    ...joinItems(
      items.map(item => (isRecord(item) ? item : {})),
      responsesItem,
      index => `input[${index}]`,
    ),
  ])
}

/** Items as messages: those of one answer that follow each other are one message. */
export function joinItems(
  items: readonly Fields[],
  readItem: (item: Fields) => ReadItem,
  placeOf: (index: number) => string,
): WireMessage[] {
  const read: WireMessage[] = []
  let growing: { role: string; parts: ProviderPart[] } | undefined
  for (const [index, item] of items.entries()) {
    const { role, parts, joins } = readItem(item)
    if (joins && growing?.role === role) {
      growing.parts.push(...parts)
      continue
    }
    const message = { role, parts, place: placeOf(index) }
    growing = joins ? message : undefined
    read.push(message)
  }
  return read
}

/** The content of an Anthropic message. */
export function anthropicParts(content: unknown): ProviderPart[] {
  return wireParts(content, anthropicPart)
}

/** Reads the messages of an Anthropic request. */
export function readAnthropic(body: Fields): WireMessage[] {
  const system = leadingSystem(body.system, 'system', anthropicParts(body.system))
  const messages = listOf(body.messages).map((message, index): WireMessage => {
    const fields = isRecord(message) ? message : {}
    const role = String(fields.role ?? '')
    const read = { role, parts: anthropicParts(fields.content), place: `messages[${index}]` }
    const wrong = role === 'tool' || role === 'system'
    return wrong ? { ...read, role: 'user', wrongRole: { role, right: 'user' } } : read
  })
  return named([...system, ...messages])
}

function leadingSystem(given: unknown, place: string, parts: ProviderPart[]): WireMessage[] {
  return given === undefined || given === null || parts.length === 0 ? [] : [{ role: 'system', parts, place }]
}

function partsOf(content: unknown): ProviderPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return isRecord(content) ? listOf(content.parts).map(geminiPart) : []
}

export function geminiPart(part: unknown): ProviderPart {
  const fields = isRecord(part) ? part : {}
  const signature = fields.thoughtSignature ?? fields.thought_signature
  const signed = typeof signature === 'string' ? { signature, origin: { vendor: 'gemini' } } : {}
  const call = fields.functionCall ?? fields.function_call
  if (isRecord(call)) {
    return { type: 'tool-call', id: text(call.id), name: text(call.name), args: call.args ?? {}, ...signed }
  }
  const response = fields.functionResponse ?? fields.function_response
  if (isRecord(response)) {
    const { id, name, response: result = {} } = response
    return { type: 'tool-result', id: text(id), name: text(name), result }
  }
  if (fields.thought === true) return { type: 'reasoning', text: text(fields.text), ...signed }
  const data = fields.inlineData ?? fields.inline_data
  if (isRecord(data)) {
    return {
      type: 'media',
      mimeType: text(data.mimeType ?? data.mime_type),
      data: text(data.data),
      ...signed,
    }
  }
  const file = fields.fileData ?? fields.file_data
  if (isRecord(file)) {
    const url = text(file.fileUri ?? file.file_uri)
    return { type: 'media', mimeType: text(file.mimeType ?? file.mime_type), url, ...signed }
  }
  if (typeof fields.text === 'string' || typeof signature === 'string') {
    return { type: 'text', text: text(fields.text), ...signed }
  }
  // A part that is nothing stays one: the rules say what becomes of it.
  if (Object.keys(fields).length === 0) return {} as ProviderPart
  return { type: 'vendor', vendor: 'gemini', value: fields, text: JSON.stringify(fields) }
}

export function chatCall(call: unknown): ToolCallPart {
  const fields = isRecord(call) ? call : {}
  const called = isRecord(fields.function) ? fields.function : {}
  return {
    type: 'tool-call',
    id: text(fields.id),
    name: text(called.name),
    args: argumentsOf(called.arguments),
    ...(isRecord(fields.extra_content)
      ? { signature: sealFields(fields.extra_content), origin: { vendor: VENDORS.gemini.familyProfile } }
      : {}),
  }
}

export function chatPart(part: Fields): ProviderPart | undefined {
  if (part.type === 'refusal') return { type: 'text', text: text(part.refusal) }
  if (part.type === 'image_url' || part.type === 'input_image') {
    const image = part.image_url
    return mediaFrom(text(isRecord(image) ? image.url : image), 'image/png')
  }
  if (part.type === 'file' || part.type === 'input_file') {
    const file = isRecord(part.file) ? part.file : part
    const name = typeof file.filename === 'string' ? { name: file.filename } : {}
    return { ...mediaFrom(text(file.file_data ?? file.file_url), 'application/pdf'), ...name }
  }
  if (part.type === 'input_audio') {
    const audio = isRecord(part.input_audio) ? part.input_audio : {}
    return { type: 'media', mimeType: `audio/${text(audio.format) || 'wav'}`, data: text(audio.data) }
  }
  return undefined
}

interface ReadItem {
  role: string
  parts: ProviderPart[]
  /** Belongs to the same answer as adjacent items of its role. */
  joins: boolean
}

function responsesItem(item: Fields): ReadItem {
  switch (item.type) {
    case 'function_call':
    case 'custom_tool_call': {
      const { call_id: id, name } = item
      const args = item.type === 'function_call' ? argumentsOf(item.arguments) : { input: item.input }
      return {
        role: 'assistant',
        parts: [{ type: 'tool-call', id: text(id), name: text(name), args }],
        joins: true,
      }
    }
    case 'custom_tool_call_output':
    case 'function_call_output': {
      const { call_id: id, output } = item
      return { role: 'tool', parts: [toolResult(text(id), '', output, chatPart)], joins: true }
    }
    case 'reasoning': {
      const summary = listOf(item.summary).map(entry => (isRecord(entry) ? text(entry.text) : ''))
      const sealed = typeof item.encrypted_content === 'string' ? item.encrypted_content : undefined
      return { role: 'assistant', parts: [reasoningPart(summary.join('\n'), sealed, 'openai')], joins: true }
    }
    case undefined:
    case 'message': {
      const role = item.role === 'developer' ? 'system' : text(item.role)
      return { role, parts: wireParts(item.content, chatPart), joins: role === 'assistant' }
    }
    default: {
      const part: ProviderPart = {
        type: 'vendor',
        vendor: 'openai',
        value: item,
        text: `[${text(item.type)}]`,
      }
      return { role: 'assistant', parts: [part], joins: true }
    }
  }
}

export function anthropicPart(block: Fields): ProviderPart | undefined {
  switch (block.type) {
    case 'tool_use':
      return { type: 'tool-call', id: text(block.id), name: text(block.name), args: block.input }
    case 'tool_result': {
      const failed = block.is_error === true ? { isError: true } : {}
      return { ...toolResult(text(block.tool_use_id), '', block.content, anthropicPart), ...failed }
    }
    case 'thinking':
      return reasoningPart(text(block.thinking), textOr(block.signature), makerOf(block.signature))
    case 'redacted_thinking':
      return { ...reasoningPart('', textOr(block.data), 'anthropic'), redacted: true } as ProviderPart
    case 'image':
    case 'document': {
      const source = isRecord(block.source) ? block.source : {}
      const mimeType = text(source.media_type) || (block.type === 'image' ? 'image/png' : 'application/pdf')
      const name = typeof block.title === 'string' ? { name: block.title } : {}
      if (source.type === 'url') return { type: 'media', mimeType, url: text(source.url), ...name }
      return {
        type: 'media',
        mimeType,
        data: typeof source.data === 'string' ? source.data : 'file',
        ...name,
      }
    }
    default:
      return { type: 'vendor', vendor: 'anthropic', value: block, text: `[${text(block.type)}]` }
  }
}

/** OpenAI's encrypted content has a form that no signature of Anthropic's has. */
function makerOf(signature: unknown): string {
  return text(signature).startsWith('gAAAA') ? 'openai' : 'anthropic'
}

/** The content of a message: a text, or a list of parts of which texts are alike on every wire. */
function wireParts(content: unknown, read: (part: Fields) => ProviderPart | undefined): ProviderPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listOf(content).map(part => {
    const fields = isRecord(part) ? part : {}
    if (isTextPart(fields)) return { type: 'text', text: text(fields.text) }
    return read(fields) ?? ({} as ProviderPart)
  })
}

/** Results on wires that do not name their tool get the name of their call. */
export function named(messages: WireMessage[]): WireMessage[] {
  const names = new Map<string, string>()
  for (const { parts } of messages) {
    for (const part of parts) if (part.type === 'tool-call') names.set(part.id, part.name)
  }
  return messages.map(message => ({
    ...message,
    parts: message.parts.map(part =>
      part.type === 'tool-result' && part.name === '' && message.place.startsWith('contents') === false
        ? { ...part, name: names.get(part.id) ?? '' }
        : part,
    ),
  }))
}
