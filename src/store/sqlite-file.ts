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

/** Compares the files at their paths with those that were opened. */
export class FileGuard {
  readonly #file: string
  readonly #logPath: string
  readonly #framesInLog: () => number
  readonly #pageSize: number
  #main: Identity | undefined
  #log: Identity | undefined
  #checkedAt = 0

  /** `framesInLog` counts the frames of the write-ahead log that are in use. */
  constructor(file: string, pageSize: number, framesInLog: () => number) {
    this.#file = file
    this.#logPath = `${file}-wal`
    this.#pageSize = pageSize
    this.#framesInLog = framesInLog
    this.check()
  }

  /** Fails with `store-unavailable` when a file is not the one that was opened. Returns the size of the log. */
  check(): number {
    this.#checkMain()
    this.#log = this.#checked(this.#logPath, this.#log, size => size >= this.#usedLogSize())
    this.#checkedAt = performance.now()
    return Number(this.#log?.size ?? 0)
  }

  /**
   * For every commit. The log is examined only now and then, and otherwise must exist: a `stat` of the log between two
   * commits made an append take 45 % longer, one of the database file 7 %.
   */
  checkCommit(): number {
    if (performance.now() > this.#checkedAt + LOG_CHECKED_FOR_MS) return this.check()
    this.#checkMain()
    if (this.#log !== undefined && !existsSync(this.#logPath))
      throw changed(this.#logPath, 'deleted or moved')
    return Number(this.#log?.size ?? 0)
  }

  /** As `check`, unless the last one was less than `ms` ago. */
  checkAfter(ms: number): number {
    return performance.now() < this.#checkedAt + ms ? Number(this.#log?.size ?? 0) : this.check()
  }

  #checkMain(): void {
    this.#main = this.#checked(this.#file, this.#main, size => size >= claimedSize(this.#file))
  }

  #checked(path: string, opened: Identity | undefined, isWhole: (size: number) => boolean) {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (opened === undefined) return found
    if (found === undefined) throw changed(path, 'deleted or moved')
    if (found.ino !== opened.ino || found.dev !== opened.dev) throw changed(path, 'replaced')
    // Vacuuming and checkpoints shrink files as well, and then the rest is whole.
    if (found.size < opened.size && !isWhole(Number(found.size))) throw changed(path, 'truncated')
    return found
  }

  #usedLogSize(): number {
    const frames = this.#framesInLog()
    return frames <= 0 ? 0 : LOG_HEADER + frames * (FRAME_HEADER + this.#pageSize)
  }
}

export const LOG_CHECKED_FOR_MS = 50
const LOG_HEADER = 32
const FRAME_HEADER = 24

/** The size that the header of a database file claims; no size is enough for a file without a header. */
function claimedSize(file: string): number {
  const header = Buffer.alloc(32)
  const descriptor = openSync(file, 'r')
  try {
    if (readSync(descriptor, header, 0, 32, 0) < 32) return Number.POSITIVE_INFINITY
  } finally {
    closeSync(descriptor)
  }
  const pageSize = header.readUInt16BE(16)
  return header.readUInt32BE(28) * (pageSize === 1 ? 65_536 : pageSize)
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

/** Creates the folder, and refuses what cannot be a database. */
export async function prepareFile(file: string): Promise<void> {
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

/** Whether a file could be created there: the nearest folder that exists must be writable. */
export async function checkPlace(file: string): Promise<void> {
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
  // The driver's `all()` reports some errors by their text alone.
  return code === 'ERR_SQLITE_ERROR' ? CODES.get(String(message)) : undefined
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
