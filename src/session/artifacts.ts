import type { SessionKey } from './message.js'

/**
 * Files that agents keep, in versions that are numbered from 0. A name that starts with `user:` belongs to the user and
 * is seen in all sessions of the user; any other name belongs to its session and is deleted with it.
 */
export interface ArtifactStore {
  /** Stores a new version and returns its number. `session-not-found`. */
  save(key: ArtifactKey, artifact: Artifact): Promise<number>
  /** A version, by default the newest, or `undefined`. */
  load(key: ArtifactKey, version?: number): Promise<Artifact | undefined>
  /** The names of the session and of its user, sorted. */
  list(key: SessionKey): Promise<string[]>
  /** The versions without their content, oldest first. */
  versions(key: ArtifactKey): Promise<ArtifactVersion[]>
  /** Deletes all versions and returns how many there were. */
  delete(key: ArtifactKey): Promise<number>
}

export interface ArtifactKey extends SessionKey {
  name: string
}

/** What is small, and what may be large: the body is stored and read in pieces, so that the event loop stays free. */
export interface Artifact {
  /** JSON data. */
  header: Readonly<Record<string, unknown>>
  body: string
}

export interface ArtifactVersion {
  version: number
  header: Artifact['header']
}

/** Whether a name belongs to the user and not to one session. */
export function isUserArtifact(name: string): boolean {
  return name.startsWith('user:')
}

/** Characters of one piece of a body. */
const PIECE_LENGTH = 256 * 1024

/** How many pieces a body has. */
export function countPieces(body: string): number {
  return Math.ceil(body.length / PIECE_LENGTH)
}

/** A piece of a body, by its number. */
export function pieceOf(body: string, number: number): string {
  return body.slice(number * PIECE_LENGTH, (number + 1) * PIECE_LENGTH)
}
