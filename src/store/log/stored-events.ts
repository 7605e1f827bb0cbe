/**
 * Run events and the journal as they are stored with an entry: without what the entry or its message says. A tool's
 * arguments and results and the text of an answer are in the message, so the event refers to them.
 */
import { isRecord } from '../../base/is-record.js'
import { parseJson } from '../../base/json.js'
import type { Message, SessionKey, StoredMessage, ToolCall } from '../../session/message.js'
import type { JournalEntry, RunEventRecord } from '../../session/run-store.js'

/** The ids that the events of a run repeat. */
export interface RunNames {
  readonly runId: string
  readonly sessionId: string
}

/** A field of the stored event alone. It says where the message has a field of the event. */
const STORED = '\u0001stored'

/** In characters: smaller values are shorter than a reference. */
const LEAST_REPEATED = 24

/** The field of an event that repeats a field of a call. */
const OF_CALL: Readonly<Record<string, { field: string; of: 'input' | 'output' }>> = {
  'tool-call': { field: 'args', of: 'input' },
  'tool-result': { field: 'result', of: 'output' },
}

export function packEvents(
  events: readonly RunEventRecord[],
  { runId, sessionId }: RunNames,
  message: Message | undefined,
): object[] {
  return events.map(event => {
    const short = shortUsage(withReference(event, message))
    const { sessionId: session, runId: run, ...rest } = short
    // An event that names something else, or less, is stored as it is.
    return session === sessionId && run === runId ? rest : { ...short, ...NAMED }
  })
}

/** An event that was stored with its own names, or without any. */
const NAMED = { '\u0001named': true }
const NAMED_FIELD = '\u0001named'

export function unpackEvents(
  stored: unknown,
  names: RunNames,
  message: () => Message | undefined,
): RunEventRecord[] {
  if (!Array.isArray(stored)) return []
  return stored.map(event => withNames(event as RunEventRecord, names, message))
}

function withNames(
  stored: RunEventRecord,
  names: RunNames,
  message: () => Message | undefined,
): RunEventRecord {
  const event = longUsage(stored)
  const whole = event[STORED] === undefined ? event : resolved(event, message())
  if (whole[NAMED_FIELD] === undefined) {
    const { seq, ...rest } = whole
    return { ...rest, sessionId: names.sessionId, runId: names.runId, seq }
  }
  const { [NAMED_FIELD]: _, ...named } = whole
  return named as RunEventRecord
}

function withReference(event: RunEventRecord, message: Message | undefined): RunEventRecord {
  if (event.type === 'run-finish') return withSameText(event, message)
  if (!message) return event
  if (event.type === 'text-delta') return withText(event, message)
  const repeated = OF_CALL[String(event.type)]
  if (repeated === undefined) return event
  const textOf = (call: ToolCall | undefined) => call?.[repeated.of] ?? ''
  const calls = message.toolCalls ?? []
  const place = calls.findIndex(call => call.id === event.id && textOf(call).length >= LEAST_REPEATED)
  const value = event[repeated.field]
  if (place === -1 || JSON.stringify(value) !== textOf(calls[place])) return event
  return { ...event, [repeated.field]: null, [STORED]: place }
}

function withText(event: RunEventRecord, { content }: Message): RunEventRecord {
  const { text } = event
  if (typeof text !== 'string' || text.length < LEAST_REPEATED) return event
  const at = content.indexOf(text)
  return at === -1 ? event : { ...event, text: null, [STORED]: [at, text.length] }
}

/** A run mostly ends with the text of its last step alone. */
function withSameText(event: RunEventRecord, message: Message | undefined): RunEventRecord {
  const { text, lastText } = event
  if (typeof text !== 'string' || text !== lastText) return event
  return { ...(message ? withText(event, message) : event), lastText: null }
}

function resolved(
  { [STORED]: place, ...rest }: RunEventRecord,
  message: Message | undefined,
): RunEventRecord {
  if (Array.isArray(place)) {
    const [at, length] = place as [number, number]
    const text = message?.content.slice(at, at + length) ?? ''
    return { ...rest, text, ...(rest.type === 'run-finish' ? { lastText: text } : {}) } as RunEventRecord
  }
  const repeated = OF_CALL[String(rest.type)]
  const call = message?.toolCalls?.[Number(place)]
  const text = repeated && call?.[repeated.of]
  const value = text === undefined ? { error: 'The message with this value was deleted.' } : parseJson(text)
  return { ...rest, ...(repeated ? { [repeated.field]: value } : {}) } as RunEventRecord
}

/** The fields of a usage, in the order in which a stored one lists their values. The order is part of the stored form. */
const USAGE = [
  ...[
    'inputTokens',
    'outputTokens',
    'cachedInputTokens',
    'cacheWriteTokens',
    'reasoningTokens',
    'totalTokens',
  ],
  'cost',
]

/** The usage of a model call, or of a run, as a list of numbers. Any other value stays as it is. */
function shortUsage(event: RunEventRecord): RunEventRecord {
  const { usage } = event
  if (Array.isArray(usage)) return { ...event, usage: { [STORED]: usage } }
  if (!isRecord(usage)) return event
  const names = Object.keys(usage)
  const isPlain = names.every((name, index) => name === USAGE[index] && typeof usage[name] === 'number')
  return isPlain ? { ...event, usage: names.map(name => usage[name]) } : event
}

function longUsage(event: RunEventRecord): RunEventRecord {
  const { usage, type, lastText, text } = event
  const whole = type === 'run-finish' && lastText === null ? { ...event, lastText: text } : event
  if (isRecord(usage) && usage[STORED] !== undefined) return { ...whole, usage: usage[STORED] }
  if (!Array.isArray(usage)) return whole
  return { ...whole, usage: Object.fromEntries(usage.map((value, index) => [USAGE[index] ?? '', value])) }
}

/** A journal entry without what its message says. */
export function packJournal(
  journal: readonly JournalEntry[],
  message: Message | undefined,
  nested: SessionKey | undefined,
): object[] {
  return journal.map(({ id, scope, author, branch, at, delta, ...rest }) => {
    const isOfMessage = message?.id !== undefined && message.id === id
    const removed = Object.keys(delta ?? {}).filter(key => delta?.[key] === undefined)
    return {
      ...rest,
      ...(isOfMessage ? {} : { id }),
      ...(scope === '' ? {} : { scope }),
      ...(isOfMessage && author === (message.author ?? '') ? {} : { author }),
      ...(isOfMessage && branch === (message.branch ?? '') ? {} : { branch }),
      ...(at === undefined || nested !== undefined ? {} : { at }),
      ...(delta === undefined ? {} : { delta }),
      // JSON has no `undefined`.
      ...(removed.length > 0 ? { removed } : {}),
    }
  })
}

/** The message of the stored entry, if it has one, and the nested session that the message belongs to. */
export interface JournalSource {
  readonly message: StoredMessage | undefined
  readonly nested: SessionKey | undefined
}

export function unpackJournal(stored: unknown, { message, nested }: JournalSource): JournalEntry[] {
  if (!Array.isArray(stored)) return []
  return stored.filter(isRecord).map(each => {
    const { removed, ...entry } = each as Partial<JournalEntry> & { removed?: string[] }
    const isOfMessage = entry.id === undefined
    const { scope = '', id = message?.id ?? '' } = entry
    const author = entry.author ?? message?.author ?? ''
    const branch = entry.branch ?? message?.branch ?? ''
    return {
      ...entry,
      ...{ id, scope, author, branch },
      ...(nested ? { at: nested } : {}),
      ...(isOfMessage && message ? { seq: message.seq } : {}),
      ...(removed ? { delta: withRemoved(entry.delta ?? {}, removed) } : {}),
    } as JournalEntry
  })
}

function withRemoved(delta: object, removed: readonly string[]): Record<string, unknown> {
  return Object.fromEntries([...Object.entries(delta), ...removed.map(key => [key, undefined] as const)])
}
