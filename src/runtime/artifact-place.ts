/** Artifacts outside the store: in this process, or in a folder. They are deleted with their sessions all the same. */
import { readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { stableJson } from '../base/stable-json.js'
import { AgentError, invariant } from '../errors.js'
import { callScope, nodeScope, workScope } from '../run/run-journal.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import type { ArtifactKey, ArtifactStore } from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import { sessionPages } from '../session/session-pages.js'
import type { SessionStore, UserKey } from '../session/session-store.js'
import { openStore } from '../store/open-store.js'
import type { ArtifactOptions, CheckedOptions } from './options.js'

interface ArtifactPlace {
  /** `store`, `memory:`, or the absolute path of a folder. */
  place: string
  maxBytes?: number | undefined
}

export function artifactPlace({ artifacts = {} }: Pick<CheckedOptions, 'artifacts'>): ArtifactPlace {
  const { place = 'store', maxBytes }: ArtifactOptions =
    typeof artifacts === 'string' ? { place: artifacts } : artifacts
  return { place: isFolder(place) ? resolve(place) : place, maxBytes }
}

export function isFolder(place: string): boolean {
  return place !== 'store' && place !== 'memory:'
}

/** The folder of an app's artifacts. ADK's file service has folders for users and sessions, and none for apps. */
export function folderOf(place: string, appName: string): string {
  if (appName === '.' || appName === '..')
    throw new AgentError(
      'invalid-config',
      `The app "${appName}" cannot have a folder for artifacts. Rename it.`,
    )
  return join(place, encodeURIComponent(appName))
}

/** The store, with artifacts where the options say. */
export async function placeArtifacts(
  store: SessionStore,
  options: Pick<CheckedOptions, 'artifacts' | 'adk'>,
): Promise<SessionStore> {
  const { place } = artifactPlace(options)
  if (options.adk?.artifactService || place === 'store') return store
  return place === 'memory:' ? inMemory(store) : inFolder(store, place)
}

/** In the sessions of another store, which have nothing else. */
async function inMemory(store: SessionStore): Promise<SessionStore> {
  const kept = await openStore('memory:')
  const inner = kept.artifacts
  invariant(inner && kept.erase, 'a store of Lango keeps artifacts and erases users')
  const artifacts: ArtifactStore = {
    save: async ({ name, ...key }, artifact) => {
      await ensureSession(kept, key)
      return inner.save({ ...key, name }, artifact)
    },
    load: (key, version) => inner.load(key, version),
    list: key => inner.list(key),
    versions: key => inner.versions(key),
    delete: key => inner.delete(key),
  }
  return overridden(store, {
    artifacts,
    sessionsOf: async appName => {
      const keys: SessionKey[] = []
      for await (const page of sessionPages(kept, { appName })) keys.push(...page.map(({ key }) => key))
      return keys
    },
    forgetSession: async key => void (await kept.deleteSession(key)),
    forgetUser: async owner => (await kept.erase?.(owner))?.artifacts ?? 0,
    close: () => kept.close(),
  })
}

async function ensureSession(store: SessionStore, key: SessionKey): Promise<void> {
  if (await store.describeSession(key)) return
  try {
    await store.createSession(key)
  } catch (error) {
    // Another artifact of the session was saved meanwhile.
    if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
  }
}

function inFolder(store: SessionStore, place: string): SessionStore {
  const userFolder = ({ appName, userId }: UserKey) => join(folderOf(place, appName), 'users', userId)
  const remove = async (folder: string) => {
    const count = await versionsIn(folder)
    await rm(folder, { recursive: true, force: true })
    return count
  }
  return overridden(store, {
    sessionsOf: async appName => {
      const users = join(folderOf(place, appName), 'users')
      const keys: SessionKey[] = []
      for (const userId of await namesIn(users))
        for (const sessionId of await namesIn(join(users, userId, 'sessions')))
          keys.push({ appName, userId, sessionId })
      return keys
    },
    forgetSession: async key => {
      if (isSegment(key.userId) && isSegment(key.sessionId))
        await remove(join(userFolder(key), 'sessions', key.sessionId))
    },
    forgetUser: async owner => (isSegment(owner.userId) ? remove(userFolder(owner)) : 0),
  })
}

/**
 * The same artifacts, except that a run saves each version once. Callbacks and plugins of a resumed run are called again,
 * and save again what they have saved: where the place and the content are the same, they are given that version.
 */
export function savedOnce(artifacts: ArtifactStore): ArtifactStore {
  /** The versions of earlier attempts that were not given again. */
  const earlier = new WeakMap<RunScope, Map<string, Promise<number[]>>>()
  const earlierOf = (scope: RunScope, key: ArtifactKey, savedBy: string) => {
    const lists = earlier.get(scope) ?? new Map<string, Promise<number[]>>()
    earlier.set(scope, lists)
    const name = JSON.stringify([key, savedBy])
    const list = lists.get(name) ?? versionsBy(artifacts, key, savedBy)
    lists.set(name, list)
    return list
  }
  const save: ArtifactStore['save'] = async (key, given) => {
    const scope = runScope.getStore()
    if (!scope) return artifacts.save(key, given)
    const call = workScope.getStore() ?? callScope.getStore() ?? ''
    const savedBy = [scope.place(), call, nodeScope.getStore() ?? ''].join(' ')
    const artifact = { ...given, header: { ...given.header, savedBy } }
    const versions = scope.isResumed ? await earlierOf(scope, key, savedBy) : []
    for (const version of [...versions]) {
      const saved = await artifacts.load(key, version)
      if (!saved || stableJson(saved) !== stableJson(artifact) || !versions.includes(version)) continue
      versions.splice(versions.indexOf(version), 1)
      return version
    }
    return artifacts.save(key, artifact)
  }
  return {
    save,
    load: (key, version) => artifacts.load(key, version),
    list: key => artifacts.list(key),
    versions: key => artifacts.versions(key),
    delete: key => artifacts.delete(key),
  }
}

async function versionsBy(artifacts: ArtifactStore, key: ArtifactKey, savedBy: string): Promise<number[]> {
  const found = await artifacts.versions(key)
  return found.filter(({ header }) => header.savedBy === savedBy).map(({ version }) => version)
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}

/** ADK's file service keeps each version of an artifact in a folder with a number, below `versions`. */
async function versionsIn(folder: string): Promise<number> {
  const found = await readdir(folder, { recursive: true }).catch(() => [])
  return found.filter(path => /(^|[\\/])versions[\\/]\d+$/.test(path)).length
}

/** Names that ADK's file service takes as folders; under others it stores nothing. */
function isSegment(name: string): boolean {
  return /^[a-zA-Z0-9_@-][a-zA-Z0-9_.@-]{0,255}$/.test(name)
}

interface Placed {
  artifacts?: SessionStore['artifacts']
  /** The sessions of an app that have artifacts here. */
  sessionsOf(appName: string): Promise<SessionKey[]>
  forgetSession(key: SessionKey): Promise<void>
  /** Returns how many versions of artifacts it has deleted. */
  forgetUser(owner: UserKey): Promise<number>
  close?(): Promise<void>
}

/** The same store, except that deleting also deletes what is placed elsewhere. */
function overridden(store: SessionStore, placed: Placed): SessionStore {
  const { artifacts, forgetSession, forgetUser } = placed
  const own: Partial<SessionStore> = {
    ...(artifacts ? { artifacts } : {}),
    close: async () => {
      await store.close()
      await placed.close?.()
    },
    deleteSession: async key => {
      const isDeleted = await store.deleteSession(key)
      await forgetSession(key)
      return isDeleted
    },
    erase: async (owner, options) => {
      const receipt = await store.erase(owner, options)
      return { ...receipt, artifacts: receipt.artifacts + (await forgetUser(owner)) }
    },
    expire: async options => {
      // Only what this store had: another one may use the same folder.
      const had = await known(store, await placed.sessionsOf(options.appName))
      const receipt = await store.expire(options)
      const kept = receipt.sessions > 0 ? new Set(await known(store, had)) : new Set(had)
      for (const key of had) if (!kept.has(key)) await forgetSession(key)
      return receipt
    },
  }
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Object.hasOwn(own, name) ? Reflect.get(own, name) : Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Those of the sessions that a store has. */
async function known(store: SessionStore, keys: readonly SessionKey[]): Promise<SessionKey[]> {
  const found: SessionKey[] = []
  for (const key of keys) if (await store.describeSession(key)) found.push(key)
  return found
}
