/** Request bodies of Bedrock's Converse as neutral messages. Its blocks have no type: each is named by its one key. */

import { isRecord } from '../base/is-record.js'
import type { ProviderPart } from '../provider/provider.js'
import { named } from './wire-messages.js'
import {
  type Fields,
  listOf,
  reasoningPart,
  recordsOf,
  text,
  textOr,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

/** Reads the messages of a Converse request. */
export function readConverse(body: Fields): WireMessage[] {
  const system = listOf(body.system).map(conversePart)
  const messages = listOf(body.messages).map((message, index): WireMessage => {
    const fields = isRecord(message) ? message : {}
    const role = String(fields.role ?? '')
    const read = { role, parts: listOf(fields.content).map(conversePart), place: `messages[${index}]` }
    const isWrong = role === 'tool' || role === 'system'
    return isWrong ? { ...read, role: 'user', wrongRole: { role, right: 'user' } } : read
  })
  const leading: WireMessage[] =
    system.length === 0 ? [] : [{ role: 'system', parts: system, place: 'system' }]
  return named([...leading, ...messages])
}

/** Whether a body has what only Converse has. */
export function isConverseBody(rows: readonly Fields[], body: Fields): boolean {
  if (isRecord(body.toolConfig) || isRecord(body.inferenceConfig)) return Array.isArray(body.messages)
  const blocks = rows.flatMap(({ content }) => recordsOf(content))
  return blocks.some(isConverseBlock) || (blocks.length > 0 && blocks.every(isBareText))
}

const BLOCKS = ['toolUse', 'toolResult', 'reasoningContent', 'cachePoint', 'guardContent', 'citationsContent']
const FILES = ['image', 'document', 'video', 'audio']

function isConverseBlock(block: Fields): boolean {
  if ('type' in block) return false
  return BLOCKS.some(name => isRecord(block[name])) || FILES.some(name => isRecord(block[name]))
}

function isBareText(block: Fields): boolean {
  return !('type' in block) && typeof block.text === 'string' && Object.keys(block).length === 1
}

function conversePart(block: unknown): ProviderPart {
  const fields = isRecord(block) ? block : {}
  if (typeof fields.text === 'string') return { type: 'text', text: fields.text }
  if (isRecord(fields.toolUse)) {
    const { toolUseId, name, input } = fields.toolUse
    return { type: 'tool-call', id: text(toolUseId), name: text(name), args: input }
  }
  if (isRecord(fields.toolResult)) {
    const { toolUseId, content, status } = fields.toolResult
    const parts = recordsOf(content)
    const [only] = parts
    // One object is the result itself.
    const whole = parts.length === 1 && only && 'json' in only ? only.json : undefined
    const read = toolResult(text(toolUseId), '', whole === undefined ? typed(parts) : '', conversePart)
    return {
      ...read,
      ...(whole === undefined ? {} : { result: whole }),
      ...(status === 'error' ? { isError: true } : {}),
    }
  }
  if (isRecord(fields.reasoningContent)) return thought(fields.reasoningContent)
  for (const kind of FILES) {
    const file = fields[kind]
    if (isRecord(file)) return fileOf(kind, file)
  }
  if (Object.keys(fields).length === 0) return {} as ProviderPart
  return { type: 'vendor', vendor: 'bedrock', value: fields, text: `[${Object.keys(fields).join(', ')}]` }
}

/** The texts of a result in the form that all wires have. */
function typed(parts: readonly Fields[]): Fields[] {
  return parts.map(part => {
    if (typeof part.text === 'string') return { type: 'text', text: part.text }
    return 'json' in part ? { type: 'text', text: JSON.stringify(part.json) } : part
  })
}

function thought({ reasoningText, redactedContent }: Fields): ProviderPart {
  if (!isRecord(reasoningText))
    return { ...reasoningPart('', textOr(redactedContent), 'anthropic'), redacted: true }
  return reasoningPart(text(reasoningText.text), textOr(reasoningText.signature), 'anthropic')
}

function fileOf(kind: string, { format, source, name }: Fields): ProviderPart {
  const { bytes, s3Location } = isRecord(source) ? source : {}
  const mimeType = MIME_TYPES[text(format)] ?? `${kind === 'document' ? 'application' : kind}/${text(format)}`
  const title = typeof name === 'string' ? { name } : {}
  if (isRecord(s3Location)) return { type: 'media', mimeType, url: text(s3Location.uri), ...title }
  return { type: 'media', mimeType, data: typeof bytes === 'string' ? bytes : 'file', ...title }
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  mov: 'video/quicktime',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}
