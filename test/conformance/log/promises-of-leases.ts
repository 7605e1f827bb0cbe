/** Promises of the log about leases. */
import { expect } from 'vitest'
import type { SessionKey } from '../../../src/session/message.js'
import { thisProcess } from '../../../src/store/lease-process.js'
import { type SqlDatabase, sql } from '../../../src/store/sql-database.js'
import { failureOf, newKey } from '../store/drivers.js'
import {
  acquired,
  beginRun,
  deleteSession,
  dump,
  ending,
  expire,
  goneHolder,
  LEASE,
  type LogPlace,
  message,
  names,
  newRunId,
  runOf,
  sessionRow,
  setSession,
  writesUnder,
} from './drivers.js'
import type { Check } from './promises-of-writes.js'

const OTHER = { ...LEASE, holder: 'elsewhere boot pid 8 8' }
const FAR = 9_000_000_000_000_000

function keyLeases(database: SqlDatabase, key: SessionKey) {
  return database.run(
    sql('SELECT * FROM lango_leases WHERE app_name = ? AND user_id = ? AND session_id = ?', ...names(key)),
  )
}

async function abandoned({ log }: LogPlace, { appName }: SessionKey): Promise<string[]> {
  const runs = await log.listRuns({ appName, states: ['running', 'queued'], isAbandoned: true, limit: 10 })
  return runs.map(({ runId }) => runId)
}

export const LEASES = {
  async 'grants the lease of a key without a session to one process at a time'({ log, another, database }) {
    const key = newKey()
    const lease = await acquired(log, key)
    expect(lease).toEqual({ key, fence: expect.any(Number), posts: 0 })
    const before = await dump(database)
    expect(await another().acquire(key, OTHER)).toEqual({ holder: LEASE.holder })
    expect(await dump(database)).toBe(before)
    expect(await log.renew([lease])).toEqual(new Set([lease.fence]))
    await log.release(lease)
    expect(await keyLeases(database, key)).toEqual([])
    const next = await acquired(another(), key, OTHER)
    expect(next.fence).toBeGreaterThan(lease.fence)
    await log.release(lease)
    expect(await log.acquire(key, LEASE)).toEqual({ holder: OTHER.holder })
    expect(await log.renew([lease, next])).toEqual(new Set([next.fence]))
  },

  async 'grants the expired lease of a key without a session to another process'({ log, another, database }) {
    const key = newKey()
    const lease = await acquired(log, key)
    await database.run(sql('UPDATE lango_leases SET lease_until = 1 WHERE app_name = ?', key.appName))
    const next = await acquired(another(), key, OTHER)
    expect(next.fence).toBeGreaterThan(lease.fence)
    expect(await log.renew([lease])).toEqual(new Set())
  },

  async 'refuses a lease that another process gets after it was read as free'({ over, another, database }) {
    const free = await beginRun(another())
    await another().append(ending(free, 1))
    for (const key of [newKey(), free.key]) {
      let taken: Promise<unknown> | undefined
      const log = over(base => ({
        async run(statement) {
          const rows = await base.run(statement)
          // The first statement reads the lease.
          taken ??= another().acquire(key, OTHER)
          await taken
          return rows
        },
      }))
      expect(await log.acquire(key, LEASE)).toEqual({ holder: OTHER.holder })
      const lease = (await taken) as { fence: number }
      expect(await another().renew([{ key, fence: lease.fence }])).toEqual(new Set([lease.fence]))
    }
    expect(await sessionRow(database, free.key)).toMatchObject({ holder: OTHER.holder })
  },

  async 'gives the lease of a key to the session that is created under it'({ log, another, database }) {
    const key = newKey()
    const lease = await acquired(log, key)
    const [{ lease_until } = {}] = await keyLeases(database, key)
    const run = { ...runOf(key, newRunId()), when: 'queue' } as const
    expect(await another().accept(run, OTHER)).toEqual({ queued: 1 })
    expect(await sessionRow(database, key)).toMatchObject({
      fence: lease.fence,
      holder: LEASE.holder,
      lease_until: lease_until ?? 0,
      lease_ms: LEASE.ttlMs,
    })
    expect(await keyLeases(database, key)).toEqual([])
    expect(await another().acquire(key, OTHER)).toEqual({ holder: LEASE.holder })
    expect(await log.renew([lease])).toEqual(new Set([lease.fence]))
    const begun = { kind: 'begun', runId: run.runId, message: run.message } as const
    const write = writesUnder(lease)
    expect(await log.begin(run.runId, write(1, [begun]))).toMatchObject({ seq: 1 })
    await log.release(lease)
    expect((await failureOf(log.append(write(2, [])))).code).toBe('lease-lost')
    await acquired(another(), key, OTHER)
  },

  async 'does not give an old lease of a key to a session that is created again'({ log, database }) {
    const key = newKey()
    const lease = await acquired(log, key)
    await log.accept({ ...runOf(key, newRunId()), when: 'queue' }, LEASE)
    await log.append(writesUnder(lease)(1, [{ kind: 'notice' }], { release: true }))
    await deleteSession(database, key)
    expect(await log.accept(runOf(key, newRunId()), OTHER)).toMatchObject({ seq: 1 })
  },

  async 'grants growing fences, also when a session is deleted and created again'({
    log,
    another,
    database,
  }) {
    const key = newKey()
    const fences = [(await acquired(log, key)).fence]
    await log.release({ key, fence: fences[0] ?? 0 })
    for (let round = 0; round < 3; round++) {
      const { lease } = await beginRun(another(), key)
      fences.push(lease.fence)
      await expire(database, key)
      fences.push((await acquired(log, key)).fence)
      await deleteSession(database, key)
      const own = await acquired(log, key)
      fences.push(own.fence)
      await another().release(own)
    }
    expect(fences).toEqual([...new Set(fences)].sort((one, other) => one - other))
  },

  async 'renews the expired lease of a late process when no other has taken it'({ log, database }) {
    const { key, runId, lease, write } = await beginRun(log)
    await expire(database, key)
    expect(await log.renew([lease])).toEqual(new Set([lease.fence]))
    const { lease_until, created_at } = await sessionRow(database, key)
    expect(Math.abs(Number(lease_until) - Number(created_at) - LEASE.ttlMs)).toBeLessThan(30_000)
    await expire(database, key)
    expect(await log.append(write(1, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 2 })
  },

  async 'does not renew a lease that another process has taken, or that was released'({
    log,
    another,
    database,
  }) {
    const [late, released] = [await beginRun(log), await beginRun(log)]
    await expire(database, late.key)
    await acquired(another(), late.key, OTHER)
    await log.release(released.lease)
    const before = await dump(database)
    expect(await log.renew([late.lease, released.lease])).toEqual(new Set())
    await log.release(late.lease)
    expect(await dump(database)).toBe(before)
  },

  async 'numbers the writes of every lease from 1'({ log, another, database }) {
    const { key, runId, write } = await beginRun(log)
    await log.append(write(1, [{ kind: 'notice', runId }]))
    await log.append(write(2, [{ kind: 'notice', runId }]))
    await expire(database, key)
    const taker = another()
    const next = writesUnder(await acquired(taker, key))
    // Equal to the last write of the old lease, but another write.
    expect(await taker.append(next(1, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 4 })
    expect(await taker.append(next(2, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 5 })
    await taker.release({ key, fence: next(3, []).under?.fence ?? 0 })
    const last = await acquired(log, key)
    expect(await log.append(writesUnder(last)(1, [{ kind: 'notice', runId }]))).toMatchObject({ seq: 6 })
  },

  async 'returns the number of posts with a lease'({ log, another }) {
    const { key, runId, lease } = await beginRun(log)
    await another().post({ runId, kind: 'steer' })
    await log.release(lease)
    expect(await acquired(log, key)).toMatchObject({ posts: 1 })
  },

  async 'gives a lease its time from now when the clock was set back'({ log, another, database }) {
    const { key } = await beginRun(log)
    const limited = async () => {
      const { lease_until, created_at } = await sessionRow(database, key)
      expect(Math.abs(Number(lease_until) - Number(created_at) - LEASE.ttlMs)).toBeLessThan(30_000)
    }
    await setSession(database, key, 'lease_until = ?', FAR)
    expect(await another().acquire(key, OTHER)).toEqual({ holder: LEASE.holder })
    await limited()
    await setSession(database, key, 'lease_until = ?', FAR)
    expect(await another().accept(runOf(key, newRunId()), OTHER)).toBe('busy')
    await limited()
    await setSession(database, key, 'lease_until = ?', FAR)
    const imported = { key, entries: [{ kind: 'message', message: message('imported') }] } as const
    expect((await failureOf(another().append(imported))).code).toBe('session-busy')
    await limited()
    const free = newKey()
    await acquired(log, free)
    await database.run(sql('UPDATE lango_leases SET lease_until = ? WHERE app_name = ?', FAR, free.appName))
    expect(await another().acquire(free, OTHER)).toEqual({ holder: LEASE.holder })
    expect(Number((await keyLeases(database, free))[0]?.lease_until)).toBeLessThan(FAR)
  },

  async 'does not believe a lease that lasts for longer than its time when it lists abandoned runs'(place) {
    const { key, runId } = await beginRun(place.log)
    expect(await abandoned(place, key)).toEqual([])
    await setSession(place.database, key, 'lease_until = ?', FAR)
    expect(await abandoned(place, key)).toEqual([runId])
  },

  async 'grants the lease of a process that no longer exists'(place) {
    const { log, another, database } = place
    const { key, runId } = await beginRun(log)
    const gone = goneHolder(thisProcess().machine)
    expect(await abandoned(place, key)).toEqual([])
    await setSession(database, key, 'holder = ?', gone)
    expect(await abandoned(place, key)).toEqual([runId])
    expect(await another().accept(runOf(key, newRunId()), OTHER)).toEqual({ unfinished: [runId] })
    expect(await another().acquire(key, OTHER)).toEqual({ holder: gone })
    expect(await another().acquire(key, { ...OTHER, gone: LEASE.holder })).toEqual({ holder: gone })
    const lease = await acquired(another(), key, { ...OTHER, gone })
    expect(lease.fence).toBeGreaterThan(0)
    const free = newKey()
    await acquired(log, free, { ...LEASE, holder: gone })
    expect(await another().acquire(free, OTHER)).toEqual({ holder: gone })
    expect(await another().accept(runOf(free, newRunId()), OTHER)).toMatchObject({ seq: 1 })
  },

  async 'does not take a lease without a holder for that of a process that no longer exists'({
    log,
    another,
  }) {
    const key = newKey()
    await acquired(log, key, { ...LEASE, holder: '' })
    expect(await another().acquire(key, { ...OTHER, gone: '' })).toEqual({ holder: '' })
    await log.accept({ ...runOf(key, newRunId()), when: 'queue' }, LEASE)
    expect(await another().acquire(key, { ...OTHER, gone: '' })).toEqual({ holder: '' })
  },

  async 'renews many leases with one statement'({ log, another, database }) {
    const runs = await Promise.all(Array.from({ length: 20 }, () => beginRun(log)))
    const [taken, expired] = runs
    if (!taken || !expired) throw new TypeError('there are no runs')
    for (const { key } of [taken, expired]) await expire(database, key)
    const next = await acquired(another(), taken.key)
    const kept = runs.filter(run => run !== taken)
    for (const { key } of kept) await setSession(database, key, 'lease_until = 1')
    const { statements } = database.work
    expect(await log.renew(kept.map(({ lease }) => lease))).toEqual(
      new Set(kept.map(({ lease }) => lease.fence)),
    )
    expect(database.work.statements - statements).toBe(1)
    for (const { key } of kept)
      expect(Number((await sessionRow(database, key)).lease_until)).toBeGreaterThan(1)
    expect(await log.renew(runs.map(({ lease }) => lease))).toEqual(
      new Set(kept.map(({ lease }) => lease.fence)),
    )
    expect(await sessionRow(database, taken.key)).toMatchObject({ fence: next.fence })
    expect(await log.renew([])).toEqual(new Set())
  },

  async 'frees the session with the write that ends its run'({ log, database }) {
    const run = await beginRun(log)
    await log.append(ending(run, 1))
    expect(await sessionRow(database, run.key)).toMatchObject({
      fence: 0,
      holder: '',
      lease_until: 0,
      open_runs: 0,
    })
    expect(await acquired(log, run.key)).toMatchObject({ posts: 0 })
  },
} as const satisfies Record<string, Check>
