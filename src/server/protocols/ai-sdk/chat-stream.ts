import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from 'hono'
import type { SessionKey } from '../../../session/message.js'
import type { EventBatch } from '../../runs/event-batch.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { type StreamChunk, streamResponse } from '../../sse.js'
import { modelFinish } from '../model-finish.js'
import { brokenOff } from '../run-problem.js'
import { DONE, dataFrames } from '../server-sent.js'
import { runHeaders } from '../start-run.js'
import { type UiChunk, UiChunkWriter } from './ui-chunks.js'

/** Questions of calls that were made side by side come together; then the client is let go to answer them. */
const QUIET_MS = 300

export interface ChatStreamOptions {
  key: SessionKey
  runId: string
  /** The client has seen everything up to this event. Default: nothing. */
  after?: number
  /** Calls whose approval the client has just answered. */
  answered?: ReadonlySet<string>
}

/** Answers with the events of a run, as the AI SDK reads them. */
export function streamChat(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: ChatStreamOptions,
): Response {
  const { key, runId } = options
  return streamResponse(c, context, {
    headers: {
      ...runHeaders({ sessionId: key.sessionId, runId }),
      'x-vercel-ai-ui-message-stream': 'v1',
    },
    source: signal => frames(context, options, signal),
  })
}

async function* frames(
  context: ServerContext,
  { key, runId, after = 0, answered = new Set() }: ChatStreamOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const writer = new UiChunkWriter({ sessionId: key.sessionId, runId }, answered)
  const left = new AbortController()
  const batches = context.hub.followBatches(runId, { signal: AbortSignal.any([signal, left.signal]) })
  yield dataFrames([writer.start()])
  let hasEnded = false
  try {
    for (let batch = await batches.next(); !batch.done; ) {
      const chunks = await chunksOf(context, { key, batch: batch.value, after, writer })
      if (chunks.length > 0) yield dataFrames(chunks)
      hasEnded = batch.value.endsRun
      const next = await orQuiet(batches.next(), writer.isWaiting)
      if (next === 'quiet') {
        yield dataFrames(writer.pause())
        hasEnded = true
        break
      }
      batch = next
    }
  } finally {
    left.abort()
  }
  if (!hasEnded && !signal.aborted) yield dataFrames([{ type: 'error', errorText: brokenOff().detail }])
  yield DONE
}

interface Heard {
  key: SessionKey
  batch: EventBatch
  after: number
  writer: UiChunkWriter
}

/** What the client has seen already is heard again, so that the writer knows what is open, but not told. */
async function chunksOf(context: ServerContext, { key, batch, after, writer }: Heard): Promise<UiChunk[]> {
  const chunks: UiChunk[] = []
  for (const event of batch.events) {
    const finish = event.type === 'run-finish' ? await modelFinish(context, key) : 'stop'
    const heard = writer.hear(event, finish)
    if (event.seq > after) chunks.push(...heard)
    else if (event.seq === after) writer.pause()
  }
  return chunks
}

async function orQuiet<T>(next: Promise<T>, isWaiting: boolean): Promise<T | 'quiet'> {
  if (!isWaiting) return next
  const timer = new AbortController()
  const quiet = sleep(QUIET_MS, 'quiet' as const, { signal: timer.signal, ref: false })
  quiet.catch(() => {})
  try {
    return await Promise.race([next, quiet])
  } finally {
    timer.abort()
    next.catch(() => {})
  }
}
