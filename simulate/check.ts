/** What a simulation checks besides the checks of `chaos/check.ts`. */
import type { Evidence, FinalRun, Problem } from '../chaos/check.js'
import type { StoredMessage } from '../src/session/message.js'
import { type RunStatus, transition } from '../src/session/run-status.js'
import { rowToEntry } from '../src/store/log/log-rows.js'
import { readStatement } from '../src/store/log/read-log.js'
import { numberIn, type Row, type SqlDatabase, sql, type Task, textIn } from '../src/store/sql-database.js'
import { isAnsweredLater } from './model.js'
import type { Plan } from './plan.js'

/**
 * Every call in a history has one answer, after it and before the next message of a user. One that a person answers later
 * may stay open: another message may come first.
 */
export function checkCalls({ messages }: Evidence): Problem[] {
  return [...messages].flatMap(([sessionId, found]) =>
    unpaired(found).map(detail => ({ kind: 'illegal' as const, detail, sessionId })),
  )
}

function unpaired(messages: readonly StoredMessage[]): string[] {
  const open = new Map<string, number>()
  /** Calls that people answer. */
  const called = new Set<string>()
  const answered = new Set<string>()
  const wrong: string[] = []
  for (const { seq, role, toolCalls = [] } of messages) {
    for (const { id, kind, name } of toolCalls) {
      const isLate = isAnsweredLater(name)
      if (isLate && (kind !== 'response' || answered.has(id) || !called.has(id))) {
        if (kind !== 'response') called.add(id)
        else wrong.push(`message ${seq} answers the call ${id}, which is not open`)
        continue
      }
      if (isLate) answered.add(id)
      else if (kind !== 'response') open.set(id, seq)
      else if (!open.delete(id)) wrong.push(`message ${seq} answers the call ${id}, which is not open`)
    }
    if (role !== 'user' || toolCalls.length > 0) continue
    for (const [id, at] of open)
      wrong.push(`the call ${id} of message ${at} has no answer before message ${seq}`)
    open.clear()
  }
  for (const [id, at] of open) wrong.push(`the call ${id} of message ${at} has no answer`)
  return wrong
}

/**
 * The last messages are answered. Where interrupted runs are resumed (`maxAttempts` is not 0), so is every message, unless a
 * fault that no run survives hit it.
 */
export function checkEnds({ runs }: Evidence, plan: Plan, maxAttempts: number): Problem[] {
  const planned = new Set(plan.messages.map(({ runId }) => runId))
  return runs.flatMap(run => {
    const isLast = !planned.has(run.sent.runId)
    if (run.finishReason === 'stop' || !run.isFinished || failsByPolicy(run)) return []
    if (!isLast && !mustEndWell(run, plan, maxAttempts)) return []
    const { sessionId, runId, mark } = run.sent
    const errors = run.events.flatMap(event => (event.type === 'error' ? event.error.message : []))
    const detail = `the run of ${mark} ended with ${run.finishReason}: ${errors.join(', ')}`
    return [{ kind: 'false' as const, detail, sessionId, runId }]
  })
}

/** A tool is declared so that a run ends when the outcome of an earlier call is unknown. */
function failsByPolicy({ events }: FinalRun): boolean {
  return events.some(event => event.type === 'error' && event.error.code === 'tool-outcome-unknown')
}

/** A model that fails and a store that is down may end a run, and so may a stop. */
function mustEndWell({ sent }: FinalRun, { faults }: Plan, maxAttempts: number): boolean {
  const isFailed = faults.some(({ action }) => action === 'fail' || action === 'outage')
  return !sent.isStopRequested && !isFailed && faults.length < maxAttempts
}

/** The rows of runs say what the entries of the runs say, at any moment. */
export function checkStatuses(database: SqlDatabase): Promise<Problem[]> {
  return database.read(function* (): Task<Problem[]> {
    const problems: Problem[] = []
    for (const row of yield sql(RUNS)) {
      const [runId, sessionId] = [textIn(row, 'run_id'), textIn(row, 'session_id')]
      const key = { appName: textIn(row, 'app_name'), userId: textIn(row, 'user_id'), sessionId }
      const entries = yield readStatement(database.dialect, key, { runId, limit: 10_000 })
      const told = entries.map(rowToEntry).reduce(transition, NOT_BEGUN)
      const stored = statusIn(row)
      if (JSON.stringify(told) === JSON.stringify(stored)) continue
      const detail = `its row says ${JSON.stringify(stored)}, and its entries say ${JSON.stringify(told)}`
      problems.push({ kind: 'false', detail, sessionId, runId })
    }
    return problems
  })
}

const NOT_BEGUN: RunStatus = { state: 'queued' }

const RUNS = `SELECT r.run_id, r.state, r.attempt, r.is_between, r.finish_reason, s.app_name, s.user_id, s.session_id
  FROM lango_runs r JOIN lango_sessions s ON s.pk = r.session_pk`

function statusIn(row: Row): RunStatus {
  const state = textIn(row, 'state') as RunStatus['state']
  const attempt = numberIn(row, 'attempt')
  if (state === 'finished')
    return { state, ...(row.finish_reason === null ? {} : { reason: textIn(row, 'finish_reason') }) }
  if (state === 'waiting') return { state, attempt, isBetween: numberIn(row, 'is_between') === 1 }
  return state === 'running' || state === 'handover' ? { state, attempt } : NOT_BEGUN
}
