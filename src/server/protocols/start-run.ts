import type { Context } from 'hono'
import { defined } from '../../base/defined.js'
import { readTraceContext } from '../../base/trace-context.js'
import { AgentError, type AgentErrorJson } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import { questionText } from '../../transcript/questions.js'
import type { Problem, RunQuestion, StartedRun } from '../chat-protocol.js'
import { toProblem } from '../error-response.js'
import { isShuttingDown, Refusal, StoredFailure } from '../refusal.js'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { checkSameRequest, type RequestMark } from './repeated-request.js'

/** The request that starts a run, and the id that its run gets. */
export interface RunRequestOf {
  mark: RequestMark
  runId: string
}

/** Starts a run of the caller. A request that comes twice at once, also to two processes, starts one run. */
export async function startRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput,
  { mark, runId }: RunRequestOf,
): Promise<StartedRun> {
  const request = mark.fingerprint
  const started = await context.hub.start({
    ...input,
    ...traceOf(c),
    ...{ runId, request, userId: context.userOf(c) },
  })
  await afterStoring(() => checkSameRequest(context, mark, started.runId))
  return started
}

/** The trace of the request, which its run continues. */
export function traceOf(c: Context): Pick<RunInput, 'trace'> {
  return defined({ trace: readTraceContext(name => c.req.header(name)) })
}

/**
 * As `startRun`, for an answer that is a stream. A caller at the limit of open streams is refused before the run
 * begins. The place is released when this resolves, and the stream must enter it in the same tick.
 */
export async function startStreamedRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput,
  request: RunRequestOf,
): Promise<StartedRun> {
  const leave = context.streams.enter(context.userOf(c))
  try {
    return await startRun(c, context, input, request)
  } finally {
    leave()
  }
}

/**
 * Does what follows the start of a run: a failure is one after storing, unless there were too many open streams or the run
 * was handed over.
 */
export async function afterStoring<T>(work: () => Promise<T> | T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isRepeated = isShuttingDown(error) || (error instanceof Refusal && error.code === 'too-many')
    throw isRepeated ? error : new StoredFailure(error)
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

/** The error of a run as a problem document, with the text of the native API and a status that no client repeats. */
export function runProblem(error: AgentError | AgentErrorJson): Problem {
  const { code, message, retryable, details } = error
  return toProblem(new StoredFailure(new AgentError(code, message, { retryable, details })))
}

/** The problem of a run that could not be followed to its end. */
export function streamTruncated(): Problem {
  const message = 'The answer was truncated. The part that was stored is in the session.'
  return toProblem(new StoredFailure(new Refusal('shutting-down', message)))
}

/** A run that waits for a person, as the answer to a request that cannot wait as long. */
export interface WaitingRun {
  runId: string
  waitsFor: readonly RunQuestion[]
}

/** What the run waits for; `undefined` when it does not. */
export async function waitingRun({ hub }: ServerContext, runId: string): Promise<WaitingRun | undefined> {
  const run = await hub.find(runId)
  return run?.item.status === 'waiting' ? { runId, waitsFor: await hub.questions(runId) } : undefined
}

/** The same in words, for the person who reads the answer. */
export function waitingText({ runId, waitsFor }: WaitingRun): string {
  const questions = waitsFor.map(question => `${questionText(question)}, call ${question.callId}`)
  const how = `POST /api/runs/${runId}/approvals/{call} with { "answer": … }, or lango runs answer`
  return `[The run waits for an answer: ${questions.join('; ')}. Run ${runId}. Answer with ${how}; then repeat the request.]`
}

/** Why the model ended its last answer, as far as clients distinguish it. */
export type ModelFinish = 'stop' | 'length' | 'content-filter'

/** A run without an error may end with an answer that the model truncated: the stored answer has the reason. */
export async function modelFinish(
  context: ServerContext,
  key: SessionKey,
  runId: string,
): Promise<ModelFinish> {
  const beforeSeq = (await lastSeqOf(context, key, runId)) + 1
  const [last] = await context.runtime.store.readMessages(key, { beforeSeq, limit: 1 })
  const reason = last?.extra?.finishReason
  if (reason === 'MAX_TOKENS') return 'length'
  return typeof reason === 'string' && FILTERED.has(reason) ? 'content-filter' : 'stop'
}

/** The number of the last message of a run: the next run of its session begins after it. */
export async function lastSeqOf({ hub }: ServerContext, key: SessionKey, runId: string): Promise<number> {
  const runs = await hub.list(key)
  const next = runs[runs.findIndex(run => run.runId === runId) - 1]
  return next?.afterSeq ?? Number.MAX_SAFE_INTEGER - 1
}

const FILTERED: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
])
