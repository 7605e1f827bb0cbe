/**
 * Searches of a large index run in a thread, so that the event loop is free meanwhile. A search of a small one takes less
 * time than a message to a thread and back, and runs where it is.
 *
 * - The thread is started when the file is large, and when a search has taken long all the same; it reads the file through
 *   a connection of its own, and only reads.
 * - It keeps no process running, and ends before the store is closed, which needs the file for itself.
 * - Whatever the thread cannot do is done without it.
 */
import { statSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
import type { Row, Statement } from './sql-database.js'
import { SqliteDatabase } from './sqlite-database.js'

/** A search that takes longer than this would be felt by other sessions. */
const LONG_MS = 5

/** The first search of a file of this size, some 10,000 messages with their index, may take longer than that. */
const LARGE_BYTES = 8 * 1024 * 1024

export class SearchableSqlite extends SqliteDatabase {
  readonly #thread: SearchThread
  readonly #file: string
  readonly #longMs: number
  readonly #largeBytes: number
  #isLong = false

  constructor(
    parts: ConstructorParameters<typeof SqliteDatabase>,
    { longMs = LONG_MS, largeBytes = LARGE_BYTES } = {},
  ) {
    super(...parts)
    this.#file = parts[1]
    this.#longMs = longMs
    this.#largeBytes = largeBytes
    this.#thread = new SearchThread(parts[1])
  }

  override async search(statement: Statement): Promise<readonly Row[]> {
    this.#isLong ||= this.#isLarge()
    const found = this.#isLong ? await this.#thread.run(statement) : undefined
    if (found) return found
    const started = performance.now()
    const rows = await this.run(statement)
    this.#isLong ||= performance.now() - started > this.#longMs
    return rows
  }

  #isLarge(): boolean {
    return (statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0) >= this.#largeBytes
  }

  override async close(): Promise<void> {
    await this.#thread.close()
    return super.close()
  }
}

type Reply = { id: number; rows?: Row[] }

class SearchThread {
  readonly #file: string
  readonly #waiting = new Map<number, (rows: readonly Row[] | undefined) => void>()
  #worker: Promise<Worker> | undefined
  #isOver = false
  #last = 0

  constructor(file: string) {
    this.#file = file
  }

  /** `undefined` when there is no thread, or it failed. */
  async run({ text, parameters }: Statement): Promise<readonly Row[] | undefined> {
    if (this.#isOver) return undefined
    try {
      this.#worker ??= this.#start()
      const worker = await this.#worker
      if (this.#isOver) return undefined
      this.#last += 1
      const id = this.#last
      return await new Promise(settle => {
        this.#waiting.set(id, settle)
        worker.ref()
        worker.postMessage({ id, text, parameters })
      })
    } catch {
      this.#end()
      return undefined
    }
  }

  async close(): Promise<void> {
    const worker = await this.#worker?.catch(() => undefined)
    const isRunning = worker !== undefined && !this.#isOver
    this.#end()
    if (!isRunning) return
    worker.ref()
    const over = new Promise(settle => worker.once('exit', settle))
    worker.postMessage(null)
    await over
  }

  async #start(): Promise<Worker> {
    const { Worker: Thread } = await import('node:worker_threads')
    const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    const worker = new Thread(SEARCH_THREAD, { eval: true, workerData: { driver, file: this.#file } })
    worker.unref()
    worker.on('message', ({ id, rows }: Reply) => {
      this.#waiting.get(id)?.(rows)
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) worker.unref()
    })
    worker.on('error', () => this.#end())
    worker.on('exit', () => this.#end())
    return worker
  }

  #end(): void {
    this.#isOver = true
    for (const settle of this.#waiting.values()) settle(undefined)
    this.#waiting.clear()
  }
}

const SEARCH_THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { DatabaseSync } = require(workerData.driver)
  const connection = new DatabaseSync(workerData.file, { readOnly: true, timeout: 1000 })
  const prepared = new Map()
  connection.exec('PRAGMA trusted_schema = OFF')
  parentPort.on('message', message => {
    if (message === null) {
      connection.close()
      return parentPort.close()
    }
    const { id, text, parameters } = message
    try {
      const statement = prepared.get(text) ?? connection.prepare(text)
      prepared.set(text, statement)
      parentPort.postMessage({ id, rows: statement.all(...parameters).map(row => ({ ...row })) })
    } catch {
      parentPort.postMessage({ id })
    }
  })`
