import {
  type Artifact,
  type ArtifactKey,
  type ArtifactStore,
  type ArtifactVersion,
  countPieces,
  isUserArtifact,
} from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import type { EraseCounts, UserKey } from '../session/session-store.js'
import { sessionNotFound } from './store-errors.js'

/** The versions of each name. */
export type KeptArtifacts = Map<string, Artifact[]>

interface ArtifactPlaces {
  assertOpen(): void
  /** The session that artifacts are kept with. */
  sessionOf(key: SessionKey): { artifacts: KeptArtifacts } | undefined
}

/** Artifacts of sessions in memory, and those of users. */
export class MemoryArtifacts implements ArtifactStore {
  readonly #places: ArtifactPlaces
  readonly #users = new Map<string, KeptArtifacts>()

  constructor(places: ArtifactPlaces) {
    this.#places = places
  }

  async save(key: ArtifactKey, artifact: Artifact): Promise<number> {
    const kept = this.#keptFor(key)
    if (!kept) throw sessionNotFound(key)
    const versions = kept.get(key.name) ?? []
    kept.set(key.name, versions)
    return versions.push(structuredClone(artifact)) - 1
  }

  async load(key: ArtifactKey, version?: number): Promise<Artifact | undefined> {
    const found = this.#versionsOf(key).at(version ?? -1)
    return found && structuredClone(found)
  }

  async list(key: SessionKey): Promise<string[]> {
    const own = this.#keptFor({ ...key, name: '' })?.keys() ?? []
    const users = this.#users.get(userText(key))?.keys() ?? []
    return [...own, ...users].sort()
  }

  async versions(key: ArtifactKey): Promise<ArtifactVersion[]> {
    return this.#versionsOf(key).map(({ header }, version) => ({ version, header: structuredClone(header) }))
  }

  async delete(key: ArtifactKey): Promise<number> {
    const count = this.#versionsOf(key).length
    this.#keptFor(key)?.delete(key.name)
    return count
  }

  /** Deletes what belongs to the user and to no session, and counts it. */
  deleteUser(owner: UserKey): Partial<EraseCounts> {
    const counts = countArtifacts(this.#users.get(userText(owner)) ?? new Map())
    this.#users.delete(userText(owner))
    return counts
  }

  #versionsOf(key: ArtifactKey): Artifact[] {
    return this.#keptFor(key)?.get(key.name) ?? []
  }

  #keptFor(key: ArtifactKey): KeptArtifacts | undefined {
    this.#places.assertOpen()
    if (!isUserArtifact(key.name)) return this.#places.sessionOf(key)?.artifacts
    const kept = this.#users.get(userText(key)) ?? new Map()
    this.#users.set(userText(key), kept)
    return kept
  }
}

export function countArtifacts(kept: KeptArtifacts): Partial<EraseCounts> {
  const all = [...kept.values()].flat()
  const pieces = all.reduce((sum, { body }) => sum + countPieces(body), 0)
  return { artifacts: all.length, artifactPieces: pieces }
}

export function copyArtifactMap(kept: KeptArtifacts): KeptArtifacts {
  return new Map([...kept].map(([name, versions]) => [name, [...versions]]))
}

function userText({ appName, userId }: UserKey): string {
  return JSON.stringify([appName, userId])
}
