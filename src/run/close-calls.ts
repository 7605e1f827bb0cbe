/**
 * The end of calls that have no answer: when a run ends first, and when its process ended. A recorded result is the
 * answer. For the others the model reads what is known: the call did not run, may be repeated, or has an unknown outcome.
 */
import { randomUUID } from 'node:crypto'
import { isRecord } from '../base/is-record.js'
import { parseJson, toJson } from '../base/json.js'
import {
  CALL_NOT_RUN,
  MAY_BE_REPEATED,
  NO_RESPONSE_MARKER,
  OUTCOME_UNKNOWN,
  PROCESS_ENDED,
  RUN_STOPPED,
} from '../base/markers.js'
import { orTimeout } from '../base/pause.js'
import { splitMedia, toInlineParts } from '../base/tool-media.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { type Message, type StoredMessage, toolCallKind } from '../session/message.js'
import type {
  JournalEntry,
  RunEventRecord,
  RunSummary,
  ToolCallChange,
  ToolCallRecord,
  ToolCallStatus,
} from '../session/run-store.js'
import { messagePages } from '../session/session-pages.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import { callPolicy, type LedgerTools, type Verify } from '../session/tool-calls.js'
import type { OnUnknown, OutcomeAnswer, ToolEffect, VerifyContext } from '../tool.js'
import { callKey } from './call-key.js'
import { lastSeqBeforeAttempt, numbered } from './event-numbers.js'
import { type ClosingAnswer, type OpenCall, PendingCalls, type SeenEvent } from './pending-calls.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { RunRecorder } from './run-recorder.js'

/** A call of the ledger that may have no answer. */
export interface ClosableCall {
  readonly id: string
  readonly callId: string
  readonly tool: string
  readonly effect: ToolEffect
  readonly args: Readonly<Record<string, unknown>>
  readonly author: string
  readonly status: ToolCallStatus
  /** Absent when it is answered after the run. */
  readonly result?: unknown
  /** The ledger does not have this status and result: they could not be stored. */
  readonly isUnsaved?: boolean
  /** Its message is in another session. */
  readonly isNested: boolean
  /** The tool may have been called although that is not recorded, as it is for tools that only read. */
  readonly mayHaveRun: boolean
  /** The tool was asked: the result of the call, or that it had no effect. */
  readonly verified?: { result?: Record<string, unknown> } | undefined
  readonly idempotencyKey: string
  readonly policy: OnUnknown
}

/** Closes calls, and collects what is stored and reported for that. */
export class ClosingCalls {
  readonly changes: ToolCallChange[] = []
  readonly reports: RunEventBody[] = []
  readonly #rows: ReadonlyMap<string, ClosableCall>
  readonly #reason: string
  readonly #isPaused: boolean

  /** With ADK's `pauseOnToolCalls`, calls that were not begun stay open: the client answers them with its next message. */
  constructor(
    rows: readonly ClosableCall[],
    reason: string,
    { pauseOnToolCalls = false }: { pauseOnToolCalls?: boolean } = {},
  ) {
    this.#rows = new Map(rows.map(row => [row.id, row]))
    this.#reason = reason
    this.#isPaused = pauseOnToolCalls && reason !== RUN_STOPPED
    // Nobody waits for an answer to these: the agent that called them is gone.
    for (const row of rows) if (row.isNested) this.#close(row)
  }

  /** The answer of an open call; `undefined` when it is answered after the run. */
  answerOf({ messageId, id, isPending }: OpenCall): unknown {
    const row = this.#rows.get(`${messageId}/${id}`)
    if (row) return this.#close(row)
    return isPending ? undefined : { error: `${NO_RESPONSE_MARKER} ${this.#reason}` }
  }

  #close(row: ClosableCall): unknown {
    switch (row.status) {
      case 'done':
      case 'failed':
        if (row.isUnsaved) this.changes.push({ id: row.id, status: row.status, result: row.result })
        return row.result
      case 'unknown':
        if (row.isUnsaved) this.changes.push({ id: row.id, status: row.status })
        return this.#words(OUTCOME_UNKNOWN)
      case 'started': {
        if (row.verified?.result) return this.#done(row, row.verified.result)
        if (row.verified) return this.#end(row, 'failed', 'The call had no effect.')
        this.reports.push(reportOf(row))
        return this.#end(row, 'unknown', row.effect === 'once' ? OUTCOME_UNKNOWN : MAY_BE_REPEATED)
      }
      case 'intent': {
        if (this.#isPaused && !row.isNested) return undefined
        const mayHaveRun = row.effect === 'read' && row.mayHaveRun
        return this.#end(row, 'failed', mayHaveRun ? MAY_BE_REPEATED : CALL_NOT_RUN)
      }
    }
  }

  #done({ id }: ClosableCall, result: Record<string, unknown>): unknown {
    this.changes.push({ id, status: 'done', result })
    return result
  }

  #end({ id }: ClosableCall, status: 'failed' | 'unknown', text: string): unknown {
    const result = this.#words(text)
    this.changes.push({ id, status, ...(status === 'failed' ? { result } : {}) })
    return result
  }

  #words(text: string): { error: string } {
    return { error: `${NO_RESPONSE_MARKER} ${this.#reason} ${text}` }
  }
}

function reportOf({ author, callId, tool, args, idempotencyKey, policy }: ClosableCall): RunEventBody {
  return { type: 'tool-unknown', author, id: callId, name: tool, args: { ...args }, idempotencyKey, policy }
}

/** The message that answers open calls: what is stored for an event of ADK's with these responses. */
export function answerMessage({ author, invocationId, branch, answers }: ClosingAnswer): Message {
  const split = answers.map(({ response }) => splitMedia(response))
  const outputs = split.map(({ result }) => toJson(result))
  const hasMedia = split.some(({ media }) => media.length > 0)
  const layout = split.map(({ media }) =>
    media.length > 0 ? { call: { parts: toInlineParts(media) } } : ('call' as const),
  )
  return {
    role: 'tool',
    author,
    content: outputs.join('\n'),
    toolCalls: answers.map(({ id, name }, index) => ({
      id,
      name,
      output: outputs[index] ?? 'null',
      kind: 'response' as const,
    })),
    timestamp: Date.now(),
    id: randomUUID(),
    ...(invocationId ? { invocationId } : {}),
    ...(branch === undefined ? {} : { branch }),
    extra: { role: 'user', ...(hasMedia ? { parts: layout } : {}) },
  }
}

/** Answers the open calls of a run that ends. Returns the events of the run that report unknown outcomes. */
export async function closeCalls(
  pending: PendingCalls,
  closing: ClosingCalls,
  recorder: RunRecorder,
  ending: JournalEntry,
): Promise<RunEvent[]> {
  const answers = pending.close(call => closing.answerOf(call))
  const events = recorder.prepare(closing.reports)
  const journal = [ending]
  for (const answer of answers) {
    await recorder.append({ message: answerMessage(answer), calls: closing.changes.splice(0), journal })
  }
  if (closing.changes.length > 0) await recorder.append({ calls: closing.changes, journal })
  return events
}

export interface InterruptedRun {
  store: SessionStore
  run: RunSummary
  /** Of the run's session. */
  lease: Lease
  /** The events that end the run. */
  end: readonly RunEventBody[]
  /** Tools that can be asked whether a call took effect. */
  tools?: LedgerTools | undefined
  logger?: Logger | undefined
}

/**
 * Ends a run whose process is gone: its open calls are answered from the ledger, and its last events stored, under the
 * lease of the session.
 */
export async function settleInterrupted(interrupted: InterruptedRun): Promise<void> {
  const { store, run, lease, end } = interrupted
  const { key, runId } = run
  const messages = await messagesOf(store, run)
  const rows = await store.runs.readCalls(runId)
  const closing = new ClosingCalls(await closable(interrupted, rows, messages), PROCESS_ENDED)
  const pending = new PendingCalls()
  for (const message of messages) pending.observe(seenIn(message))
  const answers = pending.close(call => closing.answerOf(call))
  const step = { key, runId, fence: lease.fence }
  for (const answer of answers) {
    // Answers and the changes that they report are one write; settling again finds them done.
    await store.runs.saveStep({ ...step, message: answerMessage(answer), calls: closing.changes.splice(0) })
  }
  const events = endEvents(run, [...closing.reports, ...end])
  await store.runs.saveStep({ ...step, events, calls: closing.changes })
}

/** The last events of a run whose process is gone. Text that was handed out and not stored has numbers below theirs. */
export function endEvents(
  { key, runId, lastSeq }: RunSummary,
  bodies: readonly RunEventBody[],
): RunEventRecord[] {
  const identity = { sessionId: key.sessionId, runId }
  return numbered(bodies, identity, lastSeqBeforeAttempt(lastSeq)).map(event => ({ ...event }))
}

/** The calls of the messages that the store has of a run. */
export async function pendingInStore(store: SessionStore, runId: string): Promise<PendingCalls> {
  const run = await store.runs.findRun(runId)
  const pending = new PendingCalls()
  for (const message of run ? await messagesOf(store, run) : []) pending.observe(seenIn(message))
  return pending
}

async function messagesOf(store: SessionStore, { key, afterSeq = 0 }: RunSummary): Promise<StoredMessage[]> {
  const all: StoredMessage[] = []
  for await (const page of messagePages(store, key, { afterSeq })) all.push(...page)
  return all
}

/** A stored message as `PendingCalls` observes it. */
export function seenIn(message: Message): SeenEvent {
  const { id, author, invocationId, branch, role, toolCalls = [], extra = {} } = message
  const parts = toolCalls.map(call =>
    toolCallKind(call, role) === 'response'
      ? { functionResponse: { id: call.id, name: call.name } }
      : { functionCall: { id: call.id, name: call.name, args: argsOf(call.input) } },
  )
  const longRunningToolIds = Array.isArray(extra.longRunningToolIds) ? extra.longRunningToolIds : []
  return { id, author, invocationId, branch, longRunningToolIds, content: { parts } }
}

/** The rows of the ledger with what their tools say about them. */
async function closable(
  { run, tools, logger }: InterruptedRun,
  rows: readonly ToolCallRecord[],
  messages: readonly Message[],
): Promise<ClosableCall[]> {
  const authors = new Map(messages.map(({ id, author = '' }) => [id, author]))
  const closing: ClosableCall[] = []
  for (const row of rows) {
    const messageId = row.id.slice(0, -(row.callId.length + 1))
    const author = authors.get(messageId) ?? ''
    const own = tools?.find(author, row.tool) ?? {}
    const policy = callPolicy(row.tool, { ...own, effect: row.effect, isContainer: false }, tools?.effects)
    const idempotencyKey = callKey(run.key, row, row.ordinal)
    const verified =
      row.status === 'started' && own.verify
        ? await verify(own.verify, row, { idempotencyKey, signal: new AbortController().signal }, logger)
        : undefined
    closing.push({
      ...row,
      author,
      isNested: !authors.has(messageId),
      mayHaveRun: true,
      verified,
      idempotencyKey,
      policy: policy?.onUnknown ?? 'tell',
    })
  }
  return closing
}

/** Asks a tool whether a call took effect. One that does not answer cannot be asked. */
async function askVerify(
  ask: Verify,
  args: Record<string, unknown>,
  context: VerifyContext,
): Promise<Record<string, unknown> | undefined> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(VERIFY_MS)])
  const answer = await orTimeout(ask(args, { ...context, signal }), VERIFY_MS)
  if (answer !== 'timeout') return answer
  throw new AgentError('internal', `\`verify\` did not answer within ${VERIFY_MS / 1000} s.`)
}

const VERIFY_MS = 30_000

/** The result of a call that took effect, `{}` for one that did not, nothing when the tool cannot be asked. */
export async function verify(
  ask: Verify,
  { tool, args }: Pick<ToolCallRecord, 'tool' | 'args'>,
  context: VerifyContext,
  logger: Logger | undefined,
): Promise<ClosableCall['verified']> {
  try {
    const result = await askVerify(ask, { ...args }, context)
    return result === undefined ? {} : { result }
  } catch (error) {
    logger?.warn('The outcome of a tool call could not be verified', { tool, error: messageOf(error) })
    return undefined
  }
}

function argsOf(input = '{}'): Record<string, unknown> {
  const args = parseJson(input)
  return isRecord(args) ? args : {}
}

/**
 * Keeps a person's answer about a call of an ended run whose outcome is unknown: it counts when the call is repeated.
 * `false` when there is no such call.
 */
export async function answerUnknown(
  store: SessionStore,
  { key, runId }: RunSummary,
  callId: string,
  answer: OutcomeAnswer,
): Promise<boolean> {
  const rows = await store.runs.readCalls(runId)
  const row = rows.findLast(each => each.callId === callId && each.status === 'unknown')
  if (!row) return false
  const lease = await store.acquireLease(key, { waitMs: ANSWER_WAIT_MS })
  try {
    const calls = [{ id: row.id, status: 'unknown' as const, answer }]
    await store.runs.saveStep({ key, runId, fence: lease.fence, calls })
    return true
  } finally {
    await lease.release().catch(() => {})
  }
}

/** A run of the session may be active. */
const ANSWER_WAIT_MS = 10_000
