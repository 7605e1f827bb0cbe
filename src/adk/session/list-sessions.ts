import { sessionPages } from '../../session/session-pages.js'
import type { SessionStore, SessionSummary } from '../../session/session-store.js'
import { withoutInheritedNames } from '../adk-quirks.js'
import type { AdkSession, ListSessionsRequest, ListSessionsResponse } from '../sdk.js'

/** The sessions of an app or of one user as ADK lists them: in one of its orders, whole or in part, without events. */
export async function listSessions(
  store: Pick<SessionStore, 'listSessions'>,
  request: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const { limit, page, offset = 0 } = request
  const ordered = inOrder(await summaries(store, request), request.order)
  const first = limit !== undefined && page !== undefined ? (page - 1) * limit : offset
  const chosen = ordered.slice(first, limit === undefined ? undefined : first + limit)
  const totalItems = ordered.length
  const pages =
    limit === undefined ? Math.min(1, totalItems) : limit === 0 ? 0 : Math.ceil(totalItems / limit)
  return {
    sessions: chosen.map(withoutEvents),
    page: limit === undefined ? 1 : (page ?? (limit === 0 ? 1 : Math.floor(first / limit) + 1)),
    limit: limit ?? totalItems,
    totalItems,
    totalPages: pages,
  }
}

async function summaries(
  store: Pick<SessionStore, 'listSessions'>,
  { appName, userId }: ListSessionsRequest,
): Promise<SessionSummary[]> {
  const all: SessionSummary[] = []
  const query = userId === undefined ? { appName } : { appName, userId }
  for await (const page of sessionPages(store, query)) all.push(...page)
  return all
}

/** ADK's three orders: as created, or by the time of the last event in either direction. */
function inOrder(
  newestFirst: readonly SessionSummary[],
  order: ListSessionsRequest['order'],
): SessionSummary[] {
  const byId = (one: SessionSummary, two: SessionSummary) =>
    one.key.sessionId.localeCompare(two.key.sessionId)
  if (order === 'desc')
    return newestFirst.toSorted((one, two) => lastUpdateTime(two) - lastUpdateTime(one) || byId(one, two))
  if (order === 'asc')
    return newestFirst.toSorted((one, two) => lastUpdateTime(one) - lastUpdateTime(two) || byId(one, two))
  return newestFirst.toReversed().sort((one, two) => one.createdAt - two.createdAt)
}

/** As ADK counts it: the time of the last event; a session without events was last changed when the store says. */
function lastUpdateTime({ lastMessageAt, updatedAt }: SessionSummary): number {
  return lastMessageAt ?? updatedAt
}

function withoutEvents(summary: SessionSummary): AdkSession {
  const { appName, userId, sessionId } = summary.key
  return {
    id: sessionId,
    appName,
    userId,
    state: withoutInheritedNames({}),
    events: [],
    lastUpdateTime: lastUpdateTime(summary),
  }
}
