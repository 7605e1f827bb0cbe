/** OpenAI's Chat Completions, for clients that take a base URL. */

import { type Context, Hono } from 'hono'
import { orTimeout } from '../../../base/pause.js'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import type { Problem, RunUsage, StartedRun } from '../../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { DONE, dataFrames, jsonInPieces, jsonText, type StreamChunk, streamResponse } from '../../sse.js'
import { checkMessages, readBody } from '../read-body.js'
import {
  markOf,
  type RequestMark,
  runOfLoneRequest,
  runOfRequest,
  watchDelivery,
} from '../repeated-request.js'
import {
  afterStoring,
  runHeaders,
  startRun,
  startStreamedRun,
  type WaitingRun,
  waitingText,
} from '../start-run.js'
import {
  ChatMessage,
  CompletionRequest,
  modelLines,
  modelOf,
  refuseUnsupported,
  type SortedMessages,
  sortMessages,
  titleOf,
} from './completion-request.js'
import {
  awaitFilling,
  type CompletionFinish,
  CompletionRun,
  type CompletionStep,
  fillSession,
  noteRepeat,
  restarted,
  throwAway,
  throwawayId,
} from './completion-run.js'
import { openaiErrorResponse, openaiProblemResponse, toOpenaiError, UnknownModel } from './openai-error.js'

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
  const sorted = await sortMessages(await checkMessages(request.messages, ChatMessage, context.limits))
  const run = await begin(c, context, request, sorted)
  return afterStoring(() => answer(c, context, request, run))
}

async function answer(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: CompletionRequest,
  run: CompletionRun,
): Promise<Response> {
  run.leaveOn(c.req.raw.signal)
  run.deliveredBy(watchDelivery(c, run.started.runId))
  const headers = answerHeaders(run)
  const created = Math.floor(Date.now() / 1000)
  if (!request.stream) {
    const answer = await wholeCompletion(run, created)
    if ('problem' in answer) return openaiProblemResponse(answer.problem, headers)
    return answer.text.length > LONG_ANSWER
      ? longCompletion(answer, headers)
      : c.json(answer.complete(answer.text), 200, headers)
  }
  const includeUsage = request.stream_options?.include_usage === true
  return streamCompletion(c, { context, run, headers, created, includeUsage })
}

/** The run that the request repeats, or a new one, in the session that the header names or in one of its own. */
async function begin(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: CompletionRequest,
  sorted: SortedMessages,
): Promise<CompletionRun> {
  const mark = await markOf(c, context)
  const named = sessionIn(c)
  const isKeyed = mark.keyedRunId !== undefined
  const start = async (key: SessionKey, runId: string) => {
    const model = modelOf(request, context.info)
    const input: RunInput = { sessionId: key.sessionId, parts: sorted.parts, model, whenBusy: 'reject' }
    try {
      return await (request.stream ? startStreamedRun : startRun)(c, context, input, { mark, runId })
    } catch (error) {
      throw asUnknownModel(error, model)
    }
  }
  if (named === undefined) return beginAlone(context, { mark, userId: context.userOf(c), sorted, start })
  const key = context.keyOf(c, named)
  const prepare = (id: string) => addInstructions(context, key, id, sorted)
  const { known, runId } = await runOfRequest(context, mark, key, { prepare })
  const started = known ? { runId, sessionId: known.sessionId } : await start(key, runId)
  return new CompletionRun(context, { key: known ?? key, started, isThrowaway: false, isKeyed })
}

interface LoneRequest {
  mark: RequestMark
  userId: string
  sorted: SortedMessages
  start(key: SessionKey, runId: string): Promise<StartedRun>
}

/** As `begin`, for a request without a session: the messages are the history of a session of its own. */
async function beginAlone(context: ServerContext, request: LoneRequest): Promise<CompletionRun> {
  const { mark, userId, sorted, start } = request
  const parts = { isThrowaway: true, isKeyed: mark.keyedRunId !== undefined }
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { known, runId } = await runOfLoneRequest(context, mark, userId)
    const key = known ?? { appName: context.info.app, userId, sessionId: throwawayId(runId) }
    const started = { runId, sessionId: key.sessionId }
    if (known && !(await noteRepeat(context, known))) continue
    if (known) return new CompletionRun(context, { ...parts, key, started })
    if (!(await fillSession(context, key, [...sorted.earlier, ...sorted.instructions]))) {
      await awaitFilling(context, key, runId)
      continue
    }
    try {
      return new CompletionRun(context, { ...parts, key, started: await start(key, runId) })
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

function sessionIn(c: Context<ServerEnv>): string | undefined {
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

/** New instructions are stored before the message that they were sent with; a repeated request replaces its own. */
async function addInstructions(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  runId: string,
  { instructions, parts }: SortedMessages,
): Promise<void> {
  if (instructions.length === 0) return
  if (!(await store.loadSession(key, { maxMessages: 1 }))) {
    await store.createSession(key, {}, { title: titleOf(parts) })
  }
  const named = instructions.map((message, index) => ({ ...message, id: `${runId}-${index}` }))
  await appendAll(store, key, named)
}

/** OpenAI's clients expect the code `model_not_found`. */
function asUnknownModel(error: unknown, model: string | undefined): unknown {
  const isRefused = error instanceof AgentError && model !== undefined && error.message.includes(model)
  if (!isRefused || (error.code !== 'invalid-config' && error.code !== 'invalid-argument')) return error
  return new UnknownModel(model)
}

function answerHeaders(run: CompletionRun): Record<string, string> {
  const { 'x-lango-run': runId = '', ...session } = runHeaders(run.started)
  // A throwaway session is deleted, so its id is not sent.
  return run.isThrowaway ? { 'x-lango-run': runId } : { ...session, 'x-lango-run': runId }
}

/** `GET /v1/models`: the agent first, then every model with a key. */
function mountModels(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/v1/models', async c => c.json({ object: 'list', data: await modelLines(context) }))
  app.get('/v1/models/:model{.+}', async c => {
    const id = c.req.param('model')
    const found = (await modelLines(context)).find(line => line.id === id)
    if (found) return c.json(found)
    throw new UnknownModel(id)
  })
}

/** The complete answer, or the problem of the run. */
async function wholeCompletion(
  run: CompletionRun,
  created: number,
): Promise<WholeText | { problem: Problem }> {
  let text = ''
  let reasoning = ''
  for await (const step of run.steps()) {
    if (step.type === 'text') text += step.text
    else if (step.type === 'reasoning') reasoning += step.text
    else if (step.type === 'restart') {
      text = text.slice(0, text.length - step.text)
      reasoning = reasoning.slice(0, reasoning.length - step.reasoning)
    } else if (step.type === 'problem') return step
    else if (step.type === 'end' || step.type === 'waiting') {
      const { usage } = step
      const isWaiting = step.type === 'waiting'
      const more = isWaiting ? { finish: 'stop' as const, waiting: step.run } : { finish: step.finish }
      const facts = { created, reasoning, usage, ...more }
      if (isWaiting) text = [text, waitingText(step.run)].filter(Boolean).join('\n\n')
      return { text, complete: content => toCompletion(run, { ...facts, text: content }) }
    }
  }
  // The caller has disconnected.
  return { text, complete: () => ({}) }
}

/** An answer, and the completion that holds a text. */
interface WholeText {
  text: string
  complete(text: string): object
}

/** Characters from which on an answer is written in pieces: as one text it would block the event loop. */
const LONG_ANSWER = 256 * 1024
const PLACE = '\u0001the answer\u0001'

function longCompletion({ text, complete }: WholeText, headers: Record<string, string>): Response {
  const [head = '', tail = ''] = JSON.stringify(complete(PLACE)).split(JSON.stringify(PLACE).slice(1, -1))
  return jsonInPieces(function* () {
    yield head
    yield* jsonText(text)
    yield tail
  }, headers)
}

interface StreamedCompletion {
  context: ServerContext
  run: CompletionRun
  headers: Record<string, string>
  created: number
  includeUsage: boolean
}

/**
 * The answer in chunks. The stream begins with the first step, or after one heartbeat interval without one: a run
 * that fails at once, as with a wrong key, is answered with an error status.
 */
async function streamCompletion(
  c: Context<ServerEnv>,
  { context, run, headers, created, includeUsage }: StreamedCompletion,
): Promise<Response> {
  // The stream's place is held meanwhile: the run has begun, so it is too late to refuse.
  const leave = context.streams.enter(context.userOf(c))
  const steps = run.steps()
  const next = steps.next()
  const first = await orTimeout(next, context.limits.heartbeatMs).finally(leave)
  if (first !== 'timeout' && !first.done && first.value.type === 'problem') {
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
    else if (step.type === 'restart' && step.text + step.reasoning > 0) {
      yield dataFrames([toOpenaiError(restarted())])
      return
    } else if (step.type === 'problem') {
      yield dataFrames([toOpenaiError(step.problem)])
      return
    } else if (step.type === 'waiting') {
      yield dataFrames(writer.waiting(step.run, step.usage))
      yield DONE
      return
    } else if (step.type === 'end') {
      yield dataFrames(writer.end(step.finish, step.usage))
      yield DONE
      return
    }
  }
}

/** The fields of every chunk and of a complete answer. */
function identity(run: CompletionRun, created: number) {
  return { id: `chatcmpl-${run.started.runId}`, created, model: run.model }
}

interface WholeAnswer {
  created: number
  text: string
  reasoning: string
  finish: CompletionFinish
  usage: RunUsage
  waiting?: WaitingRun
}

/** The answer to a request that does not stream. */
function toCompletion(run: CompletionRun, answer: WholeAnswer): object {
  const { created, text, reasoning, finish, usage, waiting } = answer
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
  }
  return {
    ...identity(run, created),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: toUsage(usage),
    ...(waiting ? { lango: { ...waiting, status: 'waiting' } } : {}),
  }
}

interface ChunkOptions {
  created: number
  /** Whether a last chunk has the usage; then all others have `usage: null`. */
  includeUsage: boolean
}

/** Builds the chunks of one streamed answer. */
class ChunkWriter {
  readonly #run: CompletionRun
  readonly #options: ChunkOptions

  constructor(run: CompletionRun, options: ChunkOptions) {
    this.#run = run
    this.#options = options
  }

  first(): object {
    return this.#chunk({ role: 'assistant', content: '' })
  }

  text(text: string): object {
    return this.#chunk({ content: text })
  }

  /** `reasoning_content` is the field of most compatible servers. */
  reasoning(text: string): object {
    return this.#chunk({ reasoning_content: text })
  }

  /** What the run waits for, in words and as data. */
  waiting(run: WaitingRun, usage: RunUsage): object[] {
    const text = this.text(`\n\n${waitingText(run)}`)
    return [text, ...this.end('stop', usage, { lango: { ...run, status: 'waiting' } })]
  }

  end(finish: CompletionFinish, usage: RunUsage, more: object = {}): object[] {
    const last = { ...this.#chunk({}, finish), ...more }
    if (!this.#options.includeUsage) return [last]
    return [last, { ...this.#chunk({}), choices: [], usage: toUsage(usage) }]
  }

  #chunk(delta: object, finish: CompletionFinish | null = null): object {
    return {
      ...identity(this.#run, this.#options.created),
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(this.#options.includeUsage ? { usage: null } : {}),
    }
  }
}

function toUsage(usage: RunUsage): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }
}
