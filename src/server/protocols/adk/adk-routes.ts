/** ADK's routes, as `adk api_server` serves them. */

import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { letOthersRun } from '../../../base/pause.js'
import { camelCase } from '../../../formats/adk-events.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { Session, SessionKey, State } from '../../../session/message.js'
import { sessionPages } from '../../../session/session-pages.js'
import type { SessionSummary } from '../../../session/session-store.js'
import type { StartedRun } from '../../chat-protocol.js'
import { clientState, JsonObject } from '../../client-json.js'
import { errorResponse } from '../../error-response.js'
import { notFound, Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { dataFrames, jsonInPieces, streamResponse } from '../../sse.js'
import { badField, checkParts, readBody } from '../read-body.js'
import { markOf, runOfRequest, watchDelivery } from '../repeated-request.js'
import {
  afterStoring,
  type RunRequestOf,
  runHeaders,
  startRun,
  startStreamedRun,
  waitingRun,
} from '../start-run.js'
import {
  type AdkEvent,
  type AdkRunOptions,
  adkRunEvents,
  askedBy,
  errorEvent,
  turnsOf,
  waitingEvent,
} from './adk-run.js'
import { mountAdkPages } from './adk-web-routes.js'

/** The routes of ADK, with errors as its clients read them. */
export function adkRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => adkError(error, context))
  app.get('/list-apps', c => c.json([context.info.app]))
  mountAdkSessions(app, context)
  mountAdkRuns(app, context)
  mountAdkPages(app, context, keyIn)
  return app
}

/** ADK's clients for JavaScript read `error`, those for Python `detail`: both hold the same text. */
export async function adkError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const problem = errorResponse(error, logger)
  const { detail, code } = (await problem.json()) as { detail: string; code: string }
  const headers = new Headers(problem.headers)
  headers.set('content-type', 'application/json; charset=utf-8')
  return new Response(JSON.stringify({ error: detail, detail, code }), { status: problem.status, headers })
}

/** `/run` and `/run_sse`. The run continues when the caller disconnects; its result is in the session. */
function mountAdkRuns(app: Hono<ServerEnv>, context: ServerContext): void {
  app.post('/run', async c => {
    const { key, input } = await readRun(c, context)
    const answered = await answerAsked(context, key, input)
    if (answered)
      return afterStoring(() => collect(c, context, answered, { key, afterCall: answered.afterCall }))
    const started = await startOnce(c, context, key, request => startRun(c, context, input, request))
    return afterStoring(() => collect(c, context, started, { key }))
  })
  app.post('/run_sse', async c => {
    const { key, input, streaming } = await readRun(c, context)
    const started: StartedRun & { afterCall?: string } =
      (await answerAsked(context, key, input)) ??
      (await startOnce(c, context, key, request => startStreamedRun(c, context, input, request)))
    const { runId, afterCall } = started
    return afterStoring(() =>
      streamResponse(c, context, {
        headers: runHeaders(started),
        source: signal => frames(context, { key, runId, streaming, signal, afterCall }),
      }),
    )
  })
}

/**
 * Passes answers to confirmations that Lango asked for in ADK's name to their run, which goes on. The same answers again
 * change nothing and get the same events. A message cannot hold such answers and something else.
 */
async function answerAsked(
  context: ServerContext,
  key: SessionKey,
  { parts = [] }: RunInput,
): Promise<(StartedRun & { afterCall: string }) | undefined> {
  const answers = parts.flatMap(({ functionResponse }) => {
    const asked = askedBy(functionResponse?.id)
    return asked ? [{ ...asked, isConfirmed: isConfirmed(functionResponse?.response) }] : []
  })
  const [first] = answers
  if (!first) return undefined
  if (answers.length < parts.length || answers.some(({ runId }) => runId !== first.runId))
    throw badField('newMessage', 'An answer to a confirmation is a message of its own, without other parts.')
  const run = await context.hub.find(first.runId)
  if (run?.key.userId !== key.userId || run.key.sessionId !== key.sessionId)
    throw notFound(`run "${first.runId}" in this session that asked for a confirmation`)
  const open = new Set((await context.hub.questions(first.runId)).map(({ callId }) => callId))
  for (const { callId, isConfirmed: isAllowed } of answers)
    if (open.has(callId)) await context.hub.approve(first.runId, callId, isAllowed ? 'once' : 'no')
  return { runId: first.runId, sessionId: key.sessionId, afterCall: first.callId }
}

/** ADK's clients send the fields, or, as ADK for Python does, their JSON in `response`. */
function isConfirmed(response: unknown): boolean {
  if (!isRecord(response)) return false
  if (typeof response.response !== 'string') return response.confirmed === true
  try {
    return isConfirmed(JSON.parse(response.response))
  } catch {
    return false
  }
}

/** The run that a request repeats, or a new one. */
async function startOnce(
  c: Context<ServerEnv>,
  context: ServerContext,
  key: SessionKey,
  start: (request: RunRequestOf) => Promise<StartedRun>,
): Promise<StartedRun> {
  const mark = await markOf(c, context)
  const { known, runId } = await runOfRequest(context, mark, key)
  const started = known ? { runId, sessionId: known.sessionId } : await start({ mark, runId })
  void watchDelivery(c, started.runId)
  return started
}

const Content = z.object({
  role: z.string().optional(),
  parts: z.array(JsonObject).min(1),
})

const RunBody = z.object({
  appName: z.string(),
  userId: z.string(),
  sessionId: z.string().min(1).max(256),
  newMessage: Content.optional(),
  streaming: z.boolean().nullish(),
  stateDelta: JsonObject.nullish(),
})

/** ADK for Python also accepts the names in snake_case. */
const RunRequest = z.preprocess(camelCaseKeys, RunBody)

function camelCaseKeys(body: unknown): unknown {
  if (!isRecord(body)) return body
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [camelCase(name), value]))
}

async function readRun(
  c: Context<ServerEnv>,
  context: ServerContext,
): Promise<{ key: SessionKey; input: RunInput; streaming: boolean }> {
  const request = await readBody(c, RunRequest)
  const key = ownKey(c, context, request)
  await ownSession(context, key)
  checkParts(request.newMessage, 'newMessage', context.limits)
  if (!request.newMessage) throw badField('newMessage', 'A run needs a message: send `newMessage`.')
  const input: RunInput = {
    sessionId: key.sessionId,
    // Any part of ADK's content; the runtime checks it.
    parts: request.newMessage.parts as NonNullable<RunInput['parts']>,
    whenBusy: 'queue',
    ...(request.stateDelta ? { stateDelta: clientState(request.stateDelta, context.limits) } : {}),
  }
  return { key, input, streaming: request.streaming === true }
}

async function collect(
  c: Context<ServerEnv>,
  context: ServerContext,
  started: StartedRun,
  place: Pick<AdkRunOptions, 'key' | 'afterCall'>,
): Promise<Response> {
  const events: AdkEvent[] = []
  const { signal } = c.req.raw
  const options = { ...place, runId: started.runId, streaming: false, signal }
  for await (const step of adkRunEvents(context, options)) {
    if ('events' in step) events.push(...step.events)
    else {
      const { status, detail, code } = step.problem
      const body = JSON.stringify({ error: detail, detail, code, events })
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'x-should-retry': 'false',
        ...runHeaders(started),
      }
      return new Response(body, { status, headers })
    }
  }
  return c.json(events, 200, runHeaders(started))
}

/** The error of a run is reported once: with the event that ADK stored of it, or with an event of its own. */
async function* frames(context: ServerContext, options: AdkRunOptions) {
  let held: AdkEvent[] = []
  for await (const step of adkRunEvents(context, options)) {
    if ('events' in step) {
      const events = [...held, ...step.events]
      const { errorCode, errorMessage } = events.at(-1) ?? {}
      held = (errorCode ?? errorMessage) ? events.splice(-1) : []
      if (events.length > 0) yield dataFrames(events)
    } else {
      const { detail, code } = step.problem
      yield dataFrames([{ ...(held[0] ?? errorEvent(step.problem)), error: detail, code }])
      held = []
    }
  }
  if (held.length > 0) yield dataFrames(held)
}

const SESSIONS = '/apps/:appName/users/:userId/sessions'
const SESSION = `${SESSIONS}/:sessionId`

/** A session as ADK writes it. Times are milliseconds, as in ADK for JavaScript. */
interface AdkSession {
  id: string
  appName: string
  userId: string
  state: State
  events: AdkEvent[]
  lastUpdateTime: number
}

/** Sessions: list, create, read, change, delete. */
function mountAdkSessions(app: Hono<ServerEnv>, context: ServerContext): void {
  const { store } = context.runtime
  app.get(SESSIONS, async c => c.json(await listAll(context, keyIn(c, context, ''))))
  app.post(SESSIONS, async c => {
    const { sessionId, state, events } = await readBody(c, NewSession)
    refuseEvents(events)
    return c.json(await create(context, keyIn(c, context, sessionId ?? randomUUID()), state ?? {}))
  })
  app.get(SESSION, async c => sessionAnswer(await sessionWithEvents(context, keyIn(c, context))))
  app.post(SESSION, async c => {
    const body = await readBody(c, JsonObject)
    const key = keyIn(c, context)
    // ADK for JavaScript accepts { state }, ADK for Python also the state itself.
    const { state, events } = NewSession.safeParse(body).data ?? {}
    refuseEvents(events)
    return c.json(await create(context, key, 'state' in body ? (state ?? {}) : body))
  })
  app.patch(SESSION, async c => {
    const { stateDelta } = await readBody(c, StateChange)
    const key = keyIn(c, context)
    await ownSession(context, key)
    await store.updateState(key, clientState(stateDelta, context.limits))
    return sessionAnswer(await sessionWithEvents(context, key))
  })
  app.delete(SESSION, async c => {
    const key = keyIn(c, context)
    await ownSession(context, key)
    const [newest] = await context.hub.list(key, 1)
    if (newest && newest.status !== 'finished') await context.hub.stop(newest.runId)
    await store.deleteSession(key)
    // Not 204: ADK's own client reads the answer as JSON.
    return c.json(null)
  })
}

/** A session as JSON, written event by event while the client reads: a long one would block the event loop. */
function sessionAnswer({ events, lastUpdateTime, ...session }: AdkSession): Response {
  return jsonInPieces(function* () {
    yield `${JSON.stringify(session).slice(0, -1)},"events":[`
    for (const [index, event] of events.entries()) yield `${index === 0 ? '' : ','}${JSON.stringify(event)}`
    yield `],"lastUpdateTime":${JSON.stringify(lastUpdateTime)}}`
  })
}

const NewSession = z.object({
  sessionId: z.string().min(1).max(256).nullish(),
  state: JsonObject.nullish(),
  events: z.array(z.unknown()).nullish(),
})

const StateChange = z.object({ stateDelta: JsonObject })

function keyIn(c: Context<ServerEnv>, context: ServerContext, id?: string): SessionKey {
  const { appName = '', userId = '', sessionId = '' } = c.req.param() as Record<string, string>
  return ownKey(c, context, { appName, userId, sessionId: id ?? sessionId })
}

function refuseEvents(events: readonly unknown[] | null | undefined): void {
  if (events && events.length > 0)
    throw badField('events', 'A new session cannot be created with events here.')
}

async function create(context: ServerContext, key: SessionKey, state: State): Promise<AdkSession> {
  const { store } = context.runtime
  const given = clientState(state, context.limits)
  await letOthersRun()
  const [first = {}, ...others] = slicesOf(given)
  const session = await store.createSession(key, first)
  try {
    for (const slice of others) {
      await store.updateState(key, slice)
      await letOthersRun()
    }
  } catch (error) {
    await store.deleteSession(key)
    throw error
  }
  const all =
    others.length === 0 ? session.state : Object.assign({ ...session.state }, ...others.map(withoutTemporary))
  return toAdk({ key, state: all, updatedAt: session.updatedAt })
}

/** State keys that are stored in one transaction. */
const STATE_SLICE = 2000

function slicesOf(state: State): State[] {
  const entries = Object.entries(state)
  const starts = Array.from(
    { length: Math.ceil(entries.length / STATE_SLICE) },
    (_, index) => index * STATE_SLICE,
  )
  return starts.map(start => Object.fromEntries(entries.slice(start, start + STATE_SLICE)))
}

/** What a store keeps of a state. */
function withoutTemporary(state: State): State {
  return Object.fromEntries(Object.entries(state).filter(([key]) => !key.startsWith('temp:')))
}

async function sessionWithEvents(context: ServerContext, key: SessionKey): Promise<AdkSession> {
  const { state, updatedAt } = await ownSession(context, key)
  const events = await context.runtime.events(key)
  const run = (await context.hub.list(key, 1))[0]
  const waiting = run && (await waitingRun(context, run.runId))
  const last = events.findLast(({ author }) => author !== 'user') ?? { author: 'lango', invocationId: '' }
  const isAsked = events.some(({ longRunningToolIds = [] }) =>
    waiting?.waitsFor.every(({ callId }) => longRunningToolIds.includes(callId)),
  )
  return toAdk({
    key,
    state,
    updatedAt,
    events: turnsOf(waiting && !isAsked ? [...events, waitingEvent(waiting, last)] : events),
  })
}

/** All sessions of the user, newest first, without state and events, as ADK lists them. */
async function listAll({ runtime }: ServerContext, { appName, userId }: SessionKey): Promise<AdkSession[]> {
  const all: SessionSummary[] = []
  for await (const page of sessionPages(runtime.store, { appName, userId })) all.push(...page)
  return all.map(({ key, updatedAt }) => toAdk({ key, state: {}, updatedAt }))
}

interface SessionFacts {
  key: SessionKey
  state: State
  updatedAt: number
  events?: AdkEvent[]
}

function toAdk({ key, state, updatedAt, events = [] }: SessionFacts): AdkSession {
  const { sessionId: id, appName, userId } = key
  return { id, appName, userId, state, events, lastUpdateTime: updatedAt }
}

interface AdkNames {
  appName: string
  userId: string
  sessionId: string
}

/** The session that a request names. It must be of this app and of the caller. */
function ownKey(c: Context<ServerEnv>, context: ServerContext, names: AdkNames): SessionKey {
  if (names.appName !== context.info.app) {
    throw notFound(`app "${names.appName}"; this server serves "${context.info.app}"`)
  }
  if (names.userId !== context.userOf(c)) {
    throw new Refusal('forbidden', `These sessions belong to another user: you are "${context.userOf(c)}".`)
  }
  return context.keyOf(c, names.sessionId)
}

/** The session itself, without its messages. */
async function ownSession({ runtime }: ServerContext, key: SessionKey): Promise<Session> {
  const session = await runtime.store.loadSession(key, { maxMessages: 1 })
  if (!session) throw notFound(`session "${key.sessionId}": create it first`)
  return session
}
