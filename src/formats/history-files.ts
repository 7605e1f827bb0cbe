/** Reads histories from files, recognized by content: Lango exports, ADK sessions, and request bodies. */

import { readFile, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { isRecord } from '../base/is-record.js'
import { withoutBom } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'
import { PROFILES } from '../provider/repair/profile.js'
import { profileForModel } from '../provider/repair/profile-for-model.js'
import type { Message } from '../session/message.js'
import type { Fields } from './adk-events.js'
import { isAdkSession, readAdkSession, readForeignSessions } from './adk-sessions.js'
import { readSessionLines } from './session-lines.js'
import { readAnthropic, readChat, readGemini, readResponses, type WireMessage } from './wire-messages.js'

/** What a file holds. */
export type HistoryFormat = 'lango' | 'adk' | 'gemini' | 'openai-chat' | 'openai-responses' | 'anthropic'

/** A stored session, or the body of a request. */
export type FileHistory =
  | { kind: 'session'; name: string; messages: Message[] }
  | { kind: 'request'; name: string; messages: WireMessage[] }

export interface HistoryFile {
  format: HistoryFormat
  histories: FileHistory[]
  /** The profiles that its requests are for; all, for sessions. */
  profiles: readonly string[]
}

/** The formats as text. */
export const FORMAT_NAMES: Readonly<Record<HistoryFormat, string>> = {
  lango: 'a Lango export',
  adk: 'an ADK session',
  gemini: 'a Gemini request',
  'openai-chat': 'an OpenAI Chat Completions request',
  'openai-responses': 'an OpenAI Responses request',
  anthropic: 'an Anthropic request',
}

const MOST_BYTES = 256 * 1024 * 1024

/** Reads a file, or standard input for `-`, and returns its format and histories. Throws `invalid-argument`. */
export async function readHistoryFile(file: string): Promise<HistoryFile> {
  if (file === '-') return readText(await readInput(), 'standard input')
  const found = await stat(file).catch(() => undefined)
  if (!found?.isFile()) {
    const why = found ? 'is not a file' : 'does not exist'
    throw invalid(`${file} ${why}. Pass a Lango export, an ADK session or a request body.`)
  }
  if (found.size > MOST_BYTES) {
    throw invalid(
      `${file} is larger than 256 MB. Import it with 'lango sessions import', then lint the session.`,
    )
  }
  const data = await readFile(file)
  if (data.subarray(0, 15).toString('latin1') === 'SQLite format 3') return readDatabase(file)
  return readText(data.toString('utf8'), file)
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk))
    size += chunks.at(-1)?.length ?? 0
    if (size > MOST_BYTES) throw invalid('stdin is larger than 256 MB.')
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function readDatabase(file: string): Promise<HistoryFile> {
  const histories: FileHistory[] = []
  for await (const { key, messages } of readForeignSessions(file)) {
    histories.push({ kind: 'session', name: key.sessionId, messages })
  }
  return { format: 'adk', histories, profiles: Object.keys(PROFILES) }
}

async function readText(written: string, source: string): Promise<HistoryFile> {
  const text = withoutBom(written).trim()
  if (text === '') throw invalid(`${source} is empty.`)
  if (/^\{"lango":/.test(text)) return readExport(text, source)
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch (error) {
    throw invalid(`${source} is not JSON: ${messageOf(error).slice(0, 200)}`)
  }
  return readData(data, source)
}

async function readExport(text: string, source: string): Promise<HistoryFile> {
  const histories: (FileHistory & { kind: 'session' })[] = []
  for await (const line of readSessionLines(Readable.from([Buffer.from(text)]), source)) {
    if ('header' in line) {
      histories.push({ kind: 'session', name: line.header.key.sessionId, messages: [] })
    } else histories.at(-1)?.messages.push(line.message)
  }
  return { format: 'lango', histories, profiles: Object.keys(PROFILES) }
}

function readData(data: unknown, source: string): HistoryFile {
  const sessions = Array.isArray(data) ? data : [data]
  if (sessions.length > 0 && sessions.every(isAdkSession)) {
    const histories = sessions.map((session): FileHistory => {
      const { key, messages } = readAdkSession(session)
      return { kind: 'session', name: key.sessionId, messages }
    })
    return { format: 'adk', histories, profiles: Object.keys(PROFILES) }
  }
  const body = bodyOf(data)
  const format = body && formatOf(body)
  if (!body || !format) {
    throw invalid(
      `${source} has an unknown format. Expected a Lango export, an ADK session (with "events"), or a request body for ` +
        'Gemini ("contents"), OpenAI ("messages" or "input") or Anthropic ("messages").',
    )
  }
  const messages = READERS[format](body)
  return { format, histories: [{ kind: 'request', name: '', messages }], profiles: profilesFor(format, body) }
}

type RequestFormat = Exclude<HistoryFormat, 'lango' | 'adk'>

const READERS: Readonly<Record<RequestFormat, (body: Fields) => WireMessage[]>> = {
  gemini: readGemini,
  'openai-chat': readChat,
  'openai-responses': readResponses,
  anthropic: readAnthropic,
}

/** A bare list of messages or contents counts as the body that holds it. */
function bodyOf(data: unknown): Fields | undefined {
  if (isRecord(data)) return data
  if (!Array.isArray(data)) return undefined
  const [first] = data
  if (!isRecord(first)) return undefined
  if ('parts' in first) return { contents: data }
  return 'content' in first || 'tool_calls' in first ? { messages: data } : undefined
}

function formatOf(body: Fields): RequestFormat | undefined {
  if (Array.isArray(body.contents)) return 'gemini'
  if (Array.isArray(body.messages)) return isAnthropic(body, body.messages) ? 'anthropic' : 'openai-chat'
  return Array.isArray(body.input) || typeof body.input === 'string' ? 'openai-responses' : undefined
}

const CHAT_ROLES = new Set(['tool', 'function', 'developer'])
const CLAUDE_BLOCKS = new Set(['tool_use', 'tool_result', 'thinking', 'redacted_thinking', 'document'])

function isAnthropic(body: Fields, messages: readonly unknown[]): boolean {
  const rows = messages.filter(isRecord)
  const blocks = rows.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isRecord) : []))
  if (blocks.some(({ type }) => CLAUDE_BLOCKS.has(String(type)))) return true
  if (rows.some(row => Array.isArray(row.tool_calls) || CHAT_ROLES.has(String(row.role)))) return false
  if (body.system !== undefined || body.anthropic_version !== undefined) return true
  const tools = Array.isArray(body.tools) ? body.tools.filter(isRecord) : []
  return tools.some(tool => 'input_schema' in tool) || /claude/i.test(String(body.model ?? ''))
}

/** The profile that the model's name implies; without a model all of its family. */
function profilesFor(format: RequestFormat, body: Fields): readonly string[] {
  const model = typeof body.model === 'string' ? body.model.replace(/^.*\//, '') : ''
  if (format === 'openai-chat') {
    const isOpenai = model === '' || /^(gpt|o\d|chatgpt|ft:)/.test(model)
    return [isOpenai ? 'openai-chat' : profileForModel('openai-compatible', model)]
  }
  if (format === 'openai-responses') return ['openai-responses']
  if (model !== '') return [profileForModel(format, model)]
  return Object.values(PROFILES).flatMap(({ name, vendor }) => (vendor === format ? [name] : []))
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
