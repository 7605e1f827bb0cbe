import { defined } from '../base/defined.js'
import { copyJsonData } from '../base/json.js'
import type { SessionKey, StoredMessage } from '../session/message.js'
import type { RunStep, ToolCallChange, ToolCallPlace, ToolCallRecord } from '../session/run-store.js'
import type { EraseCounts, SessionSummary } from '../session/session-store.js'
import { storableJson } from './check-input.js'
import { isReadable, type PageCursor, PREVIEW_WINDOW, previewOf } from './listing.js'
import { hasResult } from './sql-calls.js'
import { callWithoutFacts } from './store-errors.js'

/** A session in memory. */
export interface MemorySession {
  key: SessionKey
  nestedIn?: string | undefined
  title?: string | undefined
  pk: number
  state: Map<string, string>
  messages: StoredMessage[]
  /** The number of each message id, so that an append need not search. */
  seqById: Map<string, number>
  /** The ledger of tool calls, oldest first. */
  calls: ToolCallRecord[]
  createdAt: number
  updatedAt: number
}

export function titled({ title }: MemorySession): { title?: string } {
  return title === undefined ? {} : { title }
}

export function summarize(session: MemorySession): SessionSummary {
  const { key, messages, createdAt, updatedAt } = session
  const last = messages.slice(-PREVIEW_WINDOW).findLast(isReadable)
  return {
    key: { ...key },
    totalMessages: messages.length,
    totalTokens: messages.reduce((all, message) => all + message.tokens, 0),
    createdAt,
    updatedAt,
    ...titled(session),
    ...(last === undefined ? {} : { preview: previewOf(last.content) }),
  }
}

export function add(counts: EraseCounts, more: Partial<EraseCounts>): void {
  for (const [kind, count] of Object.entries(more)) counts[kind as keyof EraseCounts] += count
}

export function newestFirst(one: PageCursor, other: PageCursor): number {
  return other.updatedAt - one.updatedAt || other.pk - one.pk
}

/** A message is JSON data: what JSON cannot express is not stored. */
export function clone<T>(data: T): T {
  return copyJsonData(data, value => storableJson('message', value)) as T
}

/** The ledger after the changes of a step, and the places of the changed calls. */
export function changeCalls(
  session: MemorySession,
  { runId, calls = [] }: RunStep,
): { ledger: ToolCallRecord[]; places: ToolCallPlace[] } {
  const ledger = [...session.calls]
  const changed = calls.map(change => {
    // A call is added to the run of the step only.
    const own = { ...change, runId: change.runId ?? runId }
    if (own.runId !== runId) delete own.call
    const at = ledger.findIndex(row => row.id === own.id && row.runId === own.runId)
    const row = changedCall(own, ledger[at], ledger)
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
  const { id, runId, status, answer } = change
  // The model's request for a call that is in progress, or over, changes nothing.
  if (stored !== undefined && status === 'intent') return stored
  const facts = stored ?? change.call
  if (facts === undefined) throw callWithoutFacts(runId, id)
  const { callId, tool, effect, digest, args } = facts
  const isCounted = (row: ToolCallRecord) => row.digest === digest && row.status !== 'unknown'
  const result = change.result === undefined ? stored?.result : clone(change.result)
  return {
    ...{ callId, tool, effect, digest, args: clone(args), id, runId, status },
    ordinal: change.ordinal ?? stored?.ordinal ?? ledger.filter(isCounted).length,
    attempt: (stored?.attempt ?? 0) + (status === 'started' ? 1 : 0),
    ...defined({ result: hasResult(status) ? result : undefined, answer: answer ?? stored?.answer }),
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
