import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
import type { SessionKey } from '../../session/message.js'
import type { RunItem, RunList, StartedRun } from '../chat-protocol.js'
import { clientState } from '../client-json.js'
import { publicError } from '../error-response.js'
import { markOf, runOfRequest } from '../protocols/repeated-request.js'
import { runHeaders, startRun, traceOf } from '../protocols/start-run.js'
import { notFound } from '../refusal.js'
import type { ServerContext, ServerEnv, ServerLimits } from '../server-context.js'
import { type StreamChunk, streamResponse } from '../sse.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

/** Runs: start, read, follow, stop, approve, inspect. */
export function mountRunRoutes(api: ApiApp, context: ServerContext): void {
  mountStarting(api, context)
  mountReading(api, context)
  mountEvents(api, context)
  mountSignals(api, context)
}

function mountStarting(api: ApiApp, context: ServerContext): void {
  const params = schemas.SessionParameter
  const path = '/api/sessions/{sessionId}/runs'
  addRoute(
    api,
    {
      method: 'get',
      path,
      summary: 'The runs of a session: those that are not due yet, then the others, newest first',
      params,
      query: schemas.RunQuery,
      answer: {
        status: 200,
        schema: schemas.RunList,
        description: 'At most 50 of both, or `limit`',
      },
    },
    async (c, { params: { sessionId }, query: { limit } }) => {
      const key = context.keyOf(c, sessionId)
      // In this order: a run that is released in between is read twice.
      const later = await context.hub.scheduled(key, limit)
      const runs = await context.hub.list(key, limit)
      const isDue = new Set(runs.map(({ runId }) => runId))
      const list: RunList = { runs: [...later.filter(({ runId }) => !isDue.has(runId)), ...runs] }
      return c.json(list)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path,
      summary: 'Start a run with a message; the session is created if it does not exist',
      params,
      body: schemas.RunRequest,
      headers: schemas.RunHeaders,
      answer: {
        status: 202,
        schema: schemas.StartedRun,
        description: 'It has begun, is queued, or is stored for later',
      },
      otherAnswers: {
        200: {
          description: 'With `Accept: text/event-stream`: the same, answered by the events of the run',
          schema: schemas.RunEvent,
          mediaType: 'text/event-stream',
        },
      },
    },
    async (c, { params: { sessionId }, body }) => {
      const input = { ...toInput(body, context.limits), sessionId, userId: context.userOf(c) }
      const key = context.keyOf(c, sessionId)
      if (!wantsEvents(c.req.header('accept'))) return c.json(await start(c, context, input, key), 202)
      // A caller at the limit of open streams is refused before the run begins.
      const leave = context.streams.enter(context.userOf(c))
      let started: StartedRun
      try {
        started = await start(c, context, input, key)
      } finally {
        leave()
      }
      const after = lastEventId(c.req.header('last-event-id')) ?? 0
      // Without a word about reconnecting: by itself, the same request again is another run.
      return streamResponse(c, context, {
        source: signal => chunks(context, started.runId, after, signal),
        headers: runHeaders(started),
      })
    },
  )
}

/** Whether a caller asks for events. One that also takes JSON gets JSON. */
function wantsEvents(accept = ''): boolean {
  return /\btext\/event-stream\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept)
}

async function start(
  c: Context<ServerEnv>,
  context: ServerContext,
  input: RunInput & { userId: string },
  key: SessionKey,
): Promise<StartedRun> {
  const mark = await markOf(c, context)
  // A `runId` in the body does what a key does.
  if (mark.keyedRunId === undefined || input.runId !== undefined)
    return context.hub.start({ ...input, ...traceOf(c) })
  const { known, runId } = await runOfRequest(context, mark, key)
  if (known) return { runId, sessionId: known.sessionId }
  return startRun(c, context, input, { mark, runId })
}

function toInput(request: z.infer<typeof schemas.RunRequest>, limits: ServerLimits): RunInput {
  const { text, files, model, stateDelta, at, runId, ...options } = request
  const { whenBusy = at === undefined ? 'reject' : 'queue' } = request
  const parts = files?.map(({ mimeType, data, name }) => ({
    inlineData: { mimeType, data, ...defined({ displayName: name }) },
  }))
  return {
    text,
    model,
    ...defined(options),
    whenBusy,
    ...defined({ at, parts, runId, stateDelta: stateDelta && clientState(stateDelta, limits) }),
  }
}

function mountReading(api: ApiApp, context: ServerContext): void {
  const params = schemas.RunParameter
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/runs/{runId}',
      summary: 'A run, and what it waits for',
      params,
      answer: { status: 200, schema: schemas.RunItem, description: 'The run' },
    },
    async (c, { params: { runId } }) =>
      c.json(await context.hub.withQuestions(await ownRun(c, context, runId))),
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/runs/{runId}/inspect',
      summary: 'Inspect a run: per model call what was stored, truncated, repaired and sent',
      params,
      answer: { status: 200, schema: schemas.RunInspection, description: 'The run, step by step' },
    },
    async (c, { params: { runId } }) => {
      await ownRun(c, context, runId)
      const inspection = await context.runtime.inspect(runId)
      if (!inspection) throw notFound('such run')
      const { error } = inspection
      return c.json(error ? { ...inspection, error: publicError(error) } : inspection)
    },
  )
}

/** The reconnect delay of clients, and the event that is sent when the server shuts down. */
const HELLO = 'retry: 1000\n\n'
const FAREWELL = 'event: reconnect\nretry: 1000\ndata: {}\n\n'

function mountEvents(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/runs/{runId}/events',
      summary: 'The events of a run after a number, as server-sent events; ends after run-finish',
      params: schemas.RunParameter,
      query: schemas.EventQuery,
      answer: {
        status: 200,
        schema: schemas.RunEvent,
        description: 'Each has its number as id, and the JSON of a RunEvent as data',
        mediaType: 'text/event-stream',
      },
      headers: schemas.EventHeaders,
      otherAnswers: { 204: 'No event follows' },
    },
    async (c, { params: { runId }, query }) => {
      const after = lastEventId(c.req.header('last-event-id')) ?? query.after ?? 0
      const place = await context.hub.placeOf(runId)
      if (!place || !isOwn(c, context, place.key)) throw notFound('such run')
      // 204 is the status after which an EventSource does not reconnect.
      if (place.endSeq !== undefined && after >= place.endSeq) return c.body(null, 204)
      return streamResponse(c, context, {
        hello: HELLO,
        farewell: FAREWELL,
        source: signal => chunks(context, runId, after, signal),
      })
    },
  )
}

async function* chunks(
  { hub }: ServerContext,
  runId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  for await (const batch of hub.followBatches(runId, { after, signal })) {
    yield { bytes: batch.frames, events: batch.events.length }
  }
}

function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined || header === '') return undefined
  if (/^\d{1,15}$/.test(header)) return Number(header)
  throw new AgentError('invalid-argument', 'The header Last-Event-ID must be the number of an event.')
}

function mountSignals(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/runs/{runId}/stop',
      summary: 'Stop a run, in whichever process it is',
      params: schemas.RunParameter,
      answer: { status: 202, schema: schemas.RunItem, description: 'The run was requested to stop' },
    },
    async (c, { params: { runId } }) => {
      const run = await ownRun(c, context, runId)
      if (run.status !== 'finished') await context.hub.stop(runId)
      return c.json(run, 202)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/runs/{runId}/resume',
      summary: 'Continue a run that no process works on; servers do this by themselves',
      params: schemas.RunParameter,
      answer: {
        status: 202,
        schema: schemas.StartedRun,
        description: 'The run is continued here or elsewhere',
      },
    },
    async (c, { params: { runId } }) => {
      const { sessionId } = await ownRun(c, context, runId)
      await context.hub.resume(runId)
      const started: StartedRun = { runId, sessionId }
      return c.json(started, 202)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/runs/{runId}/go-on',
      summary: 'Go on where a run ended at its budget: a new run with another budget',
      params: schemas.RunParameter,
      body: schemas.GoOnRequest,
      answer: { status: 202, schema: schemas.StartedRun, description: 'The new run' },
    },
    async (c, { params: { runId }, body: { budget } }) => {
      await ownRun(c, context, runId)
      return c.json(await context.runtime.resume(runId, { budget }), 202)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/runs/{runId}/approvals/{callId}',
      summary:
        'Answer a tool call that waits for approval or for its result, or say whether one with an unknown outcome took effect',
      params: schemas.CallParameter,
      body: schemas.ApprovalReply,
      answer: { status: 204, description: 'The answer was passed on' },
    },
    async (c, { params: { runId, callId }, body }) => {
      await ownRun(c, context, runId)
      await context.hub.approve(runId, callId, body.answer)
      return c.body(null, 204)
    },
  )
}

/** The run, if it is the caller's; otherwise `not-found`. */
async function ownRun(c: Context<ServerEnv>, context: ServerContext, runId: string): Promise<RunItem> {
  const found = await context.hub.find(runId)
  if (!found || !isOwn(c, context, found.key)) throw notFound('such run')
  return found.item
}

function isOwn(c: Context<ServerEnv>, context: ServerContext, { userId, appName }: SessionKey): boolean {
  return userId === context.userOf(c) && appName === context.info.app
}
