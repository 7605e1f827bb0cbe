/**
 * What the continuation of a run needs, in SQL: its journal, its pause and its attempts. A run that has ended keeps none
 * of it, so nothing is added to the journal of one.
 */
import { isRecord } from '../base/is-record.js'
import type { Message, SessionKey } from '../session/message.js'
import type { ResumableRun, RunInputRecord, RunResume, RunStep } from '../session/run-store.js'
import { storableJson } from './check-input.js'
import { type JournalRow, readEntry } from './journal.js'
import { indexedId, MESSAGE_COLUMNS, rowToMessage } from './rows.js'
import {
  type Dialect,
  namesOf,
  numberIn,
  type Row,
  SESSION_KEY,
  type Statement,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { eventRows, insertEvents } from './sql-event-rows.js'
import { findRun } from './sql-requests.js'
import { leaseLost, sessionNotFound } from './store-errors.js'

/** Fails unless the ticket of a session exists, and keeps it until the transaction ends. */
export function* checkTicketTask(dialect: Dialect, key: SessionKey, fence: number): Task<void> {
  const names = namesOf(key)
  const [ticket] = yield sql(
    `SELECT id FROM lango_leases WHERE id = ? AND ${SESSION_KEY}${dialect.forKeyShare}`,
    fence,
    ...names,
  )
  if (ticket !== undefined) return
  const sessions = yield sql(`SELECT pk FROM lango_sessions WHERE ${SESSION_KEY}`, ...names)
  throw sessions.length === 0 ? sessionNotFound(key) : leaseLost(key, fence)
}

/** Adds entries to the journal. `seq`: the number of the step's message. */
export function* storeJournalTask(
  dialect: Dialect,
  runId: string,
  rows: readonly JournalRow[],
  seq: number | undefined,
): Task<void> {
  // Its end must not come in between.
  if (rows.length > 0) yield* dialect.lockRows(findRun(dialect, runId))
  for (let start = 0; start < rows.length; start += ENTRIES_PER_STATEMENT) {
    const some = rows.slice(start, start + ENTRIES_PER_STATEMENT)
    const values = some.flatMap(row => [
      indexedId(row.id),
      row.isOfMessage ? (seq ?? row.seq) : row.seq,
      row.json,
    ])
    yield sql(
      `INSERT INTO lango_run_journal (run_id, entry_key, seq, entry)
        SELECT r.run_id, e.column1, e.column2, e.column3 FROM (VALUES ${some.map(() => ENTRY).join(', ')}) AS e
          CROSS JOIN lango_runs r WHERE r.run_id = ? AND r.state <> 'finished'
        ON CONFLICT (run_id, entry_key) DO NOTHING`,
      ...values,
      runId,
    )
  }
}

const ENTRIES_PER_STATEMENT = 16
const ENTRY = '(CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT))'

/** What a step changes about the row of its run, if anything: a pause, and attempts that count from the message on. */
export function progressStatement({ runId, pause }: RunStep, isProgress: boolean): Statement | undefined {
  const changes = [...(pause ? ['state = ?'] : []), ...(isProgress ? ['attempt = 1'] : [])]
  if (changes.length === 0) return undefined
  const text = `UPDATE lango_runs SET ${changes.join(', ')} WHERE run_id = ? AND state <> 'finished'`
  return sql(text, ...(pause ? [pause] : []), runId)
}

/** Continues a run under a lease. Locks in the order of the steps: ticket, run. */
export function* resumeTask(
  dialect: Dialect,
  { key, runId, fence, events }: RunResume,
): Task<number | undefined> {
  yield* checkTicketTask(dialect, key, fence)
  const [run] = yield sql(
    `SELECT state, attempt FROM lango_runs WHERE run_id = ? AND ${SESSION_KEY} AND ${BEGUN}${dialect.forUpdate}`,
    runId,
    ...namesOf(key),
  )
  if (run === undefined) return undefined
  const attempt = numberIn(run, 'attempt') + (run.state === 'running' ? 1 : 0)
  yield sql("UPDATE lango_runs SET state = 'running', attempt = ? WHERE run_id = ?", attempt, runId)
  yield* insertEvents(dialect, runId, eventRows(events, { key, runId }))
  return attempt
}

export function* readResumableTask(runId: string): Task<ResumableRun | undefined> {
  const [run] = yield sql(
    `SELECT r.input, r.state, r.attempt, r.after_seq, s.pk FROM lango_runs r JOIN lango_sessions s
      ON s.app_name = r.app_name AND s.user_id = r.user_id AND s.session_id = r.session_id
      WHERE r.run_id = ? AND r.${BEGUN}`,
    runId,
  )
  const { input, messageId } = run ? inputIn(run) : {}
  if (run === undefined || input === undefined) return undefined
  // A message without an id is the first one of the run.
  const [condition, value] =
    messageId === undefined
      ? ['seq = ?', numberIn(run, 'after_seq') + 1]
      : ['event_id = ?', indexedId(messageId)]
  const [message] = yield sql(
    `SELECT seq, ${MESSAGE_COLUMNS.join(', ')} FROM lango_messages WHERE session_pk = ? AND ${condition}`,
    numberIn(run, 'pk'),
    value,
  )
  if (message === undefined) return undefined
  const entries = yield sql('SELECT seq, entry FROM lango_run_journal WHERE run_id = ? ORDER BY place', runId)
  return {
    input,
    message: rowToMessage(message),
    journal: entries.map(row =>
      readEntry(textIn(row, 'entry'), row.seq === null ? null : numberIn(row, 'seq')),
    ),
    // One of those in the condition.
    state: textIn(run, 'state') as ResumableRun['state'],
    attempt: numberIn(run, 'attempt'),
  }
}

/** What is kept of the input of a run that begins, with the id of the message that it answers. */
export function begunInput({
  input,
  message,
}: {
  input?: RunInputRecord | undefined
  message: Message
}): string | null {
  return input === undefined ? null : storableJson('input', { input, messageId: message.id })
}

export function inputIn(row: Row): { message?: Message; input?: RunInputRecord; messageId?: string } {
  const kept: unknown = row.input === null ? undefined : JSON.parse(textIn(row, 'input'))
  return isRecord(kept) ? kept : {}
}

const BEGUN = "state IN ('running', 'waiting', 'handover')"
