/**
 * The file of a SQLite database: its folder, its errors, and whether it is still the file that was opened. SQLite
 * itself does not notice that a file was deleted, replaced or truncated: it goes on writing where nobody will read.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { AgentError, messageOf } from '../errors.js'

/** How long a lock of another process is waited for. */
export const BUSY_TIMEOUT_MS = 10_000

interface Identity {
  dev: bigint
  ino: bigint
  size: bigint
}

/** What SQLite knows of the log. */
export interface FileState {
  /** Equal twice: no process has committed or reset the log in between. It is read before the rest. */
  version: number
  /** The frames of the log that are in use; -1 when the connection uses no log. */
  frames: number
  /** How many of them the database file has. */
  copied: number
}

/** What an open connection reports about its files. */
export interface FileView {
  readonly pageSize: number
  /** Nothing while another process recovers the log, and in a transaction of this connection. */
  state(): FileState | undefined
  /** The pages of the database, those in the log included. Infinite when the file is damaged. */
  pages(): number
}

/**
 * Compares the files at their paths with those that were opened.
 *
 * Any process that uses the file may reset the log, truncate it, or shrink the database (a checkpoint, the limit of
 * the log's size, a closed connection, VACUUM). The files and what SQLite reports cannot be read at one moment, so
 * a difference counts only if no process has changed anything meanwhile. At each such moment:
 * - the log has room for its frames in use, and its header and these frames have the same salt;
 * - a page that the database file lacks is in a frame of the log that was not yet copied.
 *
 * The database file and the `-shm` file are never opened here: when a process closes any descriptor of a file, the
 * system releases all locks of that process on it, those of SQLite too. SQLite puts no locks on the log.
 */
export class FileGuard {
  readonly #file: string
  readonly #logPath: string
  readonly #view: FileView
  #main: Identity | undefined
  #log: Identity | undefined
  /** The log as it was at the last check. */
  #seen = NOTHING_SEEN
  #checkedAt = Number.NEGATIVE_INFINITY

  constructor(file: string, view: FileView) {
    this.#file = file
    this.#logPath = `${file}-wal`
    this.#view = view
    this.check()
  }

  /** Fails with `store-unavailable` when a file is not the one that was opened. Returns the size of the log. */
  check(): number {
    for (let look = 0; look < LOOKS; look++) {
      const state = this.#view.state()
      const main = found(this.#file, this.#main)
      // A log that this connection does not use may be deleted by those that do.
      const usesLog = state === undefined ? this.#log !== undefined : state.frames >= 0
      const log = usesLog ? found(this.#logPath, this.#log) : undefined
      if (state === undefined) break
      const truncated = this.#truncated(state, main, log)
      if (truncated === undefined) {
        this.#main = main
        this.#log = log
        this.#checkedAt = performance.now()
        break
      }
      if (this.#view.state()?.version === state.version) throw changed(truncated, 'truncated')
    }
    return Number(this.#log?.size ?? 0)
  }

  /**
   * For every commit. The log is examined only now and then, and otherwise must exist: a `stat` of the log between two
   * commits made an append take 45 % longer, one of the database file 7 %.
   */
  checkCommit(): number {
    if (performance.now() > this.#checkedAt + LOG_CHECKED_FOR_MS) return this.check()
    const main = found(this.#file, this.#main)
    if (this.#main !== undefined && main.size < this.#main.size) return this.check()
    this.#main = main
    if (this.#log !== undefined && !existsSync(this.#logPath))
      throw changed(this.#logPath, 'deleted or moved')
    return Number(this.#log?.size ?? 0)
  }

  /** As `check`, unless the last one was less than `ms` ago. */
  checkAfter(ms: number): number {
    return performance.now() < this.#checkedAt + ms ? Number(this.#log?.size ?? 0) : this.check()
  }

  /** The path of a file that seems to be truncated. */
  #truncated(state: FileState, main: Identity, log: Identity | undefined): string | undefined {
    const content = new LogReader(this.#logPath, this.#view.pageSize)
    try {
      const seen = log ? this.#examineLog(content, Number(log.size), state.frames) : NOTHING_SEEN
      if (seen === undefined) return this.#logPath
      const isShorter = this.#main !== undefined && main.size < this.#main.size
      if (isShorter && !this.#isWhole(content, Number(main.size), state)) return this.#file
      this.#seen = seen
      return undefined
    } finally {
      content.close()
    }
  }

  /**
   * Nothing if the log is not whole. A log that was truncated and then written to again is long enough, but lacks
   * its header, or the last frame that was there at the last check.
   */
  #examineLog(content: LogReader, size: number, frames: number) {
    if (frames <= 0) return NOTHING_SEEN
    if (size < content.offset(frames + 1)) return undefined
    if (!content.open()) return this.#seen
    const salt = content.salt()
    const isSame = salt === this.#seen.salt && this.#seen.frames <= frames
    const known = isSame ? [frames, this.#seen.frames] : [frames]
    const isWhole = salt !== NO_SALT && known.every(frame => content.frame(frame).salt === salt)
    return isWhole ? { salt, frames } : undefined
  }

  #isWhole(content: LogReader, size: number, { frames, copied }: FileState): boolean {
    const present = Math.floor(size / this.#view.pageSize)
    const pages = this.#view.pages()
    if (present >= pages) return size > 0
    if (frames > copied && !content.open()) return true
    const inLog = new Set<number>()
    for (let frame = copied + 1; frame <= frames; frame++) {
      const { page } = content.frame(frame)
      if (page > present && page <= pages) inLog.add(page)
    }
    return present + inLog.size >= pages
  }
}

export const LOG_CHECKED_FOR_MS = 50
/** How often a difference is examined while other processes write; then the next commit checks again. */
const LOOKS = 100
const LOG_HEADER = 32
const FRAME_HEADER = 24
const NO_SALT = '0'.repeat(16)
const NOTHING_SEEN = { salt: '', frames: 0 }

/** Reads a write-ahead log. What is missing reads as zeros. */
class LogReader {
  readonly #path: string
  readonly #pageSize: number
  #descriptor: number | undefined

  constructor(path: string, pageSize: number) {
    this.#path = path
    this.#pageSize = pageSize
  }

  /** `false` when the file is gone meanwhile, or the process has too many files open. */
  open(): boolean {
    try {
      this.#descriptor ??= openSync(this.#path, 'r')
      return true
    } catch {
      return false
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
  }

  salt(): string {
    return this.#read(0, LOG_HEADER).toString('hex', 16, 24)
  }

  frame(number: number): { page: number; salt: string } {
    const header = this.#read(this.offset(number), FRAME_HEADER)
    return { page: header.readUInt32BE(0), salt: header.toString('hex', 8, 16) }
  }

  /** Where a frame begins; the first one has the number 1. */
  offset(frame: number): number {
    return LOG_HEADER + (frame - 1) * (FRAME_HEADER + this.#pageSize)
  }

  #read(position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    if (this.#descriptor !== undefined) readSync(this.#descriptor, bytes, 0, length, position)
    return bytes
  }
}

function found(path: string, opened: Identity | undefined): Identity {
  const now = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (now === undefined) throw changed(path, 'deleted or moved')
  if (opened !== undefined && (now.ino !== opened.ino || now.dev !== opened.dev))
    throw changed(path, 'replaced')
  return now
}

/** The part of the driver's connection that is used here. */
interface Connection {
  prepare(text: string): { get(): unknown }
}

export function viewOf(connection: Connection): FileView {
  const { page_size: pageSize } = connection.prepare('PRAGMA page_size').get() as { page_size: number }
  const log = connection.prepare('PRAGMA wal_checkpoint(NOOP)')
  const version = connection.prepare('PRAGMA data_version')
  const pages = connection.prepare('PRAGMA page_count')
  return {
    pageSize,
    state() {
      try {
        const before = unlessDamaged(() => (version.get() as { data_version: number }).data_version)
        const row = log.get() as { busy: number; log: number; checkpointed: number }
        return row.busy === 0 ? { version: before, frames: row.log, copied: row.checkpointed } : undefined
      } catch (error) {
        if (isBusy(error)) return undefined
        throw error
      }
    },
    pages: () => unlessDamaged(() => (pages.get() as { page_count: number }).page_count),
  }
}

/** A truncated database file is reported as such, and not as what SQLite finds in it. */
function unlessDamaged(read: () => number): number {
  try {
    return read()
  } catch (error) {
    if ([10, 11, 26].includes((errcodeOf(error) ?? 0) & 0xff)) return Number.POSITIVE_INFINITY
    throw error
  }
}

function changed(path: string, how: string): AgentError {
  return unavailable(
    `${path} was ${how} while it was open, so what is written now would be lost: ` +
      'stop Lango, put the file back or restore a backup, and start Lango again',
  )
}

/** One folder at a time: Node's recursive mkdir does not return on file systems that report an existing parent as missing. */
async function makeFolder(folder: string): Promise<void> {
  if (await isFolder(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) await makeFolder(parent)
  await mkdir(folder).catch(async (error: unknown) => {
    // Another process may have created it meanwhile.
    if (!(await isFolder(folder))) throw error
  })
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false
}

/** Refuses a path that cannot be a database. Its folder must exist, unless it is created here. */
export async function prepareFile(file: string, createFolder: boolean): Promise<void> {
  if (!createFolder) await checkFolder(file)
  try {
    await makeFolder(dirname(file))
  } catch (cause) {
    throw unavailable(
      `The folder of ${file} cannot be created (${messageOf(cause)}): choose another path`,
      cause,
    )
  }
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return
  if (found.isDirectory()) {
    throw new AgentError(
      'invalid-argument',
      `${file} is a folder: name a file in it, such as sqlite:${file}/lango.db`,
    )
  }
  // The superuser could write anyway, but the file was made read-only on purpose.
  if ((found.mode & 0o222) === 0) throw readOnly(file, undefined)
}

/** A mistyped path must not become a new, empty database. */
async function checkFolder(file: string): Promise<void> {
  const folder = dirname(file)
  if (await isFolder(folder)) return
  throw unavailable(
    `The folder ${folder} of the database ${file} does not exist: create it, correct the path, ` +
      'or add ?create=1 to the address of the store (sqlite:path?create=1), which creates it',
  )
}

/** Whether a file could be created there: the nearest folder that exists must be writable. */
export async function checkPlace(file: string, createFolder: boolean): Promise<void> {
  if (!createFolder) await checkFolder(file)
  let folder = dirname(file)
  while (folder !== dirname(folder) && !(await stat(folder).catch(() => undefined))) folder = dirname(folder)
  try {
    await access(folder, constants.W_OK)
  } catch (cause) {
    throw unavailable(`Nothing can be written in ${folder}: make it writable, or choose another path`, cause)
  }
}

export function errcodeOf(error: unknown): number | undefined {
  const { errcode, code, message } = (error ?? {}) as { errcode?: unknown; code?: unknown; message?: unknown }
  if (typeof errcode === 'number') return errcode
  if (code !== 'ERR_SQLITE_ERROR') return undefined
  // The driver's `all()` reports some errors by their text alone.
  return /^UNIQUE constraint failed/.test(String(message)) ? 2067 : CODES.get(String(message))
}

const CODES: ReadonlyMap<string, number> = new Map([
  ['database is locked', 5],
  ['database table is locked', 6],
  ['attempt to write a readonly database', 8],
  ['disk I/O error', 10],
  ['database disk image is malformed', 11],
  ['database or disk is full', 13],
  ['unable to open database file', 14],
  ['file is not a database', 26],
])

export function isBusy(error: unknown): boolean {
  const primary = (errcodeOf(error) ?? 0) & 0xff
  return primary === 5 || primary === 6
}

export function isFull(error: unknown): boolean {
  return ((errcodeOf(error) ?? 0) & 0xff) === 13
}

export function isDuplicate(error: unknown): boolean {
  const code = errcodeOf(error) ?? errcodeOf((error as { cause?: unknown }).cause)
  return code === 1555 || code === 2067
}

/** Maps SQLite's error codes to AgentErrors. An AgentError is returned unchanged. */
export function toAgentError(error: unknown, file: string): unknown {
  const code = errcodeOf(error)
  if (error instanceof AgentError || code === undefined) return error
  switch (code & 0xff) {
    case 5:
    case 6:
      return unavailable(
        `${file} has been locked by another process for more than ${BUSY_TIMEOUT_MS / 1000} s: ` +
          'stop the process that holds the lock, or try again',
        error,
        true,
      )
    case 8:
      return readOnly(file, error)
    case 11:
    case 26:
      return new AgentError(
        'store-corrupt',
        `${file} is not a usable SQLite database (${messageOf(error)}): ` +
          'restore it from a backup, or name another file',
        { cause: error },
      )
    case 13:
      return unavailable(`${file} cannot grow: the disk is full. Free some space`, error, true)
    case 3:
    case 10:
    case 14:
    case 23:
      return unavailable(
        `${file} cannot be opened or written (${messageOf(error)}): ` +
          'check that the file and its folder exist and may be read and written',
        error,
      )
    default:
      return new AgentError('internal', `SQLite failed on ${file}: ${messageOf(error)}`, { cause: error })
  }
}

function readOnly(file: string, cause: unknown): AgentError {
  return unavailable(`${file} is read-only: make it writable (chmod u+w), or name another file`, cause)
}

export function unavailable(message: string, cause?: unknown, retryable = false): AgentError {
  return new AgentError('store-unavailable', message, { cause, retryable })
}

/** Resolves with whether the whole log was copied. */
export async function checkpointInThread(file: string): Promise<boolean> {
  const { Worker } = await import('node:worker_threads')
  const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
  const worker = new Worker(CHECKPOINT_THREAD, { eval: true, workerData: { driver, file } })
  // A checkpoint must not keep an otherwise idle process running.
  worker.unref()
  return new Promise((fulfil, reject) => {
    worker.on('message', (isWhole: boolean) => fulfil(isWhole))
    worker.on('error', reject)
    worker.on('exit', () => fulfil(false))
  })
}

const CHECKPOINT_THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { DatabaseSync } = require(workerData.driver)
  const connection = new DatabaseSync(workerData.file, { timeout: 0 })
  const { log, checkpointed } = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
  connection.close()
  parentPort.postMessage(log === checkpointed)`
