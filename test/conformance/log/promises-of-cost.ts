/** Promises of the log about its cost: exact numbers of statements and transactions. */
import { expect } from 'vitest'
import type { LogWrite } from '../../../src/session/log-store.js'
import { findStatement, runsByQuery } from '../../../src/store/log/read-log.js'
import {
  type Row,
  type SqlDatabase,
  type Statement,
  sql,
  type Task,
} from '../../../src/store/sql-database.js'
import { SqliteDialect } from '../../../src/store/sqlite-dialect.js'
import { newKey } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  ending,
  LEASE,
  type LogPlace,
  message,
  newRunId,
  runOf,
  writesUnder,
} from './drivers.js'
import type { Check } from './promises-of-writes.js'

/** Work of the database for each call: [statements, transactions, BEGIN and COMMIT sent over a network]. */
type Costs = Record<string, readonly [statements: number, commits: number, control: number]>

async function costsOf({ log, database }: LogPlace): Promise<Costs> {
  const costs: Record<string, [number, number, number]> = {}
  const measured = async <Answer>(name: string, work: () => Promise<Answer>): Promise<Answer> => {
    const { statements, commits, control } = database.work
    const answer = await work()
    const after = database.work
    costs[name] = [after.statements - statements, after.commits - commits, after.control - control]
    return answer
  }
  const first = await beginRun(log)
  const { key, runId, write } = first
  const one = { kind: 'answer', runId, message: message('one') } as const
  await measured('append of one entry', () => log.append(write(1, [one])))
  const also: LogWrite['also'] = { state: { a: 1, 'user:b': 2 }, run: { runId, state: 'running' } }
  await measured('append of three entries with two changes of state and of the run', () =>
    log.append(write(2, [one, one, one], also)),
  )
  await measured('post', () => log.post({ runId, kind: 'steer', key: 'k' }))
  const waiting = { run: { runId, state: 'waiting' }, release: true } as const
  await measured('pause that is refused', () => log.pause(write(3, [], waiting), 0))
  await measured('pause', () => log.pause(write(3, [], waiting), 1))
  const lease = await measured('acquire', () => acquired(log, key))
  await measured('acquire that is refused', () => log.acquire(key, LEASE))
  const next = { ...runOf(key, newRunId()), when: 'queue' } as const
  await measured('accept of a run that is queued', () => log.accept(next, LEASE))
  const own = writesUnder(lease)
  await log.append(own(1, [{ kind: 'ended', runId }], { run: { runId, state: 'finished' } }))
  const twenty = Array.from({ length: 20 }, (_, index) => ({ ...one, message: message('one', `m${index}`) }))
  const { fence } = lease
  await measured('append of twenty entries, numbered by the store', () =>
    log.append({ key, under: { fence, number: 'next' }, entries: twenty }),
  )
  await measured('append of a message that replaces another one', () =>
    log.append(own(3, twenty.slice(0, 1))),
  )
  const begun = { kind: 'begun', runId: next.runId, message: next.message } as const
  await measured('begin', () => log.begin(next.runId, own(4, [begun])))
  await measured('end of a run', () => log.append(ending({ ...first, runId: next.runId, write: own }, 5)))
  await measured('append without a lease', () => log.append({ key, entries: [{ kind: 'notice' }] }))
  await measured('accept of a run in a free session', () => log.accept(runOf(key, newRunId()), LEASE))
  const last = await measured('accept of a run in a new session', () => beginRun(log, newKey()))
  await measured('renew', () => log.renew([last.lease]))
  await measured('release', () => log.release(last.lease))
  await measured('read', () => log.read(key))
  return costs
}

/** A write is one transaction, whose BEGIN and COMMIT PostgreSQL gets in one piece with its statements. */
function expectedCosts(isPostgres: boolean): Costs {
  const write = (sqlite: number, postgres = sqlite) =>
    isPostgres ? ([postgres, 1, 2] as const) : ([sqlite, 1, 0] as const)
  return {
    'append of one entry': write(2),
    'append of three entries with two changes of state and of the run': write(5),
    // Sixteen of them are in one statement, and four in another.
    'append of twenty entries, numbered by the store': write(3),
    // It is sent twice: the first time, the id of the message is found.
    'append of a message that replaces another one': isPostgres ? [9, 2, 4] : [9, 1, 0],
    'append without a lease': write(2),
    // The calls of the run that are not settled are marked.
    'end of a run': write(4),
    pause: write(2),
    // The third one asks for the reason.
    'pause that is refused': write(3),
    post: write(3),
    // A lease that is refused takes no write: it is read first.
    acquire: write(4),
    'acquire that is refused': [1, 0, 0],
    release: write(2, 3),
    // A single statement needs no transaction of its own.
    renew: [1, 1, 0],
    'accept of a run in a new session': write(6),
    // The session is known to exist.
    'accept of a run in a free session': write(4, 3),
    'accept of a run that is queued': write(6),
    begin: write(4),
    read: [1, 0, 0],
  }
}

function isSqlite({ dialect }: SqlDatabase): boolean {
  return dialect instanceof SqliteDialect
}

/** The plan of a statement, where every table is large. */
async function planOf(database: SqlDatabase, { text, parameters }: Statement): Promise<string> {
  const rows = await database.write(function* (): Task<readonly Row[]> {
    if (isSqlite(database)) return yield { text: `EXPLAIN QUERY PLAN ${text}`, parameters }
    yield sql('SET LOCAL enable_seqscan = off')
    return yield { text: `EXPLAIN ${text}`, parameters }
  })
  return rows.map(row => row.detail ?? row['QUERY PLAN']).join('\n')
}

export const COST = {
  async 'finds keys and unfinished runs by an index'({ database }) {
    const { dialect } = database
    const key = newKey()
    expect(await planOf(database, findStatement(dialect, key, ['done:a:0']))).toContain('lango_entries_key')
    const query = { appName: key.appName, states: ['queued', 'running'], limit: 10 } as const
    for (const runs of [query, { ...query, isAbandoned: true }, { ...query, key }])
      expect(await planOf(database, runsByQuery(dialect, runs, []))).toContain('lango_runs_unfinished')
  },

  async 'takes one transaction and one round trip for every write'(place) {
    expect(await costsOf(place)).toEqual(expectedCosts(!isSqlite(place.database)))
  },
} as const satisfies Record<string, Check>
