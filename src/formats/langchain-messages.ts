/**
 * Messages of LangChain and LangGraph as neutral messages, and back. Three forms hold the same fields: serialized objects
 * (`lc`, `id`, `kwargs`), stored messages (`type`, `data`), and plain objects with a `type`.
 */

import { isRecord } from '../base/is-record.js'
import { type MediaPart, mediaUrl, type ProviderPart, resultText } from '../provider/provider.js'
import { anthropicPart, chatCall, chatPart, geminiPart } from './wire-messages.js'
import {
  argumentsOf,
  bareResult,
  citations,
  type Fields,
  foreignPart,
  isTextPart,
  listOf,
  reasoningPart,
  recordsOf,
  type SourceMessage,
  text,
  textOr,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  ai: 'assistant',
  tool: 'tool',
  function: 'tool',
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
}

/** Whether a value is a message of LangChain. */
export function isLangChainMessage(value: unknown): value is Fields {
  if (!isRecord(value)) return false
  if (value.lc === 1 && Array.isArray(value.id) && isRecord(value.kwargs))
    return /Message/.test(className(value))
  const type = text(value.type)
  if (isRecord(value.data) && 'content' in value.data)
    return type in ROLES || type === 'chat' || type === 'remove'
  return (
    /^(human|ai|tool|system|function|remove|chat)$/.test(type) && 'content' in value && !('role' in value)
  )
}

/** Reads messages of any of the three forms. */
export function readLangChain(messages: readonly Fields[]): WireMessage[] {
  return messages.map((message, index): WireMessage => {
    const { type, fields } = opened(message)
    const place = `messages[${index}]`
    const role = ROLES[type] ?? (text(fields.role) || type)
    if (role === 'tool') {
      const failed = fields.status === 'error' ? { isError: true } : {}
      const result = toolResult(text(fields.tool_call_id), text(fields.name), fields.content, contentPart)
      return { role, parts: [{ ...result, ...failed }], place }
    }
    return { role, parts: role === 'assistant' ? answerParts(fields) : contentParts(fields.content), place }
  })
}

function className(message: Fields): string {
  return text(listOf(message.id).at(-1))
}

function opened(message: Fields): { type: string; fields: Fields } {
  if (isRecord(message.kwargs)) {
    const name = className(message)
      .replace(/Message(Chunk)?$/, '')
      .toLowerCase()
    return { type: name, fields: message.kwargs }
  }
  return { type: text(message.type), fields: isRecord(message.data) ? message.data : message }
}

/** The content and the calls of an answer; providers' own blocks of calls repeat `tool_calls`. */
function answerParts(fields: Fields): ProviderPart[] {
  const more = isRecord(fields.additional_kwargs) ? fields.additional_kwargs : {}
  const said = contentParts(fields.content)
  const calls = callsOf(fields, more)
  const ids = new Set(calls.map(call => call.id))
  const words = said.filter(part => part.type !== 'tool-call' || !(ids.has(part.id) || part.id === ''))
  const kept = calls.length > 0 ? words : said
  const thought = text(more.reasoning_content)
  const reasoning = thought === '' ? [] : [reasoningPart(thought, undefined, 'deepseek')]
  return [...reasoning, ...kept, ...calls]
}

type CallPart = Extract<ProviderPart, { type: 'tool-call' }>

function callsOf(fields: Fields, more: Fields): CallPart[] {
  const sound = recordsOf(fields.tool_calls).map(call => toCall(call, call.args))
  const broken = recordsOf(fields.invalid_tool_calls).map(call => toCall(call, argumentsOf(call.args)))
  if (sound.length + broken.length > 0) return [...sound, ...broken]
  return recordsOf(more.tool_calls).map(call => chatCall(call))
}

function toCall(call: Fields, args: unknown): CallPart {
  return { type: 'tool-call', id: text(call.id), name: text(call.name), args }
}

function contentParts(content: unknown): ProviderPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listOf(content).flatMap((block): ProviderPart[] => {
    if (typeof block === 'string') return [{ type: 'text', text: block }]
    return isRecord(block) ? [contentPart(block), ...citations('langchain', block.annotations)] : []
  })
}

/** Content blocks are the provider's own, or LangChain's standard ones. */
function contentPart(block: Fields): ProviderPart {
  if (!('type' in block)) return geminiPart(block)
  if (isTextPart(block)) return { type: 'text', text: text(block.text) }
  switch (block.type) {
    case 'reasoning':
      return reasoningPart(text(block.reasoning ?? block.text), textOr(block.signature), 'unknown')
    case 'tool_call':
    case 'tool_call_chunk':
      return toCall(block, argumentsOf(block.args))
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return standardMedia(block)
    case 'image_url':
    case 'input_image':
    case 'input_audio':
      return chatPart(block) ?? foreignPart('langchain', block)
    case 'tool_use':
    case 'thinking':
    case 'redacted_thinking':
    case 'document':
      return anthropicPart(block) ?? foreignPart('langchain', block)
    default:
      return foreignPart('langchain', block)
  }
}

function standardMedia(block: Fields): ProviderPart {
  const mimeType = text(block.mimeType ?? block.mime_type) || 'application/octet-stream'
  if (isRecord(block.source)) return anthropicPart(block) ?? foreignPart('langchain', block)
  const filename = isRecord(block.metadata) ? block.metadata.filename : undefined
  const name = typeof filename === 'string' ? { name: filename } : {}
  if (typeof block.url === 'string') return { type: 'media', mimeType, url: block.url, ...name }
  if (typeof block.data === 'string') return { type: 'media', mimeType, data: block.data, ...name }
  return chatPart(block) ?? foreignPart('langchain', block)
}

/** Stored messages, as `mapStoredMessagesToChatMessages` takes them. */
export function writeLangChain(messages: readonly SourceMessage[]): Fields[] {
  return messages.flatMap(({ id, role, parts }): Fields[] => {
    if (parts.length === 0) return []
    if (role === 'tool')
      return parts.flatMap(part => (part.type === 'tool-result' ? [toolMessage(part)] : []))
    if (role === 'assistant') return [{ type: 'ai', data: { id, ...answerFields(parts) } }]
    const type = role === 'system' ? 'system' : 'human'
    return [{ type, data: { id, content: contentOf(parts), ...EMPTY } }]
  })
}

const EMPTY = { additional_kwargs: {}, response_metadata: {} }

function toolMessage(part: Extract<ProviderPart, { type: 'tool-result' }>): Fields {
  const { result, isError } = bareResult(part)
  const words = typeof result === 'string' ? result : resultText(result)
  const { media = [] } = part
  const content = media.length === 0 ? words : [{ type: 'text', text: words }, ...media.map(mediaBlock)]
  const status = isError ? 'error' : 'success'
  return { type: 'tool', data: { content, tool_call_id: part.id, name: part.name, status, ...EMPTY } }
}

function answerFields(parts: readonly ProviderPart[]): Fields {
  const calls = parts.filter(part => part.type === 'tool-call')
  const sound = calls.flatMap(({ id, name, args = {} }) =>
    isRecord(args) ? [{ type: 'tool_call', id, name, args }] : [],
  )
  const broken = calls.flatMap(({ id, name, args = {} }) =>
    isRecord(args)
      ? []
      : [{ type: 'invalid_tool_call', id, name, args: JSON.stringify(args), error: 'No object.' }],
  )
  // Only signed thoughts of Claude are blocks that go back to the model; others would leave an empty list behind.
  const isThought = (part: ProviderPart) => part.type === 'reasoning' && !isSignedByClaude(part)
  const thoughts = parts.filter(isThought).map(part => ('text' in part ? part.text : ''))
  return {
    content: contentOf(parts.filter(part => part.type !== 'tool-call' && !isThought(part))),
    tool_calls: sound,
    invalid_tool_calls: broken,
    ...EMPTY,
    ...(thoughts.length > 0 ? { additional_kwargs: { reasoning_content: thoughts.join('\n') } } : {}),
  }
}

function isSignedByClaude({ origin, signature }: Extract<ProviderPart, { type: 'reasoning' }>): boolean {
  return origin?.vendor === 'anthropic' && signature !== undefined
}

/** One text alone is a string, which every model of LangChain takes. */
function contentOf(parts: readonly ProviderPart[]): unknown {
  const [first, ...others] = parts
  if (!first) return ''
  return others.length === 0 && first.type === 'text' ? first.text : parts.map(blockOf)
}

function blockOf(part: ProviderPart): Fields {
  switch (part.type) {
    case 'media':
      return mediaBlock(part)
    case 'reasoning':
      return part.redacted
        ? { type: 'redacted_thinking', data: part.signature }
        : { type: 'thinking', thinking: part.text, signature: part.signature }
    case 'vendor':
      return part.vendor === 'langchain' && isRecord(part.value) && 'type' in part.value
        ? part.value
        : { type: 'text', text: part.text }
    case 'text':
      return { type: 'text', text: part.text }
    case 'tool-call':
    case 'tool-result':
      return { type: 'text', text: JSON.stringify(part) }
    default:
      return part satisfies never
  }
}

/** Images as all models of LangChain take them, anything else as a standard block of data. */
function mediaBlock(media: MediaPart): Fields {
  const { mimeType: mime_type, data, url, name } = media
  if (mime_type.startsWith('image/')) return { type: 'image_url', image_url: { url: mediaUrl(media) } }
  const type = mime_type.startsWith('audio/') ? 'audio' : 'file'
  const source = data === undefined ? { source_type: 'url', url } : { source_type: 'base64', data }
  return { type, ...source, mime_type, ...(name === undefined ? {} : { metadata: { filename: name } }) }
}
