/** Responses and conversations that are stored: retrieved, followed, cancelled, listed and deleted. */
import { randomUUID } from 'node:crypto'
import type { Context, Hono } from 'hono'
import { z } from 'zod'
import { AgentError } from '../../../errors.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { readBody } from '../read-body.js'
import { type ClientRun, findClientRun, parsePartId, runPartId } from './client-calls.js'
import { invalidValue, isEmpty, refuseUnsupported } from './request-options.js'
import { storedAnswer, storedResponse, streamed } from './response-answer.js'
import { toFunctionCall } from './response-writer.js'
import { isKept } from './throwaway.js'

export function mountStoredResponses(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/v1/responses/:id', async c => {
    const { run, afterSeq } = await found(c, context)
    const { stream, starting_after: after, ...others } = c.req.query()
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) throw invalidValue(unknown, `\`${unknown}\` is not supported.`)
    if (stream !== 'true') return c.json(await storedResponse(context, run, afterSeq))
    const startingAfter = after === undefined ? -1 : number(after, 'starting_after')
    return streamed(c, context, storedAnswer(context, run, { afterSeq, startingAfter }))
  })
  app.post('/v1/responses/:id/cancel', async c => {
    const { run, afterSeq } = await found(c, context)
    if (run.item.status !== 'finished') {
      await context.hub.stop(run.runId)
      for await (const _event of context.hub.follow(run.runId, { after: run.item.lastSeq }));
    }
    const now = await findClientRun(context, run.runId, context.userOf(c))
    return c.json(await storedResponse(context, now ?? run, afterSeq))
  })
  app.get('/v1/responses/:id/input_items', async c => {
    const { run, afterSeq } = await found(c, context)
    return c.json(page(await inputOf(context, run, afterSeq), c.req.query()))
  })
  app.delete('/v1/responses/:id', async c => {
    const { run, id } = await found(c, context)
    const runs = await context.hub.list(run.key, 2)
    if (!isKept(run.key) || runs.length > 1)
      throw new AgentError(
        'invalid-argument',
        `The response is a part of session "${run.key.sessionId}". Delete the session.`,
      )
    await context.runtime.store.deleteSession(run.key)
    return c.json({ id, object: 'response', deleted: true })
  })
  mountConversations(app, context)
}

async function found(
  c: Context<ServerEnv>,
  context: ServerContext,
): Promise<{ id: string; run: ClientRun; afterSeq: number }> {
  const id = c.req.param('id') ?? ''
  const place = parsePartId('resp', id)
  const run = place && (await findClientRun(context, place.runId, context.userOf(c)))
  if (!run || place.number > run.item.lastSeq)
    throw new Refusal('not-found', `Response with id '${id}' not found.`)
  return { id, run, afterSeq: place.number }
}

function number(text: string, field: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalidValue(field, `\`${field}\` must be a number.`)
}

type Item = Record<string, unknown> & { id: string }

/** What a response was given: the messages before it, and the results of the client's tools. */
async function inputOf(context: ServerContext, run: ClientRun, afterSeq: number): Promise<Item[]> {
  const { runId, key, item } = run
  const beforeSeq = (item.afterSeq ?? 0) + 2
  const messages = await context.runtime.store.readMessages(key, { beforeSeq, limit: MOST_ITEMS })
  const said = messages.flatMap(({ role, content, seq }): Item[] => {
    if (content === '' || (role !== 'user' && role !== 'assistant' && role !== 'system')) return []
    const type = role === 'assistant' ? 'output_text' : 'input_text'
    const id = `msg_${key.sessionId}_${seq}`
    return [{ id, type: 'message', status: 'completed', role, content: [{ type, text: content }] }]
  })
  const answered = run.calls.flatMap((call, index): Item[] => {
    if (call.seq > afterSeq || call.isOwn) return []
    const callId = runPartId('call', runId, index)
    const output = JSON.stringify(call.result ?? {})
    const result = {
      id: runPartId('fco', runId, index),
      type: 'function_call_output',
      call_id: callId,
      output,
    }
    return [toFunctionCall(runId, { ...call, callId, number: index }), { ...result, status: 'completed' }]
  })
  return [...said, ...answered]
}

const MOST_ITEMS = 1000

function page(items: readonly Item[], query: Record<string, string>): object {
  const { limit = '20', order = 'desc', after } = query
  const ordered = order === 'asc' ? items : items.toReversed()
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  const most = Math.min(100, Math.max(1, number(limit, 'limit')))
  const data = ordered.slice(start, start + most)
  return {
    ...{ object: 'list', data, has_more: start + most < ordered.length },
    ...{ first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
  }
}

const Conversation = z.strictObject({ metadata: z.unknown().optional(), items: z.unknown().optional() })

/** A conversation is a session: it can be made here, or be any session of the caller's. */
function mountConversations(app: Hono<ServerEnv>, context: ServerContext): void {
  const { store } = context.runtime
  const toConversation = (id: string, createdAt: number) => ({
    ...{ id, object: 'conversation', created_at: Math.floor(createdAt / 1000), metadata: {} },
  })
  const described = async (c: Context<ServerEnv>, id: string) => {
    const session = await store.describeSession(context.keyOf(c, id))
    if (!session) throw new Refusal('not-found', `Conversation with id '${id}' not found.`)
    return session
  }
  app.post('/v1/conversations', async c => {
    const advice = 'send it with the first response.'
    const isNothing = (value: unknown) => isEmpty(value)
    const body = await readBody(c, Conversation)
    refuseUnsupported(body, { metadata: { unless: isNothing, advice }, items: { unless: isNothing, advice } })
    const id = `conv_${randomUUID().replaceAll('-', '')}`
    await store.createSession(context.keyOf(c, id))
    return c.json(toConversation(id, Date.now()))
  })
  app.get('/v1/conversations/:id', async c => {
    const id = c.req.param('id')
    return c.json(toConversation(id, (await described(c, id)).createdAt))
  })
  app.delete('/v1/conversations/:id', async c => {
    const id = c.req.param('id')
    await described(c, id)
    await store.deleteSession(context.keyOf(c, id))
    return c.json({ id, object: 'conversation.deleted', deleted: true })
  })
}
