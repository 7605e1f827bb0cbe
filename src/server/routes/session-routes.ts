import { randomUUID } from 'node:crypto'
import { defined } from '../../base/defined.js'
import { titleOfMessage } from '../../base/title.js'
import { AgentError } from '../../errors.js'
import { deleteSessionOf } from '../../session/delete-session.js'
import type { SessionKey } from '../../session/message.js'
import type { SessionStore, SessionSummary } from '../../session/session-store.js'
import type {
  EraseReceipt,
  MessagePage,
  RunItem,
  SessionDetail,
  SessionItem,
  SessionList,
  VariantItem,
  VariantList,
} from '../chat-protocol.js'
import { Refusal } from '../refusal.js'
import type { ServerContext } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

/** How many keys of `user:` state stay after the deletion of a user's last session. */
const KEPT_STATE_HEADER = 'Lango-Kept-User-State'

/** Sessions of the caller: list, create, read, rename, copy, lint, delete. */
export function mountSessionRoutes(api: ApiApp, context: ServerContext): void {
  mountList(api, context)
  mountOne(api, context)
  mountReading(api, context)
  mountFork(api, context)
  mountErase(api, context)
}

function mountList(api: ApiApp, context: ServerContext): void {
  const { store } = context.runtime
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/sessions',
      summary: 'The sessions, newest first',
      query: schemas.SessionQuery,
      answer: { status: 200, schema: schemas.SessionList, description: 'A page of sessions' },
    },
    async (c, { query }) => {
      const { appName, userId } = context.keyOf(c, '-')
      const page = await store.listSessions({ appName, userId, ...defined(query) })
      const runs = await runsOf(context, { appName, userId })
      const list: SessionList = {
        sessions: page.sessions.map(session => toItem(session, runs)),
        ...defined({ nextCursor: page.nextCursor }),
      }
      return c.json(list)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/sessions',
      summary: 'A new, empty session',
      body: schemas.NewSession,
      bodyOptional: true,
      answer: { status: 201, schema: schemas.SessionItem, description: 'The session' },
    },
    async (c, { body }) => {
      const key = context.keyOf(c, body.sessionId ?? randomUUID())
      await store.createSession(key, {}, defined({ title: body.title }))
      return c.json(await itemOf(context, key), 201)
    },
  )
}

function mountOne(api: ApiApp, context: ServerContext): void {
  const { store } = context.runtime
  const path = '/api/sessions/{sessionId}'
  const params = schemas.SessionParameter
  addRoute(
    api,
    {
      method: 'get',
      path,
      summary: 'A session, what it has used, and its newest run',
      params,
      answer: { status: 200, schema: schemas.SessionDetail, description: 'The session' },
    },
    async (c, { params: { sessionId } }) => c.json(await detailOf(context, context.keyOf(c, sessionId))),
  )
  addRoute(
    api,
    {
      method: 'patch',
      path,
      summary: 'Give a session a title, or make it the listed variant of a chat',
      params,
      body: schemas.SessionChange,
      answer: { status: 200, schema: schemas.SessionItem, description: 'The session' },
    },
    async (c, { params: { sessionId }, body }) => {
      const key = context.keyOf(c, sessionId)
      if (body.variantOf !== undefined) await showVariant(store, key, body.variantOf)
      if (body.title !== undefined) await store.renameSession(key, body.title)
      return c.json(await itemOf(context, key))
    },
  )
  addRoute(
    api,
    {
      method: 'delete',
      path,
      summary: 'Delete a session with its messages; its run is stopped',
      params,
      answer: {
        status: 204,
        description: `The session was deleted. When it was the user's last one and \`user:\` state stays, the header ${KEPT_STATE_HEADER} has the number of its keys: DELETE /api/users/{userId}/data deletes them`,
      },
    },
    async (c, { params: { sessionId } }) => {
      const key = context.keyOf(c, sessionId)
      for (const deleted of await deletedWith(store, key)) {
        const [newest] = await context.hub.list(deleted, 1)
        if (newest && newest.status !== 'finished') await context.hub.stop(newest.runId)
      }
      const { isDeleted, keptState } = await deleteSessionOf(store, key)
      if (!isDeleted) throw noSession(key)
      if (keptState.length > 0) c.header(KEPT_STATE_HEADER, String(keptState.length))
      return c.body(null, 204)
    },
  )
}

function mountReading(api: ApiApp, context: ServerContext): void {
  const { runtime } = context
  const params = schemas.SessionParameter
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/sessions/{sessionId}/messages',
      summary: 'Messages in order; without a bound, the newest',
      params,
      query: schemas.MessageQuery,
      answer: { status: 200, schema: schemas.MessagePage, description: 'A page of messages' },
    },
    async (c, { params: { sessionId }, query }) => {
      const key = context.keyOf(c, sessionId)
      const session = await runtime.store.loadSession(key, { maxMessages: 1 })
      if (!session) throw noSession(key)
      const messages = await runtime.messages(key, defined(query))
      const page: MessagePage = { messages, totalMessages: session.totalMessages }
      return c.json(page)
    },
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/sessions/{sessionId}/variants',
      summary: 'The variants of a chat, oldest first',
      params,
      answer: { status: 200, schema: schemas.VariantList, description: 'The variants' },
    },
    async (c, { params: { sessionId } }) =>
      c.json(await variantsOf(runtime.store, context.keyOf(c, sessionId))),
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/sessions/{sessionId}/lint',
      summary: 'What each provider would reject if the history were sent unrepaired',
      params,
      query: schemas.LintQuery,
      answer: { status: 200, schema: schemas.SessionLint, description: 'Findings by profile' },
    },
    async (c, { params: { sessionId }, query: { profile } }) => {
      const profiles = profile?.split(',').filter(name => name !== '')
      return c.json(await runtime.lint(context.keyOf(c, sessionId), defined({ profiles })))
    },
  )
}

function mountFork(api: ApiApp, context: ServerContext): void {
  const { keyOf } = context
  const { store } = context.runtime
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/sessions/{sessionId}/fork',
      summary: 'A copy of a session, up to and including a message',
      params: schemas.SessionParameter,
      body: schemas.ForkRequest,
      bodyOptional: true,
      answer: { status: 201, schema: schemas.SessionItem, description: 'The copy' },
    },
    async (c, { params: { sessionId }, body: { throughSeq, title, sessionId: newId = randomUUID() } }) => {
      const key = keyOf(c, sessionId)
      const copy = keyOf(c, newId)
      if (throughSeq === 0) await emptyCopy(store, key, copy)
      else await store.forkSession(key, newId, defined({ throughSeq }))
      if (title !== undefined) await store.renameSession(copy, title)
      return c.json(await itemOf(context, copy), 201)
    },
  )
}

/** A user may erase their own data; an operator erases anyone's with `lango erase`. */
function mountErase(api: ApiApp, { runtime, userOf, logger }: ServerContext): void {
  addRoute(
    api,
    {
      method: 'delete',
      path: '/api/users/{userId}/data',
      summary: 'Erase everything stored about the caller; running runs are stopped',
      params: schemas.UserParameter,
      answer: { status: 200, schema: schemas.EraseReceipt, description: 'What was deleted' },
    },
    async (c, { params: { userId } }) => {
      if (userId !== userOf(c)) {
        throw new Refusal('forbidden', 'Only your own data can be erased here. Operators use "lango erase".')
      }
      const receipt: EraseReceipt = await runtime.erase(userId)
      logger.info('The data of a user was erased', { ...receipt })
      return c.json(receipt)
    },
  )
}

/** The listed variant of a chat is deleted with all others, any other one alone. */
async function deletedWith({ variants }: SessionStore, key: SessionKey): Promise<SessionKey[]> {
  const found = await variants.list(key).catch(() => [])
  const isListed = found.some(variant => variant.isListed && variant.sessionId === key.sessionId)
  return isListed ? found.map(({ sessionId }) => ({ ...key, sessionId })) : [key]
}

/** The chat keeps a title that somebody gave it. A title that was made of the first message follows the variant. */
async function showVariant(store: SessionStore, key: SessionKey, of: string): Promise<void> {
  const { variants } = store
  const listed = (await variants.list({ ...key, sessionId: of })).find(({ isListed }) => isListed)
  const opening = listed && (await openingTitle(store, { ...key, sessionId: listed.sessionId }))
  await variants.show(key, of)
  const { title } = (await store.describeSession(key)) ?? {}
  const next = title !== undefined && title === opening ? await openingTitle(store, key) : undefined
  if (next !== undefined && next !== title) await store.renameSession(key, next)
}

/** The title that the first message of a session gives; `undefined` when it gives none. */
async function openingTitle(store: SessionStore, key: SessionKey): Promise<string | undefined> {
  const [first] = await store.readMessages(key, { afterSeq: 0, limit: 1 })
  return first?.role === 'user' ? titleOfMessage(first.content) || undefined : undefined
}

async function variantsOf(store: SessionStore, key: SessionKey): Promise<VariantList> {
  const found = await store.variants.list(key)
  const own = found.find(({ sessionId }) => sessionId === key.sessionId)
  const variants: VariantItem[] = []
  for (const { isListed, ...variant } of found) {
    const most = Math.min(own?.totalMessages ?? 0, variant.totalMessages)
    const sharedMessages = await countShared(store, [key, { ...key, sessionId: variant.sessionId }], most)
    variants.push({ ...variant, listed: isListed, sharedMessages })
  }
  return { variants }
}

/** Variants are equal up to where they part, and nowhere after: that place is found by halving. */
async function countShared(
  store: SessionStore,
  [one, other]: readonly [SessionKey, SessionKey],
  most: number,
): Promise<number> {
  if (one.sessionId === other.sessionId) return most
  const textAt = async (key: SessionKey, seq: number) =>
    JSON.stringify(await store.readMessages(key, { afterSeq: seq - 1, limit: 1 }))
  let [shared, parted] = [0, most + 1]
  while (parted - shared > 1) {
    const middle = Math.floor((shared + parted) / 2)
    if ((await textAt(one, middle)) === (await textAt(other, middle))) shared = middle
    else parted = middle
  }
  return shared
}

/** A copy without messages. It keeps the title; state of the user and the app is shared anyway. */
async function emptyCopy(store: SessionStore, key: SessionKey, copy: SessionKey): Promise<void> {
  const source = await store.loadSession(key, { maxMessages: 1 })
  if (!source) throw noSession(key)
  await store.createSession(copy, {}, defined({ title: source.title }))
}

async function detailOf(context: ServerContext, key: SessionKey): Promise<SessionDetail> {
  const { runtime, hub } = context
  const [item, usage, runs, later] = await Promise.all([
    itemOf(context, key),
    runtime.usage(key),
    hub.list(key, 20),
    hub.scheduled(key, 1),
  ])
  const active = activeOf(runs)
  const activeRun = active && (await hub.withQuestions(active))
  return { ...item, usage, ...defined({ activeRun, lastRun: runs[0], nextRun: later[0] }) }
}

/** The run that has the session, or else the next one in its queue. */
function activeOf(runs: readonly RunItem[]): RunItem | undefined {
  const begun = runs.find(({ status }) => status === 'running' || status === 'waiting')
  const queued = runs.filter(({ status }) => status === 'queued')
  return begun ?? queued.sort((one, other) => (one.place ?? 0) - (other.place ?? 0))[0]
}

/** The ids of a user's sessions with a run that is running or waits. */
interface SessionRuns {
  running: ReadonlySet<string>
  waiting: ReadonlySet<string>
}

async function runsOf(
  { hub }: ServerContext,
  { appName, userId }: Omit<SessionKey, 'sessionId'>,
): Promise<SessionRuns> {
  const waiting = (await hub.waiting()).filter(({ key }) => key.appName === appName && key.userId === userId)
  return {
    running: hub.runningSessions(appName, userId),
    waiting: new Set(waiting.map(({ key }) => key.sessionId)),
  }
}

/** A session as an item of the list. Fails when it does not exist. */
async function itemOf(context: ServerContext, key: SessionKey): Promise<SessionItem> {
  const summary = await context.runtime.store.describeSession(key)
  if (!summary) throw noSession(key)
  return toItem(summary, await runsOf(context, key))
}

function toItem(session: SessionSummary, { running, waiting }: SessionRuns): SessionItem {
  const { key, title, preview, totalMessages, totalTokens, createdAt, updatedAt } = session
  return {
    sessionId: key.sessionId,
    ...defined({ title, preview }),
    totalMessages,
    totalTokens,
    createdAt,
    updatedAt,
    ...(waiting.has(key.sessionId) ? { waiting: true } : running.has(key.sessionId) ? { running: true } : {}),
  }
}

function noSession({ sessionId }: SessionKey): AgentError {
  return new AgentError('session-not-found', `There is no session "${sessionId}".`)
}
