/** A run as ADK reports it: run events in, events of ADK out. */

import { randomUUID } from 'node:crypto'
import type { Runtime } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { Problem, RunEvent } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
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
}

/** Events of ADK in order, and last the problem of a run that failed. */
export type AdkRunStep = { events: AdkEvent[] } | { problem: Problem }

/**
 * A run as ADK reports it. Complete events are read from the store; run events only trigger that read, and become
 * the partial events of text.
 */
export async function* adkRunEvents(
  context: ServerContext,
  { key, runId, streaming, signal }: AdkRunOptions,
): AsyncGenerator<AdkRunStep> {
  const { hub, runtime } = context
  const order = new AdkOrder(streaming)
  let read = 0
  let afterSeq: number | undefined
  let hasBegun = false
  let problem: Problem | undefined = streamTruncated()
  const follow = { untilWaiting: true, withoutVoid: true, ...(signal ? { signal } : {}) }
  for await (const batch of hub.followBatches(runId, follow)) {
    hasBegun ||= batch.events.some(({ type }) => type === 'run-start')
    // Before it begins a run has no messages; those that are stored meanwhile are another run's.
    if (hasBegun) afterSeq ??= (await hub.find(runId))?.item.afterSeq ?? 0
    if (afterSeq !== undefined && order.needsStored(batch.events)) {
      const events = await runtime.events(key, { afterSeq: afterSeq + read })
      // Lango stored them, one message for each event. Those after the run's last message are a later run's.
      const stored = events.slice(0, Math.max(0, (await lastSeqOf(context, key, runId)) - afterSeq - read))
      read += stored.length
      order.addStored(stored)
    }
    for (const event of batch.events) {
      if (event.type === 'error') problem = runProblem(event.error)
      else if (event.type === 'run-finish' && event.finishReason !== 'error') problem = undefined
      order.add(event)
    }
    const events = order.take()
    if (events.length > 0) yield { events }
  }
  if (!problem || signal?.aborted) return
  const waiting = await waitingRun(context, runId)
  yield waiting ? { events: [order.waiting(waiting)] } : { problem }
}

/**
 * Puts partial and stored events in one order. An answer is often in the store before its last partial events were
 * sent; it waits for them, so that no partial event follows the complete one.
 */
class AdkOrder {
  readonly #waiting: AdkEvent[] = []
  readonly #ready: AdkEvent[] = []
  readonly #streaming: boolean
  #invocationId: string | undefined
  /** Characters of the deltas so far, and of the complete events that were released. */
  #deltaLength = 0
  #releasedLength = 0

  constructor(streaming: boolean) {
    this.#streaming = streaming
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
      if (this.#streaming) this.#ready.push(this.#partial(event))
    }
    if (event.type === 'step-restart') this.#restart(event.step)
    this.#release(event.type === 'run-finish')
  }

  take(): AdkEvent[] {
    return this.#ready.splice(0)
  }

  #release(isOver: boolean): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const length = textLength(next)
      if (!isOver && this.#releasedLength + length > this.#deltaLength) return
      this.#releasedLength += length
      this.#ready.push(next)
      this.#waiting.shift()
    }
  }

  /** The last event of a run that waits for a person. It is not stored. */
  waiting(run: WaitingRun): AdkEvent {
    const parts = [{ text: waitingText(run) }]
    const event = this.#event('lango', { role: 'model', parts })
    return { ...event, partial: false, customMetadata: { lango: { ...run, status: 'waiting' } } }
  }

  /** The partial events since the last complete one are void. Partial events are never kept, so that a word suffices. */
  #restart(step: number): void {
    this.#deltaLength = this.#releasedLength + this.#waiting.reduce((sum, next) => sum + textLength(next), 0)
    if (!this.#streaming) return
    const event = this.#event('lango', { role: 'model', parts: [] })
    this.#ready.push({ ...event, customMetadata: { lango: { type: 'step-restart', step } } })
  }

  #partial(event: Delta): AdkEvent {
    const thought = event.type === 'reasoning-delta' ? { thought: true } : {}
    return this.#event(event.author, { role: 'model', parts: [{ text: event.text, ...thought }] })
  }

  #event(author: string, content: NonNullable<AdkEvent['content']>): AdkEvent {
    return {
      id: randomUUID(),
      invocationId: this.#invocationId ?? '',
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
}

type Delta = Extract<RunEvent, { type: 'text-delta' | 'reasoning-delta' }>

/** Run events that are emitted after a message was stored. */
const FOLLOWS_A_MESSAGE: Readonly<Record<RunEvent['type'], boolean>> = {
  'run-queued': false,
  'run-start': false,
  'run-resumed': true,
  'step-restart': false,
  'model-switch': false,
  'model-wait': false,
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
