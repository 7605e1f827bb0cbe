/** Reads histories from files, recognized by content: Lango exports, ADK sessions, and request bodies. */

import { readFile, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { isRecord } from '../base/is-record.js'
import { parseJson, withoutBom } from '../base/json.js'
import { stableJson } from '../base/stable-json.js'
import { suggest } from '../base/suggest.js'
import { AgentError, messageOf } from '../errors.js'
import { PROFILES } from '../provider/repair/profile.js'
import { gatewayProfile, profileForModel } from '../provider/repair/profile-for-model.js'
import type { Message } from '../session/message.js'
import { isAdkSession, isSqliteData, readAdkSession } from './adk-sessions.js'
import { readClaudeCode, readCodex, readPi, type Transcript } from './agent-transcripts.js'
import { readMastraMessages, readModelMessages, readUiMessages } from './ai-sdk-messages.js'
import { readConverse } from './converse-messages.js'
import { readForeignDatabase } from './foreign-databases.js'
import { readLangChain } from './langchain-messages.js'
import { leftOut } from './left-out.js'
import { readAgentsItems } from './openai-agents-items.js'
import {
  areRequests,
  type DataFormat,
  type FoundRows,
  formatsOf,
  type HistoryFormat,
  type LinesFormat,
  linesFormatsOf,
  rowsOf,
} from './recognize.js'
import { readSessionLines } from './session-lines.js'
import { readAnthropic, readChat, readGemini, readResponses } from './wire-messages.js'
import { type Fields, recordsOf, type WireMessage } from './wire-parts.js'

/**
 * A stored session; the body of a request, which is checked as it is; or a transcript of another framework, which is
 * checked as if a user message followed.
 */
export type FileHistory =
  | { kind: 'session'; name: string; messages: Message[] }
  | ({ kind: 'transcript' } & ReadHistory)
  | ({ kind: 'request'; body: Fields } & ReadHistory)

interface ReadHistory {
  name: string
  messages: WireMessage[]
  notes: readonly string[]
  /** The rows of the file that the messages were read from. */
  rows: readonly Fields[]
}

export interface HistoryFile {
  /** Absent when the file fits several formats, which all read the same in it. */
  format?: HistoryFormat
  /** All formats that the file fits. */
  candidates: readonly HistoryFormat[]
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
  converse: 'a Bedrock Converse request',
  'ai-sdk-ui': 'AI SDK UI messages',
  'ai-sdk-model': 'AI SDK model messages',
  'openai-agents': 'OpenAI Agents SDK items',
  langchain: 'LangChain messages',
  mastra: 'Mastra messages',
  'claude-code': 'a Claude Code transcript',
  codex: 'a Codex transcript',
  pi: 'a pi transcript',
}

const MOST_BYTES = 256 * 1024 * 1024

/** Reads a file or standard input, and returns its format and histories. Throws `invalid-argument`. */
export async function readHistoryFile(file: string | Readable, format?: string): Promise<HistoryFile> {
  const chosen = chosenFormat(format)
  if (typeof file !== 'string') return readText(await readInput(file), 'standard input', chosen)
  const found = await stat(file).catch(() => undefined)
  if (!found?.isFile()) {
    const why = found ? 'is not a file' : 'does not exist'
    throw invalid(`${file} ${why}. Pass a Lango export, a transcript or a request body.`)
  }
  if (found.size > MOST_BYTES) {
    throw invalid(
      `${file} is larger than 256 MB. Import it with 'lango sessions import', then lint the session.`,
    )
  }
  const data = await readFile(file)
  if (isSqliteData(data)) return readDatabase(file)
  return readText(data.toString('utf8'), file, chosen)
}

async function readInput(input: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk))
    size += chunks.at(-1)?.length ?? 0
    if (size > MOST_BYTES) throw invalid('stdin is larger than 256 MB.')
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function readDatabase(file: string): Promise<HistoryFile> {
  const { formats, sessions } = await readForeignDatabase(file, { app: 'lango' })
  const histories: FileHistory[] = []
  for await (const { key, messages } of sessions) {
    histories.push({ kind: 'session', name: key.sessionId, messages })
  }
  const [format, ...others] = formats
  return {
    ...(others.length === 0 && format !== undefined ? { format } : {}),
    candidates: formats,
    histories,
    profiles: Object.keys(PROFILES),
  }
}

/** Throws when a file has the form of a history and nothing in it. */
export function refuseEmpty({ format, histories }: HistoryFile, source: string): void {
  // An instruction alone is no conversation.
  if (histories.some(({ messages }) => messages.some(({ role }) => role !== 'system'))) return
  const what = format === undefined ? '' : ` It is ${FORMAT_NAMES[format]}`
  const rest = histories.length > 0 ? ' without messages' : ' without conversations'
  throw invalid(`${source} holds no messages: there is nothing to check.${what && `${what}${rest}.`}`)
}

/** The fields of the file that are not in the messages of a history. */
export function leftOutOf({ rows, messages }: ReadHistory): string[] {
  return leftOut(rows, messages)
}

function chosenFormat(format: string | undefined): HistoryFormat | undefined {
  if (format === undefined || Object.hasOwn(FORMAT_NAMES, format)) return format as HistoryFormat | undefined
  const names = Object.keys(FORMAT_NAMES)
  const meant = suggest(format, names)
  const advice = meant === undefined ? `Formats: ${names.join(', ')}.` : `Did you mean ${meant}?`
  throw invalid(`There is no format "${format}". ${advice}`)
}

/** As `readHistoryFile`, for a text. `source` is named in errors. */
export function readHistoryText(written: string, source: string, format?: string): Promise<HistoryFile> {
  return readText(written, source, chosenFormat(format))
}

async function readText(
  written: string,
  source: string,
  chosen: HistoryFormat | undefined,
): Promise<HistoryFile> {
  const text = withoutBom(written).trim()
  if (text === '') throw invalid(`${source} is empty.`)
  if (/^\{"lango":/.test(text)) return readExport(text, source)
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch (error) {
    const lines = parseLines(text)
    if (lines) return readLines(lines, source, chosen)
    throw invalid(`${source} is not JSON, nor JSON lines: ${messageOf(error).slice(0, 200)}`)
  }
  return readData(data, source, chosen)
}

interface ParsedLines {
  lines: Fields[]
  notes: string[]
}

/** The records of JSON lines. A last line that was cut off by a crash is reported; any other bad line makes it no such file. */
function parseLines(text: string): ParsedLines | undefined {
  const written = text.split('\n').filter(line => line.trim() !== '')
  const lines: Fields[] = []
  for (const [index, line] of written.entries()) {
    const value = parseJson(line)
    if (isRecord(value)) lines.push(value)
    else if (index > 0 && index === written.length - 1)
      return { lines, notes: [`Line ${index + 1}, the last one, is incomplete and is not read.`] }
    else return undefined
  }
  return lines.length > 1 ? { lines, notes: [] } : undefined
}

function readLines(
  { lines, notes }: ParsedLines,
  source: string,
  chosen: HistoryFormat | undefined,
): HistoryFile {
  if (lines[0] && 'seq' in lines[0] && 'tokens' in lines[0]) {
    throw invalid(
      `Line 1 of ${source} is not a session header: the file is a Lango export whose beginning is missing.`,
    )
  }
  const candidates = chosen ? [chosen] : linesFormatsOf(lines)
  const [format, ...others] = candidates
  if (others.length > 0) throw notSure(source, candidates)
  if (format === undefined || !Object.hasOwn(LINES_READERS, format)) return readRows(lines, source, chosen)
  const histories = LINES_READERS[format as LinesFormat](lines).map(
    (transcript): FileHistory => ({
      kind: 'transcript',
      ...transcript,
      notes: [...transcript.notes, ...notes],
      rows: lines,
    }),
  )
  return { format, candidates, histories, profiles: Object.keys(PROFILES) }
}

/** Lines that are requests, one each, or the messages of one. */
function readRows(lines: readonly Fields[], source: string, chosen: HistoryFormat | undefined): HistoryFile {
  return areRequests(lines) ? readRequests(lines, source, chosen, 'line') : readData(lines, source, chosen)
}

/** Several requests: those of one conversation, in their order. */
function readRequests(
  requests: readonly Fields[],
  source: string,
  chosen: HistoryFormat | undefined,
  place: string,
): HistoryFile {
  const read = requests.map(request => readData(request, source, chosen))
  const formats = new Set(read.map(({ format }) => format))
  const [format] = formats
  const histories = read.flatMap(each => each.histories)
  return {
    ...(formats.size === 1 && format !== undefined ? { format } : {}),
    candidates: [...new Set(read.flatMap(each => each.candidates))],
    histories: histories.map((history, index) => ({ ...history, name: `${place} ${index + 1}` })),
    profiles: [...new Set(read.flatMap(each => each.profiles))],
  }
}

const LINES_READERS: Readonly<Record<LinesFormat, (lines: readonly Fields[]) => Transcript[]>> = {
  'claude-code': readClaudeCode,
  codex: readCodex,
  pi: readPi,
}

async function readExport(text: string, source: string): Promise<HistoryFile> {
  const histories: (FileHistory & { kind: 'session' })[] = []
  for await (const line of readSessionLines(Readable.from([Buffer.from(text)]), source)) {
    if ('header' in line) {
      histories.push({ kind: 'session', name: line.header.key.sessionId, messages: [] })
    } else if ('message' in line) histories.at(-1)?.messages.push(line.message)
  }
  return { format: 'lango', candidates: ['lango'], histories, profiles: Object.keys(PROFILES) }
}

function readData(data: unknown, source: string, chosen: HistoryFormat | undefined): HistoryFile {
  const sessions = Array.isArray(data) ? data : [data]
  if (sessions.length > 0 && sessions.every(isAdkSession)) {
    const histories = sessions.map((session): FileHistory => {
      const { key, messages } = readAdkSession(session)
      return { kind: 'session', name: key.sessionId, messages }
    })
    return { format: 'adk', candidates: ['adk'], histories, profiles: Object.keys(PROFILES) }
  }
  if (areRequests(data)) return readRequests(data, source, chosen, 'request')
  const found = rowsOf(data)
  const candidates = found ? (chosen ? [chosen as DataFormat] : formatsOf(found)) : []
  const [format, ...others] = candidates
  if (isEmptyList(data) || (found && !format && found.rows.length === 0))
    throw invalid(`${source} holds no messages: its list is empty.`)
  if (!found || !format || !Object.hasOwn(READERS, format)) {
    throw invalid(
      `${source} has an unknown format. Expected a Lango export, an ADK session (with "events"), a request body for ` +
        'Gemini ("contents"), OpenAI ("messages" or "input"), Anthropic or Bedrock Converse ("messages"), or messages of the AI SDK, ' +
        'OpenAI Agents, LangChain, Mastra, Claude Code, Codex or pi.',
    )
  }
  const all = candidates.map(each => READERS[each](found))
  const [read] = all
  if (!read || all.some(other => !isSame(other, read))) throw notSure(source, candidates)
  // What may be stored messages is judged as such: a request would have to end with the user.
  const histories = all.find(({ kind }) => kind === 'transcript') ?? read
  const profiles = [...new Set(candidates.flatMap(each => profilesFor(each, found.body)))]
  return {
    ...(others.length === 0 ? { format } : {}),
    candidates,
    histories: [{ ...histories, name: '', notes: [], rows: found.rows }],
    profiles,
  }
}

function isEmptyList(data: unknown): boolean {
  return Array.isArray(data) && data.length === 0
}

type Read =
  | { kind: 'transcript'; messages: WireMessage[] }
  | { kind: 'request'; messages: WireMessage[]; body: Fields }

const READERS: Readonly<Record<DataFormat, (found: FoundRows) => Read>> = {
  gemini: ({ body, rows }) => request(readGemini, { ...body, contents: rows }),
  'openai-chat': ({ body, rows }) => request(readChat, { ...body, messages: rows }),
  'openai-responses': ({ body, rows }) =>
    request(readResponses, { ...body, input: typeof body.input === 'string' ? body.input : rows }),
  anthropic: ({ body, rows }) => request(readAnthropic, { ...body, messages: rows }),
  converse: ({ body, rows }) => request(readConverse, { ...body, messages: rows }),
  'ai-sdk-ui': ({ rows }) => transcript(readUiMessages(rows)),
  'ai-sdk-model': ({ rows }) => transcript(readModelMessages(rows)),
  'openai-agents': ({ rows }) => transcript(readAgentsItems(rows)),
  langchain: ({ rows }) => transcript(readLangChain(rows)),
  mastra: ({ rows }) => transcript(readMastraMessages(rows)),
}

function request(read: (body: Fields) => WireMessage[], body: Fields): Read {
  return { kind: 'request', messages: read(body), body }
}

function transcript(messages: WireMessage[]): Read {
  return { kind: 'transcript', messages }
}

/** Whether two readers found the same, wherever they say it is. */
function isSame(one: Read, other: Read): boolean {
  const bare = ({ messages }: Read) => stableJson(messages.map(({ role, parts }) => ({ role, parts })))
  return bare(one) === bare(other)
}

function notSure(source: string, candidates: readonly HistoryFormat[]): AgentError {
  const message =
    `${source}: not sure, it could be ${orList(candidates.map(format => FORMAT_NAMES[format]))}. ` +
    `Choose with --format ${candidates.join(' or --format ')}.`
  return new AgentError('invalid-argument', message, { details: { candidates } })
}

/** `a, b or c`. */
export function orList(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

/** The profile that the model's name implies; without a model all of its family. */
function profilesFor(format: DataFormat, body: Fields): readonly string[] {
  const model = typeof body.model === 'string' ? body.model.replace(/^.*\//, '') : ''
  if (format === 'openai-chat') {
    const hasDetails = recordsOf(body.messages).some(row => row.reasoning_details !== undefined)
    const gateway = gatewayProfile(model, hasDetails)
    if (gateway) return [gateway]
    // Grok's own API, and what gateways serve of Claude and older Gemini models, take what OpenAI's takes.
    const isOpenai = model === '' || /^(gpt(?!-oss)|o\d|chatgpt|ft:|grok|claude|gemini)/.test(model)
    return [isOpenai ? 'openai-chat' : profileForModel('openai-compatible', model)]
  }
  if (format === 'openai-responses') return [/^grok/.test(model) ? 'xai-responses' : 'openai-responses']
  if (format === 'converse') return ['converse']
  if (format !== 'gemini' && format !== 'anthropic') return Object.keys(PROFILES)
  if (model !== '') return [profileForModel(format, model)]
  return Object.values(PROFILES).flatMap(({ name, vendor }) => (vendor === format ? [name] : []))
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
