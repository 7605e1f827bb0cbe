import { randomUUID } from 'node:crypto'
import type { Context, Hono } from 'hono'
import { z } from 'zod'
import type { SessionKey, State } from '../../../session/message.js'
import type { SessionSummary } from '../../../session/session-store.js'
import { clientState, JsonObject } from '../../routes/client-state.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { badField, readBody } from '../read-body.js'
import { ownKey, ownSession } from './adk-owner.js'
import type { AdkEvent } from './adk-run-events.js'

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
export function mountAdkSessions(app: Hono<ServerEnv>, context: ServerContext): void {
  const { store } = context.runtime
  app.get(SESSIONS, async c => c.json(await listAll(context, keyIn(c, context, ''))))
  app.post(SESSIONS, async c => {
    const { sessionId, state, events } = await readBody(c, NewSession)
    refuseEvents(events)
    return c.json(await create(context, keyIn(c, context, sessionId ?? randomUUID()), state ?? {}))
  })
  app.get(SESSION, async c => c.json(await whole(context, keyIn(c, context))))
  app.post(SESSION, async c => {
    const body = await readBody(c, JsonObject)
    const key = keyIn(c, context)
    // ADK for JavaScript takes { state }, ADK for Python also the state by itself.
    const { state, events } = NewSession.safeParse(body).data ?? {}
    refuseEvents(events)
    return c.json(await create(context, key, 'state' in body ? (state ?? {}) : body))
  })
  app.patch(SESSION, async c => {
    const { stateDelta } = await readBody(c, StateChange)
    const key = keyIn(c, context)
    await ownSession(context, key)
    await store.updateState(key, clientState(stateDelta))
    return c.json(await whole(context, key))
  })
  app.delete(SESSION, async c => {
    const key = keyIn(c, context)
    await ownSession(context, key)
    const [newest] = await context.hub.list(key, 1)
    if (newest?.status === 'running') await context.hub.stop(newest.runId)
    await store.deleteSession(key)
    // Not 204: ADK's own client reads the answer as JSON.
    return c.json(null)
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
  if (events && events.length > 0) throw badField('events', 'A new session cannot be given events here.')
}

async function create(context: ServerContext, key: SessionKey, state: State): Promise<AdkSession> {
  const session = await context.runtime.store.createSession(key, clientState(state))
  return toAdk({ key, state: session.state, updatedAt: session.updatedAt })
}

async function whole(context: ServerContext, key: SessionKey): Promise<AdkSession> {
  const { state, updatedAt } = await ownSession(context, key)
  return toAdk({ key, state, updatedAt, events: await context.runtime.events(key) })
}

/** All of them, newest first, without state and events, as ADK lists sessions. */
async function listAll({ runtime }: ServerContext, { appName, userId }: SessionKey): Promise<AdkSession[]> {
  const all: SessionSummary[] = []
  let cursor: string | undefined
  do {
    const query = { appName, userId, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const page = await runtime.store.listSessions(query)
    all.push(...page.sessions)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all.map(({ key, updatedAt }) => toAdk({ key, state: {}, updatedAt }))
}

const PAGE = 1000

interface Facts {
  key: SessionKey
  state: State
  updatedAt: number
  events?: AdkEvent[]
}

function toAdk({ key, state, updatedAt, events = [] }: Facts): AdkSession {
  const { sessionId: id, appName, userId } = key
  return { id, appName, userId, state, events, lastUpdateTime: updatedAt }
}
