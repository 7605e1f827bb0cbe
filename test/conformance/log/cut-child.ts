/**
 * Plays scenarios in a process of its own; each stays after one of its calls of the store, until the process is killed.
 * Arguments: the store's URL, the file of the bank, and a JSON list of `StayingPlay`.
 */
import { appendFileSync } from 'node:fs'
import { thisProcess } from '../../../src/store/lease-process.js'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import { parseStoreUrl } from '../../../src/store/open-store.js'
import { openPostgres } from '../../../src/store/postgres.js'
import type { SqlDatabase } from '../../../src/store/sql-database.js'
import { openSqlite } from '../../../src/store/sqlite.js'
import { World, WRITES } from './cut-harness.js'
import { scenario } from './scenarios.js'

export interface StayingPlay {
  readonly name: string
  readonly id: string
  /** The number of the call after which it stays. */
  readonly call: number
}

const [url = '', bankFile = '', plays = '[]'] = process.argv.slice(2)

/** Payments that outlive the process. */
class FileBank extends Map<string, number> {
  override set(payment: string, count: number): this {
    appendFileSync(bankFile, `${payment}\n`)
    return super.set(payment, count)
  }
}

async function open(): Promise<SqlDatabase> {
  const location = parseStoreUrl(url)
  if (location.driver === 'sqlite') return openSqlite(location)
  if (location.driver === 'postgres') return openPostgres(location)
  throw new TypeError(`no database: ${url}`)
}

/** A store whose call with the given number is stored and never returns. Stores of one scenario count together. */
function staying(log: SqlLog, count: { calls: number }, call: number): SqlLog {
  return new Proxy(log, {
    get(target, member) {
      const value = Reflect.get(target, member) as unknown
      if (typeof value !== 'function') return value
      return async (...parameters: unknown[]) => {
        if (WRITES.has(String(member))) count.calls += 1
        const isLast = WRITES.has(String(member)) && count.calls === call
        const answer: unknown = await Reflect.apply(value, target, parameters)
        if (!isLast) return answer
        process.stdout.write(`${String(member)}\n`)
        return new Promise(() => setInterval(() => {}, 60_000))
      }
    },
  })
}

const database = await open()
for (const { name, id, call } of JSON.parse(plays) as StayingPlay[]) {
  const count = { calls: 0 }
  const stores = {
    database,
    connect: () => database,
    open: (own: SqlDatabase) => staying(new SqlLog(own), count, call),
  }
  void new World(stores, scenario(name, id), { bank: new FileBank(), holder: thisProcess().holder }).play()
}
