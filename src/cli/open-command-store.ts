import { existsSync } from 'node:fs'
import { defined } from '../base/defined.js'
import { readPages } from '../base/read-pages.js'
import { loadStoreSettings, type StoreSettings } from '../config/load-store-settings.js'
import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { inspectStore, openStore } from '../store/open-store.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { settleTrust } from './settle-trust.js'

/** The store of a command, and the app whose sessions it reads. */
export interface CommandStore {
  store: SessionStore
  app: string
}

/**
 * Opens the store that flags, environment or configuration name, passes it to `work`, and closes it. A missing
 * file is created only with `creates`; otherwise it is an empty store.
 */
export async function withStore<Result>(
  io: Io,
  flags: Flags,
  work: (opened: CommandStore) => Promise<Result>,
  { creates = false } = {},
): Promise<Result> {
  const settings = await storeSettings(io, flags)
  const isAbsent = !creates && (await isAbsentFile(settings.store))
  const opened = await openStore(isAbsent ? 'memory:' : settings.store)
  const store = await withArtifacts(opened, settings)
  try {
    return await work({ store, app: settings.app })
  } finally {
    await store.close()
  }
}

/** Artifacts in a folder are deleted with their sessions, too. */
async function withArtifacts(store: SessionStore, { artifacts }: StoreSettings): Promise<SessionStore> {
  if (artifacts === undefined) return store
  const { placeArtifacts } = await import('../runtime/artifact-place.js')
  return placeArtifacts(store, { artifacts })
}

/** The store that flags, environment or configuration name, and the app. */
export async function storeSettings(io: Io, flags: Flags): Promise<StoreSettings> {
  const { folder } = await settleTrust(io, flags, { runs: false })
  return loadStoreSettings({ ...folder, file: flags.config, app: flags.app, store: flags.store })
}

/** A quick check of the path first; the store itself is loaded only when nothing is found there. */
export async function isAbsentFile(url: string): Promise<boolean> {
  const path = /^sqlite:([^?]*)/.exec(url)?.[1]
  if (path === undefined || existsSync(path)) return false
  return !(await inspectStore(url)).exists
}

/** The keys of an app's sessions, newest first, a page at a time. */
export async function* sessionKeys(
  { store, app }: CommandStore,
  { userId, search }: { userId?: string | undefined; search?: string | undefined } = {},
): AsyncGenerator<SessionKey> {
  const query = { appName: app, limit: PAGE, ...defined({ userId, search }) }
  const pages = readPages(async (cursor: string | undefined) => {
    const { sessions, nextCursor } = await store.listSessions({ ...query, ...defined({ cursor }) })
    return { items: sessions, next: nextCursor }
  })
  for await (const sessions of pages) {
    for (const { key } of sessions) yield key
  }
}

const PAGE = 1000

/** Sessions that are searched for an id; beyond that --user is needed. */
const MOST_SEARCHED = 100_000

/** The session with that id: the user's, or the only one of the app. Throws `session-not-found`. */
export async function findSession(
  { store, app }: CommandStore,
  sessionId: string,
  userId: string | undefined,
): Promise<SessionKey> {
  const key = { appName: app, userId: userId ?? 'user', sessionId }
  if ((await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })) !== undefined) return key
  if (userId !== undefined) throw notFound(sessionId, `of the user "${userId}"`, [])
  const { found, similar } = await search({ store, app }, sessionId)
  const [only, ...others] = found
  if (only === undefined) throw notFound(sessionId, `in the app "${app}"`, similar)
  if (others.length === 0) return only
  const users = found.map(each => each.userId).join(', ')
  throw new AgentError(
    'invalid-argument',
    `Several users have a session "${sessionId}": ${users}. Choose one with --user.`,
  )
}

async function search(
  opened: CommandStore,
  sessionId: string,
): Promise<{ found: SessionKey[]; similar: string[] }> {
  const found: SessionKey[] = []
  const similar: string[] = []
  let searched = 0
  for await (const key of sessionKeys(opened, { search: sessionId })) {
    if (key.sessionId === sessionId) found.push(key)
    else if (key.sessionId.startsWith(sessionId) && similar.length < 3) similar.push(key.sessionId)
    if (++searched >= MOST_SEARCHED) break
  }
  return { found, similar }
}

function notFound(sessionId: string, where: string, similar: readonly string[]): AgentError {
  const fix =
    similar.length > 0
      ? `Did you mean ${similar.join(' or ')}?`
      : "Run 'lango sessions list' to list sessions."
  return new AgentError('session-not-found', `No session "${sessionId}" ${where}. ${fix}`)
}
