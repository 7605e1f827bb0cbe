/**
 * The run that answers a request of OpenAI's APIs: one that the request repeats, one that waits for the results in it,
 * or a new one, in the session that the request names or in one of its own.
 */
import type { Context } from 'hono'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { Message, SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import type { StartedRun } from '../../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import type { InputPart } from '../read-body.js'
import { markOf, type RequestMark, runOfLoneRequest, runOfRequest } from '../repeated-request.js'
import { startRun, startStreamedRun } from '../start-run.js'
import { type AnsweredCalls, type ClientResult, findAnswered, type OpenaiNote } from './client-calls.js'
import { titleOf } from './completion-request.js'
import { CompletionRun } from './completion-run.js'
import { UnknownModel } from './openai-error.js'
import {
  type AskedOptions,
  type AskedSchema,
  invalidSchema,
  invalidValue,
  isUncheckable,
} from './request-options.js'
import {
  awaitFilling,
  fillSession,
  forkSession,
  isThrowaway,
  loneSessionId,
  noteRepeat,
  throwAway,
} from './throwaway.js'

/** A request of either API, as a run gets it. */
export interface AgentRequest {
  /** The session that the request names. */
  sessionId: string | undefined
  /** The history of a session of the request's own: that of another session, up to a message. */
  forkOf?: { key: SessionKey; throughSeq: number } | undefined
  /** Without a named session: whether the session of the request is kept. */
  isKept: boolean
  /** Earlier messages, for a session of the request's own. */
  earlier: readonly Message[]
  /** Instructions that were sent with the new message. */
  instructions: readonly Message[]
  parts: readonly InputPart[]
  /** Results of the client's tools after the last answer. */
  results: readonly ClientResult[]
  model: string | undefined
  options: AskedOptions & Pick<RunInput, 'clientTools'>
  schema: AskedSchema | undefined
  note: OpenaiNote
  stream: boolean
}

export async function beginRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: AgentRequest,
): Promise<CompletionRun> {
  const mark = await markOf(c, context)
  const userId = context.userOf(c)
  const answered = await findAnswered(context, userId, request.results)
  const waiting = answered && (await continued(context, request, answered))
  if (waiting) return waiting
  const start = async (key: SessionKey, runId: string) => {
    const { model, options, note, schema } = request
    const parts = partsOf(request, answered)
    const input: RunInput = {
      ...{ sessionId: key.sessionId, parts, model, whenBusy: 'reject', ...options },
      note: { openai: note },
    }
    const begin = request.stream ? startStreamedRun : startRun
    try {
      return await begin(c, context, input, { mark, runId })
    } catch (error) {
      if (!schema || !isUncheckable(error)) throw asUnknownModel(error, model)
      if (schema.isStrict) throw invalidSchema(schema, error)
      return await begin(c, context, unchecked(input), { mark, runId })
    }
  }
  if (request.sessionId === undefined) return beginAlone(context, { mark, userId, request, start })
  const key = context.keyOf(c, request.sessionId)
  const prepare = (id: string) => addInstructions(context, key, id, request)
  const { known, runId } = await runOfRequest(context, mark, key, { prepare })
  const started = known ? { runId, sessionId: known.sessionId } : await start(key, runId)
  const isKeyed = mark.keyedRunId !== undefined
  const { tools } = request.note
  return new CompletionRun(context, { key: known ?? key, started, tools, isThrowaway: false, isKeyed })
}

/** Gives a waiting run its results; `undefined` when the request asks for anything else than its continuation. */
async function continued(
  context: ServerContext,
  request: AgentRequest,
  answered: AnsweredCalls,
): Promise<CompletionRun | undefined> {
  const { run, calls, missing, afterSeq, state } = answered
  const { sessionId } = request
  const isAlone = sessionId === undefined
  if (request.forkOf || (!isAlone && sessionId !== run.key.sessionId)) return undefined
  const isSame =
    run.note.options === request.note.options && (!isAlone || run.note.history === request.note.history)
  if (!isSame || request.parts.length > 0 || (!isAlone && request.instructions.length > 0)) return undefined
  if (missing.length > 0) throw missingResults(missing)
  if (state === 'answered-otherwise' || (state === 'open' && run.item.status === 'finished')) return undefined
  for (const [index, call] of calls.entries())
    if (call.answeredSeq === undefined) await give(context, run.runId, call.id, request.results[index])
  if (isThrowaway(run.key) && state === 'answered' && !(await noteRepeat(context, run.key))) return undefined
  const { runId, key, model, note } = run
  const count = run.calls.filter(({ seq }) => seq <= afterSeq).length
  return new CompletionRun(context, {
    ...{ key, started: { runId, sessionId: key.sessionId }, tools: note.tools },
    ...{ earlier: { afterSeq, calls: count, model }, isThrowaway: isThrowaway(key), isKeyed: false },
  })
}

/** A schema that is not strict asks the model for its best: one that cannot be checked is sent as it is. */
function unchecked({ outputSchema, generation, ...input }: RunInput): RunInput {
  const form = { responseMimeType: 'application/json', responseJsonSchema: outputSchema }
  return { ...input, generation: { ...generation, ...form } }
}

/** The request may be repeated: then its result is there. */
async function give(
  { hub }: ServerContext,
  runId: string,
  callId: string,
  result: ClientResult | undefined,
): Promise<void> {
  try {
    await hub.approve(runId, callId, result?.response ?? {})
  } catch (error) {
    if (!(error instanceof AgentError && error.code === 'run-not-found')) throw error
  }
}

function missingResults(ids: readonly string[]): AgentError {
  const message =
    'An assistant message with tool calls must be followed by results for each of them. ' +
    `These calls have no result: ${ids.join(', ')}.`
  return invalidValue('messages', message)
}

/** The message of a new run. Results open it where nothing else is new. */
function partsOf(
  { sessionId, parts, results, earlier, forkOf }: AgentRequest,
  answered: AnsweredCalls | undefined,
): InputPart[] {
  const isAlone = sessionId === undefined
  if (isAlone && !forkOf && parts.length > 0) return [...parts]
  const stored = forkOf?.key.sessionId ?? sessionId
  const known = answered?.run.key.sessionId === stored ? answered : undefined
  if (stored !== undefined && results.length > 0 && !known)
    throw invalidValue('messages', 'The results belong to calls that are not in this session.')
  const named = new Map(earlier.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id, name }) => [id, name])))
  const responses = results.map(({ callId, response }, index): InputPart => {
    const call = known?.calls[index]
    const [id, name] = call ? [call.id, call.name] : [callId, named.get(callId) ?? 'tool']
    return { functionResponse: { id, name, response } }
  })
  return [...responses, ...parts]
}

interface LoneRequest {
  mark: RequestMark
  userId: string
  request: AgentRequest
  start(key: SessionKey, runId: string): Promise<StartedRun>
}

/** For a request without a session: the messages are the history of a session of its own. */
async function beginAlone(context: ServerContext, lone: LoneRequest): Promise<CompletionRun> {
  const { mark, userId, request, start } = lone
  const { isKept, earlier, instructions, parts, forkOf } = request
  const facts = {
    tools: request.note.tools,
    isThrowaway: !isKept,
    isKeyed: mark.keyedRunId !== undefined,
  }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { known, runId } = await runOfLoneRequest(context, mark, { userId, isKept })
    const sessionId = loneSessionId(runId, isKept)
    const key = known ?? { appName: context.info.app, userId, sessionId }
    const started = { runId, sessionId: key.sessionId }
    if (known && !(await noteRepeat(context, known))) continue
    if (known) return new CompletionRun(context, { ...facts, key, started })
    const title = isKept ? titleOf(parts) : undefined
    const isFilled = forkOf
      ? await forkSession(context, key, forkOf, instructions)
      : await fillSession(context, key, [...earlier, ...instructions], title)
    if (!isFilled) {
      await awaitFilling(context, key, runId)
      continue
    }
    try {
      return new CompletionRun(context, { ...facts, key, started: await start(key, runId) })
    } catch (error) {
      await throwAway(context, key)
      throw error
    }
  }
  const message = 'The same request is being started by another process. Try again in a moment.'
  throw new AgentError('session-busy', message, { retryable: true })
}

/** A session may be deleted, or filled by another request, while this one looks at it. */
const ATTEMPTS = 3

/** New instructions are stored before the message that they were sent with; a repeated request replaces its own. */
async function addInstructions(
  context: ServerContext,
  key: SessionKey,
  runId: string,
  { instructions, parts }: AgentRequest,
): Promise<void> {
  if (instructions.length === 0) return
  const { store } = context.runtime
  const named = instructions.map((message, index) => ({ ...message, id: `${runId}-${index}` }))
  const isKnown = (await store.loadSession(key, { maxMessages: 1 })) !== undefined
  // The same request, sent twice at once, may have created the session meanwhile.
  const isFilled = !isKnown && (await fillSession(context, key, named, titleOf(parts)))
  if (!isFilled) await appendAll(store, key, named)
}

/** The session that a request names in its header. */
export function sessionIn(c: Context<ServerEnv>): string | undefined {
  const header = c.req.header('x-lango-session')
  if (header === undefined || header === '') return undefined
  try {
    const sessionId = decodeURIComponent(header)
    if (sessionId.length <= 256) return sessionId
  } catch {
    // Refused below.
  }
  const message = 'The header x-lango-session must be the id of a session, at most 256 characters.'
  throw new AgentError('invalid-argument', message)
}

/** OpenAI's clients expect the code `model_not_found`. */
function asUnknownModel(error: unknown, model: string | undefined): unknown {
  const isRefused = error instanceof AgentError && model !== undefined && error.message.includes(model)
  if (!isRefused || (error.code !== 'invalid-config' && error.code !== 'invalid-argument')) return error
  return new UnknownModel(model)
}
