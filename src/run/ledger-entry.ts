/** One call in the ledger of a run, new or recorded by an earlier attempt. */
import { isRecord } from '../base/is-record.js'
import { parseJson, toJsonData } from '../base/json.js'
import { AgentError } from '../errors.js'
import { isToolError, type Message, type SessionKey, type ToolCall } from '../session/message.js'
import type {
  JournalEntry,
  ToolCallChange,
  ToolCallFacts,
  ToolCallPlace,
  ToolCallRecord,
} from '../session/run-store.js'
import type { CallEnd, CallPolicy, RecordedEnd } from '../session/tool-calls.js'
import type { OutcomeAnswer } from '../tool.js'
import type { ClosableCall } from './close-calls.js'
import type { RunEventBody } from './run-event.js'
import type { RunRecorder } from './run-recorder.js'

/** The run that a ledger belongs to. */
export interface LedgerRun {
  key: SessionKey
  runId: string
  /** Stores the changes. */
  recorder: Pick<RunRecorder, 'change'>
  emit(body: RunEventBody): void
  /** Ends the run. */
  fail(error: AgentError): void
  /** See `CallLedger.enterAgent`. */
  enterAgent(invocation: object): void
  /** What an earlier attempt of the run has recorded. */
  restored?: RestoredCalls | undefined
  /** Resolves when nothing that is recorded is left: nodes of a workflow work side by side. */
  untilLive?(what: string): Promise<void> | undefined
}

/** The tool calls of earlier attempts of a run. */
export interface RestoredCalls {
  readonly rows: readonly ToolCallRecord[]
  /** The author and the branch of a message of the run; `undefined` for one of a nested session. */
  placeOf(messageId: string): { author: string; branch: string } | undefined
  /** The response to a call that is part of the history. */
  answerOf(id: string): { response: unknown } | undefined
  /** Unknown outcomes that were reported, and what a person has said about them, by `outcomeName`. */
  readonly outcomes: ReadonlyMap<string, ReportedOutcome>
}

/** A call as reports of its unknown outcome name it: agents inside tools may use the id of another call. */
export function outcomeName(callId: string, idempotencyKey: string): string {
  return JSON.stringify([callId, idempotencyKey])
}

/** What earlier attempts have reported about the outcome of a call. */
export function reportedOutcome(
  restored: RestoredCalls | undefined,
  { facts }: LedgerEntry,
  idempotencyKey: string,
): ReportedOutcome | undefined {
  return restored?.outcomes.get(outcomeName(facts.callId, idempotencyKey))
}

/** Whether an earlier attempt has asked about a call of that id, and has no answer. */
export function isAsked(restored: RestoredCalls | undefined, callId: string): boolean {
  const reported = [...(restored?.outcomes.values() ?? [])]
  return reported.some(each => each.callId === callId && each.asks && each.answer === undefined)
}

/** What is reported about an unknown outcome. */
export function outcomeEvent(entry: LedgerEntry, idempotencyKey: string, more: OutcomeReport): RunEventBody {
  const { callId: id, tool: name, args } = entry.facts
  const { author, policy } = entry
  const facts = { author, id, name, args: { ...args }, idempotencyKey, policy: policy.onUnknown }
  const isQuestion = more.asks === true || more.answer !== undefined
  const executions = isQuestion ? { executions: executionsOf(entry) } : {}
  return { type: 'tool-unknown', ...facts, ...more, ...executions }
}

/** A question about an unknown outcome, or the answer to it, as it is reported. */
export type OutcomeReport = Partial<
  Pick<
    Extract<RunEventBody, { type: 'tool-unknown' }>,
    'asks' | 'needsResult' | 'resultSchema' | 'answer' | 'result'
  >
>

/** What was reported about an unknown outcome. */
export interface ReportedOutcome {
  callId: string
  asks: boolean
  answer?: OutcomeAnswer | undefined
  /** What the call returned, as a person has said. */
  result?: unknown
  /** How often the call had been executed by then. */
  executions: number
}

/** One call of the run. */
export interface LedgerEntry {
  readonly id: string
  readonly facts: ToolCallFacts
  readonly author: string
  readonly branch: string
  policy: CallPolicy
  /** It is the only call of its message, so its result can be stored with the answer to that message. */
  readonly isAlone: boolean
  /** Code of the user's works on its result before that is stored. */
  isAwaited: boolean
  /** In the store. */
  place?: ToolCallPlace
  status: ToolCallRecord['status']
  hasBegun: boolean
  /** The number that its idempotency key is made of. */
  ordinal?: number
  /** Its idempotency key, once it is needed: hashing is not repeated. */
  key?: { number: number | string; text: string }
  /** Calls with the same key whose outcome is unknown, and whether it is certain that they had no effect. */
  twins: readonly ToolCallRecord[]
  twinsFailed: boolean
  ended?: { status: CallEnd; result: unknown; actions?: Actions }
  /** The tool is being called, or is called as soon as that is stored. */
  isExecuting: boolean
  /** An earlier attempt of the run has recorded it. */
  restored?: ToolCallRecord
}

export type Actions = Readonly<Record<string, unknown>> | undefined

/**
 * Of the calls of the session whose outcome is unknown, those that are equal to this one, as far as they share one key:
 * the oldest such key that no open call of the run has, else the oldest.
 */
export function twinsOf(
  entry: LedgerEntry,
  runId: string,
  rows: readonly ToolCallRecord[],
  open: readonly LedgerEntry[],
): ToolCallRecord[] {
  const unknown = rows.filter(
    row => row.digest === entry.facts.digest && !(row.id === entry.id && row.runId === runId),
  )
  const taken = new Set(open.flatMap(each => each.twins.map(twin => twin.ordinal)))
  const ordinal = (unknown.find(row => !taken.has(row.ordinal)) ?? unknown[0])?.ordinal
  return unknown.filter(row => row.ordinal === ordinal)
}

/** True if the end of a call is stored with the answer of its message, which follows at once. ADK drops that of a call that asks. */
export function isStoredWithAnswer(
  { isAlone, place, policy, isAwaited, twins }: LedgerEntry,
  { status, result, actions }: NonNullable<LedgerEntry['ended']>,
): boolean {
  const isNext = isAlone && place !== undefined && (policy.effect === 'read' || !isAwaited)
  return isNext && !asksPerson(actions) && result !== undefined && status !== 'unknown' && twins.length === 0
}

/** Whether the tool has asked a person for a confirmation or for credentials, instead of ending. */
function asksPerson(actions: Actions): boolean {
  return Boolean(actions?.requestedToolConfirmations ?? actions?.requestedAuthConfigs)
}

/** The branch of calls whose message is not in the session of the run. */
export const NESTED = '\0'

export function newEntry(
  facts: Pick<LedgerEntry, 'id' | 'facts' | 'author' | 'branch' | 'policy' | 'isAlone'>,
): LedgerEntry {
  return {
    ...facts,
    isAwaited: true,
    status: 'intent',
    hasBegun: false,
    isExecuting: false,
    twins: [],
    twinsFailed: false,
  }
}

/** The first call that has not begun, of those that the model gave the same id. */
export function firstOpen(entries: ReadonlyMap<string, LedgerEntry>, id: string): string {
  let name = id
  for (let number = 2; entries.get(name)?.hasBegun; number++) name = `${id}#${number}`
  return name
}

/** The row of a call that an earlier attempt had begun, and whose end is not known. */
export function interruptedCall({ restored, ended }: LedgerEntry): ToolCallRecord | undefined {
  const isOpen = restored?.status === 'started' || restored?.status === 'unknown'
  return isOpen && !ended ? restored : undefined
}

export function asAnswer(response: unknown): Record<string, unknown> {
  return isRecord(response) ? response : { result: response ?? null }
}

export function attemptsOf(calls: readonly ToolCallRecord[]): number {
  return calls.reduce((all, { attempt }) => all + attempt, 0)
}

/** A person's answer about equal calls, unless one of them has been executed after it. */
export function standingAnswer(twins: readonly ToolCallRecord[]): ToolCallRecord | undefined {
  const newestFirst = twins.toReversed()
  const found = newestFirst.findIndex(({ answer }) => answer !== undefined)
  const executed = newestFirst.findIndex(({ answer, attempt }) => answer === undefined && attempt > 0)
  return executed >= 0 && executed < found ? undefined : newestFirst[found]
}

/** A call that an earlier attempt of the run has recorded. */
export function restoredEntry(
  row: ToolCallRecord,
  place: { author: string; branch: string },
  policy: CallPolicy,
): LedgerEntry {
  const { id, callId, tool, effect, digest, args, ordinal, attempt, status, result, actions } = row
  const facts = { callId, tool, effect, digest, args }
  const entry = newEntry({ id, facts, ...place, policy, isAlone: false })
  entry.place = { id, ordinal, attempt }
  entry.status = status
  entry.restored = row
  if (status === 'done' || status === 'failed') entry.ended = { status, result, actions }
  return entry
}

/** A longer result is stored in its message alone, and the ledger says where. */
const LARGE_RESULT = 16_384
const IN_MESSAGE = 'lango:in-message'

/** The end of a call, in one write with the message that answers it. */
export function answeredChange(entry: LedgerEntry, message: Message, answer: ToolCall): ToolCallChange {
  const result = parseJson(answer.output ?? 'null')
  // An answer without an end, such as the failure to record one, says nothing about what an earlier attempt did.
  const unended = interruptedCall(entry) ? 'unknown' : isToolError(result) ? 'failed' : 'done'
  const status = entry.ended?.status ?? unended
  return { ...changeOf(entry, status), result: keptResult(result, message, answer) }
}

function keptResult(result: unknown, { id, toolCalls = [] }: Message, answer: ToolCall): unknown {
  const isLarge = (answer.output?.length ?? 0) > LARGE_RESULT
  return isLarge && id !== undefined ? { [IN_MESSAGE]: id, at: toolCalls.indexOf(answer) } : result
}

/** The rows of calls with the results that are stored in messages. */
export function withResults(
  rows: readonly ToolCallRecord[],
  messageOf: (id: string) => Message | undefined,
): ToolCallRecord[] {
  return rows.map(row => {
    const kept = row.result
    const id = isRecord(kept) ? kept[IN_MESSAGE] : undefined
    if (!isRecord(kept) || typeof id !== 'string') return row
    const answer = messageOf(id)?.toolCalls?.[Number(kept.at)]
    // A field of that name which refers to no answer is data of the tool.
    return answer?.output === undefined ? row : { ...row, result: parseJson(answer.output) }
  })
}

/** The message that holds a call. */
export function messageOfCall({ id, callId }: Pick<ToolCallRecord, 'id' | 'callId'>): string {
  return id.slice(0, id.lastIndexOf(`/${callId}`))
}

/** The end of a call whose answer is part of the history. */
export function answeredEnd(response: unknown): RecordedEnd {
  return { answer: asAnswer(response), isFailure: false, isLater: false }
}

/** The end of a call that an earlier attempt of the run has recorded. */
export function recordedEnd({ restored, ended }: LedgerEntry): RecordedEnd | undefined {
  if (!restored || !ended) return undefined
  const { status, result, actions } = ended
  return {
    answer: asAnswer(result),
    isFailure: status === 'failed',
    isLater: result === undefined,
    actions,
  }
}

/**
 * What the end of an execution says about its call. One that fails says nothing about an earlier execution that was cut
 * off: the call stays unknown, so that a repetition has the same key.
 */
export function endStatus({ policy, twins, twinsFailed, id }: LedgerEntry, given: CallEnd): CallEnd {
  if (given === 'unknown' && policy.effect === 'read') return 'failed'
  const isUncertain = !twinsFailed && twins.some(twin => twin.id === id)
  return given === 'failed' && isUncertain ? 'unknown' : given
}

/** How often a call has been executed, its present execution included. */
export function executionsOf({ place, restored }: LedgerEntry): number {
  return place?.attempt ?? restored?.attempt ?? 0
}

/** A call as it is closed at the end of the run. */
export function closableOf(entry: LedgerEntry, idempotencyKey: string): ClosableCall {
  const { id, facts, author, ended, status, branch, hasBegun, policy } = entry
  return {
    ...facts,
    id,
    author,
    status: ended?.status ?? status,
    isUnsaved: ended !== undefined && ended.status !== status,
    isNested: branch === NESTED,
    mayHaveRun: hasBegun,
    idempotencyKey,
    policy: policy.onUnknown,
    ...(ended ? { result: ended.result } : {}),
  }
}

/** A change of a call in the store. */
export function changeOf(entry: LedgerEntry, status: ToolCallRecord['status']): ToolCallChange {
  const { id, facts, place, ordinal } = entry
  const isMoved = ordinal !== undefined && place !== undefined && ordinal !== place.ordinal
  return { id, status, ...(place ? {} : { call: facts }), ...(isMoved ? { ordinal } : {}) }
}

/** Changes of the other calls that are resolved together with this one. */
export function changesOfTwins(
  { id: own, twins }: LedgerEntry,
  ownRun: string,
  change: Omit<ToolCallChange, 'id' | 'runId'>,
): ToolCallChange[] {
  const others = twins.filter(({ id, runId }) => id !== own || runId !== ownRun)
  return others.map(({ id, runId }) => ({ id, runId, ...change }))
}

/** Calls whose ends are stored together with an event of the run. */
export class LastEvents {
  readonly #entries = new Map<string, LedgerEntry>()

  expect(eventId: string, entry: LedgerEntry, result: object): void {
    // One that resolves others as well is stored by itself.
    if (entry.twins.length > 0) return
    entry.ended = { status: 'done', result: toJsonData(result) }
    this.#entries.set(eventId, entry)
  }

  /** The ends that are stored with these events. */
  endsWith(journal: readonly JournalEntry[]): ToolCallChange[] {
    return journal.flatMap(({ id }) => {
      const entry = this.#entries.get(id)
      this.#entries.delete(id)
      return entry?.ended ? [{ ...changeOf(entry, 'done'), result: entry.ended.result }] : []
    })
  }
}

export function outcomeUnknown({ tool, callId }: ToolCallFacts): AgentError {
  return new AgentError(
    'tool-outcome-unknown',
    `It is not known whether "${tool}" took effect. Find out, and answer for its call "${callId}".`,
    { details: { tool, callId } },
  )
}
