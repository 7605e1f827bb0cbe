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
  const ledger = new IndexedCalls(session.calls)
  const changed = calls.map(change => {
    // A call is added to the run of the step only.
    const own = { ...change, runId: change.runId ?? runId }
    if (own.runId !== runId) delete own.call
    const stored = ledger.find(own)
    const row = changedCall(own, stored, ledger)
    if (isRepeated && stored) row.attempt = stored.attempt
    ledger.put(row)
    return row
  })
  return { ledger: ledger.rows, places: changed.map(row => ledger.placeOf(row)) }
}

/** A copy of the calls of a session, found by their ids and digests: an answer may have thousands of them. */
class IndexedCalls {
  readonly rows: ToolCallRecord[]
  readonly #at = new Map<string, number>()
  /** By digest: the places of calls whose outcome is unknown, and the number of all others. */
  readonly #equal = new Map<string, { unknown: Set<number>; others: number }>()

  constructor(rows: readonly ToolCallRecord[]) {
    this.rows = [...rows]
    for (const [at, row] of this.rows.entries()) this.#add(row, at)
  }

  find(call: { id: string; runId: string }): ToolCallRecord | undefined {
    return this.rows[this.#at.get(nameOf(call)) ?? -1]
  }

  /** Adds a call, or replaces it. */
  put(row: ToolCallRecord): void {
    const at = this.#at.get(nameOf(row)) ?? this.rows.length
    const before = this.rows[at]
    const equal = before && this.#equal.get(before.digest)
    if (equal && !equal.unknown.delete(at)) equal.others -= 1
    this.rows[at] = row
    this.#add(row, at)
  }

  /** How many calls have the same arguments, without those whose outcome is unknown. */
  countEqual(digest: string): number {
    return this.#equal.get(digest)?.others ?? 0
  }

  placeOf(call: ToolCallRecord): ToolCallPlace {
    // A later change of the same step may have replaced it.
    const own = this.find(call) ?? call
    const unknown = [...(this.#equal.get(own.digest)?.unknown ?? [])].sort((one, other) => one - other)
    const twin = unknown.flatMap(at => this.rows[at] ?? []).findLast(row => row !== own)
    const { id, ordinal, attempt } = own
    return { id, ordinal, attempt, ...(twin ? { unknownTwin: twinOf(twin) } : {}) }
  }

  #add(row: ToolCallRecord, at: number): void {
    this.#at.set(nameOf(row), at)
    const equal = this.#equal.get(row.digest) ?? { unknown: new Set<number>(), others: 0 }
    this.#equal.set(row.digest, equal)
    if (row.status === 'unknown') equal.unknown.add(at)
    else equal.others += 1
  }
}

function nameOf({ id, runId }: { id: string; runId: string }): string {
  return `${runId}\n${id}`
}

function changedCall(
  change: ToolCallChange & { runId: string },
  stored: ToolCallRecord | undefined,
  ledger: IndexedCalls,
): ToolCallRecord {
  const { id, runId, status, answer, isTakenBack } = change
  // The model's request for a call that is in progress, or over, changes nothing.
  if (stored !== undefined && status === 'intent' && !isTakenBack) return stored
  const facts = stored ?? change.call
  if (facts === undefined) throw callWithoutFacts(runId, id)
  const { callId, tool, effect, digest, args } = facts
  const result = change.result === undefined ? stored?.result : clone(change.result)
  const actions = change.actions === undefined ? stored?.actions : clone(change.actions)
  return {
    ...{ callId, tool, effect, digest, args: clone(args), id, runId, status },
    ordinal: change.ordinal ?? stored?.ordinal ?? ledger.countEqual(digest),
    attempt: (stored?.attempt ?? 0) + (isTakenBack ? -1 : status === 'started' ? 1 : 0),
    ...(hasResult(status) ? defined({ result, actions }) : {}),
    ...defined({ answer: answer ?? stored?.answer }),
    changedAt: Date.now(),
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
