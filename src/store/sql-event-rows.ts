/**
 * Run events as they are stored, without what the row or another row has, and with it again when they are read:
 *
 * - `sessionId`, `runId` and `seq` are columns.
 * - Arguments and results of tools are part of the message that a step stores with its events, so a large one is not
 *   stored again: the event refers to the message.
 */

import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import type { Message, ToolCall } from '../session/message.js'
import type { RunEventRecord } from '../session/run-store.js'
import { type UsageRecord, usageOfEvent } from '../session/usage.js'
import { storableJson } from './check-input.js'
import { indexedId } from './rows.js'
import {
  type Dialect,
  numberIn,
  type Row,
  type SqlDatabase,
  type SqlValue,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { usageOfRun } from './sql-spending.js'

/** An event of a run as it is stored. */
export interface EventRow {
  seq: number
  json: string
  /** Whether it is the end of the run. */
  isEnd: boolean
  /** The call whose question it answers: the signals with that answer are no longer needed. */
  answered?: string | undefined
  /** The model call that it reports. */
  usage?: UsageRecord | undefined
}

/** The events of a run as rows; `message` is stored with them. */
export function eventRows(events: readonly RunEventRecord[], run: RunNames, message?: Message): EventRow[] {
  return events.map(event => ({
    seq: event.seq,
    json: storableJson(
      'events',
      withoutNames(message?.toolCalls ? withReference(event, message) : event, run),
    ),
    isEnd: event.type === 'run-finish',
    answered: answeredCall(event),
    usage: event.type === 'usage' ? usageOfEvent(event) : undefined,
  }))
}

/**
 * The call that an event answers, or about which there is nothing more to ask. A question that was aborted may be answered
 * later. A call that failed, or whose outcome is unknown, may have been answered before: nobody waits for that answer.
 */
function answeredCall({ type, id, answer, given, isError, asks }: RunEventRecord): string | undefined {
  const isAnswered =
    (type === 'approval-answer' && answer !== undefined && answer !== 'aborted') ||
    (type === 'tool-unknown' && (answer !== undefined || asks !== true)) ||
    (type === 'tool-result' && (given === true || isError === true))
  return isAnswered && typeof id === 'string' ? id : undefined
}

/** Whether a stored signal is a person's answer to one of the calls. */
function answersOneOf(calls: readonly string[], json: string): boolean {
  const signal: unknown = parseJson(json)
  return isRecord(signal) && typeof signal.callId === 'string' && calls.includes(signal.callId)
}

/** An event that says where the run stands in the queue gets its place from the store. */
export function withPlace(events: readonly RunEventRecord[], place: number): RunEventRecord[] {
  return events.map(event => (event.type === 'run-queued' ? { ...event, place } : event))
}

/** Stores events of a run that is locked or new, and the end of the run with its last one. */
export function* insertEvents(dialect: Dialect, runId: string, rows: readonly EventRow[]): Task<void> {
  const { now } = dialect
  for (let start = 0; start < rows.length; start += EVENTS_PER_STATEMENT) {
    const some = rows.slice(start, start + EVENTS_PER_STATEMENT)
    const parameters = some.flatMap<SqlValue>(({ seq, json }) => [runId, seq, json])
    yield sql(
      `INSERT INTO lango_run_events (run_id, seq, stored_at, event)
        VALUES ${some.map(() => `(?, ?, ${now}, ?)`).join(', ')} ON CONFLICT (run_id, seq) DO NOTHING`,
      ...parameters,
    )
  }
  for (const { seq, usage } of rows) if (usage) yield usageOfRun(dialect, runId, seq, usage)
  const answered = rows.flatMap(row => row.answered ?? [])
  if (answered.length > 0) {
    const pending = yield sql('SELECT id, signal FROM lango_run_signals WHERE run_id = ?', runId)
    for (const row of pending.filter(each => answersOneOf(answered, textIn(each, 'signal'))))
      yield sql('DELETE FROM lango_run_signals WHERE id = ?', numberIn(row, 'id'))
  }
  if (!rows.some(({ isEnd }) => isEnd)) return
  yield endedStatement(runId)
  // A run that ends with a call that was started has not settled it: nobody knows whether it took effect.
  yield sql(UNSETTLED, runId)
  yield sql(FORGET_JOURNAL, runId)
}

export const UNSETTLED = `UPDATE lango_tool_calls SET status = 'unknown' WHERE run_id = ? AND status = 'started'`

/** Nobody continues the run any more. */
export const FORGET_JOURNAL = 'DELETE FROM lango_run_journal WHERE run_id = ?'

const EVENTS_PER_STATEMENT = 32

/** Nobody executes the run any more: its input is not needed. */
export function endedStatement(runId: string): Statement {
  return sql("UPDATE lango_runs SET state = 'finished', input = NULL WHERE run_id = ?", runId)
}

/** The events of a run, with what they refer to. The rows have the id of the session. */
export async function readEventRows(
  database: SqlDatabase,
  runId: string,
  rows: readonly Row[],
): Promise<RunEventRecord[]> {
  const events: RunEventRecord[] = []
  for (const row of rows) {
    const json = textIn(row, 'event')
    const read = withNames(JSON.parse(json), runId, row)
    events.push(json.includes(MARKER) ? await resolved(database, runId, read) : read)
  }
  return events
}

/** The ids that the events of a run repeat. */
export interface RunNames {
  runId: string
  key: { sessionId: string }
}

/** An event without the columns of its row. One that names something else, or less, is stored as it is. */
function withoutNames(event: RunEventRecord, { runId, key }: RunNames): object {
  const { sessionId: session, runId: run, seq, ...rest } = event
  return run === runId && session === key.sessionId ? rest : event
}

/** Only an event without a number was stored without the columns of its row: every event has one. */
function withNames(stored: Partial<RunEventRecord>, runId: string, row: Row): RunEventRecord {
  if (stored.seq !== undefined) return stored as RunEventRecord
  return { ...stored, sessionId: textIn(row, 'session_id'), runId, seq: numberIn(row, 'seq') }
}

/** In characters: smaller values are cheaper to store than to look up. */
const LARGE = 16_384
/** A field of the stored event alone. */
const STORED = '\u0001stored'
const MARKER = JSON.stringify(STORED).slice(1, -1)

/** Which field of an event repeats which field of a call. */
const REPEATED: Readonly<Record<string, { field: string; of: 'input' | 'output' }>> = {
  'tool-call': { field: 'args', of: 'input' },
  'tool-result': { field: 'result', of: 'output' },
}

function withReference(event: RunEventRecord, { id, toolCalls = [] }: Message): RunEventRecord {
  const repeated = REPEATED[String(event.type)]
  if (repeated === undefined || id === undefined) return event
  const textOf = (call: ToolCall | undefined) => call?.[repeated.of] ?? ''
  const place = toolCalls.findIndex(call => call.id === event.id && textOf(call).length > LARGE)
  const value = event[repeated.field]
  if (place === -1 || JSON.stringify(value) !== textOf(toolCalls[place])) return event
  return { ...event, [repeated.field]: null, [STORED]: [id, place] }
}

async function resolved(
  database: SqlDatabase,
  runId: string,
  event: RunEventRecord,
): Promise<RunEventRecord> {
  const { [STORED]: place, ...rest } = event
  const repeated = REPEATED[String(event.type)]
  if (repeated === undefined || !Array.isArray(place)) return event
  const [id, index] = place as [string, number]
  const [row] = await database.run(sql(CALLS_OF_MESSAGE, runId, indexedId(id)))
  const calls = row && row.tool_calls !== null ? parseJson(textIn(row, 'tool_calls')) : undefined
  const call: unknown = Array.isArray(calls) ? calls[index] : undefined
  const text = isRecord(call) ? call[repeated.of] : undefined
  const value =
    typeof text === 'string' ? parseJson(text) : { error: 'The message with this value was replaced.' }
  return { ...rest, [repeated.field]: value } as RunEventRecord
}

const CALLS_OF_MESSAGE = `SELECT m.tool_calls FROM lango_runs r
  JOIN lango_sessions s ON s.app_name = r.app_name AND s.user_id = r.user_id AND s.session_id = r.session_id
  JOIN lango_messages m ON m.session_pk = s.pk WHERE r.run_id = ? AND m.event_id = ?`
