/** OpenAI's Chat Completions, for clients that take a base URL. */

import { type Context, Hono } from 'hono'
import { orTimeout } from '../../../base/pause.js'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import type { Problem, RunUsage } from '../../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { DONE, dataFrames, jsonInPieces, jsonText, type StreamChunk, streamResponse } from '../../sse.js'
import { checkMessages, readBody } from '../read-body.js'
import { runHeaders, startRun, startStreamedRun } from '../start-run.js'
import {
  agentNames,
  ChatMessage,
  CompletionRequest,
  modelOf,
  refuseUnsupported,
  type SortedMessages,
  sortMessages,
  titleOf,
} from './completion-request.js'
import {
  type CompletionFinish,
  CompletionRun,
  type CompletionStep,
  fillSession,
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
  run.leaveOn(c.req.raw.signal)
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

/** Starts the run in the session that the header names, or in one that is deleted afterwards. */
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
    // Refused below.
  }
  const message = 'The header x-lango-session must be the id of a session, at most 256 characters.'
  throw new AgentError('invalid-argument', message)
}

/** New instructions are stored before the message that they were sent with. */
async function addInstructions(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  { instructions, parts }: SortedMessages,
): Promise<void> {
  if (instructions.length === 0) return
  if (!(await store.loadSession(key, { maxMessages: 1 }))) {
    await store.createSession(key, {}, { title: titleOf(parts) })
  }
  await appendAll(store, key, instructions)
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
  if (run.isThrowaway) return { 'x-lango-run': runId }
  // The message is stored: an automatic retry of the client would store it twice.
  return { ...session, 'x-lango-run': runId, 'x-should-retry': 'false' }
}

interface ModelLine {
  id: string
  object: 'model'
  created: number
  owned_by: string
}

/** `GET /v1/models`: the agent first, then every model with a key. */
function mountModels(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/v1/models', async c => c.json({ object: 'list', data: await lines(context) }))
  app.get('/v1/models/:model{.+}', async c => {
    const id = c.req.param('model')
    const found = (await lines(context)).find(line => line.id === id)
    if (found) return c.json(found)
    throw new UnknownModel(id)
  })
}

async function lines({ runtime, info }: ServerContext): Promise<ModelLine[]> {
  const models = (await runtime.models()).filter(({ keyPresent }) => keyPresent)
  return [
    ...agentNames(info).map(id => line(id, 'lango')),
    ...models.map(({ reference, provider }) => line(reference, provider)),
  ]
}

function line(id: string, owner: string): ModelLine {
  return { id, object: 'model', created: 0, owned_by: owner }
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
    else if (step.type === 'problem') return step
    else if (step.type === 'end') {
      const { finish, usage } = step
      const facts = { created, reasoning, finish, usage }
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
}

/** The answer to a request that does not stream. */
function toCompletion(run: CompletionRun, answer: WholeAnswer): object {
  const { created, text, reasoning, finish, usage } = answer
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

  end(finish: CompletionFinish, usage: RunUsage): object[] {
    const last = this.#chunk({}, finish)
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
