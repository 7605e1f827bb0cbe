import type { Context } from 'hono'
import type { RunInput } from '../../runtime/runtime.js'
import type { StartedRun } from '../chat-protocol.js'
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
