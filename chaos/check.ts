/**
 * What must hold when everything is over, read from the store and compared with what the clients and the bank know:
 *
 * - lost: an acknowledged message is stored exactly once in its session, or its run was stopped before it began;
 * - doubled: no message is stored twice, no order is paid twice;
 * - interleaved: the messages of a run are contiguous, and runs are in the order in which they were acknowledged;
 * - stuck: every run has ended;
 * - events: their numbers have no gap within an attempt, one `run-finish` is the last, and followers saw the same, but
 *   for text that a crash made void;
 * - false: a result that says "paid" belongs to a payment that was made, and nothing refused was stored or paid;
 * - not-resumed: with resuming on, a run whose process ended is continued and ends as it would have ended; only one
 *   whose process ended too often before anything more was stored may end as interrupted;
 * - unexplained: a run ends with an error only if its model's answers were disturbed, or the database was.
 */
import { lastSeqBeforeAttempt, seqBefore } from '../src/run/event-numbers.js'
import type { RunEvent } from '../src/run/run-event.js'
import type { StoredMessage } from '../src/session/message.js'
import type { ToolCallRecord } from '../src/session/run-store.js'
import { messagePages, runEventPages } from '../src/session/session-pages.js'
import type { SessionStore } from '../src/session/session-store.js'
import type { PaymentRequest } from './bank.js'
import type { Sent } from './clients.js'
import { isRefusedOrder, paidIn } from './orders.js'

export type ProblemKind =
  | 'lost'
  | 'doubled'
  | 'interleaved'
  | 'stuck'
  | 'events'
  | 'false'
  | 'illegal'
  | 'not-found'
  | 'followed'
  | 'not-resumed'
  | 'unexplained'
  | 'crashed'

export interface Problem {
  kind: ProblemKind
  detail: string
  sessionId?: string
  runId?: string
}

/** A run as the store has it at the end. */
export interface FinalRun {
  sent: Sent
  isKnown: boolean
  isFinished: boolean
  finishReason: string | undefined
  events: readonly RunEvent[]
  calls: readonly ToolCallRecord[]
}

export interface Evidence {
  runs: readonly FinalRun[]
  messages: ReadonlyMap<string, readonly StoredMessage[]>
  effects: ReadonlyMap<string, readonly PaymentRequest[]>
  /** What the ends of runs are judged by; without it they are not. */
  ends?: { faulted: ReadonlySet<string>; isDatabaseDisturbed: boolean }
}

const APP = { appName: 'lango', userId: 'user' }

/** Reads everything that the checks need. */
export async function collect(
  store: SessionStore,
  sent: readonly Sent[],
  effects: Evidence['effects'],
): Promise<Evidence> {
  const runs: FinalRun[] = []
  for (const each of sent) {
    const run = await store.runs.findRun(each.runId)
    const events: RunEvent[] = []
    for await (const page of runEventPages(store.runs, each.runId))
      events.push(...(page as unknown as RunEvent[]))
    runs.push({
      sent: each,
      isKnown: run !== undefined,
      isFinished: run?.finished ?? false,
      finishReason: run?.finishReason,
      events,
      calls: await store.runs.readCalls(each.runId),
    })
  }
  const messages = new Map<string, StoredMessage[]>()
  for (const sessionId of new Set(sent.map(each => each.sessionId))) {
    const key = { ...APP, sessionId }
    const found: StoredMessage[] = []
    // A session exists when a message of it was accepted.
    const exists = (await store.loadSession(key, { maxMessages: 1 })) !== undefined
    if (exists) for await (const page of messagePages(store, key)) found.push(...page)
    messages.set(sessionId, found)
  }
  return { runs, messages, effects }
}

export function check(evidence: Evidence): Problem[] {
  return [
    ...evidence.runs.flatMap(run => [
      ...checkMessage(run, evidence),
      ...checkEvents(run),
      ...checkEnd(run, evidence),
    ]),
    ...[...evidence.messages].flatMap(([sessionId, messages]) =>
      checkSession(
        sessionId,
        messages,
        evidence.runs.filter(({ sent }) => sent.sessionId === sessionId),
      ),
    ),
    ...checkPayments(evidence),
  ]
}

function checkMessage(run: FinalRun, { messages }: Evidence): Problem[] {
  const { sent, isKnown, isFinished, events } = run
  const { sessionId, runId, mark } = sent
  const about = { sessionId, runId }
  const found = (messages.get(sessionId) ?? []).filter(
    ({ role, content }) => role === 'user' && content.includes(mark),
  )
  const places = found.map(({ seq }) => seq).join(', ')
  if (found.length > 1)
    return [{ kind: 'doubled', detail: `the message ${mark} is stored at ${places}`, ...about }]
  if (sent.isRefused && (found.length > 0 || isKnown))
    return [{ kind: 'false', detail: `${mark} was refused with 409 and is stored`, ...about }]
  if (sent.acknowledgedAtMs !== undefined && !isKnown)
    return [{ kind: 'lost', detail: `the acknowledged run of ${mark} is not in the store`, ...about }]
  if (!isKnown) return found.length > 0 ? [{ kind: 'events', detail: `${mark} has no run`, ...about }] : []
  const last = events.at(-1)
  const hasBegun = events.some(({ type }) => type === 'run-start')
  const wasStopped = last?.type === 'run-finish' && last.finishReason === 'aborted' && sent.isStopRequested
  if (found.length === 0 && isFinished && !(wasStopped && !hasBegun))
    return [{ kind: 'lost', detail: `the message ${mark} of an accepted run is not stored`, ...about }]
  return []
}

function checkEvents({ sent, isKnown, isFinished, events }: FinalRun): Problem[] {
  const about = { sessionId: sent.sessionId, runId: sent.runId }
  if (!isKnown) return []
  if (!isFinished) return [{ kind: 'stuck', detail: `the run of ${sent.mark} has not ended`, ...about }]
  const problems: Problem[] = []
  const wrong = (detail: string) => problems.push({ kind: 'events', detail, ...about })
  const gap = events.findIndex((event, index) => !comesNext(event, events[index - 1]?.seq ?? 0))
  if (gap >= 0) wrong(`event ${events[gap]?.seq} follows event ${events[gap - 1]?.seq}`)
  const ends = events.filter(({ type }) => type === 'run-finish').length
  if (ends !== 1 || events.at(-1)?.type !== 'run-finish')
    wrong(`${ends} run-finish, the last event is ${events.at(-1)?.type}`)
  const starts = events.filter(({ type }) => type === 'run-start').length
  if (starts > 1) wrong(`${starts} run-start`)
  const last = events.at(-1)
  if (last?.type === 'run-finish' && last.finishReason === 'aborted' && !sent.isStopRequested)
    wrong('it ended as aborted, and nobody stopped it')
  for (const [seq, type] of sent.followed) {
    const stored = events.find(event => event.seq >= seq)
    const isCovered = stored !== undefined && seqBefore(stored) < seq
    const isStored = isCovered && stored.type === type
    // No event has the number: only another attempt leaves numbers out.
    const isVoid = type.endsWith('-delta') && stored !== undefined && !isCovered
    if (!isStored && !isVoid) wrong(`a follower saw ${type} as event ${seq}, stored is ${stored?.type}`)
  }
  return problems
}

/** True if an event follows that number directly, or as the first of another attempt. */
export function comesNext(event: RunEvent, lastSeq: number): boolean {
  return [lastSeq, lastSeqBeforeAttempt(lastSeq)].includes(seqBefore(event))
}

/**
 * How often a run is begun or continued without storing anything more. More than by default: processes are killed every
 * few seconds here, and runs are to be resumed, not given up.
 */
export const MAX_ATTEMPTS = 10

function checkEnd({ sent, isFinished, events }: FinalRun, { ends }: Evidence): Problem[] {
  if (!ends || !isFinished) return []
  const about = { sessionId: sent.sessionId, runId: sent.runId }
  const last = events.at(-1)
  if (last?.type === 'run-finish' && !NORMAL_ENDS.includes(last.finishReason))
    return [{ kind: 'unexplained', detail: `it ended with ${last.finishReason}`, ...about }]
  const error = events.flatMap(event => (event.type === 'error' ? event.error : [])).at(-1)
  if (error === undefined) return []
  const detail = `it ended with ${error.code}: ${error.message}`
  if (error.code === 'run-interrupted')
    return isGivenUp(events) ? [] : [{ kind: 'not-resumed', detail, ...about }]
  const isExplained =
    (error.code.startsWith('provider-') && ends.faulted.has(sent.mark)) ||
    (error.code === 'store-unavailable' && ends.isDatabaseDisturbed)
  return isExplained ? [] : [{ kind: 'unexplained', detail, ...about }]
}

const NORMAL_ENDS: readonly string[] = ['stop', 'error', 'aborted']

/** Whether its last attempt was the last one allowed, and stored nothing. */
function isGivenUp(events: readonly RunEvent[]): boolean {
  const last = events.findLastIndex(({ type }) => type === 'run-resumed')
  const resumed = events[last]
  const hasStored = events.slice(last).some(({ type }) => type === 'usage' || type === 'tool-result')
  return resumed?.type === 'run-resumed' && resumed.attempt >= MAX_ATTEMPTS && !hasStored
}

function checkSession(
  sessionId: string,
  messages: readonly StoredMessage[],
  runs: readonly FinalRun[],
): Problem[] {
  const problems: Problem[] = []
  const wrong = (detail: string) => problems.push({ kind: 'interleaved', detail, sessionId })
  // The rounds of a run are invocations of their own, between its message and that of the next run.
  const marks = runs.map(({ sent }) => sent.mark)
  const seen = new Map<string, number>()
  let run = 0
  for (const { seq, role, content, invocationId } of messages) {
    if (role === 'user' && marks.some(mark => content.includes(mark))) run += 1
    if (invocationId === undefined) continue
    if ((seen.get(invocationId) ?? run) !== run)
      wrong(`message ${seq} belongs to an earlier run (${invocationId}), others came in between`)
    seen.set(invocationId, run)
  }
  const answered = messages.flatMap(({ toolCalls = [] }) =>
    toolCalls.flatMap(({ id, kind }) => (kind === 'response' ? id : [])),
  )
  for (const id of new Set(answered.filter((each, index) => answered.indexOf(each) !== index)))
    problems.push({ kind: 'doubled', detail: `call ${id} has two answers in the history`, sessionId })
  const gap = messages.findIndex(({ seq }, index) => seq !== index + 1)
  if (gap >= 0) wrong(`message ${messages[gap]?.seq} stands at place ${gap + 1}`)
  const placed = runs.flatMap(({ sent }) => {
    const seq = messages.find(({ role, content }) => role === 'user' && content.includes(sent.mark))?.seq
    return seq === undefined ? [] : [{ sent, seq }]
  })
  for (const one of placed) {
    for (const other of placed) {
      const isEarlier = (one.sent.acknowledgedAtMs ?? Number.POSITIVE_INFINITY) < other.sent.sentAtMs
      if (isEarlier && one.seq > other.seq)
        wrong(`${one.sent.mark} was acknowledged before ${other.sent.mark} was sent, and is stored after it`)
    }
  }
  return problems
}

function checkPayments({ runs, messages, effects }: Evidence): Problem[] {
  const owners = new Map(runs.flatMap(({ sent }) => sent.orders.map(({ order }) => [order, sent] as const)))
  const problems: Problem[] = []
  for (const [order, made] of effects) {
    const { sessionId, runId } = owners.get(order) ?? {}
    const about = { ...(sessionId ? { sessionId } : {}), ...(runId ? { runId } : {}) }
    if (isRefusedOrder(order))
      problems.push({ kind: 'false', detail: `order ${order} was refused by a person and is paid`, ...about })
    if (made.length < 2) continue
    const how = made.map(({ key, slot, atMs }) => `key "${key}" by process ${slot} at ${atMs}`).join('; ')
    problems.push({
      kind: 'doubled',
      detail: `order ${order} was paid ${made.length} times at the ${made[0]?.counter} counter: ${how}`,
      ...about,
    })
  }
  for (const [sessionId, found] of messages) {
    const outputs = found.flatMap(({ toolCalls = [] }) => toolCalls.map(({ output = '' }) => output))
    for (const order of new Set(outputs.flatMap(paidIn)))
      if (!effects.has(order))
        problems.push({ kind: 'false', detail: `order ${order} counts as paid and is not`, sessionId })
  }
  return problems
}
