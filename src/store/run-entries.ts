/** Events of a run, and the record for its continuation, from its entries. */
import type { SessionKey, StoredMessage } from '../session/message.js'
import type { JournalEntry, ResumableRun, RunEventRecord, RunInputRecord } from '../session/run-store.js'
import { previousIn } from './log/log-rows.js'
import { PREVIOUS } from './log/read-log.js'
import { unpackEvents, unpackJournal } from './log/stored-events.js'
import { MESSAGE_COLUMNS, MESSAGES, rowToMessage } from './rows.js'
import { numberIn, type Row, type Statement, sql, textIn } from './sql-database.js'

const MESSAGE = `e.message_seq AS seq, ${MESSAGE_COLUMNS.map(column => `e.${column}`).join(', ')}`

/** The entries of a run `r`. Entries of other runs may lie between them. */
const ENTRIES = `lango_entries e ON e.session_pk = r.session_pk AND e.run_pk = r.pk AND e.seq >= r.first_seq
  AND (r.last_seq IS NULL OR e.seq <= r.last_seq)`

interface EventsQuery {
  readonly runId: string
  readonly afterSeq: number
  readonly limit: number
}

/** The entries with events after a number. The row of the run is among them, with the events of its acceptance. */
export function eventsStatement(runId: string, afterSeq: number, limit: number): Statement {
  return sql(
    `SELECT s.session_id, r.events AS accepted, r.queue_place, ${PREVIOUS} AS previous, e.data, ${MESSAGE}
      FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk
        LEFT JOIN ${ENTRIES} AND e.event_seq > ? AND e.data IS NOT NULL
      WHERE r.run_id = ? AND r.deleted_at IS NULL ORDER BY e.event_seq, e.seq LIMIT ?`,
    ...[afterSeq, runId, limit],
  )
}

export function readEventRows(
  rows: readonly Row[],
  { runId, afterSeq, limit }: EventsQuery,
): RunEventRecord[] {
  const [first] = rows
  if (!first) return []
  const names = { runId, sessionId: textIn(first, 'session_id') }
  const events: RunEventRecord[] = []
  let last = afterSeq
  // A write whose answer was lost may be stored, and its events again with the next one.
  const add = (found: readonly RunEventRecord[]) => {
    for (const event of found.toSorted((one, other) => one.seq - other.seq)) {
      if (event.seq <= last || events.length >= limit) continue
      last = event.seq
      events.push(event)
    }
  }
  if (first.accepted !== null) {
    const accepted = unpackEvents(JSON.parse(textIn(first, 'accepted')), names, () => undefined)
    add(accepted.map(event => withPlace(event, first)))
  }
  for (const row of rows) {
    if (row.data === null || row.data === undefined) continue
    const { events: stored } = JSON.parse(textIn(row, 'data')) as { events?: unknown }
    add(unpackEvents(stored, names, () => messageOf(row) ?? previousIn(row)))
  }
  return events
}

/** An event that says where the run stood in the queue has its place from the run's row. */
function withPlace(event: RunEventRecord, row: Row): RunEventRecord {
  return event.type === 'run-queued' ? { ...event, place: numberIn(row, 'queue_place') } : event
}

function messageOf(row: Row): StoredMessage | undefined {
  return row.role === null || row.role === undefined ? undefined : rowToMessage(row)
}

/** Three statements: the run, its first entry, and the entries with a journal. */
export function resumableStatements(runId: string): readonly Statement[] {
  return [
    sql(
      `SELECT r.state, r.attempt, e.message_pk, e.data, ${MESSAGE} FROM lango_runs r
        JOIN ${ENTRIES} AND e.kind = 'begun' WHERE r.run_id = ? AND r.state IN ('running', 'waiting', 'handover')`,
      runId,
    ),
    // Another message may have replaced that of the run since.
    sql(
      `SELECT m.seq, ${MESSAGE_COLUMNS.map(column => `m.${column}`).join(', ')} FROM lango_runs r
        JOIN ${ENTRIES} AND e.kind = 'begun' AND e.message_seq IS NULL
        JOIN ${MESSAGES} AS m ON m.session_pk = e.message_pk AND m.event_id = e.event_id WHERE r.run_id = ?`,
      runId,
    ),
    sql(
      `SELECT e.data, n.app_name, n.user_id, n.session_id, ${MESSAGE} FROM lango_runs r JOIN ${ENTRIES}
          AND e.kind <> 'request' AND e.data IS NOT NULL
        LEFT JOIN lango_sessions n ON n.pk = e.message_pk AND n.pk <> e.session_pk
        WHERE r.run_id = ? ORDER BY e.seq`,
      runId,
    ),
  ]
}

export function resumableFrom(found: readonly (readonly Row[])[]): ResumableRun | undefined {
  const [[run] = [], [newer] = [], entries = []] = found
  if (!run || run.data === null) return undefined
  const { input } = JSON.parse(textIn(run, 'data')) as { input?: RunInputRecord }
  if (input === undefined) return undefined
  return {
    input,
    message: rowToMessage(newer ?? run),
    journal: unique(entries.flatMap(journalOf)),
    // One of those in the condition.
    state: textIn(run, 'state') as ResumableRun['state'],
    attempt: numberIn(run, 'attempt'),
  }
}

function journalOf(row: Row): JournalEntry[] {
  const { journal } = JSON.parse(textIn(row, 'data')) as { journal?: unknown }
  return journal === undefined
    ? []
    : unpackJournal(journal, { message: messageOf(row), nested: nestedOf(row) })
}

function nestedOf(row: Row): SessionKey | undefined {
  if (row.app_name === null) return undefined
  return {
    appName: textIn(row, 'app_name'),
    userId: textIn(row, 'user_id'),
    sessionId: textIn(row, 'session_id'),
  }
}

/** A write whose answer was lost may be stored, and its journal again with the next one. */
function unique(journal: readonly JournalEntry[]): JournalEntry[] {
  const found = new Map<string, JournalEntry>()
  for (const entry of journal) if (!found.has(entry.id)) found.set(entry.id, entry)
  return [...found.values()]
}
