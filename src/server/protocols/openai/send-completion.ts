import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from 'hono'
import type { Problem } from '../../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { type StreamChunk, streamResponse } from '../../sse.js'
import { DONE, dataFrames } from '../server-sent.js'
import { ChunkWriter, toCompletion } from './completion-answer.js'
import type { CompletionRun, CompletionStep } from './completion-run.js'
import { openaiProblemResponse, toOpenaiError } from './openai-error.js'

/** The whole answer, or why there is none. */
export async function wholeCompletion(
  run: CompletionRun,
  created: number,
): Promise<{ completion: object } | { problem: Problem }> {
  let text = ''
  let reasoning = ''
  for await (const step of run.steps()) {
    if (step.type === 'text') text += step.text
    else if (step.type === 'reasoning') reasoning += step.text
    else if (step.type === 'problem') return step
    else if (step.type === 'end') {
      const { finish, usage } = step
      return { completion: toCompletion(run, { created, text, reasoning, finish, usage }) }
    }
  }
  // Nobody is there to read it.
  return { completion: {} }
}

export interface StreamedCompletion {
  context: ServerContext
  run: CompletionRun
  headers: Record<string, string>
  created: number
  includeUsage: boolean
}

/**
 * The answer in chunks. A run that fails at once, as with a wrong key, is answered with a status that says so:
 * the stream begins when there is something to tell, or when the silence has lasted.
 */
export async function streamCompletion(
  c: Context<ServerEnv>,
  { context, run, headers, created, includeUsage }: StreamedCompletion,
): Promise<Response> {
  // The place that the stream will take is kept meanwhile: the run has begun, and a refusal would come too late.
  const leave = context.streams.enter(context.userOf(c))
  const steps = run.steps()
  const next = steps.next()
  const first = await orSilence(next, context.limits.heartbeatMs).finally(leave)
  if (first?.done === false && first.value.type === 'problem') {
    return openaiProblemResponse(first.value.problem, headers)
  }
  const writer = new ChunkWriter(run, { created, includeUsage })
  return streamResponse(c, context, {
    headers,
    source: signal => {
      run.leaveOn(signal)
      return frames(next, steps, writer)
    },
  })
}

async function orSilence<T>(next: Promise<T>, silenceMs: number): Promise<T | undefined> {
  const timer = new AbortController()
  const silence = sleep(silenceMs, undefined, { signal: timer.signal, ref: false }).catch(() => undefined)
  return Promise.race([next, silence]).finally(() => timer.abort())
}

async function* frames(
  first: Promise<IteratorResult<CompletionStep>>,
  others: AsyncGenerator<CompletionStep>,
  writer: ChunkWriter,
): AsyncGenerator<StreamChunk> {
  yield dataFrames([writer.first()])
  for (let next = await first; !next.done; next = await others.next()) {
    const step = next.value
    if (step.type === 'text') yield dataFrames([writer.text(step.text)])
    else if (step.type === 'reasoning') yield dataFrames([writer.reasoning(step.text)])
    else if (step.type === 'problem') {
      yield dataFrames([toOpenaiError(step.problem)])
      return
    } else if (step.type === 'end') {
      yield dataFrames(writer.end(step.finish, step.usage))
      yield DONE
      return
    }
  }
}
