/** The AI SDK's chat: what `useChat` posts, and the UI message stream that it reads. */

import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { RunAnswer } from '../../../tool.js'
import type { Problem, RunItem, RunQuestion } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { badField, checkMessages, type InputPart, mediaPart, readBody } from '../read-body.js'
import { markOf, runOfRequest } from '../repeated-request.js'
import { RunReaders, stopWhenLeft, unfinishedIn } from '../run-readers.js'
import { afterStoring, startStreamedRun } from '../start-run.js'
import { sessionOfChat, toUiMessages, turnBack, type UiHistoryMessage } from './chat-session.js'
import { approvalsAsData, streamChat } from './chat-stream.js'

/** The routes under `/api/chat`, with errors as the AI SDK shows them. */
export function chatRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  const readers = new RunReaders()
  app.onError(error => chatError(error, context))
  app.post('/api/chat', c => chat(c, context, readers))
  app.get('/api/chat/:id', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    return c.json({ id: c.req.param('id'), messages: await historyOf(context, key) })
  })
  app.get('/api/chat/:id/stream', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    const run = await runningIn(context, key)
    return run ? streamChat(c, context, { key, runId: run.runId, readers }) : c.body(null, 204)
  })
  app.delete('/api/chat/:id/stream', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    for (const { runId } of await unfinishedIn(context, key)) await context.hub.stop(runId)
    return c.body(null, 204)
  })
  return app
}

/** The AI SDK shows the body of an error as it is, so it is one sentence of plain text. */
export async function chatError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const { detail } = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'text/plain; charset=utf-8')
  return new Response(detail, { status: answer.status, headers })
}

/** The most stored messages that a chat begins with when it is opened again. */
const SHOWN = 500

/** The history. The answer of a running run is left out: the stream sends it from its beginning. */
async function historyOf(context: ServerContext, key: SessionKey): Promise<UiHistoryMessage[]> {
  const run = await runningIn(context, key)
  const messages = await context.runtime.messages(key, { limit: SHOWN, beforeSeq: Number.MAX_SAFE_INTEGER })
  const afterSeq = run?.afterSeq ?? Number.POSITIVE_INFINITY
  return toUiMessages(messages.filter(({ seq, role }) => seq <= afterSeq || role === 'user'))
}

async function chat(c: Context<ServerEnv>, context: ServerContext, readers: RunReaders): Promise<Response> {
  approvalsAsData(c)
  const body = await readBody(c, ChatRequest)
  const request = { ...body, messages: await checkMessages(body.messages, UiMessage, context.limits) }
  const ask = askOf(request)
  if (ask.kind === 'resume') return resume(c, context, ask.message, readers)
  const parts = inputOf(ask.message)
  const { store } = context.runtime
  const own = context.keyOf(c, request.id)
  const current = await sessionOfChat(store, own)
  const mark = await markOf(c, context)
  // A person who regenerates a failed answer sends the same bytes again, and means it.
  const afterFailure = ask.kind === 'message'
  const { known, runId } = await runOfRequest(context, mark, current, { afterFailure })
  if (known) return streamChat(c, context, { key: known, runId, readers })
  if (ask.kind === 'message') await stopPassed(context, current, request.messages, readers)
  else await stopRun(context, current)
  const texts = userTexts(request.messages)
  const key = ask.kind === 'message' ? current : await turnBack(store, own, { texts, kind: ask.kind })
  const { sessionId } = key
  const input: RunInput = { sessionId, parts, model: request.model ?? undefined, whenBusy: 'queue' }
  const fresh = ask.kind === 'message' ? runId : (await runOfRequest(context, mark, key)).runId
  const started = await startStreamedRun(c, context, input, { mark, runId: fresh })
  return afterStoring(() => streamChat(c, context, { key, runId: started.runId, readers }))
}

/**
 * Stops the runs that the client has left behind: `stop()` of the hook only closes the stream, and the run is known to be
 * over for its reader when the next message comes. A run is left behind when the client has its answer, or its message
 * without an answer, and no stream of it is open. A stream that is just being closed is waited for beside the new run,
 * which is queued meanwhile.
 */
async function stopPassed(
  context: ServerContext,
  key: SessionKey,
  messages: readonly UiMessage[],
  readers: RunReaders,
): Promise<void> {
  const answered = new Set(messages.map(message => placeIn(message)?.runId))
  const isUnanswered = messages.at(-2)?.role === 'user'
  for (const [index, { runId }] of (await unfinishedIn(context, key)).entries())
    if (answered.has(runId) || (isUnanswered && index === 0)) stopWhenLeft(context, runId, readers)
}

/** A turn that is regenerated or edited replaces the running answer. */
async function stopRun(context: ServerContext, key: SessionKey): Promise<void> {
  const run = await runningIn(context, key)
  if (!run) return
  await context.hub.stop(run.runId)
  for await (const _batch of context.hub.followBatches(run.runId)) {
    // Wait for its end.
  }
}

/** Passes the client's answers to the waiting calls, and resumes the answer after the client's last event. */
async function resume(
  c: Context<ServerEnv>,
  context: ServerContext,
  message: UiMessage,
  readers: RunReaders,
): Promise<Response> {
  const place = placeIn(message)
  if (!place) throw nothingToResume()
  const { runId, seq } = place
  const run = await context.hub.find(runId)
  if (run?.key.userId !== context.userOf(c)) throw new Refusal('not-found', 'The run no longer exists.')
  const answers = answersIn(message, await context.hub.questions(runId))
  const hasMore = seq < run.item.lastSeq
  const hasSaid = message.parts.some(({ state }) => state === 'approval-responded')
  // The answers of a request that is sent again were given before.
  if (answers.length === 0 && !hasSaid && !hasMore) throw nothingToResume()
  if (!hasMore && run.item.status === 'finished') {
    throw new AgentError('run-interrupted', 'The run has ended, so this approval has no effect.')
  }
  for (const { callId, answer } of answers)
    await context.hub.approve(runId, callId, answer).catch(ignoreNotFound)
  const answered = new Set(answers.map(({ toolCallId }) => toolCallId))
  return streamChat(c, context, { key: run.key, runId, after: seq, answered, readers })
}

function nothingToResume(): AgentError {
  const reason = 'The last message is the agent’s, and no call in it that waits was answered.'
  return new AgentError('invalid-argument', `There is nothing to resume. ${reason}`)
}

/** The request was answered by another client, or has timed out: the run's events have the outcome. */
function ignoreNotFound(error: unknown): void {
  const isGone = error instanceof AgentError && error.code === 'run-not-found'
  if (!isGone && !(error instanceof Refusal && error.code === 'not-found')) throw error
}

async function runningIn(context: ServerContext, key: SessionKey): Promise<RunItem | undefined> {
  return (await unfinishedIn(context, key))[0]
}

const Part = z.looseObject({ type: z.string() })

const UiMessage = z.object({
  id: z.string(),
  role: z.enum(['system', 'user', 'assistant']),
  parts: z.array(Part),
  metadata: z.unknown().optional(),
})

/** The body of `POST /api/chat`, as the AI SDK's `DefaultChatTransport` sends it. */
const ChatRequest = z.object({
  id: z.string().min(1).max(256),
  /** Checked one by one, as `UiMessage`. */
  messages: z.array(z.unknown()).min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
  messageId: z.string().nullish(),
  /** Lango's own: the model of this run, passed as `body` of the transport. */
  model: z.string().min(1).max(256).nullish(),
})

type UiMessage = z.infer<typeof UiMessage>
type ChatRequest = Omit<z.infer<typeof ChatRequest>, 'messages'> & { messages: UiMessage[] }

/** What a request asks for: a new message, a turn again, an edited message, or to resume after approvals. */
type ChatAsk =
  | { kind: 'message' | 'again' | 'edit'; message: UiMessage }
  | { kind: 'resume'; message: UiMessage }

/** Derives it from the trigger and the last message. */
function askOf({ messages, trigger, messageId }: ChatRequest): ChatAsk {
  const named = messages.find(({ id }) => id === messageId)
  if (named?.role === 'assistant') return { kind: 'resume', message: named }
  const last = messages.at(-1)
  if (last?.role === 'assistant') return { kind: 'resume', message: last }
  if (last?.role !== 'user') throw badField('messages', 'The last message must be the user’s.')
  if (trigger === 'regenerate-message') return { kind: 'again', message: last }
  return { kind: messageId === last.id ? 'edit' : 'message', message: last }
}

/** The message as input of a run. Files are data URLs, or URLs that the model's provider fetches. */
function inputOf({ parts }: UiMessage): InputPart[] {
  const input = parts.flatMap((part, index): InputPart[] => {
    if (part.type === 'text' && typeof part.text === 'string')
      return part.text === '' ? [] : [{ text: part.text }]
    if (part.type !== 'file' || typeof part.url !== 'string') return []
    const mimeType = typeof part.mediaType === 'string' ? part.mediaType : 'application/octet-stream'
    const name = typeof part.filename === 'string' ? part.filename : undefined
    return [mediaPart({ url: part.url, mimeType, name, field: `parts.${index}.url` })]
  })
  if (input.length === 0) throw badField('messages', 'The last message is empty: it needs text or a file.')
  return input
}

/** The texts of the user's messages, in order. */
function userTexts(messages: readonly UiMessage[]): string[] {
  return messages.flatMap(({ role, parts }) =>
    role === 'user'
      ? [parts.map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : '')).join('')]
      : [],
  )
}

interface ClientAnswer {
  /** The id under which the run waits, and that of the call in the message. */
  callId: string
  toolCallId: string
  answer: RunAnswer
}

/** What the message says to the calls that wait: approvals, and results that the client has given. */
function answersIn({ parts }: UiMessage, questions: readonly RunQuestion[]): ClientAnswer[] {
  return questions.flatMap(question => {
    const part = parts.findLast(({ toolCallId, approval }) => {
      return toolCallId === question.callId || approvalIn(approval).id === question.callId
    })
    const answer = part && answerIn(part, question)
    if (!part || answer === undefined) return []
    return [{ callId: question.callId, toolCallId: String(part.toolCallId), answer }]
  })
}

function answerIn(
  { state, approval, output, errorText }: UiMessage['parts'][number],
  { asks }: RunQuestion,
): RunAnswer | undefined {
  if (asks === 'approval') {
    const said =
      state === 'approval-responded' ? approvalIn(approval) : state === HAS_OUTPUT ? approvalIn(output) : {}
    return said.approved === undefined ? undefined : said.approved ? 'once' : 'no'
  }
  if (asks !== 'result') return undefined
  if (state === 'output-error')
    return { error: typeof errorText === 'string' ? errorText : 'The call failed.' }
  if (state !== HAS_OUTPUT) return undefined
  return isRecord(output) ? output : { result: output }
}

const HAS_OUTPUT = 'output-available'

/** An answer to an approval. Clients without approvals of their own give it as the output of the call. */
function approvalIn(value: unknown): { id?: string | undefined; approved?: boolean | undefined } {
  return Approval.safeParse(value).data ?? {}
}

const Approval = z.object({ id: z.string().optional(), approved: z.boolean().optional() })

const Metadata = z.object({
  lango: z.object({ runId: z.uuid(), seq: z.number().int().min(0) }),
})

/** The run and the last event of an answer, from the metadata that the server sent with it. */
function placeIn({ metadata }: UiMessage): { runId: string; seq: number } | undefined {
  return Metadata.safeParse(metadata).data?.lango
}
