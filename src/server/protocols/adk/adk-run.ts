/** A run as ADK reports it: run events in, events of ADK out. */

import { randomUUID } from 'node:crypto'
import { CONFIRMATION_TOOL } from '../../../base/names.js'
import type { Runtime } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { Problem, RunEvent, RunItem, RunQuestion } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { followUntilAsked } from '../run-readers.js'
import {
  lastSeqOf,
  runProblem,
  streamTruncated,
  type WaitingRun,
  waitingRun,
  waitingText,
} from '../start-run.js'

/** An event of ADK on the wire. */
export type AdkEvent = Awaited<ReturnType<Runtime['events']>>[number]

export interface AdkRunOptions {
  key: SessionKey
  runId: string
  /** Whether parts of an answer are sent before the answer, as partial events. */
  streaming: boolean
  signal?: AbortSignal
  /** The calls that the caller has just answered: what the run did before the first was asked is not sent again. */
  answered?: readonly string[] | undefined
}

/** Events of ADK in order, and last the problem of a run that failed. */
export type AdkRunStep = { events: AdkEvent[] } | { problem: Problem }

/**
 * A run as ADK reports it. Complete events are read from the store; run events only trigger that read, and become
 * the partial events of text.
 */
export async function* adkRunEvents(
  context: ServerContext,
  { key, runId, streaming, signal, answered = [] }: AdkRunOptions,
): AsyncGenerator<AdkRunStep> {
  const { hub, runtime } = context
  const [afterCall] = answered
  const order = new AdkOrder(streaming, answered)
  let read = 0
  let afterSeq: number | undefined
  let hasBegun = false
  let isPast = afterCall === undefined
  let problem: Problem | undefined = streamTruncated()
  const isAsking = () => isPast && order.isAsking
  for await (const batch of followUntilAsked(hub, runId, { signal, isAsking })) {
    hasBegun ||= batch.events.some(({ type }) => type === 'run-start')
    // Before it begins a run has no messages; those that are stored meanwhile are another run's.
    if (hasBegun) afterSeq ??= (await hub.find(runId))?.item.afterSeq ?? 0
    const asked = isPast ? -1 : batch.events.findIndex(event => isRequestOf(event, afterCall))
    if (!isPast && asked < 0) continue
    if (!isPast) read = placeOf(await runtime.events(key, { afterSeq: afterSeq ?? 0 }), afterCall)
    isPast = true
    const fresh = batch.events.slice(asked + 1)
    if (afterSeq !== undefined && order.needsStored(fresh)) {
      const events = await runtime.events(key, { afterSeq: afterSeq + read })
      // Lango stored them, one message for each event. Those after the run's last message are a later run's.
      const stored = events.slice(0, Math.max(0, (await lastSeqOf(context, key, runId)) - afterSeq - read))
      read += stored.length
      order.addStored(stored)
    }
    for (const event of fresh) {
      if (event.type === 'error') problem = runProblem(event.error)
      else if (event.type === 'run-finish' && event.finishReason !== 'error') problem = undefined
      order.add(event)
    }
    const events = order.take()
    if (events.length > 0) yield { events }
  }
  if (!problem || signal?.aborted) return
  const rest = order.end()
  if (rest.length > 0) yield { events: rest }
  const waiting = order.isAsking
    ? { runId, waitsFor: await hub.questions(runId) }
    : await waitingRun(context, runId)
  if (!waiting) yield { problem }
  else if (order.asks(waiting)) yield { events: [waitingEvent(waiting, order.last)] }
}

/** The failure of a run, when no event of ADK's reports it. */
export function errorEvent({ detail, code }: Problem): AdkEvent {
  const event = { ...emptyEvent('lango', { role: 'model', parts: [] }), partial: false }
  return { ...event, errorCode: code, errorMessage: detail }
}

function isRequestOf(event: RunEvent, callId: string | undefined): boolean {
  return event.type === 'approval-request' && event.id === callId
}

/** How many events there are up to the one with this call. */
function placeOf(events: readonly AdkEvent[], callId: string | undefined): number {
  return events.findIndex(({ content }) => content?.parts?.some(part => part.functionCall?.id === callId)) + 1
}

/**
 * What a run waits for, as ADK asks it: a call of `adk_request_confirmation` for each approval, which its clients show as
 * a dialog. Other questions are words. The event is not stored; the session shows it as long as the run waits.
 */
export function waitingEvent(run: WaitingRun, last: Pick<AdkEvent, 'author' | 'invocationId'>): AdkEvent {
  const approvals = run.waitsFor.filter(({ asks }) => asks === 'approval')
  const others = run.waitsFor.filter(({ asks }) => asks !== 'approval')
  const calls = approvals.map(question => ({ functionCall: confirmationCall(run.runId, question) }))
  const words = others.length > 0 ? [{ text: waitingText({ ...run, waitsFor: others }) }] : []
  const event = emptyEvent(others.length > 0 ? 'lango' : (last.author ?? 'lango'), {
    role: 'model',
    parts: [...calls, ...words],
  })
  return {
    ...event,
    id: `lango-waits-${run.runId}-${run.waitsFor.map(({ callId }) => callId).join('-')}`,
    invocationId: last.invocationId ?? '',
    partial: false,
    longRunningToolIds: calls.map(({ functionCall }) => functionCall.id),
    customMetadata: { lango: { ...run, status: 'waiting' } },
  }
}

/** What a run asks of a person, also while it is still in memory for the answer. */
export async function askingRun(
  context: ServerContext,
  { runId, status }: RunItem,
): Promise<WaitingRun | undefined> {
  if (status !== 'running') return waitingRun(context, runId)
  const waitsFor = (await context.hub.questions(runId)).filter(({ asks }) => asks === 'approval')
  return waitsFor.length > 0 ? { runId, waitsFor } : undefined
}

/** Whether an event of ADK's own asks everything that a run waits for. */
export function isAsked(events: readonly AdkEvent[], { waitsFor }: WaitingRun): boolean {
  return events.some(({ longRunningToolIds = [] }) =>
    waitsFor.every(({ callId }) => longRunningToolIds.includes(callId)),
  )
}

function confirmationCall(runId: string, { callId, tool, args, reason }: RunQuestion) {
  const hint = reason ?? `May the agent call ${tool}?`
  return {
    id: `${CONFIRMATION}${runId}:${callId}`,
    name: CONFIRMATION_TOOL,
    args: {
      originalFunctionCall: { id: callId, name: tool, args: { ...args } },
      toolConfirmation: { hint, confirmed: false },
    },
  }
}

/** Ids of confirmations that Lango asks for in ADK's name hold the run and the call that they are about. */
const CONFIRMATION = 'lango-confirm:'

/** The run and the call that a function response answers, when the request was one of `waitingEvent`. */
export function askedBy(id: unknown): { runId: string; callId: string } | undefined {
  if (typeof id !== 'string' || !id.startsWith(CONFIRMATION)) return undefined
  const [runId = '', ...call] = id.slice(CONFIRMATION.length).split(':')
  return { runId, callId: call.join(':') }
}

/**
 * Puts partial and stored events in one order. An answer is often in the store before its last partial events were
 * sent; it waits for them, so that no partial event follows the complete one.
 */
class AdkOrder {
  readonly #waiting: AdkEvent[] = []
  readonly #ready: AdkEvent[] = []
  readonly #streaming: boolean
  /** The calls by which ADK has asked a person. */
  readonly #requested = new Set<string>()
  /** Approvals of Lango's own that nobody has answered. */
  readonly #asked = new Set<string>()
  readonly #answered: ReadonlySet<string>
  #invocationId: string | undefined
  /** An answer that is the last one unless another event follows. */
  #final: AdkEvent | undefined
  /** The last event that was complete. */
  last: Pick<AdkEvent, 'author' | 'invocationId'> = { author: 'lango', invocationId: '' }
  /** Characters of the deltas so far, and of the complete events that were released. */
  #deltaLength = 0
  #releasedLength = 0

  constructor(streaming: boolean, answered: readonly string[]) {
    this.#streaming = streaming
    this.#answered = new Set(answered)
  }

  /** Whether the store may hold a new message. */
  needsStored(events: readonly RunEvent[]): boolean {
    if (events.some(({ type }) => FOLLOWS_A_MESSAGE[type])) return true
    return this.#streaming && this.#invocationId === undefined && events.some(isDelta)
  }

  addStored(events: readonly AdkEvent[]): void {
    this.#invocationId ??= events.find(({ invocationId }) => invocationId)?.invocationId
    // ADK returns only what the agent produced.
    this.#waiting.push(...events.filter(({ author }) => author !== 'user'))
  }

  add(event: RunEvent): void {
    if (isDelta(event)) {
      this.#deltaLength += event.text.length
      if (this.#streaming) this.#push(this.#partial(event))
    }
    if (event.type === 'step-restart') this.#restart(event.step)
    if (event.type === 'approval-request' && this.#isOpen(event)) this.#asked.add(event.id)
    if (event.type === 'approval-answer') this.#asked.delete(event.id)
    this.#release(event.type === 'run-finish')
  }

  take(): AdkEvent[] {
    return this.#ready.splice(0)
  }

  /** What was held back, of a run that has not ended. */
  end(): AdkEvent[] {
    this.#push()
    return this.take()
  }

  #release(isOver: boolean): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const length = textLength(next)
      if (!isOver && this.#releasedLength + length > this.#deltaLength) return
      this.#releasedLength += length
      this.#waiting.shift()
      this.#push(next)
      this.last = next
      for (const id of next.longRunningToolIds ?? []) this.#requested.add(id)
    }
    if (isOver && this.#final) this.#ready.push(this.#final)
    if (isOver) this.#final = undefined
  }

  /** Every answer of a model ends its own turn for ADK; for a client only the last one of the run does. */
  #push(event?: AdkEvent): void {
    if (this.#final) this.#ready.push(withoutTurnEnd(this.#final))
    this.#final = undefined
    if (event && mayEndTurn(event)) this.#final = event
    else if (event) this.#ready.push(withoutTurnEnd(event))
  }

  get isAsking(): boolean {
    return this.#asked.size > 0
  }

  /** A request of ADK's own names the call that it is about, and ends the round. */
  #isOpen({ id, callId }: Extract<RunEvent, { type: 'approval-request' }>): boolean {
    return callId === undefined && !this.#answered.has(id)
  }

  /** Whether there is something to ask that ADK has not asked itself, with an event of its own. */
  asks({ waitsFor }: WaitingRun): boolean {
    return waitsFor.some(({ callId }) => !this.#requested.has(callId))
  }

  /** The partial events since the last complete one are void. Partial events are never kept, so that a word suffices. */
  #restart(step: number): void {
    this.#deltaLength = this.#releasedLength + this.#waiting.reduce((sum, next) => sum + textLength(next), 0)
    if (!this.#streaming) return
    const event = this.#event('lango', { role: 'model', parts: [] })
    this.#push({ ...event, customMetadata: { lango: { type: 'step-restart', step } } })
  }

  #partial(event: Delta): AdkEvent {
    const thought = event.type === 'reasoning-delta' ? { thought: true } : {}
    return this.#event(event.author, { role: 'model', parts: [{ text: event.text, ...thought }] })
  }

  #event(author: string, content: NonNullable<AdkEvent['content']>): AdkEvent {
    return { ...emptyEvent(author, content), invocationId: this.#invocationId ?? '' }
  }
}

/** Stored events as a run reports them: `turnComplete` is at the last answer of each invocation. */
export function turnsOf(events: readonly AdkEvent[]): AdkEvent[] {
  return events.map((event, index) => {
    const next = events[index + 1]
    const isLast = next === undefined || next.invocationId !== event.invocationId
    return isLast && mayEndTurn(event) ? event : withoutTurnEnd(event)
  })
}

function mayEndTurn({ turnComplete, content }: AdkEvent): boolean {
  return turnComplete === true && !content?.parts?.some(({ functionCall }) => functionCall)
}

function withoutTurnEnd({ turnComplete: _turnComplete, ...event }: AdkEvent): AdkEvent {
  return event
}

function emptyEvent(author: string, content: NonNullable<AdkEvent['content']>): AdkEvent {
  return {
    id: randomUUID(),
    invocationId: '',
    author,
    partial: true,
    content,
    actions: {
      stateDelta: {},
      artifactDelta: {},
      requestedAuthConfigs: {},
      requestedToolConfirmations: {},
    },
    longRunningToolIds: [],
    timestamp: Date.now(),
  }
}

type Delta = Extract<RunEvent, { type: 'text-delta' | 'reasoning-delta' }>

/** Run events that are emitted after a message was stored. */
const FOLLOWS_A_MESSAGE: Readonly<Record<RunEvent['type'], boolean>> = {
  'run-queued': false,
  'run-scheduled': false,
  'run-start': false,
  'run-resumed': true,
  'step-restart': false,
  'model-switch': false,
  'model-wait': false,
  'tools-missing': false,
  'text-delta': false,
  'reasoning-delta': false,
  sources: false,
  code: false,
  'tool-call': true,
  'tool-result': true,
  'agent-transfer': true,
  'turn-warning': false,
  'wrap-up': false,
  repair: false,
  'history-cut': false,
  'approval-request': true,
  'approval-answer': false,
  'tool-unknown': false,
  usage: true,
  error: false,
  'run-finish': true,
}

function isDelta(event: RunEvent): event is Delta {
  return event.type === 'text-delta' || event.type === 'reasoning-delta'
}

function textLength({ content }: AdkEvent): number {
  return (content?.parts ?? []).reduce((length, { text = '' }) => length + text.length, 0)
}
