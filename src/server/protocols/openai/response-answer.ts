/** Answers of the Responses API: whole, as a stream, and from the store. */

import type { Context } from 'hono'
import { defined } from '../../../base/defined.js'
import { orTimeout } from '../../../base/pause.js'
import { inCharacters, splitAt } from '../../../run/event-numbers.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { BREAK_OFF, type StreamChunk, streamResponse } from '../../sse.js'
import { runHeaders } from '../start-run.js'
import type { ClientRun } from './client-calls.js'
import { CompletionRun, type CompletionStep, type CutEvents } from './completion-run.js'
import { jsonAnswer } from './json-answer.js'
import { openaiProblemResponse } from './openai-error.js'
import { type ResponseEvent, type ResponseHead, ResponseWriter, seqOfSequence } from './response-writer.js'

export function headersOf(run: CompletionRun): Record<string, string> {
  const { 'x-lango-run': runId = '', ...session } = runHeaders(run.started)
  return run.isThrowaway ? { 'x-lango-run': runId } : { ...session, 'x-lango-run': runId }
}

export async function whole(
  c: Context<ServerEnv>,
  run: CompletionRun,
  steps: AsyncIterable<CompletionStep>,
  writer: ResponseWriter,
): Promise<Response> {
  for await (const step of steps) {
    if (step.type === 'problem') return openaiProblemResponse(step.problem, headersOf(run))
    writer.step(step, run.model)
  }
  return c.json(writer.response(), 200, headersOf(run))
}

export interface StreamedResponse {
  run: CompletionRun
  steps: AsyncGenerator<CompletionStep>
  head: ResponseHead
  /** The number of the last event that the client has; -1 if it has none, or does not say. */
  startingAfter?: number
}

/** The answer as events. A run that fails at once is answered with an error status. */
export async function streamed(
  c: Context<ServerEnv>,
  context: ServerContext,
  { run, steps, head, startingAfter = -1 }: StreamedResponse,
): Promise<Response> {
  const leave = context.streams.enter(context.userOf(c))
  const next = steps.next()
  const first = await orTimeout(next, context.limits.heartbeatMs).finally(leave)
  if (first !== 'timeout' && !first.done && first.value.type === 'problem')
    return openaiProblemResponse(first.value.problem, headersOf(run))
  const writer = new ResponseWriter(head)
  return streamResponse(c, context, {
    headers: headersOf(run),
    source: signal => {
      run.leaveOn(signal)
      return frames(next, steps, { writer, run, startingAfter })
    },
  })
}

async function* frames(
  first: Promise<IteratorResult<CompletionStep>>,
  others: AsyncGenerator<CompletionStep>,
  { writer, run, startingAfter }: { writer: ResponseWriter; run: CompletionRun; startingAfter: number },
): AsyncGenerator<StreamChunk> {
  const fresh = (events: readonly ResponseEvent[]) =>
    toFrames(events.filter(({ sequence_number: number }) => number > startingAfter))
  yield fresh(writer.begin())
  for (let next = await first; !next.done; next = await others.next()) {
    const step = next.value
    if (step.type === 'restart' && step.text + step.reasoning > 0) {
      run.breakOff()
      yield BREAK_OFF
      return
    }
    const events = writer.step(step, run.model)
    if (events.length > 0) yield fresh(events)
  }
}

function toFrames(events: readonly ResponseEvent[]): StreamChunk {
  const text = events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  return { bytes: Buffer.from(text), events: events.length }
}

/** A stored answer, to be read again. */
export interface StoredAnswer extends StreamedResponse {
  /** Whether all of it is stored. */
  isOver: boolean
}

export function storedAnswer(
  context: ServerContext,
  run: ClientRun,
  { afterSeq, startingAfter }: { afterSeq: number; startingAfter?: number },
): StoredAnswer {
  const { runId, key, item, model, note, calls } = run
  const { isStructured, ...echo } = note.response ?? {}
  const count = calls.filter(({ seq }) => seq <= afterSeq).length
  const own = calls.slice(count).filter(call => !call.isOwn)
  const completion = new CompletionRun(context, {
    ...{ key, started: { runId, sessionId: key.sessionId }, tools: note.tools },
    ...(afterSeq > 0 ? { earlier: { afterSeq, calls: count, model } } : {}),
    ...{ isThrowaway: false, isKeyed: false },
  })
  const isStreamed = startingAfter !== undefined
  const steps = completion.steps(isStreamed ? cutFor(startingAfter, afterSeq) : undefined)
  const isWaiting = item.status === 'waiting' && item.lastSeq > afterSeq
  return {
    run: completion,
    steps: isStructured === true ? jsonAnswer(steps, { isStreamed }) : steps,
    ...defined({ startingAfter }),
    head: { runId, afterSeq, createdAt: Math.floor(item.startedAt / 1000), echo },
    isOver: item.status === 'finished' || isWaiting || own.some(call => call.answeredSeq !== undefined),
  }
}

/**
 * A client that has a part of an answer names its last event, or, as `responses.stream({ response_id, starting_after })`
 * of OpenAI's clients does, reads all of it and leaves out what has no higher number. A piece must be in either part.
 */
function cutFor(startingAfter: number, afterSeq: number): CutEvents {
  if (startingAfter < 0) return inCharacters
  return events => splitAt(events, seqOfSequence(startingAfter, afterSeq))
}

/** A stored answer as it is now. */
export async function storedResponse(
  context: ServerContext,
  run: ClientRun,
  afterSeq: number,
): Promise<Record<string, unknown>> {
  const answer = storedAnswer(context, run, { afterSeq })
  const writer = new ResponseWriter(answer.head)
  if (!answer.isOver) {
    const status = run.item.status === 'queued' ? 'queued' : 'in_progress'
    return { ...writer.response(), model: run.model, status }
  }
  for await (const step of answer.steps) writer.step(step, answer.run.model)
  return writer.response()
}
