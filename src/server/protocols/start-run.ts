import type { Context } from 'hono'
import { AgentError, type AgentErrorJson } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { Problem, StartedRun } from '../chat-protocol.js'
import { toProblem } from '../error-response.js'
import { Refusal } from '../refusal.js'
import type { ServerContext, ServerEnv } from '../server-context.js'

/** Starts a run of the caller's own. */
export function startRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput,
): Promise<StartedRun> {
  return context.hub.start({ ...input, userId: context.userOf(c) })
}

/**
 * As `startRun`, for an answer that is a stream. A caller who has no place left for a stream is told so before
 * the run begins; the place is free again when this resolves, and must be taken at once.
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

/** Headers by which a caller finds the session and the run again. */
export function runHeaders({ sessionId, runId }: StartedRun): Record<string, string> {
  return { 'x-lango-session': headerText(sessionId), 'x-lango-run': runId }
}

/** Headers hold ASCII only; whatever else a session id has is written as in a URL, and read so again. */
function headerText(text: string): string {
  return /^[\x21-\x24\x26-\x7e]+$/.test(text)
    ? text
    : encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, '?'))
}

/** The failure of a run as the problem that a caller may read: the same words and status as in the native API. */
export function runProblem(error: AgentError | AgentErrorJson): Problem {
  const { code, message, retryable, details } = error
  return toProblem(new AgentError(code, message, { retryable, details }))
}

/** What a caller is told when a run could not be followed to its end. */
export function brokenOff(): Problem {
  const message = 'The answer broke off before its end. What there is of it is in the session.'
  return toProblem(new Refusal('shutting-down', message))
}

/** Why the model ended its last answer, where clients have a word for it. */
export type ModelFinish = 'stop' | 'length' | 'content-filter'

/** A run that ended well may still end with an answer that the model had to cut: the stored answer says so. */
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
