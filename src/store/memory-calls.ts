/** The ledger of tool calls of sessions in memory. */
import { defined } from '../base/defined.js'
import type {
  RunStep,
  ToolCallChange,
  ToolCallPlace,
  ToolCallRecord,
  ToolCallStatus,
} from '../session/run-store.js'
import { clone, type MemorySession } from './memory-sessions.js'
import { hasResult } from './sql-calls.js'
import { callWithoutFacts } from './store-errors.js'

/** The ledger after the changes of a step, and the places of the changed calls. A step that is stored again counts no attempt. */
export function changeCalls(
  session: MemorySession,
  { runId, calls = [] }: RunStep,
  isRepeated: boolean,
): { ledger: ToolCallRecord[]; places: ToolCallPlace[] } {
  const ledger = [...session.calls]
  const changed = calls.map(change => {
    // A call is added to the run of the step only.
    const own = { ...change, runId: change.runId ?? runId }
    if (own.runId !== runId) delete own.call
    const at = ledger.findIndex(row => row.id === own.id && row.runId === own.runId)
    const row = changedCall(own, ledger[at], ledger)
    if (isRepeated && ledger[at]) row.attempt = ledger[at].attempt
    ledger[at < 0 ? ledger.length : at] = row
    return row
  })
  return { ledger, places: changed.map(({ id, runId: owner }) => placeOf(ledger, id, owner)) }
}

function changedCall(
  change: ToolCallChange & { runId: string },
  stored: ToolCallRecord | undefined,
  ledger: readonly ToolCallRecord[],
): ToolCallRecord {
  const { id, runId, status, answer, isTakenBack } = change
  // The model's request for a call that is in progress, or over, changes nothing.
  if (stored !== undefined && status === 'intent' && !isTakenBack) return stored
  const facts = stored ?? change.call
  if (facts === undefined) throw callWithoutFacts(runId, id)
  const { callId, tool, effect, digest, args } = facts
  const isCounted = (row: ToolCallRecord) => row.digest === digest && row.status !== 'unknown'
  const result = change.result === undefined ? stored?.result : clone(change.result)
  const actions = change.actions === undefined ? stored?.actions : clone(change.actions)
  return {
    ...{ callId, tool, effect, digest, args: clone(args), id, runId, status },
    ordinal: change.ordinal ?? stored?.ordinal ?? ledger.filter(isCounted).length,
    attempt: (stored?.attempt ?? 0) + (isTakenBack ? -1 : status === 'started' ? 1 : 0),
    ...(hasResult(status) ? defined({ result, actions }) : {}),
    ...defined({ answer: answer ?? stored?.answer }),
    changedAt: Date.now(),
  }
}

function placeOf(ledger: readonly ToolCallRecord[], id: string, runId: string): ToolCallPlace {
  const own = ledger.find(row => row.id === id && row.runId === runId)
  const twin = ledger.findLast(row => row !== own && row.digest === own?.digest && row.status === 'unknown')
  return {
    id,
    ordinal: own?.ordinal ?? 0,
    attempt: own?.attempt ?? 0,
    ...(twin ? { unknownTwin: twinOf(twin) } : {}),
  }
}

function twinOf({ runId, id, attempt, answer }: ToolCallRecord): NonNullable<ToolCallPlace['unknownTwin']> {
  return { runId, id, attempt, ...defined({ answer }) }
}

/** A run that ends with a call that was started has not settled it: nobody knows whether it took effect. */
export function settled<Call extends { runId: string; status: ToolCallStatus }>(
  calls: readonly Call[],
  runId: string,
): Call[] {
  return calls.map(call =>
    call.runId === runId && call.status === 'started' ? { ...call, status: 'unknown' } : call,
  )
}

/** Deletes old results of a run. The rows stay: the ordinals of later calls depend on them. */
export function forgetResults(session: MemorySession | undefined, runId: string, before: number): void {
  for (const call of session?.calls ?? [])
    if (call.runId === runId && call.changedAt < before) {
      delete call.result
      delete call.actions
    }
}
