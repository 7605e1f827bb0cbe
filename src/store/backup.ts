/**
 * Copies of a SQLite database, made and put back.
 *
 * - A copy is one snapshot: it is read inside one transaction, while others go on writing.
 * - A copy is one file: its journal is switched off, so that no log belongs to it.
 * - A file appears under its name only when it is complete, checked and on disk.
 */
import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AgentError, messageOf } from '../errors.js'
import type { BackupOptions, BackupReceipt } from '../session/session-store.js'

/** What is needed of a connection. */
export interface Connection {
  exec(text: string): void
  prepare(text: string): { get(): unknown }
  close(): void
}

/** The driver, as far as it is needed here. */
export interface SqliteTools<C extends Connection = Connection> {
  open(file: string, options: { timeout: number }): C
  /** SQLite's online backup. */
  copy(
    source: C,
    path: string,
    options: { rate: number; progress(info: { totalPages: number; remainingPages: number }): void },
  ): Promise<unknown>
}

const BUSY_MS = 10_000
/** Pages per step; between steps the event loop is free. */
const PAGES_PER_STEP = 500

/** Copies the database to a new file. */
export async function backUp<C extends Connection>(
  tools: SqliteTools<C>,
  source: string,
  path: string,
  { overwrite = false, onProgress }: BackupOptions,
): Promise<BackupReceipt> {
  const started = performance.now()
  const target = resolve(path)
  if (target === resolve(source)) throw refused(`${target} is the database itself: name another file`)
  if (!overwrite && (await exists(target)))
    throw refused(`${target} exists: name another file, or overwrite it (--force)`)
  const part = partOf(target)
  try {
    const reader = tools.open(source, { timeout: BUSY_MS })
    try {
      // The first read fixes the snapshot, so that writers cannot make the copy start again.
      reader.exec('BEGIN')
      rowOf(reader, 'SELECT count(*) AS count FROM sqlite_master')
      await tools.copy(reader, part, {
        rate: PAGES_PER_STEP,
        progress: ({ totalPages, remainingPages }) =>
          onProgress?.({ totalPages, donePages: totalPages - remainingPages }),
      })
      // The driver reports no last step.
      const { page_count: pages } = rowOf(reader, 'PRAGMA page_count') as { page_count: number }
      onProgress?.({ totalPages: pages, donePages: pages })
    } finally {
      endAndClose(reader)
    }
    const facts = checkCopy(tools, part)
    await sync(part)
    await rename(part, target)
    await sync(dirname(target))
    const { size } = await stat(target)
    return { path: target, bytes: size, ...facts, durationMs: Math.round(performance.now() - started) }
  } finally {
    await removeAll(part)
  }
}

export interface RestoreOptions {
  onProgress?: (progress: { doneBytes: number; totalBytes: number }) => void
  /** Reads the schema version of the copy, and the newest that this release supports. Fails as opening the copy would. */
  inspect(file: string): Promise<{ version: number; known: number }>
}

export interface RestoreReceipt {
  /** The database that was restored. */
  path: string
  /** Where the earlier database is now; absent when there was none. */
  kept?: string
  bytes: number
  schemaVersion: number
  sessions: number
  messages: number
}

/** Replaces a database with a copy. The earlier one is kept under another name. */
export async function restore(
  tools: SqliteTools,
  file: string,
  database: string,
  options: RestoreOptions,
): Promise<RestoreReceipt> {
  const [source, target] = [resolve(file), resolve(database)]
  if (source === target) throw refused(`${source} is the database itself: name a backup of it`)
  await checkSource(source)
  const part = partOf(target)
  try {
    await copyFile(source, part, options)
    const facts = checkCopy(tools, part)
    const { version, known } = await options.inspect(part)
    if (version > known) throw newerSchema(source, version, known)
    await sync(part)
    const kept = (await exists(target)) ? `${target}.before-restore-${stamp()}` : undefined
    const replace = async () => {
      if (kept !== undefined) for (const end of FILES) await renameIfThere(`${target}${end}`, `${kept}${end}`)
      await rename(part, target)
    }
    if (kept === undefined) await replace()
    else await whileUnused(tools, target, replace)
    await sync(dirname(target))
    const { size } = await stat(target)
    return { path: target, ...(kept === undefined ? {} : { kept }), bytes: size, ...facts }
  } finally {
    await removeAll(part)
  }
}

/** The database, its log and the index of the log. */
const FILES = ['', '-wal', '-shm'] as const

function partOf(target: string): string {
  return `${target}.part-${randomBytes(4).toString('hex')}`
}

function stamp(): string {
  return new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')
}

/** Checks a copy completely and makes one file of it. */
function checkCopy(
  tools: SqliteTools,
  file: string,
): Pick<BackupReceipt, 'schemaVersion' | 'sessions' | 'messages'> {
  let copy: Connection | undefined
  try {
    copy = tools.open(file, { timeout: BUSY_MS })
    copy.exec('PRAGMA trusted_schema = OFF')
    copy.exec('PRAGMA journal_mode = DELETE')
    const { integrity_check: result } = rowOf(copy, 'PRAGMA integrity_check(1)') as {
      integrity_check: string
    }
    if (result !== 'ok') throw damaged(file, result)
    const { present } = rowOf(
      copy,
      "SELECT count(*) AS present FROM sqlite_master WHERE name = 'lango_schema'",
    ) as { present: number }
    if (present === 0) throw refused(`${file} is a SQLite database, but not one of Lango`)
    return rowOf(
      copy,
      `SELECT (SELECT max(version) FROM lango_schema) AS schemaVersion,
          (SELECT count(*) FROM lango_sessions) AS sessions, (SELECT count(*) FROM lango_entries WHERE message_seq IS NOT NULL) AS messages`,
    ) as Pick<BackupReceipt, 'schemaVersion' | 'sessions' | 'messages'>
  } catch (error) {
    throw error instanceof AgentError ? error : damaged(file, messageOf(error))
  } finally {
    copy?.close()
  }
}

async function checkSource(source: string): Promise<void> {
  const found = await stat(source).catch(() => undefined)
  if (!found?.isFile()) throw refused(`${source} is not a file: name a file that lango backup wrote`)
  const log = await stat(`${source}-wal`).catch(() => undefined)
  if (log && log.size > 0) {
    throw refused(
      `${source} has a log next to it (${source}-wal), so it is a database in use or a copy of one, not a backup: ` +
        'copy it with lango backup',
    )
  }
}

async function copyFile(source: string, target: string, { onProgress }: RestoreOptions): Promise<void> {
  const { size: totalBytes } = await stat(source)
  let doneBytes = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      doneBytes += chunk.length
      onProgress?.({ doneBytes, totalBytes })
      done(null, chunk)
    },
  })
  await pipeline(createReadStream(source), counter, createWriteStream(target, { flags: 'wx', mode: 0o600 }))
}

/**
 * Runs `replace` while no other process can use the database. Leaving the write-ahead log needs the file alone, and
 * fails while anyone else has it open. A database that is too damaged to be opened is replaced as it is.
 */
async function whileUnused(tools: SqliteTools, target: string, replace: () => Promise<void>): Promise<void> {
  let held: Connection | undefined
  try {
    held = tools.open(target, { timeout: 0 })
    const { journal_mode: mode } = rowOf(held, 'PRAGMA journal_mode = DELETE') as {
      journal_mode: string
    }
    if (mode !== 'delete') throw inUse(target)
    held.exec('BEGIN EXCLUSIVE')
    const lease = rowOf(
      held,
      `SELECT max(lease_until) - unixepoch('subsec') * 1000 AS rest FROM (
          SELECT lease_until FROM lango_sessions WHERE app_name <> '' UNION ALL SELECT lease_until FROM lango_leases)`,
    ) as { rest: number | null }
    if (lease.rest !== null && lease.rest > 0) throw hasLease(target, lease.rest)
  } catch (error) {
    const code = (error as { errcode?: unknown }).errcode
    const isDamaged = typeof code === 'number' && [1, 11, 26].includes(code & 0xff)
    if (!isDamaged) {
      if (held) endAndClose(held)
      throw error instanceof AgentError ? error : inUse(target, error)
    }
  }
  try {
    await replace()
  } finally {
    if (held) endAndClose(held)
  }
}

/** The driver keeps a connection open until its statements are collected: its transaction must end by itself. */
function endAndClose(connection: Connection): void {
  try {
    connection.exec('ROLLBACK')
  } catch {
    // There is none.
  }
  connection.close()
}

async function renameIfThere(from: string, to: string): Promise<void> {
  if (await exists(from)) await rename(from, to)
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    // A folder cannot be synchronized everywhere; where it cannot, a rename is durable without it.
    await handle.sync().catch(() => undefined)
  } finally {
    await handle.close()
  }
}

async function removeAll(part: string): Promise<void> {
  for (const end of [...FILES, '-journal']) await rm(`${part}${end}`, { force: true })
}

function rowOf(connection: Connection, text: string): unknown {
  return connection.prepare(text).get()
}

function refused(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}

function damaged(file: string, why: string): AgentError {
  return new AgentError('store-corrupt', `${file} is not a usable copy of a Lango database: ${why}`)
}

function newerSchema(source: string, version: number, known: number): AgentError {
  return new AgentError(
    'store-newer-schema',
    `${source} has schema version ${version}, written by a newer Lango; this release supports up to ${known}. Upgrade Lango`,
    { details: { version, known } },
  )
}

function inUse(target: string, cause?: unknown): AgentError {
  return new AgentError(
    'store-unavailable',
    `${target} is open in another process: stop it (lango serve, lango chat), then restore again`,
    { retryable: true, cause },
  )
}

function hasLease(target: string, leftMs: number): AgentError {
  const seconds = Math.ceil(leftMs / 1000)
  return new AgentError(
    'store-unavailable',
    `A run held a session of ${target} a moment ago: its process was killed or still runs. Restore again in ${seconds} s`,
    { retryable: true, details: { seconds } },
  )
}
