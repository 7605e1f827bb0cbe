/** Lists of the sessions in memory. Sessions inside others, and variants that are not shown, are in none. */
import type { ListQuery, SessionPage } from '../session/session-store.js'
import { isFound, type PageCursor, readCursor, writeCursor } from './listing.js'
import { type MemorySession, summarize } from './memory-sessions.js'
import { isListed } from './memory-variants.js'

/** One page of the sessions of an app, newest first. */
export function sessionPage(sessions: Iterable<MemorySession>, query: ListQuery): SessionPage {
  const limit = Math.min(query.limit ?? 50, 1000)
  const after = query.cursor === undefined ? undefined : readCursor(query.cursor)
  const found = [...sessions]
    .filter(({ key }) => key.appName === query.appName && (query.userId ?? key.userId) === key.userId)
    .filter(isListed)
    .filter(({ title, key }) => isFound(query.search ?? '', title, key.sessionId))
    .sort(newestFirst)
    .filter(session => after === undefined || newestFirst(session, after) > 0)
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const more = last !== undefined && found.length > limit
  return { sessions: page.map(summarize), ...(more ? { nextCursor: writeCursor(last) } : {}) }
}

/** The names of the apps that have sessions, in alphabetical order. */
export function appNames(sessions: Iterable<MemorySession>): string[] {
  return [...new Set([...sessions].filter(isListed).map(({ key }) => key.appName))].sort()
}

function newestFirst(one: PageCursor, other: PageCursor): number {
  return other.updatedAt - one.updatedAt || other.pk - one.pk
}
