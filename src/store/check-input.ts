/**
 * The rules for what callers pass to a store; `checked-store.ts` applies them. Every error names the field. Of a
 * message only the types are checked: any role, id or JSON is stored unchanged.
 */

import { isRecord } from '../base/is-record.js'
import { AgentError } from '../errors.js'
import type { Message, SessionKey, State } from '../session/message.js'
import type {
  JournalEntry,
  RunEventRecord,
  RunSignal,
  RunStep,
  ToolCallChange,
  ToolCallStatus,
} from '../session/run-store.js'
import type {
  CreateOptions,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
} from '../session/session-store.js'
import { utf8Length } from '../session/tokens.js'
import { storableText } from './storable-text.js'

/** Names are part of keys and indexes, which databases limit. */
const MAX_NAME_BYTES = 512
const MAX_STATE_KEY_BYTES = 1000
const MAX_SEARCH = 200

export function checkKey(key: SessionKey): void {
  if (typeof key !== 'object' || key === null)
    throw invalid('key', 'must be { appName, userId, sessionId }', key)
  checkName('key.appName', key.appName)
  checkName('key.userId', key.userId)
  checkName('key.sessionId', key.sessionId)
}

export function checkNames(field: string, names: readonly unknown[]): void {
  for (const name of names) checkName(field, name)
}

/** A name in a key: text that any database can hold and index. */
export function checkName(field: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '') throw invalid(field, 'must be a non-empty string', name)
  if (USUAL_NAME.test(name)) return
  if (name.includes('\0') || hasLoneSurrogate(name)) {
    throw invalid(field, 'must not contain NUL or half of a surrogate pair', undefined)
  }
  if (utf8Length(name) > MAX_NAME_BYTES) {
    throw invalid(field, `must be at most ${MAX_NAME_BYTES} bytes long in UTF-8`, undefined)
  }
}

/** Names of the usual kind need no further checks. */
const USUAL_NAME = /^[\x20-\x7e]{1,512}$/

export function checkListQuery({ appName, userId, limit, search }: ListQuery): void {
  checkName('appName', appName)
  if (userId !== undefined) checkName('userId', userId)
  if (limit !== undefined) checkInteger('limit', limit, 1)
  if (search === undefined || (typeof search === 'string' && search.length <= MAX_SEARCH)) return
  throw invalid('search', `must be a string of at most ${MAX_SEARCH} characters`, undefined)
}

export function checkTitle(title: unknown): void {
  if (title !== undefined && typeof title !== 'string') throw invalid('title', 'must be a string', undefined)
}

export function checkMessage(message: Message): void {
  if (typeof message !== 'object' || message === null) throw invalid('message', 'must be an object', message)
  for (const field of ['role', 'content'] as const) {
    if (typeof message[field] !== 'string' && !(field === 'content' && message[field] === null))
      throw invalid(`message.${field}`, 'must be a string', message[field])
  }
  if (typeof message.timestamp !== 'number' || !Number.isFinite(message.timestamp)) {
    throw invalid('message.timestamp', 'must be milliseconds since 1970', message.timestamp)
  }
  for (const field of ['author', 'id', 'invocationId', 'branch'] as const) {
    const value = message[field]
    if (value !== undefined && typeof value !== 'string')
      throw invalid(`message.${field}`, 'must be a string', value)
  }
  checkToolCalls(message.toolCalls)
  const { extra } = message
  if (extra !== undefined && !isRecord(extra)) {
    throw invalid('message.extra', 'must be an object', extra)
  }
}

/** A message that says nothing beside its calls has `content: null` elsewhere, as in OpenAI's format; here it is ''. */
export function withText(message: Message): Message {
  return (message.content as string | null) === null ? { ...message, content: '' } : message
}

export function checkMessages(messages: readonly Message[]): void {
  if (!Array.isArray(messages)) throw invalid('messages', 'must be an array', messages)
  for (const message of messages) checkMessage(message)
}

/** The JSON of a value, or an error that names the field. */
export function storableJson(field: string, value: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch (cause) {
    throw new AgentError('invalid-argument', `${field} cannot be written as JSON: pass plain data only`, {
      cause,
    })
  }
  if (json === undefined) throw invalid(field, 'must be JSON data', value)
  return json
}

export function checkState(field: string, state: State): void {
  if (!isRecord(state)) {
    throw invalid(field, 'must be an object', state)
  }
  for (const key of Object.keys(state)) {
    if (utf8Length(storableText(key)) > MAX_STATE_KEY_BYTES) {
      throw invalid(
        `a key of ${field}`,
        `must be at most ${MAX_STATE_KEY_BYTES} bytes long in UTF-8`,
        undefined,
      )
    }
  }
}

export function checkFence(fence: number | undefined): void {
  if (fence !== undefined) checkInteger('fence', fence, 1)
}

export function checkLoadOptions({ budgetTokens, maxMessages, throughSeq }: LoadOptions): void {
  if (budgetTokens !== undefined && budgetTokens !== 'off') checkInteger('budgetTokens', budgetTokens, 0)
  if (maxMessages !== undefined) checkInteger('maxMessages', maxMessages, 1)
  if (throughSeq !== undefined) checkInteger('throughSeq', throughSeq, 0)
}

export function checkReadOptions({ afterSeq, beforeSeq, limit }: ReadOptions): void {
  if (afterSeq !== undefined) checkInteger('afterSeq', afterSeq, 0)
  if (beforeSeq !== undefined) checkInteger('beforeSeq', beforeSeq, 0)
  if (limit !== undefined) checkInteger('limit', limit, 1)
}

export function checkLeaseOptions({ ttlMs, waitMs }: LeaseOptions): void {
  if (ttlMs !== undefined) checkInteger('ttlMs', ttlMs, 1)
  if (waitMs !== undefined && waitMs !== Number.POSITIVE_INFINITY) checkInteger('waitMs', waitMs, 0)
}

export function checkInteger(field: string, value: unknown, least: number): asserts value is number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    throw invalid(field, `must be a whole number from ${least} up`, value)
  }
}

export function checkNumber(field: string, value: unknown): asserts value is number {
  if (!Number.isFinite(value)) throw invalid(field, 'must be a number', value)
}

export function invalid(field: string, rule: string, value: unknown): AgentError {
  const found = value === undefined ? '' : `, not ${describe(value)}`
  return new AgentError('invalid-argument', `${field} ${rule}${found}`, { details: { field } })
}

/** Describes the value without repeating long or secret text. */
function describe(value: unknown): string {
  if (value === null) return 'null'
  if (value === '') return 'an empty string'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint')
    return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function checkToolCalls(calls: Message['toolCalls']): void {
  if (calls === undefined) return
  if (!Array.isArray(calls)) throw invalid('message.toolCalls', 'must be an array', calls)
  calls.forEach((call, index) => {
    const field = `message.toolCalls[${index}]`
    if (typeof call !== 'object' || call === null) throw invalid(field, 'must be an object', call)
    for (const name of ['id', 'name', 'input', 'output', 'signature', 'kind'] as const) {
      const value = call[name]
      if (value !== undefined && typeof value !== 'string')
        throw invalid(`${field}.${name}`, 'must be a string', value)
    }
  })
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

/** A session cannot be nested in itself. */
export function checkNesting(key: SessionKey, { nestedIn }: CreateOptions): void {
  if (nestedIn === undefined) return
  checkName('nestedIn', nestedIn)
  if (nestedIn === key.appName)
    throw invalid('nestedIn', "must name an app other than the session's own", nestedIn)
}

export function checkEvents(events: readonly RunEventRecord[]): void {
  if (!Array.isArray(events)) throw invalid('events', 'must be an array', events)
  events.forEach((event: unknown, index) => {
    if (typeof event !== 'object' || event === null)
      throw invalid(`events[${index}]`, 'must be an object', event)
    checkInteger(`events[${index}].seq`, (event as RunEventRecord).seq, 0)
  })
}

export function checkRunInput(input: unknown): void {
  if (input !== undefined && !isRecord(input)) throw invalid('input', 'must be an object', input)
}

export function checkCalls(calls: readonly ToolCallChange[]): void {
  if (!Array.isArray(calls)) throw invalid('calls', 'must be an array', calls)
  calls.forEach((change: ToolCallChange, index) => {
    const field = `calls[${index}]`
    if (!isRecord(change)) throw invalid(field, 'must be an object', change)
    checkText(`${field}.id`, change.id)
    if (!STATUSES.has(change.status))
      throw invalid(`${field}.status`, `must be one of ${[...STATUSES].join(', ')}`, change.status)
    if (change.runId !== undefined) checkName(`${field}.runId`, change.runId)
    if (change.actions !== undefined && !isRecord(change.actions))
      throw invalid(`${field}.actions`, 'must be an object', change.actions)
    const { call } = change
    if (call === undefined) return
    checkText(`${field}.call.callId`, call.callId)
    checkText(`${field}.call.tool`, call.tool)
    checkText(`${field}.call.effect`, call.effect)
    checkName(`${field}.call.digest`, call.digest)
    if (!isRecord(call.args)) throw invalid(`${field}.call.args`, 'must be an object', call.args)
  })
}

/** The parts of a step that concern the continuation of its run. */
export function checkProgress({ key, at, journal, pause, release }: RunStep): void {
  if (at !== undefined) {
    checkKey(at)
    const isNested = at.userId === key.userId && at.sessionId === key.sessionId && at.appName !== key.appName
    if (!isNested) throw invalid('at', 'must name another app, with the user and the session id of key', at)
  }
  if (journal !== undefined) checkJournal(journal)
  if (pause === undefined) return
  if (pause !== 'waiting' && pause !== 'handover')
    throw invalid('pause', "must be 'waiting' or 'handover'", pause)
  if (release !== true) throw invalid('pause', 'must come with release: true', pause)
}

function checkJournal(journal: readonly JournalEntry[]): void {
  if (!Array.isArray(journal)) throw invalid('journal', 'must be an array', journal)
  const ids = new Set<string>()
  journal.forEach((entry: JournalEntry, index) => {
    const field = `journal[${index}]`
    if (!isRecord(entry)) throw invalid(field, 'must be an object', entry)
    for (const name of ['id', 'scope', 'author', 'branch'] as const)
      checkText(`${field}.${name}`, entry[name])
    if (!KINDS.has(entry.kind))
      throw invalid(`${field}.kind`, `must be one of ${[...KINDS].join(', ')}`, entry.kind)
    if (ids.has(entry.id)) throw invalid(`${field}.id`, 'must differ from the ids before it', undefined)
    ids.add(entry.id)
    if (entry.seq !== undefined) checkInteger(`${field}.seq`, entry.seq, 1)
    if (entry.at !== undefined) checkKey(entry.at)
    if (entry.delta !== undefined) checkState(`${field}.delta`, entry.delta)
    if (entry.before !== undefined) checkState(`${field}.before`, entry.before)
  })
}

const KINDS: ReadonlySet<string> = new Set<JournalEntry['kind']>(['model', 'event', 'end', 'wait'])

const STATUSES: ReadonlySet<string> = new Set<ToolCallStatus>([
  'intent',
  'started',
  'done',
  'failed',
  'unknown',
])

function checkText(field: string, text: unknown): void {
  if (typeof text !== 'string') throw invalid(field, 'must be a string', text)
}

export function checkRunRange(range: { afterSeq?: number; limit?: number }): void {
  // -1 means all events, number 0 included.
  if (range.afterSeq !== undefined) checkInteger('afterSeq', range.afterSeq, -1)
  checkLimit(range)
}

export function checkLimit({ limit }: { limit?: number }): void {
  if (limit !== undefined) checkInteger('limit', limit, 1)
}

export function checkRecord(step: number, record: Record<string, unknown>): void {
  checkInteger('step', step, 0)
  if (typeof record !== 'object' || record === null) throw invalid('record', 'must be an object', record)
}

export function checkSignal(signal: RunSignal): void {
  const type = (signal as RunSignal | undefined)?.type
  if (!SIGNALS.has(type ?? ''))
    throw invalid('signal.type', `must be one of ${[...SIGNALS].join(', ')}`, type)
}

const SIGNALS: ReadonlySet<string> = new Set<RunSignal['type']>(['stop', 'approval', 'outcome', 'response'])

export function checkObservation(model: string, bytes: number, tokens: number): void {
  checkName('model', model)
  checkInteger('bytes', bytes, 1)
  checkInteger('tokens', tokens, 1)
}
