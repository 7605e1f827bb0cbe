/** OpenAI's Chat Completions, for clients that take a base URL. */

import { type Context, Hono } from 'hono'
import { orTimeout } from '../../../base/pause.js'
import type { Problem, RunUsage } from '../../chat-protocol.js'
import { readClientJson } from '../../client-json.js'
import { notFound } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import {
  BREAK_OFF,
  DONE,
  dataFrames,
  jsonInPieces,
  jsonText,
  type StreamChunk,
  streamResponse,
} from '../../sse.js'
import { checkMessages, readBody } from '../read-body.js'
import { watchDelivery } from '../repeated-request.js'
import { afterStoring, runHeaders, type WaitingRun, waitingText } from '../start-run.js'
import { beginRun, sessionIn } from './begin-run.js'
import { type ChatOptions, CompletionRequest, chatOptions } from './chat-options.js'
import { digestOf, findClientRun, runPartId } from './client-calls.js'
import { ChatMessage, modelLines, modelOf, type SortedMessages, sortMessages } from './completion-request.js'
import type { CompletionCall, CompletionFinish, CompletionRun, CompletionStep } from './completion-run.js'
import { jsonAnswer } from './json-answer.js'
import { openaiErrorResponse, openaiProblemResponse, toOpenaiError, UnknownModel } from './openai-error.js'
import { refuseUnknown } from './request-options.js'
import { responsesRoutes } from './responses-routes.js'

/** The routes under `/v1`, with errors as OpenAI's clients read them. */
export function openaiRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => openaiErrorResponse(error, context))
  app.post('/v1/chat/completions', c => complete(c, context))
  app.route('/', responsesRoutes(context))
  mountModels(app, context)
  app.post('/v1/embeddings', () => {
    throw notFound('/v1/embeddings on this server: it serves an agent, which answers messages')
  })
  return app
}

async function complete(c: Context<ServerEnv>, context: ServerContext): Promise<Response> {
  refuseUnknown(await readClientJson(c, { optional: true }), CompletionRequest)
  const request = await readBody(c, CompletionRequest)
  const options = chatOptions(request)
  const messages = await checkMessages(request.messages, ChatMessage, context.limits)
  const sessionId = sessionIn(c)
  const sorted = await withRunIds(c, context, { sessionId, options }, await sortMessages(messages))
  const model = modelOf(request, context.info)
  const { clientTools, asked, schema } = options
  const { metadata, user, safety_identifier } = request
  const run = await beginRun(c, context, {
    ...{ ...sorted, sessionId, isKept: false, model, options: { clientTools, ...asked }, schema },
    note: {
      tools: (clientTools?.tools ?? []).map(({ name }) => name),
      history: sorted.history,
      options: digestOf({ model, clientTools, asked, metadata, user, safety_identifier }),
      ...(metadata || user || safety_identifier ? { response: { metadata, user, safety_identifier } } : {}),
    },
    stream: request.stream === true,
  })
  return afterStoring(() => answer(c, context, { ...options, stream: request.stream === true }, run))
}

/** Results of `functions` name no call: in a session they are those of the run that waits there. */
async function withRunIds(
  c: Context<ServerEnv>,
  context: ServerContext,
  { sessionId, options }: { sessionId: string | undefined; options: ChatOptions },
  sorted: SortedMessages,
): Promise<SortedMessages> {
  const [result] = sorted.results
  if (!options.isLegacy || sessionId === undefined || !result) return sorted
  const [newest] = await context.hub.list(context.keyOf(c, sessionId), 1)
  const run = newest && (await findClientRun(context, newest.runId, context.userOf(c)))
  const open = run?.calls.findLastIndex(({ isOwn }) => !isOwn) ?? -1
  if (!run || open < 0) return sorted
  return { ...sorted, results: [{ ...result, callId: runPartId('call', run.runId, open) }] }
}

interface AnswerOptions extends ChatOptions {
  stream: boolean
}

async function answer(
  c: Context<ServerEnv>,
  context: ServerContext,
  options: AnswerOptions,
  run: CompletionRun,
): Promise<Response> {
  run.leaveOn(c.req.raw.signal)
  run.deliveredBy(watchDelivery(c, run.started.runId, () => run.isCut))
  const headers = answerHeaders(run)
  const created = Math.floor(Date.now() / 1000)
  const steps = options.isStructured ? jsonAnswer(run.steps(), { isStreamed: options.stream }) : run.steps()
  const answered = options.isLegacy ? endingAtCalls(run, steps) : steps
  if (!options.stream) {
    const answer = await wholeCompletion(run, answered, { created, isLegacy: options.isLegacy })
    if ('problem' in answer) return openaiProblemResponse(answer.problem, headers)
    return answer.text.length > LONG_ANSWER
      ? longCompletion(answer, headers)
      : c.json(answer.complete(answer.text), 200, headers)
  }
  const { includeUsage, isLegacy } = options
  const parts = { context, run, headers, created, includeUsage, isLegacy }
  return streamCompletion(c, parts, answered)
}

/** Without an id nobody can continue the run of a request without a session: the next request brings its whole history. */
async function* endingAtCalls(
  run: CompletionRun,
  steps: AsyncGenerator<CompletionStep>,
): AsyncGenerator<CompletionStep> {
  for await (const step of steps) {
    if (step.type === 'calls' && run.isThrowaway) await run.abandon()
    yield step
  }
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
  steps: AsyncIterable<CompletionStep>,
  { created, isLegacy }: { created: number; isLegacy: boolean },
): Promise<WholeText | { problem: Problem }> {
  let text = ''
  let reasoning = ''
  for await (const step of steps) {
    if (step.type === 'text') text += step.text
    else if (step.type === 'reasoning') reasoning += step.text
    else if (step.type === 'restart') {
      text = text.slice(0, text.length - step.text)
      reasoning = reasoning.slice(0, reasoning.length - step.reasoning)
    } else if (step.type === 'problem') return step
    else if (step.type === 'end' || step.type === 'waiting' || step.type === 'calls') {
      const facts = { created, reasoning, usage: step.usage, ...endOf(step, isLegacy) }
      if (step.type === 'waiting') text = [text, waitingText(step.run)].filter(Boolean).join('\n\n')
      return { text, complete: content => toCompletion(run, { ...facts, text: content }) }
    }
  }
  // The caller has disconnected.
  return { text, complete: () => ({}) }
}

type LastStep = Extract<CompletionStep, { type: 'end' | 'waiting' | 'calls' }>

/** How an answer ends, and what it holds besides its text. */
function endOf(
  step: LastStep,
  isLegacy: boolean,
): Pick<WholeAnswer, 'finish' | 'message' | 'waiting' | 'hasCalls'> {
  if (step.type === 'end') return { finish: step.finish }
  if (step.type === 'waiting') return { finish: 'stop', waiting: step.run }
  const [first] = step.calls
  return isLegacy && first
    ? { finish: 'function_call', hasCalls: true, message: { function_call: functionOf(first) } }
    : { finish: 'tool_calls', hasCalls: true, message: { tool_calls: step.calls.map(toToolCall) } }
}

function toToolCall(call: CompletionCall): object {
  return { id: call.callId, type: 'function', function: functionOf(call) }
}

function functionOf({ name, args }: CompletionCall): object {
  return { name, arguments: JSON.stringify(args) }
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
  isLegacy: boolean
}

/**
 * The answer in chunks. The stream begins with the first step that the client receives, or after one heartbeat interval
 * without one: a run that fails at once, as with a wrong key, or that is handed over before it says anything, is answered
 * with an error status.
 */
async function streamCompletion(
  c: Context<ServerEnv>,
  { context, run, headers, ...options }: StreamedCompletion,
  steps: AsyncGenerator<CompletionStep>,
): Promise<Response> {
  // The stream's place is held meanwhile: the run has begun, so it is too late to refuse.
  const leave = context.streams.enter(context.userOf(c))
  const next = firstReceived(steps)
  const first = await orTimeout(next, context.limits.heartbeatMs).finally(leave)
  if (first !== 'timeout' && !first.done && first.value.type === 'problem') {
    return openaiProblemResponse(first.value.problem, headers)
  }
  const writer = new ChunkWriter(run, options)
  return streamResponse(c, context, {
    headers,
    source: signal => {
      run.leaveOn(signal)
      return frames(next, steps, { run, writer })
    },
  })
}

async function firstReceived(steps: AsyncGenerator<CompletionStep>): Promise<IteratorResult<CompletionStep>> {
  for (;;) {
    const next = await steps.next()
    if (next.done || (next.value.type !== 'busy' && next.value.type !== 'complete')) return next
  }
}

async function* frames(
  first: Promise<IteratorResult<CompletionStep>>,
  others: AsyncGenerator<CompletionStep>,
  { run, writer }: { run: CompletionRun; writer: ChunkWriter },
): AsyncGenerator<StreamChunk> {
  yield dataFrames([writer.first()])
  for (let next = await first; !next.done; next = await others.next()) {
    const step = next.value
    if (step.type === 'text') yield dataFrames([writer.text(step.text)])
    else if (step.type === 'reasoning') yield dataFrames([writer.reasoning(step.text)])
    else if (step.type === 'restart' && step.text + step.reasoning > 0) {
      run.breakOff()
      yield BREAK_OFF
      return
    } else if (step.type === 'problem') {
      yield dataFrames([toOpenaiError(step.problem)])
      return
    } else if (step.type === 'waiting' || step.type === 'end' || step.type === 'calls') {
      yield dataFrames(writer.last(step))
      yield DONE
      return
    }
  }
}

/** The fields of every chunk and of a complete answer. */
function identity(run: CompletionRun, created: number) {
  // LangGraph takes two messages of one id for one: the answers of a run have ids of their own.
  const later = run.afterSeq > 0 ? `-${run.afterSeq}` : ''
  return { id: `chatcmpl-${run.started.runId}${later}`, created, model: run.model }
}

interface WholeAnswer {
  created: number
  text: string
  reasoning: string
  finish: ChatFinish
  usage: RunUsage
  waiting?: WaitingRun
  /** The calls of the client's tools. */
  message?: object
  hasCalls?: boolean
}

type ChatFinish = CompletionFinish | 'tool_calls' | 'function_call'

/** The answer to a request that does not stream. */
function toCompletion(run: CompletionRun, answer: WholeAnswer): object {
  const { created, text, reasoning, finish, usage, waiting, hasCalls } = answer
  const message = {
    role: 'assistant',
    content: hasCalls && text === '' ? null : text,
    refusal: null,
    ...answer.message,
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
  isLegacy: boolean
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

  /** The chunks that end the answer: calls of the client's tools, or what the run waits for, in words and as data. */
  last(step: LastStep): object[] {
    const { finish } = endOf(step, this.#options.isLegacy)
    if (step.type === 'end') return this.#end(finish, step.usage)
    if (step.type === 'calls') return [this.#calls(step.calls), ...this.#end(finish, step.usage)]
    const text = this.text(`\n\n${waitingText(step.run)}`)
    return [text, ...this.#end(finish, step.usage, { lango: { ...step.run, status: 'waiting' } })]
  }

  #calls(calls: readonly CompletionCall[]): object {
    const [first] = calls
    if (this.#options.isLegacy && first) return this.#chunk({ function_call: functionOf(first) })
    return this.#chunk({ tool_calls: calls.map((call, index) => ({ index, ...toToolCall(call) })) })
  }

  #end(finish: ChatFinish, usage: RunUsage, more: object = {}): object[] {
    const last = { ...this.#chunk({}, finish), ...more }
    if (!this.#options.includeUsage) return [last]
    return [last, { ...this.#chunk({}), choices: [], usage: toUsage(usage) }]
  }

  #chunk(delta: object, finish: ChatFinish | null = null): object {
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
