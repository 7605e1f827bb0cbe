/** OpenAI's Chat Completions, for clients that take a base URL. */
import type { Context } from 'hono'
import { Hono } from 'hono'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { Message, SessionKey } from '../../../session/message.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { readBody } from '../read-body.js'
import { runHeaders, startRun, startStreamedRun } from '../start-run.js'
import { type SortedMessages, sortMessages, textOf } from './completion-messages.js'
import { CompletionRequest, modelOf, refuseUnsupported } from './completion-request.js'
import { CompletionRun } from './completion-run.js'
import { openaiErrorResponse, openaiProblemResponse, UnknownModel } from './openai-error.js'
import { mountModels } from './openai-models.js'
import { streamCompletion, wholeCompletion } from './send-completion.js'
import { fillSession, throwAway, throwawayId } from './throwaway.js'

/** The routes under `/v1`, with errors as OpenAI's clients read them. */
export function openaiRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => openaiErrorResponse(error, context))
  app.post('/v1/chat/completions', c => complete(c, context))
  mountModels(app, context)
  return app
}

async function complete(c: Context<ServerEnv>, context: ServerContext): Promise<Response> {
  const request = await readBody(c, CompletionRequest)
  refuseUnsupported(request)
  const sorted = sortMessages(request.messages)
  const run = await begin(c, context, request, sorted)
  run.leaveOn(c.req.raw.signal)
  const headers = answerHeaders(run)
  const created = Math.floor(Date.now() / 1000)
  if (!request.stream) {
    const answer = await wholeCompletion(run, created)
    return 'problem' in answer
      ? openaiProblemResponse(answer.problem, headers)
      : c.json(answer.completion, 200, headers)
  }
  const includeUsage = request.stream_options?.include_usage === true
  return streamCompletion(c, { context, run, headers, created, includeUsage })
}

/** Starts the run in the session that the header names, or in one that is thrown away afterwards. */
async function begin(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: CompletionRequest,
  sorted: SortedMessages,
): Promise<CompletionRun> {
  const named = sessionIn(c)
  const isThrowaway = named === undefined
  const key = context.keyOf(c, named ?? throwawayId())
  const input: RunInput = {
    sessionId: key.sessionId,
    parts: sorted.parts,
    model: modelOf(request, context.info),
    whenBusy: 'reject',
  }
  try {
    if (isThrowaway) await fillSession(context, key, [...sorted.earlier, ...sorted.instructions])
    else await addInstructions(context, key, sorted)
    const started = await (request.stream ? startStreamedRun : startRun)(c, context, input)
    return new CompletionRun(context, { key, started, isThrowaway })
  } catch (error) {
    if (isThrowaway) await throwAway(context, key)
    throw asUnknownModel(error, input.model)
  }
}

function sessionIn(c: Context<ServerEnv>): string | undefined {
  const header = c.req.header('x-lango-session')
  if (header === undefined || header === '') return undefined
  try {
    const sessionId = decodeURIComponent(header)
    if (sessionId.length <= 256) return sessionId
  } catch {
    // Said below.
  }
  const message = 'The header x-lango-session must be the id of a session, at most 256 characters.'
  throw new AgentError('invalid-argument', message)
}

/** Instructions that are new to the session are stored before the message that they came with. */
async function addInstructions(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  { instructions, parts }: SortedMessages,
): Promise<void> {
  if (instructions.length === 0) return
  if (!(await store.loadSession(key, { maxMessages: 1 }))) {
    await store.createSession(key, {}, { title: textOf(parts) })
  }
  for (const message of instructions) await store.appendMessage(key, message satisfies Message)
}

/** OpenAI's clients know a word for a model that is not there. */
function asUnknownModel(error: unknown, model: string | undefined): unknown {
  const isRefused = error instanceof AgentError && model !== undefined && error.message.includes(model)
  if (!isRefused || (error.code !== 'invalid-config' && error.code !== 'invalid-argument')) return error
  return new UnknownModel(model)
}

function answerHeaders(run: CompletionRun): Record<string, string> {
  const { 'x-lango-run': runId = '', ...session } = runHeaders(run.started)
  // A session that is thrown away is not one to come back to.
  if (run.isThrowaway) return { 'x-lango-run': runId }
  // The caller's message is in the session now: a client that tries again by itself would say it twice.
  return { ...session, 'x-lango-run': runId, 'x-should-retry': 'false' }
}
