/** The contract of the log, promise by promise, over every driver. The checks are in `promises-of-*.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import type { SqlDatabase } from '../../../src/store/sql-database.js'
import { over } from './cut-harness.js'
import {
  beginRun,
  createSession,
  ending,
  LOG_DRIVERS,
  message,
  type OpenLog,
  openLog,
  sessionRow,
} from './drivers.js'
import { COST } from './promises-of-cost.js'
import { COUNTING } from './promises-of-counting.js'
import { LEASES } from './promises-of-leases.js'
import { REPLACING } from './promises-of-replacing.js'
import { RUNS } from './promises-of-runs.js'
import { type Check, WRITES } from './promises-of-writes.js'

const CHECKS: Record<string, Check> = { ...WRITES, ...COUNTING, ...REPLACING, ...RUNS, ...LEASES, ...COST }

describe.each(LOG_DRIVERS)('the log in $name', driver => {
  let place: OpenLog
  beforeAll(async () => {
    place = await openLog(driver)
  })
  afterAll(() => place?.stop())

  for (const [title, check] of Object.entries(CHECKS)) test(title, () => check(place))

  test('stores a write once that the driver sends twice, because its answer was lost', async () => {
    const { log, key } = await sentTwice({})
    const entries = await log.read(key)
    expect(entries.map(({ seq, kind, messageSeq }) => [seq, kind, messageSeq])).toEqual([
      [1, 'begun', 1],
      [2, 'answer', 2],
      [3, 'answer', 1],
      [4, 'question', undefined],
      [5, 'ended', undefined],
    ])
    expect(await sessionRow(place.database, key)).toMatchObject({
      entry_count: 5,
      message_count: 2,
      open_runs: 0,
    })
  })

  test('does not when it cannot tell that the numbers of the entries are taken', async () => {
    await expect(sentTwice({ isDuplicate: () => false })).rejects.toMatchObject({ code: 'internal' })
  })

  test('tells how many parts of requests a session has, if a write says another number', async () => {
    const log = new SqlLog(place.database)
    const { runId, write } = await beginRun(log)
    const added = [{ digest: 'a', part: 'a' }]
    const notice = [{ kind: 'notice', runId }] as const
    expect(await log.tryAppend(write(1, notice, { parts: { before: 3, added } }))).toEqual({ partCount: 0 })
    expect(await log.tryAppend(write(1, notice, { parts: { before: 0, added } }))).toMatchObject({ seq: 2 })
    expect(await log.tryAppend(write(2, notice, { parts: { before: 0, added } }))).toEqual({ partCount: 1 })
    const lost = write(1, notice, { parts: { before: 0, added } })
    await expect(log.tryAppend({ ...lost, under: { fence: 0, number: 7 } })).rejects.toMatchObject({
      code: 'lease-lost',
    })
  })

  /** Plays a run with a database that sends every write twice that may be repeated. */
  async function sentTwice(members: Partial<SqlDatabase>) {
    const { database } = place
    const batch: SqlDatabase['batch'] = async statements => {
      const rows = await database.batch(statements)
      return statements[0]?.repeatable ? database.batch(statements) : rows
    }
    const log = new SqlLog(over(database, { batch, ...members }))
    const run = await beginRun(log)
    const { key, runId, write } = run
    const nested = { ...key, appName: `nested-${key.appName}` }
    await createSession(database, nested)
    const said = { kind: 'answer', runId, message: message('one') } as const
    const first = write(1, [said, { ...said, nested }], { state: { a: 1 } })
    expect(await log.append(first)).toEqual({ seq: 2, messageSeqs: [2, 1], posts: 0 })
    const waiting = { run: { runId, state: 'waiting' } } as const
    const asked = write(2, [{ kind: 'question', runId }], waiting)
    expect(await log.pause(asked, 0)).toEqual({ seq: 4, messageSeqs: [], posts: 0 })
    expect(await log.append(write(3, [], { state: { a: 2 } }))).toEqual({ seq: 5, messageSeqs: [], posts: 0 })
    expect(await log.append(ending(run, 4))).toEqual({ seq: 5, messageSeqs: [], posts: 0 })
    return { log, key }
  }
})
