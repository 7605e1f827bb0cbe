/** Conversations as updates of the Agent Client Protocol: stored ones as items, running ones event by event. */
import { isAbsolute, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type {
  ContentBlock,
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallLocation,
  ToolCallStatus,
  ToolKind,
} from '@agentclientprotocol/sdk'
import { isRecord } from '../../base/is-record.js'
import { ABORTED_MARKER } from '../../base/markers.js'
import { own } from '../../base/own.js'
import { firstSeqOf } from '../../run/event-numbers.js'
import type { RunEvent } from '../../run/run-event.js'
import type { Source } from '../../session/sources.js'
import type { BuiltInToolName } from '../../tools/tool-names.js'
import {
  answered,
  codeText,
  isHiddenCall,
  type MediaPart,
  resumedText,
  sourceLabel,
  type ToolItem,
  type ToolStatus,
  type TranscriptItem,
} from '../../transcript/item.js'
import { fitText, plainLine } from '../plain-text.js'
import { noticeText } from '../run-printer.js'

const KINDS: Readonly<Record<BuiltInToolName, ToolKind>> = {
  read_file: 'read',
  list_files: 'search',
  search_files: 'search',
  write_file: 'edit',
  edit_file: 'edit',
  run_command: 'execute',
  fetch_url: 'fetch',
  current_time: 'other',
}

/** A call as it is announced: what it is about, the files that it concerns, and what it would change in them. */
export function callFacts(id: string, name: string, args: unknown, workspace: string): ToolCall {
  const given = isRecord(args) ? args : {}
  const kind = own(KINDS, name) ?? 'other'
  const path = kind !== 'other' && typeof given.path === 'string' ? given.path : undefined
  const place = path === undefined ? undefined : isAbsolute(path) ? path : join(workspace, path)
  const locations: ToolCallLocation[] = place === undefined ? [] : [{ path: place, ...lineOf(given) }]
  const content = place === undefined ? [] : diffOf(given, place)
  return {
    toolCallId: id,
    title: titleOf(name, given),
    name,
    kind,
    rawInput: args,
    ...(locations.length > 0 ? { locations } : {}),
    ...(content.length > 0 ? { content } : {}),
  }
}

function titleOf(name: string, { path, command, url, query }: Record<string, unknown>): string {
  const about = [path, command, url, query].find(value => typeof value === 'string' && value !== '')
  return about === undefined ? name : `${name} ${fitText(plainLine(String(about)), 160)}`
}

function lineOf({ first_line: line }: Record<string, unknown>): { line?: number } {
  return typeof line === 'number' && Number.isInteger(line) && line > 0 ? { line } : {}
}

/** The passage that `edit_file` replaces, or the whole text that `write_file` writes. */
function diffOf(args: Record<string, unknown>, path: string): ToolCallContent[] {
  const { content, old_text: oldText, new_text: newText } = args
  if (typeof content === 'string') return [{ type: 'diff', path, oldText: null, newText: content }]
  if (typeof oldText !== 'string' || typeof newText !== 'string') return []
  return [{ type: 'diff', path, oldText, newText }]
}

/** What a result changes in what is shown of its call. A successful edit keeps its diff. */
function resultFacts(call: ToolCall, result: unknown, status: ToolStatus) {
  const isEdit = call.content?.some(({ type }) => type === 'diff') === true
  const text = result === undefined ? '' : resultText(result)
  const shown: ToolCallContent[] = text === '' ? [] : [textContent(text)]
  const content = isEdit ? [...(call.content ?? []), ...(status === 'done' ? [] : shown)] : shown
  return {
    status: STATUSES[status],
    ...(content.length > 0 ? { content } : {}),
    ...(result === undefined ? {} : { rawOutput: result }),
  }
}

const STATUSES: Readonly<Record<ToolStatus, ToolCallStatus>> = {
  running: 'in_progress',
  waiting: 'pending',
  pending: 'pending',
  done: 'completed',
  failed: 'failed',
  unanswered: 'failed',
  unknown: 'failed',
}

/** The most characters of a result that are shown; `rawOutput` has all of them. */
const MOST_SHOWN = 20_000

function resultText(result: unknown): string {
  const { error, text, output } = isRecord(result) ? result : {}
  const words = [error, text, output, result].find(value => typeof value === 'string')
  const whole = words === undefined ? JSON.stringify(result, null, 2) : String(words)
  return whole.length > MOST_SHOWN ? `${whole.slice(0, MOST_SHOWN)}\n…` : whole
}

function textContent(text: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text } }
}

type ChunkKind = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'

export function chunk(sessionUpdate: ChunkKind, text: string, messageId?: string): SessionUpdate {
  const content: ContentBlock = { type: 'text', text }
  return { sessionUpdate, content, ...(messageId === undefined ? {} : { messageId }) }
}

/** The items of stored messages, in order. */
export function historyUpdates(items: readonly TranscriptItem[], workspace: string): SessionUpdate[] {
  return items.flatMap((item): SessionUpdate[] => {
    switch (item.kind) {
      case 'user':
        return [
          ...(item.text === '' ? [] : [chunk('user_message_chunk', item.text, item.key)]),
          ...item.media.map(media => mediaChunk('user_message_chunk', media, item.key)),
        ]
      case 'text':
        return [chunk('agent_message_chunk', item.text, item.key)]
      case 'reasoning':
        return item.text === '' ? [] : [chunk('agent_thought_chunk', item.text, item.key)]
      case 'media':
        return [mediaChunk('agent_message_chunk', item.media, item.key)]
      case 'sources':
        return [chunk('agent_message_chunk', sourcesText(item.sources), item.key)]
      case 'tool':
        return [storedCall(item, workspace)]
      case 'error':
        return [chunk('agent_message_chunk', `Error: ${item.error.message}`, item.key)]
      // What happened around an answer was said when it happened.
      case 'mark':
      case 'footer':
        return []
      default:
        return item satisfies never
    }
  })
}

function storedCall({ callId, name, args, result, status }: ToolItem, workspace: string): SessionUpdate {
  const call = callFacts(callId, name, args, workspace)
  return { sessionUpdate: 'tool_call', ...call, ...resultFacts(call, result, status) }
}

function mediaChunk(
  sessionUpdate: 'user_message_chunk' | 'agent_message_chunk',
  { mimeType, name = '', data, url }: MediaPart,
  messageId: string,
): SessionUpdate {
  const [type] = mimeType.split('/')
  if (data !== undefined && (type === 'image' || type === 'audio'))
    return { sessionUpdate, content: { type, data, mimeType }, messageId }
  const label = name === '' ? mimeType : name
  if (url !== undefined)
    return { sessionUpdate, content: { type: 'resource_link', name: label, uri: url, mimeType }, messageId }
  if (data === undefined) return chunk(sessionUpdate, `[${label}]`, messageId)
  // An embedded resource needs an address of its own.
  const resource = { blob: data, mimeType, uri: pathToFileURL(`/${label}`).href }
  return { sessionUpdate, content: { type: 'resource', resource }, messageId }
}

function sourcesText(sources: readonly Source[]): string {
  const lines = sources.map(source => `- [${plainLine(sourceLabel(source))}](${source.url})`)
  return `\n\nSources:\n${lines.join('\n')}\n`
}

/** The events of one run, in order, as updates. */
export class RunUpdates {
  readonly #workspace: string
  readonly #hasNotices: boolean
  readonly #calls = new Map<string, ToolCall>()
  #message = { kind: '', author: '', id: '' }

  constructor(workspace: string, hasNotices: boolean) {
    this.#workspace = workspace
    this.#hasNotices = hasNotices
  }

  /** What was announced of a call; one of an agent inside a tool was not. */
  call(id: string): ToolCall | undefined {
    return this.#calls.get(id)
  }

  of(event: RunEvent): SessionUpdate[] {
    switch (event.type) {
      case 'text-delta':
        return event.text === ABORTED_MARKER ? [] : [this.#says('agent_message_chunk', event, event.text)]
      case 'reasoning-delta':
        return [this.#says('agent_thought_chunk', event, event.text)]
      case 'code':
        return [this.#says('agent_message_chunk', event, `\n${codeText(event)}\n`)]
      case 'sources':
        return [this.#says('agent_message_chunk', event, sourcesText(event.sources))]
      case 'tool-call':
        return isHiddenCall(event.name)
          ? []
          : [this.announce(event.id, event.name, event.args, event.pending ? 'pending' : 'in_progress')]
      case 'tool-result':
        return isHiddenCall(event.name) ? [] : this.#result(event)
      case 'approval-request':
        return this.#asked(event)
      case 'approval-answer':
        return [...this.#approved(event), ...this.notice(noticeText(event))]
      case 'step-restart':
        this.#message.kind = ''
        return this.notice('The answer restarts: discard the text since the last complete step.')
      case 'run-resumed':
        return this.notice(resumedText({ type: 'resumed', attempt: event.attempt }))
      case 'repair':
        // It concerns most requests of some models: the log has it, too.
        return this.#hasNotices ? this.notice(noticeText(event)) : []
      case 'run-start':
      case 'usage':
      case 'error':
      case 'run-finish':
        return []
      default:
        return this.notice(noticeText(event))
    }
  }

  announce(id: string, name: string, args: unknown, status: ToolCallStatus): SessionUpdate {
    const call = callFacts(id, name, args, this.#workspace)
    this.#calls.set(id, call)
    this.#message.kind = ''
    return { sessionUpdate: 'tool_call', ...call, status }
  }

  /** What happened around the answer. A client without notices shows it as a thought. */
  notice(title: string | undefined): SessionUpdate[] {
    if (title === undefined) return []
    if (this.#hasNotices) return [{ sessionUpdate: 'notice', severity: 'info', title }]
    this.#message.kind = ''
    return [chunk('agent_thought_chunk', `${title}\n`)]
  }

  /** Texts of one author without anything between them are one message. */
  #says(kind: ChunkKind, event: RunEvent & { author: string }, text: string): SessionUpdate {
    const { runId, author } = event
    const last = this.#message
    if (last.kind !== kind || last.author !== author)
      this.#message = { kind, author, id: `${runId}-${firstSeqOf(event)}` }
    return chunk(kind, text, this.#message.id)
  }

  #result({ id, name, result, isError }: Extract<RunEvent, { type: 'tool-result' }>): SessionUpdate[] {
    const call = this.#calls.get(id) ?? callFacts(id, name, undefined, this.#workspace)
    const found = answered(result, isError)
    const facts = resultFacts(call, found.result, found.status)
    if (!this.#calls.has(id)) return [{ sessionUpdate: 'tool_call', ...call, ...facts }]
    return [{ sessionUpdate: 'tool_call_update', toolCallId: id, ...facts }]
  }

  #asked({ id, callId = id, name, args }: Extract<RunEvent, { type: 'approval-request' }>): SessionUpdate[] {
    if (!this.#calls.has(callId)) return [this.announce(callId, name, args, 'pending')]
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'pending' }]
  }

  #approved({ id, callId = id, answer }: Extract<RunEvent, { type: 'approval-answer' }>): SessionUpdate[] {
    if (answer !== 'once' && answer !== 'always') return []
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'in_progress' }]
  }
}
