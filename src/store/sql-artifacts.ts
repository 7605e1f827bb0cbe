/**
 * Artifacts in SQL. The pieces of a body are written first, in transactions of their own, under an id that nobody
 * knows yet; the row of the version is written with the last piece. So a version is there whole or not at all, and a
 * large one holds neither the database nor the event loop for long. Pieces that a crash leaves belong to their session
 * or user and are deleted with it.
 */
import { randomUUID } from 'node:crypto'
import { createPause } from '../base/pause.js'
import {
  type Artifact,
  type ArtifactKey,
  type ArtifactStore,
  type ArtifactVersion,
  countPieces,
  isUserArtifact,
  pieceOf,
} from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import {
  type Dialect,
  numberIn,
  type Row,
  type SqlDatabase,
  type SqlValue,
  sql,
  type Task,
  textIn,
} from './sql-database.js'
import { findSession } from './sql-load.js'
import { restoreText, storableText } from './storable-text.js'

export class SqlArtifacts implements ArtifactStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async save(key: ArtifactKey, artifact: Artifact): Promise<number> {
    const { dialect } = this.#database
    const blob = randomUUID()
    const last = Math.max(0, countPieces(artifact.body) - 1)
    const pause = createPause()
    for (let number = 0; number < last; number++) {
      const piece = pieceOf(artifact.body, number)
      await this.#database.write(() => pieceTask(dialect, key, { blob, number, piece }))
      await pause()
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#database.write(() => versionTask(dialect, key, { blob, last, artifact }))
      } catch (error) {
        // Another writer has taken the number.
        if (attempt === MOST_ATTEMPTS || !this.#database.isDuplicate(error)) throw error
      }
    }
  }

  async load(key: ArtifactKey, version?: number): Promise<Artifact | undefined> {
    const owner = await this.#ownerOf(key)
    if (owner === undefined) return undefined
    const [row] = await this.#database.run(
      version === undefined
        ? sql(`${READ_VERSION} ORDER BY version DESC LIMIT 1`, ...owner, key.name)
        : sql(`${READ_VERSION} AND version = ?`, ...owner, key.name, version),
    )
    if (row === undefined) return undefined
    const pieces: string[] = []
    const total = numberIn(row, 'pieces')
    const pause = createPause()
    while (pieces.length < total) {
      const place = [textIn(row, 'blob'), pieces.length, pieces.length + PIECES_AT_ONCE]
      const found = await this.#database.run(sql(READ_PIECES, ...owner, ...place))
      // Deleted since the version was found.
      if (found.length === 0) return undefined
      pieces.push(...found.map(piece => restoreText(textIn(piece, 'data'))))
      await pause()
    }
    return { header: headerIn(row), body: pieces.join('') }
  }

  async list(key: SessionKey): Promise<string[]> {
    const { appName, userId } = key
    const owner = (await this.#ownerOf({ ...key, name: '' })) ?? [NO_SESSION, '', '']
    const rows = await this.#database.run(sql(LIST_NAMES, ...owner, 0, appName, userId))
    return rows.map(row => textIn(row, 'name')).sort()
  }

  async versions(key: ArtifactKey): Promise<ArtifactVersion[]> {
    const owner = await this.#ownerOf(key)
    if (owner === undefined) return []
    const rows = await this.#database.run(sql(`${READ_VERSION} ORDER BY version`, ...owner, key.name))
    return rows.map(row => ({ version: numberIn(row, 'version'), header: headerIn(row) }))
  }

  async delete(key: ArtifactKey): Promise<number> {
    const owner = await this.#ownerOf(key)
    if (owner === undefined) return 0
    const gone = await this.#database.run(sql(DELETE_VERSIONS, ...owner, key.name))
    const pause = createPause()
    for (const row of gone) {
      for (let number = 0; number < numberIn(row, 'pieces'); number += PIECES_AT_ONCE) {
        const place = [textIn(row, 'blob'), number, number + PIECES_AT_ONCE]
        await this.#database.run(sql(DELETE_PIECES, ...owner, ...place))
        await pause()
      }
    }
    return gone.length
  }

  async #ownerOf(key: ArtifactKey): Promise<Owner | undefined> {
    const { appName, userId, sessionId, name } = key
    if (isUserArtifact(name)) return [0, appName, userId]
    const [session] = await this.#database.run(sql(FIND_SESSION, appName, userId, sessionId))
    return session && [numberIn(session, 'pk'), '', '']
  }
}

/** The session's key in the database, or the user's names: `session_pk, app_name, user_id`. */
type Owner = readonly [pk: number, appName: string, userId: string]

const MOST_ATTEMPTS = 20
/** About a megabyte. */
const PIECES_AT_ONCE = 4
const NO_SESSION = -1

const OF_OWNER = 'session_pk = ? AND app_name = ? AND user_id = ?'
const FIND_SESSION = 'SELECT pk FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?'
const READ_VERSION = `SELECT version, blob, pieces, header FROM lango_artifacts WHERE ${OF_OWNER} AND name = ?`
const OF_PIECES = `${OF_OWNER} AND blob = ? AND number >= ? AND number < ?`
const READ_PIECES = `SELECT data FROM lango_artifact_pieces WHERE ${OF_PIECES} ORDER BY number`
const DELETE_PIECES = `DELETE FROM lango_artifact_pieces WHERE ${OF_PIECES}`
const DELETE_VERSIONS = `DELETE FROM lango_artifacts WHERE ${OF_OWNER} AND name = ? RETURNING blob, pieces`
const LIST_NAMES = `SELECT DISTINCT name FROM lango_artifacts WHERE (${OF_OWNER}) OR (${OF_OWNER})`

interface Piece {
  blob: string
  number: number
  piece: string
}

function* pieceTask(dialect: Dialect, key: ArtifactKey, { blob, number, piece }: Piece): Task<Owner> {
  const owner = yield* ownerTask(dialect, key)
  const values: SqlValue[] = [...owner, blob, number, storableText(piece)]
  yield sql(
    'INSERT INTO lango_artifact_pieces (session_pk, app_name, user_id, blob, number, data) VALUES (?, ?, ?, ?, ?, ?)',
    ...values,
  )
  return owner
}

/** The last piece, and the row that makes the version visible. */
function* versionTask(
  dialect: Dialect,
  key: ArtifactKey,
  { blob, last, artifact }: { blob: string; last: number; artifact: Artifact },
): Task<number> {
  const { header, body } = artifact
  const owner =
    body === ''
      ? yield* ownerTask(dialect, key)
      : yield* pieceTask(dialect, key, { blob, number: last, piece: pieceOf(body, last) })
  const [newest] = yield sql(`${READ_VERSION} ORDER BY version DESC LIMIT 1`, ...owner, key.name)
  const version = newest === undefined ? 0 : numberIn(newest, 'version') + 1
  const values = [key.name, version, blob, countPieces(body), storableText(JSON.stringify(header))]
  yield sql(
    `INSERT INTO lango_artifacts (session_pk, app_name, user_id, name, version, blob, pieces, header)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ...owner,
    ...values,
  )
  return version
}

/** Keeps the session from being deleted until the transaction ends: otherwise rows would stay behind. */
function* ownerTask(dialect: Dialect, key: ArtifactKey): Task<Owner> {
  if (isUserArtifact(key.name)) return [0, key.appName, key.userId]
  const session = yield* findSession(key, dialect.forKeyShare)
  return [numberIn(session, 'pk'), '', '']
}

function headerIn(row: Row): Artifact['header'] {
  return JSON.parse(restoreText(textIn(row, 'header'))) as Artifact['header']
}

/** Copies the artifacts of a session to a copy of it, in slices. */
export async function copyArtifacts(database: SqlDatabase, fromPk: number, pk: number): Promise<void> {
  const versions = await database.run(sql(LIST_BLOBS, fromPk))
  const pause = createPause()
  for (const row of versions) {
    for (let number = 0; number < numberIn(row, 'pieces'); number += PIECES_AT_ONCE) {
      const place = [textIn(row, 'blob'), number, number + PIECES_AT_ONCE]
      await database.run(sql(COPY_PIECES, pk, fromPk, '', '', ...place))
      await pause()
    }
  }
  if (versions.length > 0) await database.run(sql(COPY_VERSIONS, pk, fromPk))
}

/** Whether a session has artifacts: copying them may take long. */
export function* hasArtifactsTask(pk: number): Task<boolean> {
  return (yield sql(`${LIST_BLOBS} LIMIT 1`, pk)).length > 0
}

const LIST_BLOBS = 'SELECT blob, pieces FROM lango_artifacts WHERE session_pk = ?'
const COPY_PIECES = `INSERT INTO lango_artifact_pieces (session_pk, app_name, user_id, blob, number, data)
  SELECT CAST(? AS BIGINT), app_name, user_id, blob, number, data FROM lango_artifact_pieces WHERE ${OF_PIECES}`
const COPY_VERSIONS = `INSERT INTO lango_artifacts (session_pk, app_name, user_id, name, version, blob, pieces, header)
  SELECT CAST(? AS BIGINT), app_name, user_id, name, version, blob, pieces, header
    FROM lango_artifacts WHERE session_pk = ?`
