/**
 * Which format a parsed file has, by its shape. Only what a format alone writes counts as proof: a list of texts with
 * roles fits several, and then all of them are returned.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { isClaudeCodeLine, isCodexLine, isOldCodex, isPiLine } from './agent-transcripts.js'
import { isConverseBody } from './converse-messages.js'
import { isLangChainMessage } from './langchain-messages.js'
import { isAgentsItem, itemsOfRunState } from './openai-agents-items.js'
import { type Fields, listOf, recordsOf, text } from './wire-parts.js'

/** What a file holds. */
export type HistoryFormat =
  | 'lango'
  | 'adk'
  | 'gemini'
  | 'openai-chat'
  | 'openai-responses'
  | 'anthropic'
  | 'converse'
  | 'ai-sdk-ui'
  | 'ai-sdk-model'
  | 'openai-agents'
  | 'langchain'
  | 'mastra'
  | 'claude-code'
  | 'codex'
  | 'pi'

/** The formats that one JSON value can have. */
export type DataFormat = Exclude<HistoryFormat, 'lango' | 'adk' | 'claude-code' | 'codex' | 'pi'>

/** The formats of JSON lines. */
export type LinesFormat = 'claude-code' | 'codex' | 'pi'

/** The history in a file, wherever a program puts it. */
export interface FoundRows {
  /** The whole body, for what is beside the messages. */
  body: Fields
  rows: Fields[]
}

/** The history in a value. A request may be wrapped in what a log or an error keeps beside it. */
export function rowsOf(data: unknown): FoundRows | undefined {
  const found = bareRows(data)
  if (found || !isRecord(data)) return found
  for (const name of WRAPPERS) {
    const inner = typeof data[name] === 'string' ? parseJson(data[name]) : data[name]
    const wrapped = isRecord(inner) ? rowsOf(inner) : undefined
    if (wrapped) return wrapped
  }
  return undefined
}

/** Where logs, proxies and the AI SDK's errors keep the body that was sent. */
const WRAPPERS = ['body', 'request', 'requestBody', 'requestBodyValues', 'payload', 'params', 'json', 'data']

/** Whether a list holds whole requests and not the messages of one. */
export function areRequests(data: unknown): data is Fields[] {
  if (!Array.isArray(data) || data.length === 0) return false
  return data.every(each => isRecord(each) && !('role' in each) && rowsOf(each) !== undefined)
}

function bareRows(data: unknown): FoundRows | undefined {
  if (Array.isArray(data)) {
    return data.some(isRecord) ? { body: {}, rows: placesOf(data) } : undefined
  }
  if (!isRecord(data)) return undefined
  const items = itemsOfRunState(data)
  if (items) return { body: {}, rows: items }
  const { values } = data
  for (const list of [
    data.contents,
    data.messages,
    data.input,
    data.history,
    isRecord(values) && values.messages,
  ]) {
    if (Array.isArray(list)) return { body: data, rows: placesOf(list) }
  }
  return typeof data.input === 'string' ? { body: data, rows: [] } : undefined
}

/** What is no record counts as an empty one, so that every row keeps its place. */
function placesOf(list: readonly unknown[]): Fields[] {
  return list.map(row => (isRecord(row) ? row : {}))
}

/** The formats that the data may have: one, several when its shape does not decide, none when it fits none. */
export function formatsOf({ body, rows }: FoundRows): DataFormat[] {
  // Their content is in the blocks of whichever provider wrote it.
  if (rows.length > 0 && rows.every(isLangChainMessage)) return ['langchain']
  const proven = PROOFS.flatMap(([format, proves]) => (proves(rows, body) ? [format] : []))
  if (proven.length > 0) return proven
  return LIKELY.flatMap(([format, fits]) => (fits(rows, body) ? [format] : []))
}

export function linesFormatsOf(lines: readonly Fields[]): LinesFormat[] {
  const found: [LinesFormat, boolean][] = [
    ['claude-code', lines.some(isClaudeCodeLine)],
    ['codex', lines.some(isCodexLine) || isOldCodex(lines)],
    ['pi', lines.some(isPiLine) || (lines[0]?.type === 'session' && 'version' in lines[0])],
  ]
  return found.flatMap(([format, fits]) => (fits ? [format] : []))
}

type Test = (rows: readonly Fields[], body: Fields) => boolean

/** What only one format writes. */
const PROOFS: readonly [DataFormat, Test][] = [
  ['gemini', (rows, body) => Array.isArray(body.contents) || partsOf(rows).some(isGeminiPart)],
  ['converse', (rows, body) => isConverseBody(rows, body)],
  ['ai-sdk-ui', rows => partsOf(rows).some(isUiPart) || rows.some(row => Array.isArray(row.toolInvocations))],
  ['mastra', rows => rows.some(isMastraRow)],
  ['openai-agents', rows => rows.some(isAgentsItem)],
  ['openai-responses', (rows, body) => body.input !== undefined || rows.some(isResponsesItem)],
  ['ai-sdk-model', rows => blocksOf(rows).some(isModelPart)],
  ['anthropic', (rows, body) => blocksOf(rows).some(isClaudeBlock) || isClaudeBody(rows, body)],
  [
    'openai-chat',
    (rows, body) => rows.some(isChatRow) || blocksOf(rows).some(isChatPart) || isChatBody(body),
  ],
]

/** What a list may be that proves nothing. */
const LIKELY: readonly [DataFormat, Test][] = [
  ['gemini', rows => rows.length > 0 && rows.every(({ parts }) => Array.isArray(parts))],
  ['ai-sdk-ui', rows => rows.length > 0 && rows.every(({ parts }) => Array.isArray(parts))],
  ['openai-responses', (rows, body) => areTyped(rows) || areStrings(rows, body)],
  ['openai-agents', (rows, body) => areTyped(rows) || areStrings(rows, body)],
  ['openai-chat', rows => areSpoken(rows)],
  ['anthropic', rows => areSpoken(rows) && rows.every(({ role }) => role !== 'system')],
  ['ai-sdk-model', rows => areSpoken(rows)],
]

/** Items of which at least one says that it is a message; what the user says may leave that out. */
function areTyped(rows: readonly Fields[]): boolean {
  const spoken = rows.every(
    ({ type, role }) => (type === 'message' || type === undefined) && typeof role === 'string',
  )
  return spoken && rows.some(({ type }) => type === 'message')
}

function areSpoken(rows: readonly Fields[]): boolean {
  return (
    rows.length > 0 && rows.every(row => 'content' in row && typeof row.role === 'string' && !('type' in row))
  )
}

/** Texts alone may be items too: not in a body of messages, and not where items would be joined to one answer. */
function areStrings(rows: readonly Fields[], body: Fields): boolean {
  if (Object.keys(body).length > 0 || !areSpoken(rows)) return false
  return rows.every(
    ({ content, role }, index) =>
      typeof content === 'string' && !(role === 'assistant' && rows[index - 1]?.role === 'assistant'),
  )
}

function partsOf(rows: readonly Fields[]): Fields[] {
  return rows.flatMap(({ parts }) => recordsOf(parts))
}

function blocksOf(rows: readonly Fields[]): Fields[] {
  return rows.flatMap(({ content }) => recordsOf(content))
}

/** Gemini's parts differ by their key, those of the AI SDK by their type. */
function isGeminiPart(part: Fields): boolean {
  return !('type' in part) && Object.keys(part).length > 0
}

function isUiPart(part: Fields): boolean {
  return typeof part.type === 'string'
}

function isMastraRow({ content, resourceId, threadId }: Fields): boolean {
  if (isRecord(content) && (Array.isArray(content.parts) || typeof content.format === 'number')) return true
  return typeof resourceId === 'string' && typeof threadId === 'string' && content !== undefined
}

const RESPONSES_ITEMS = /^(function_call|function_call_output|item_reference|\w+_call|\w+_call_output)$/

function isResponsesItem(item: Fields): boolean {
  const type = text(item.type)
  if (type === 'reasoning') return 'summary' in item
  return RESPONSES_ITEMS.test(type) && !('callId' in item) && !OTHERS_ITEMS.has(type)
}

/** Of the Agents SDK and of LangChain. */
const OTHERS_ITEMS = new Set(['tool_call', 'hosted_tool_call'])

const MODEL_PARTS = new Set([
  'tool-call',
  'tool-result',
  'redacted-reasoning',
  'tool-approval-request',
  'tool-approval-response',
])

function isModelPart(part: Fields): boolean {
  if (MODEL_PARTS.has(text(part.type))) return true
  if (part.type === 'image') return 'image' in part
  if (part.type === 'reasoning') return typeof part.text === 'string'
  return part.type === 'file' && ('mediaType' in part || 'mimeType' in part)
}

const CLAUDE_BLOCKS =
  /^(tool_use|tool_result|thinking|redacted_thinking|document|server_tool_use|\w+_tool_result|search_result|container_upload)$/

function isClaudeBlock(block: Fields): boolean {
  return CLAUDE_BLOCKS.test(text(block.type)) || (block.type === 'image' && isRecord(block.source))
}

function isClaudeBody(rows: readonly Fields[], body: Fields): boolean {
  if (rows.some(isChatRow)) return false
  if (body.anthropic_version !== undefined) return true
  if (body.system !== undefined) return !isConverseBody(rows, body)
  return recordsOf(body.tools).some(tool => 'input_schema' in tool) || /claude/i.test(text(body.model))
}

const CHAT_ROLES = new Set(['function', 'developer'])

function isChatRow(row: Fields): boolean {
  // Gemini's results have had the role `function` too.
  if (Array.isArray(row.parts)) return false
  if (listOf(row.tool_calls).length > 0 || isRecord(row.function_call)) return !isLangChainMessage(row)
  return CHAT_ROLES.has(text(row.role)) || (row.role === 'tool' && typeof row.tool_call_id === 'string')
}

function isChatPart(part: Fields): boolean {
  return part.type === 'image_url' || part.type === 'input_audio' || part.type === 'refusal'
}

function isChatBody(body: Fields): boolean {
  return text(body.model) !== '' && !/claude/i.test(text(body.model)) && Array.isArray(body.messages)
}
