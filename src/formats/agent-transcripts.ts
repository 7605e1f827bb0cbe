/**
 * Transcripts of coding agents as neutral messages: JSON lines of Claude Code, Codex and pi.
 *
 * - Lines form a tree (Claude Code, pi): the branch of the last message is read, and what is on other branches is
 *   counted in a note.
 * - Claude Code writes one line per block: lines of one answer, and results that follow each other, are one message.
 *   Results of calls at once hang on their own calls, beside the branch.
 * - Lines about the program itself (settings, snapshots, progress) are no messages. They are counted in a note.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import type { Origin, ProviderPart } from '../provider/provider.js'
import { anthropicParts, named, readResponses } from './wire-messages.js'
import {
  type Fields,
  foreignPart,
  listOf,
  reasoningFrom,
  recordsOf,
  text,
  textOr,
  timeOf,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

export interface Transcript {
  name: string
  messages: WireMessage[]
  /** What of the file is not among the messages. */
  notes: string[]
}

export function isClaudeCodeLine(line: Fields): boolean {
  return (
    (line.type === 'user' || line.type === 'assistant') &&
    isRecord(line.message) &&
    typeof line.uuid === 'string'
  )
}

/** Reads a transcript of Claude Code: its main conversation, then one per sub-agent. */
export function readClaudeCode(lines: readonly Fields[]): Transcript[] {
  const numbered = lines.map((line, index) => ({ ...line, number: index + 1 }) as Fields & Numbered)
  const spoken = numbered.filter(isClaudeCodeLine)
  const main = spoken.filter(line => line.isSidechain !== true)
  const threads = new Map<string, (Fields & Numbered)[]>()
  for (const line of spoken.filter(each => each.isSidechain === true)) {
    const agent = text(line.agentId) || 'sub-agent'
    const thread = threads.get(agent)
    if (thread) thread.push(line)
    else threads.set(agent, [line])
  }
  const others = lines.length - spoken.length
  const name = text(spoken.find(line => line.sessionId !== undefined)?.sessionId)
  return [
    { ...claudeThread(main, numbered), name, notes: notesOf(main, numbered, others) },
    ...[...threads].map(([agent, thread]) => ({
      ...claudeThread(thread, numbered),
      name: `${name} (${agent})`,
      notes: [],
    })),
  ].filter(({ messages }) => messages.length > 0)
}

interface Numbered {
  number: number
}

const CLAUDE_LINKS = {
  id: (line: Fields) => text(line.uuid),
  // After a compaction the conversation begins again; the line says what came before.
  parent: (line: Fields) => text(line.parentUuid ?? line.logicalParentUuid),
}

function claudeThread(
  thread: readonly (Fields & Numbered)[],
  all: readonly Fields[],
): { messages: WireMessage[] } {
  const read: (WireMessage & { answer?: string })[] = []
  for (const line of claudeBranch(thread, all)) {
    const spoken = claudeMessage(line)
    if (!spoken) continue
    const { role, parts, answer } = spoken
    const open = openMessage(read, role, answer, parts)
    if (open) open.parts = [...open.parts, ...parts]
    else
      read.push({
        role,
        parts,
        place: `line ${line.number}`,
        ...timeOf(line.timestamp),
        ...(answer === undefined ? {} : { answer }),
      })
  }
  return { messages: named(read.map(({ answer: _answer, ...message }) => message)) }
}

interface ClaudeMessage {
  role: string
  parts: ProviderPart[]
  /** The id of the model's answer that the line is a block of. */
  answer?: string | undefined
}

function claudeMessage(line: Fields): ClaudeMessage | undefined {
  if (isClaudeCodeLine(line)) {
    const message = line.message as Fields
    const role = String(message.role ?? line.type)
    return { role, parts: anthropicParts(message.content), answer: textOr(message.id) }
  }
  const { attachment } = line
  if (!isRecord(attachment)) return undefined
  if (attachment.type === 'queued_command') return { role: 'user', parts: anthropicParts(attachment.prompt) }
  if (attachment.type !== 'file' && attachment.type !== 'directory') return undefined
  const shown = recordsOf(listOf(line.rendered)).flatMap(({ content }) => anthropicParts(content))
  const whole: ProviderPart = { type: 'text', text: JSON.stringify(attachment.content ?? attachment) }
  return { role: 'user', parts: shown.length > 0 ? shown : [whole] }
}

/** The message that a line continues. Results may come in while the answer is still being written. */
function openMessage(
  read: readonly (WireMessage & { answer?: string })[],
  role: string,
  answer: string | undefined,
  parts: readonly ProviderPart[],
): WireMessage | undefined {
  const last = read.at(-1)
  if (role !== 'assistant') {
    return last?.role === role && last.parts.every(isResult) && parts.every(isResult) ? last : undefined
  }
  if (answer === undefined) return undefined
  const before = last && last.role !== 'assistant' && last.parts.every(isResult) ? read.at(-2) : last
  return before?.answer === answer ? before : undefined
}

/**
 * The branch of the last line. Calls at once are a line each, with their results below them, so that the branch may run
 * through any of them: the other blocks of its answers, and their results, belong to it too.
 */
function claudeBranch(thread: readonly (Fields & Numbered)[], all: readonly Fields[]): (Fields & Numbered)[] {
  const branch = branchOf(thread, all, CLAUDE_LINKS)
  const taken = new Set(branch.map(line => line.uuid))
  const answers = new Set<unknown>(branch.map(answerOf).filter(answer => answer !== undefined))
  const called = new Set(branch.flatMap(line => blocksOf(line).map(({ id }) => id)))
  const answered = new Set(branch.flatMap(line => blocksOf(line).map(block => block.tool_use_id)))
  const beside = thread.filter(line => {
    if (taken.has(line.uuid) || !taken.has(line.parentUuid)) return false
    const blocks = blocksOf(line)
    const isResults = blocks.every(({ tool_use_id: id }) => called.has(id) && !answered.has(id))
    if (!answers.has(answerOf(line)) && !(isResults && blocks.length > 0)) return false
    taken.add(line.uuid)
    for (const { id } of blocks) called.add(id)
    return true
  })
  return beside.length === 0 ? branch : [...branch, ...beside].sort((one, other) => one.number - other.number)
}

function answerOf({ message }: Fields): string | undefined {
  return isRecord(message) ? textOr(message.id) : undefined
}

function blocksOf({ message }: Fields): Fields[] {
  return isRecord(message) ? recordsOf(listOf(message.content)) : []
}

function isResult(part: ProviderPart): boolean {
  return part.type === 'tool-result'
}

function notesOf(main: readonly (Fields & Numbered)[], all: readonly Fields[], others: number): string[] {
  const branch = claudeBranch(main, all)
  const onBranch = new Set(branch.map(line => line.uuid))
  const attached = branch.filter(line => !isClaudeCodeLine(line) && claudeMessage(line) !== undefined).length
  return notes(main.filter(line => !onBranch.has(line.uuid)).length, others - attached)
}

function notes(abandoned: number, others: number): string[] {
  return [
    ...(abandoned > 0 ? [`${abandoned} on branches that were left are not read.`] : []),
    ...(others > 0 ? [`${others} lines are not messages (settings, snapshots, progress).`] : []),
  ]
}

interface Links {
  id(line: Fields): string
  parent(line: Fields): string
}

/** The lines from the root to the last of `thread`, by their parents; all of them when they are not linked. */
function branchOf<Line extends Fields>(
  thread: readonly Line[],
  all: readonly Fields[],
  links: Links,
): Line[] {
  const last = thread.at(-1)
  if (!last) return []
  const byId = new Map(all.map(line => [links.id(line), line]))
  const branch: Fields[] = []
  const seen = new Set<Fields>()
  for (let line: Fields | undefined = last; line && !seen.has(line); line = byId.get(links.parent(line))) {
    seen.add(line)
    branch.push(line)
  }
  const isLinked = thread.every(line => links.id(line) !== '')
  return isLinked && branch.length > 1 ? (branch.reverse() as Line[]) : [...thread]
}

export function isCodexLine(line: Fields): boolean {
  return isRecord(line.payload) && CODEX_LINES.has(text(line.type))
}

const CODEX_LINES = new Set(['session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted'])

/** Reads a rollout of Codex: its Responses items. Events repeat them for display. */
export function readCodex(lines: readonly Fields[]): Transcript[] {
  const items: { item: Fields; number: number; time: unknown }[] = []
  let others = 0
  for (const [index, line] of lines.entries()) {
    const payload = isRecord(line.payload) ? line.payload : line
    const place = { number: index + 1, time: line.timestamp }
    if (line.type === 'response_item' || (line.payload === undefined && typeof line.type === 'string'))
      items.push({ item: payload, ...place })
    else if (line.type === 'compacted' && text(payload.message) !== '')
      items.push({ item: { type: 'message', role: 'user', content: payload.message }, ...place })
    else others += 1
  }
  const messages = readResponses({ input: items.map(({ item }) => item) }).map(message => {
    const at = items[Number(/\d+/.exec(message.place)?.[0])]
    return { ...message, place: `line ${at?.number ?? 0}`, ...timeOf(at?.time) }
  })
  const meta = lines.find(line => line.type === 'session_meta')
  const name = isRecord(meta?.payload) ? text(meta.payload.id) : text(lines[0]?.id)
  return [{ name, messages, notes: notes(0, others) }]
}

export function isPiLine(line: Fields): boolean {
  return (
    line.type === 'message' && isRecord(line.message) && text(line.message.role) !== '' && !('uuid' in line)
  )
}

const PI_LINKS = { id: (line: Fields) => text(line.id), parent: (line: Fields) => text(line.parentId) }

/** Reads a session of pi. */
export function readPi(lines: readonly Fields[]): Transcript[] {
  const numbered = lines.map((line, index) => ({ ...line, number: index + 1 }) as Fields & Numbered)
  const entries = numbered.filter(line => line.type !== 'session')
  const branch = branchOf(entries, entries, PI_LINKS)
  const messages: WireMessage[] = []
  for (const line of branch) {
    const read = piEntry(line)
    const last = messages.at(-1)
    // The results of one answer are a line each.
    if (read?.role === 'tool' && last?.role === 'tool') last.parts = [...last.parts, ...read.parts]
    else if (read) messages.push({ ...read, place: `line ${line.number}`, ...timeOf(line.timestamp) })
  }
  const spoken = entries.filter(isPiLine)
  const onBranch = new Set(branch.map(({ number }) => number))
  const abandoned = spoken.filter(({ number }) => !onBranch.has(number)).length
  const name = text(lines.find(line => line.type === 'session')?.id)
  return [{ name, messages, notes: notes(abandoned, entries.length - spoken.length) }]
}

function piEntry(line: Fields): { role: string; parts: ProviderPart[] } | undefined {
  if (line.type === 'compaction' || line.type === 'branch_summary')
    return { role: 'user', parts: [{ type: 'text', text: text(line.summary) }] }
  if (line.type === 'custom_message') return { role: 'user', parts: piParts(line.content, undefined) }
  return isPiLine(line) ? piMessage(line.message as Fields) : undefined
}

function piMessage(message: Fields): { role: string; parts: ProviderPart[] } | undefined {
  const role = text(message.role)
  const vendor = PI_VENDORS.get(text(message.api)) ?? text(message.provider)
  const origin = vendor === '' ? undefined : { vendor, model: text(message.model) }
  switch (role) {
    case 'user':
    case 'assistant': {
      const parts = piParts(message.content, origin)
      // An answer that failed before its first word: pi keeps the error and does not send the message.
      return parts.length === 0 && text(message.errorMessage) !== '' ? undefined : { role, parts }
    }
    case 'system': {
      const sections = isRecord(message.sections) ? Object.values(message.sections) : []
      const said = [
        ...piParts(message.content, undefined),
        ...sections.flatMap(each => piParts(each, undefined)),
      ]
      const parts = said.filter(part => part.type !== 'text' || part.text !== '')
      return parts.length === 0 ? undefined : { role, parts }
    }
    case 'toolResult': {
      const failed = message.isError === true ? { isError: true } : {}
      const [id, name] = [piCallId(message.toolCallId), text(message.toolName)]
      const result = toolResult(id, name, message.content, part => piPart(part, undefined))
      return { role: 'tool', parts: [{ ...result, ...failed }] }
    }
    case 'bashExecution': {
      const words = `Ran \`${text(message.command)}\`\n${text(message.output)}`
      return { role: 'user', parts: [{ type: 'text', text: words }] }
    }
    default: {
      const summary = textOr(message.summary)
      const parts: ProviderPart[] =
        summary === undefined ? piParts(message.content, undefined) : [{ type: 'text', text: summary }]
      return { role: 'user', parts }
    }
  }
}

const PI_VENDORS = new Map([
  ['anthropic-messages', 'anthropic'],
  ['bedrock-converse-stream', 'anthropic'],
  ['openai-responses', 'openai'],
  ['openai-codex-responses', 'openai'],
  ['azure-openai-responses', 'openai'],
  ['google-generative-ai', 'gemini'],
  ['google-gemini-cli', 'gemini'],
  ['google-vertex', 'gemini'],
])

function piParts(content: unknown, origin: Origin | undefined): ProviderPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listOf(content).flatMap(part => (isRecord(part) ? [piPart(part, origin)] : []))
}

function piPart(part: Fields, origin: Origin | undefined): ProviderPart {
  // Of the others pi keeps ids of items and names of fields there, which sign nothing.
  const signed = (signature: unknown) =>
    typeof signature === 'string' && origin?.vendor === 'gemini' ? { signature, origin } : {}
  switch (part.type) {
    case 'text':
      return { type: 'text', text: text(part.text), ...signed(part.textSignature) }
    case 'thinking': {
      const redacted = part.redacted === true ? { redacted: true } : {}
      return { ...reasoningFrom(text(part.thinking), piSignature(part, origin), origin), ...redacted }
    }
    case 'toolCall': {
      const { id, name, arguments: args } = part
      return { type: 'tool-call', id: piCallId(id), name: text(name), args, ...signed(part.thoughtSignature) }
    }
    case 'image':
      return { type: 'media', mimeType: text(part.mimeType) || 'image/png', data: text(part.data) }
    default:
      return foreignPart('pi', part)
  }
}

/** The id of a Responses call, without the id of its item that pi writes behind it. */
function piCallId(id: unknown): string {
  return text(id).replace(/\|(?:fc|ctc|item)_\w+$/, '')
}

/** What a provider signed. Of OpenAI's reasoning pi keeps the whole item; of Chat Completions the name of a field. */
function piSignature({ thinkingSignature }: Fields, origin: Origin | undefined): string | undefined {
  const signature = textOr(thinkingSignature)
  if (origin?.vendor !== 'openai')
    return signature === undefined || /^reasoning\w*$/.test(signature) ? undefined : signature
  const item = parseJson(signature ?? '')
  return isRecord(item) ? textOr(item.encrypted_content) : signature
}

/** Whether lines are a transcript whose first line is Codex' old header. */
export function isOldCodex(lines: readonly Fields[]): boolean {
  const [first, ...others] = lines
  return (
    first !== undefined &&
    typeof first.id === 'string' &&
    typeof first.timestamp === 'string' &&
    first.type === undefined &&
    recordsOf(others).some(({ type }) => type === 'message' || type === 'function_call')
  )
}
