import type { Context } from 'hono'
import { AgentError, type AgentErrorJson } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { Problem, StartedRun } from '../chat-protocol.js'
import { toProblem } from '../error-response.js'
import { Refusal } from '../refusal.js'
import type { ServerContext, ServerEnv } from '../server-context.js'

/** Starts a run of the caller. */
export function startRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput,
): Promise<StartedRun> {
  return context.hub.start({ ...input, userId: context.userOf(c) })
}

/**
 * As `startRun`, for an answer that is a stream. A caller at the limit of open streams is refused before the run
 * begins. The place is released when this resolves, and the stream must enter it in the same tick.
 */
export async function startStreamedRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput,
): Promise<StartedRun> {
  const leave = context.streams.enter(context.userOf(c))
  try {
    return await startRun(c, context, input)
  } finally {
    leave()
  }
}

/** Headers that name the session and the run of an answer. */
export function runHeaders({ sessionId, runId }: StartedRun): Record<string, string> {
  return { 'x-lango-session': headerText(sessionId), 'x-lango-run': runId }
}

/** Headers hold ASCII only: other session ids are percent-encoded, and decoded when they are sent back. */
function headerText(text: string): string {
  return /^[\x21-\x24\x26-\x7e]+$/.test(text)
    ? text
    : encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, '?'))
}

/** The error of a run as a problem document, with the text and status of the native API. */
export function runProblem(error: AgentError | AgentErrorJson): Problem {
  const { code, message, retryable, details } = error
  return toProblem(new AgentError(code, message, { retryable, details }))
}

/** The problem of a run that could not be followed to its end. */
export function streamTruncated(): Problem {
  const message = 'The answer was truncated. The part that was stored is in the session.'
  return toProblem(new Refusal('shutting-down', message))
}

/** Why the model ended its last answer, as far as clients distinguish it. */
export type ModelFinish = 'stop' | 'length' | 'content-filter'

/** A run without an error may end with an answer that the model truncated: the stored answer has the reason. */
export async function modelFinish({ runtime }: ServerContext, key: SessionKey): Promise<ModelFinish> {
  const [last] = await runtime.store.readMessages(key, { beforeSeq: Number.MAX_SAFE_INTEGER, limit: 1 })
  const reason = last?.extra?.finishReason
  if (reason === 'MAX_TOKENS') return 'length'
  return typeof reason === 'string' && FILTERED.has(reason) ? 'content-filter' : 'stop'
}

const FILTERED: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
])
