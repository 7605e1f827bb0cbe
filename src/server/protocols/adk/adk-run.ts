/** A run as ADK reports it: run events in, events of ADK out. */

import { randomUUID } from 'node:crypto'
import type { Runtime } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { Problem, RunEvent } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { brokenOff, runProblem } from '../start-run.js'

/** An event of ADK, as it goes over the wire. */
export type AdkEvent = Awaited<ReturnType<Runtime['events']>>[number]

export interface AdkRunOptions {
  key: SessionKey
  runId: string
  /** Whether pieces of an answer are told before the answer. */
  streaming: boolean
  signal?: AbortSignal
}

/** What comes of a run: events of ADK in order, and at the end what went wrong, if anything did. */
type AdkRunStep = { events: AdkEvent[] } | { problem: Problem }

/**
 * A run as ADK tells it. What is told for good was read from the store; the run's own events only say when to
 * look, and give the pieces of text that ADK calls partial events.
 */
export async function* adkRunEvents(
  { hub, runtime }: ServerContext,
  { key, runId, streaming, signal }: AdkRunOptions,
): AsyncGenerator<AdkRunStep> {
  const teller = new AdkTeller(streaming)
  let read = 0
  let afterSeq: number | undefined
  let hasBegun = false
  let problem: Problem | undefined = brokenOff()
  for await (const batch of hub.followBatches(runId, signal ? { signal } : {})) {
    afterSeq ??= (await hub.find(runId))?.item.afterSeq ?? 0
    hasBegun ||= batch.events.some(({ type }) => type === 'run-start')
    // A run that waited for its session in vain has no messages; those that came meanwhile are another's.
    if (hasBegun && teller.wantsStored(batch.events)) {
      const stored = await runtime.events(key, { afterSeq: afterSeq + read })
      // Every message of a run is one event: Lango wrote them itself.
      read += stored.length
      teller.addStored(stored)
    }
    for (const event of batch.events) {
      if (event.type === 'error') problem = runProblem(event.error)
      else if (event.type === 'run-finish' && event.finishReason !== 'error') problem = undefined
      teller.hear(event)
    }
    const events = teller.take()
    if (events.length > 0) yield { events }
  }
  if (problem && !signal?.aborted) yield { problem }
}

/**
 * Puts partial and stored events in one order. An answer is often in the store before its last pieces have been
 * told; it waits for them, so that a client never sees pieces of an answer that it has seen whole.
 */
class AdkTeller {
  readonly #waiting: AdkEvent[] = []
  readonly #ready: AdkEvent[] = []
  #invocationId: string | undefined
  #heard = 0
  #told = 0

  constructor(private readonly streaming: boolean) {}

  /** Whether there may be something new in the store. */
  wantsStored(events: readonly RunEvent[]): boolean {
    if (events.some(({ type }) => FOLLOWS_A_MESSAGE[type])) return true
    return this.streaming && this.#invocationId === undefined && events.some(isDelta)
  }

  addStored(events: readonly AdkEvent[]): void {
    this.#invocationId ??= events.find(({ invocationId }) => invocationId)?.invocationId
    // What the user said, or Lango in their name, went in; ADK tells what came out.
    this.#waiting.push(...events.filter(({ author }) => author !== 'user'))
  }

  hear(event: RunEvent): void {
    if (isDelta(event)) {
      this.#heard += event.text.length
      if (this.streaming) this.#ready.push(this.#partial(event))
    }
    this.#release(event.type === 'run-finish')
  }

  take(): AdkEvent[] {
    return this.#ready.splice(0)
  }

  #release(isOver: boolean): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const length = textLength(next)
      if (!isOver && this.#told + length > this.#heard) return
      this.#told += length
      this.#ready.push(next)
      this.#waiting.shift()
    }
  }

  #partial(event: Delta): AdkEvent {
    const thought = event.type === 'reasoning-delta' ? { thought: true } : {}
    return {
      id: randomUUID(),
      invocationId: this.#invocationId ?? '',
      author: event.author,
      partial: true,
      content: { role: 'model', parts: [{ text: event.text, ...thought }] },
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

/** Which run events follow a message that was stored. */
const FOLLOWS_A_MESSAGE: Readonly<Record<RunEvent['type'], boolean>> = {
  'run-start': false,
  'text-delta': false,
  'reasoning-delta': false,
  'tool-call': true,
  'tool-result': true,
  'agent-transfer': true,
  'turn-warning': false,
  'wrap-up': false,
  repair: false,
  'history-cut': false,
  'approval-request': true,
  'approval-answer': false,
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
