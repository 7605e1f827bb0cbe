/** ADK's routes, as `adk api_server` serves them. */

import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { letOthersRun } from '../../../base/pause.js'
import type { SessionKey, State } from '../../../session/message.js'
import { sessionPages } from '../../../session/session-pages.js'
import type { SessionSummary } from '../../../session/session-store.js'
import { clientState, JsonObject } from '../../client-json.js'
import { errorResponse } from '../../error-response.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { jsonInPieces } from '../../sse.js'
import { badField, readBody } from '../read-body.js'
import { ownKey, ownSession } from './adk-place.js'
import { type AdkEvent, askingRun, isAsked, turnsOf, waitingEvent } from './adk-run.js'
import { mountAdkRuns } from './adk-run-routes.js'
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
  const waiting = run && (await askingRun(context, run))
  const last = events.findLast(({ author }) => author !== 'user') ?? { author: 'lango', invocationId: '' }
  return toAdk({
    key,
    state,
    updatedAt,
    events: turnsOf(waiting && !isAsked(events, waiting) ? [...events, waitingEvent(waiting, last)] : events),
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
