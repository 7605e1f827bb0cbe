/** The AI SDK's chat: what `useChat` posts, and the UI message stream that it reads. */

import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { AgentError } from '../../../errors.js'
import type { SessionKey } from '../../../session/message.js'
import type { Problem, RunItem } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { badField, type InputPart, mediaPart, readBody } from '../read-body.js'
import { startStreamedRun } from '../start-run.js'
import { sessionOfChat, toUiMessages, turnBack, type UiHistoryMessage } from './chat-session.js'
import { streamChat } from './chat-stream.js'

/** The routes under `/api/chat`, with errors as the AI SDK shows them. */
export function chatRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => chatError(error, context))
  app.post('/api/chat', c => chat(c, context))
  app.get('/api/chat/:id', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    return c.json({ id: c.req.param('id'), messages: await historyOf(context, key) })
  })
  app.get('/api/chat/:id/stream', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    const run = await runningIn(context, key)
    return run ? streamChat(c, context, { key, runId: run.runId }) : c.body(null, 204)
  })
  app.delete('/api/chat/:id/stream', async c => {
    const key = await sessionOfChat(context.runtime.store, context.keyOf(c, c.req.param('id')))
    const run = await runningIn(context, key)
    if (run) await context.hub.stop(run.runId)
    return c.body(null, 204)
  })
  return app
}

/** How many stored messages a chat that is opened again begins with, at most. */
const SHOWN = 500

/** What was said so far. The answer of a run that goes on is left out: the stream tells it from its beginning. */
async function historyOf(context: ServerContext, key: SessionKey): Promise<UiHistoryMessage[]> {
  const run = await runningIn(context, key)
  const messages = await context.runtime.messages(key, { limit: SHOWN, beforeSeq: Number.MAX_SAFE_INTEGER })
  const afterSeq = run?.afterSeq ?? Number.POSITIVE_INFINITY
  return toUiMessages(messages.filter(({ seq, role }) => seq <= afterSeq || role === 'user'))
}

async function chat(c: Context<ServerEnv>, context: ServerContext): Promise<Response> {
  const request = await readBody(c, ChatRequest)
  const ask = askOf(request)
  if (ask.kind === 'go-on') return goOn(c, context, ask.message)
  const parts = inputOf(ask.message)
  const { store } = context.runtime
  const own = context.keyOf(c, request.id)
  const current = await sessionOfChat(store, own)
  if (ask.kind !== 'message') await stopRun(context, current)
  const texts = userTexts(request.messages)
  const key = ask.kind === 'message' ? current : await turnBack(store, own, { texts, kind: ask.kind })
  const { sessionId } = key
  const model = request.model ?? undefined
  const { runId } = await startStreamedRun(c, context, { sessionId, parts, model, whenBusy: 'reject' })
  return streamChat(c, context, { key, runId })
}

/** Whoever wants a turn again has no use for the answer that is under way. */
async function stopRun(context: ServerContext, key: SessionKey): Promise<void> {
  const run = await runningIn(context, key)
  if (!run) return
  await context.hub.stop(run.runId)
  for await (const _batch of context.hub.followBatches(run.runId)) {
    // Only its end is waited for.
  }
}

/** Passes on what the user said to the calls that wait, and goes on with the answer where the client left it. */
async function goOn(c: Context<ServerEnv>, context: ServerContext, message: UiMessage): Promise<Response> {
  const answers = answersIn(message)
  const place = placeIn(message)
  if (answers.length === 0 || !place) {
    const advice = 'Its last message is the agent’s, and no approval in it was answered.'
    throw new AgentError('invalid-argument', `There is nothing to go on with. ${advice}`)
  }
  const { runId, seq } = place
  const run = await context.hub.find(runId)
  if (run?.key.userId !== context.userOf(c)) throw new Refusal('not-found', 'There is no such run any more.')
  if (seq >= run.item.lastSeq && run.item.status === 'finished') {
    throw new AgentError('run-interrupted', 'The run is over, and nothing waits for this answer any more.')
  }
  for (const { callId, approved } of answers) {
    await context.hub.approve(runId, callId, approved ? 'once' : 'no').catch(ignoreNotFound)
  }
  const answered = new Set(answers.map(({ callId }) => callId))
  return streamChat(c, context, { key: run.key, runId, after: seq, answered })
}

/** The answer came from elsewhere, or too late: the events of the run tell what became of the call. */
function ignoreNotFound(error: unknown): void {
  if (!(error instanceof Refusal && error.code === 'not-found')) throw error
}

async function runningIn({ hub }: ServerContext, key: SessionKey): Promise<RunItem | undefined> {
  return (await hub.list(key, 20)).find(({ status }) => status === 'running')
}

/** What the AI SDK's `DefaultChatTransport` posts, and what of it is new. */
const Part = z.looseObject({ type: z.string() })

const UiMessage = z.object({
  id: z.string(),
  role: z.enum(['system', 'user', 'assistant']),
  parts: z.array(Part),
  metadata: z.unknown().optional(),
})

/** The body of `POST /api/chat`. */
const ChatRequest = z.object({
  id: z.string().min(1).max(256),
  messages: z.array(UiMessage).min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
  messageId: z.string().nullish(),
  /** Not of the AI SDK: a model for this run, given as `body` of the transport. */
  model: z.string().min(1).max(256).nullish(),
})

type ChatRequest = z.infer<typeof ChatRequest>
type UiMessage = z.infer<typeof UiMessage>

/** What is asked for: a message, the same turn again, another message in its place, or to go on after approvals. */
type ChatAsk =
  | { kind: 'message' | 'again' | 'edit'; message: UiMessage }
  | { kind: 'go-on'; message: UiMessage }

/** Reads what a request means from its trigger and its last message. */
function askOf({ messages, trigger, messageId }: ChatRequest): ChatAsk {
  const named = messages.find(({ id }) => id === messageId)
  if (named?.role === 'assistant') return { kind: 'go-on', message: named }
  const last = messages.at(-1)
  if (last?.role === 'assistant') return { kind: 'go-on', message: last }
  if (last?.role !== 'user') throw badField('messages', 'The last message must be the user’s.')
  if (trigger === 'regenerate-message') return { kind: 'again', message: last }
  return { kind: messageId === last.id ? 'edit' : 'message', message: last }
}

/** What the user says. Files are data URLs, or URLs that the model's provider can read. */
function inputOf({ parts }: UiMessage): InputPart[] {
  const input = parts.flatMap((part, index): InputPart[] => {
    if (part.type === 'text' && typeof part.text === 'string')
      return part.text === '' ? [] : [{ text: part.text }]
    if (part.type !== 'file' || typeof part.url !== 'string') return []
    const mimeType = typeof part.mediaType === 'string' ? part.mediaType : 'application/octet-stream'
    const name = typeof part.filename === 'string' ? part.filename : undefined
    return [mediaPart({ url: part.url, mimeType, name, field: `parts.${index}.url` })]
  })
  if (input.length === 0)
    throw badField('messages', 'The last message says nothing: it needs text or a file.')
  return input
}

/** The words of the user's messages, in order. */
function userTexts(messages: readonly UiMessage[]): string[] {
  return messages.flatMap(({ role, parts }) =>
    role === 'user'
      ? [parts.map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : '')).join('')]
      : [],
  )
}

/** Approvals that the user has answered, by the id of the call. */
function answersIn({ parts }: UiMessage): { callId: string; approved: boolean }[] {
  return parts.flatMap(({ state, toolCallId, approval }) => {
    if (state !== 'approval-responded' || typeof toolCallId !== 'string') return []
    const approved = (approval as { approved?: unknown } | undefined)?.approved === true
    return [{ callId: toolCallId, approved }]
  })
}

const Metadata = z.object({
  lango: z.object({ runId: z.uuid(), seq: z.number().int().min(0) }),
})

/** Where the stream of an answer stopped, as the server told it with the answer. */
function placeIn({ metadata }: UiMessage): { runId: string; seq: number } | undefined {
  return Metadata.safeParse(metadata).data?.lango
}

/** The AI SDK shows the body of a refusal as it is, so it is a sentence and nothing else. */
export async function chatError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const { detail } = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'text/plain; charset=utf-8')
  return new Response(detail, { status: answer.status, headers })
}
