import {
  digestOf,
  packPart,
  readPartList,
  SHORT_REQUEST,
  splitRequest,
  unpackPart,
  writePartList,
} from './request-parts.js'
import { type Dialect, numberIn, type Row, type Statement, sql, type Task, textIn } from './sql-database.js'
import { partMissing } from './store-errors.js'

/** Stores what one model step sent, once for the run where steps have it in common. */
export function* saveRequestTask(dialect: Dialect, runId: string, step: number, json: string): Task<void> {
  if (dialect.requestLock !== '') yield sql(dialect.requestLock)
  const [run] = yield findRun(dialect, runId)
  if (isDeleted(run)) return
  const stored =
    json.length < SHORT_REQUEST ? json : writePartList(yield* storeParts(runId, splitRequest(json)))
  yield sql(
    `INSERT INTO lango_run_requests (run_id, step, stored_at, record) VALUES (?, ?, ${dialect.now}, ?)
      ON CONFLICT (run_id, step) DO UPDATE SET record = excluded.record, stored_at = excluded.stored_at`,
    runId,
    step,
    stored,
  )
}

export function* readRequestsTask(runId: string): Task<{ step: number; json: string }[]> {
  const rows = yield sql('SELECT step, record FROM lango_run_requests WHERE run_id = ? ORDER BY step', runId)
  const parts = yield sql('SELECT id, part FROM lango_run_parts WHERE run_id = ?', runId)
  const partOf = new Map(parts.map(row => [numberIn(row, 'id'), unpackPart(textIn(row, 'part'))]))
  return rows.map(row => {
    const step = numberIn(row, 'step')
    const stored = textIn(row, 'record')
    const found = readPartList(stored)?.map(id => partOf.get(id)) ?? [stored]
    if (found.includes(undefined)) throw partMissing(runId, step)
    return { step, json: found.join('') }
  })
}

/** Forgets runs that have nothing left, and parts that no request can name any more. */
export function* forgetEmptyTask({ pruneLock }: Dialect): Task<void> {
  if (pruneLock !== '') yield sql(pruneLock)
  yield sql(`DELETE FROM lango_run_parts WHERE
    NOT EXISTS (SELECT 1 FROM lango_run_requests r WHERE r.run_id = lango_run_parts.run_id)`)
  yield sql(`DELETE FROM lango_runs WHERE deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM lango_run_events e WHERE e.run_id = lango_runs.run_id)
    AND NOT EXISTS (SELECT 1 FROM lango_run_requests r WHERE r.run_id = lango_runs.run_id)
    AND NOT EXISTS (SELECT 1 FROM lango_run_signals s WHERE s.run_id = lango_runs.run_id)`)
}

/** The session that a run belongs to, kept from being deleted until the transaction ends. */
export function findRun({ forUpdate }: Dialect, runId: string): Statement {
  return sql(
    `SELECT app_name, user_id, session_id, deleted_at FROM lango_runs WHERE run_id = ?${forUpdate}`,
    runId,
  )
}

/** Whether the session of the run was deleted while the run went on: nothing of it is stored any more. */
export function isDeleted(run: Row | undefined): boolean {
  return (run?.deleted_at ?? null) !== null
}

/** The numbers of the parts, in order. Those that the run has already are not stored again. */
function* storeParts(runId: string, parts: readonly string[]): Task<number[]> {
  const digests = parts.map(digestOf)
  const known = new Map<string, number>()
  const note = (rows: readonly Row[]) => {
    for (const row of rows) known.set(textIn(row, 'digest'), numberIn(row, 'id'))
  }
  note(yield sql(PARTS_OF_RUN, runId))
  const missing = new Map<string, string>()
  for (const [index, digest] of digests.entries())
    if (!known.has(digest)) missing.set(digest, parts[index] ?? '')
  const rows = Array.from(missing, ([digest, part]) => [runId, digest, packPart(part)])
  for (let start = 0; start < rows.length; start += PARTS_PER_STATEMENT) {
    const some = rows.slice(start, start + PARTS_PER_STATEMENT)
    note(
      yield sql(
        `INSERT INTO lango_run_parts (run_id, digest, part) VALUES ${some.map(() => '(?, ?, ?)').join(', ')}
          ON CONFLICT (run_id, digest) DO NOTHING RETURNING id, digest`,
        ...some.flat(),
      ),
    )
  }
  // Another step of the same run may have stored some of them meanwhile.
  if (digests.some(digest => !known.has(digest))) note(yield sql(PARTS_OF_RUN, runId))
  return digests.map(digest => known.get(digest) ?? 0)
}

const PARTS_OF_RUN = 'SELECT id, digest FROM lango_run_parts WHERE run_id = ?'

const PARTS_PER_STATEMENT = 32
