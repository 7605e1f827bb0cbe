import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import { thisProcess } from '../../../src/store/lease-process.js'
import { sql } from '../../../src/store/sql-database.js'
import { builtFile } from '../../support/built-lango.js'
import { type Child, runScript } from '../../support/child.js'
import { failureOf, newKey, openDatabase, type Place, SHARED_DRIVERS, useStore } from './drivers.js'

/** So long that no test waits for it. */
const TTL_MS = 600_000
const MESSAGE: Message = { role: 'user', content: 'Why?', timestamp: 1, id: 'question' }

/** Where a process can be told from an earlier one with its number. */
const LINUX_DRIVERS = process.platform === 'linux' ? SHARED_DRIVERS : []

/** A process that holds the lease of a session. */
async function holderOf(place: Place, { appName, sessionId }: SessionKey, task = 'hold'): Promise<Child> {
  const child = runScript('store-child.ts', [task, place.url, appName, sessionId, String(TTL_MS)])
  onTestFinished(() => void child.process.kill('SIGKILL'))
  await child.untilLines(1)
  expect(child.lines, child.errors()).toHaveLength(1)
  return child
}

async function kill(child: Child): Promise<void> {
  child.process.kill('SIGKILL')
  await child.ended
}

function opening(key: SessionKey) {
  return { key, runId: `run-${key.appName}`, message: MESSAGE, events: [{ seq: 1, type: 'run-start' }] }
}

/** Changes what is stored about the lease of a session, or of a key without one. */
async function setLease(
  place: Place,
  { appName }: SessionKey,
  column: 'holder' | 'lease_until',
  value: string | number,
): Promise<void> {
  const database = await openDatabase(place.url)
  for (const table of ['lango_sessions', 'lango_leases'])
    await database.run(sql(`UPDATE ${table} SET ${column} = ? WHERE app_name = ?`, value, appName))
  await database.close()
}

describe.each(SHARED_DRIVERS)('leases of processes that are gone in $name', driver => {
  const place = useStore(driver)

  test('the leases of a killed process are free at once: for another holder, for a waiter and for a run', async () => {
    const key = newKey()
    const [waited, opened] = ['waited', 'opened'].map(sessionId => ({ ...key, sessionId }))
    const child = await holderOf(place, { ...key, sessionId: `${key.sessionId},waited,opened` })
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    const waiting = place.store.acquireLease(waited ?? key, { waitMs: TTL_MS })
    await kill(child)
    const lease = await place.store.acquireLease(key)
    expect(lease.fence).toBeGreaterThan(Number(child.lines[0]?.split(' ')[0]))
    await lease.release()
    await (await waiting).release()
    const run = await place.store.openRun(opening(opened ?? key))
    expect(run).toMatchObject({ seq: 1 })
    if ('lease' in run) await run.lease.release()
  })

  test('the runs of a killed process are abandoned at once', async () => {
    const key = newKey()
    const { appName } = key
    const child = await holderOf(place, key, 'accept')
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName })).toEqual([])
    expect(await place.store.openRun({ ...opening(key), orQueue: { events: [] } })).toEqual({ queued: 2 })
    await kill(child)
    const found = await place.store.runs.listUnfinished({ abandoned: true, appName })
    expect(found.map(({ runId }) => runId)).toEqual([
      `begun-${appName}`,
      `queued-${appName}`,
      `run-${appName}`,
    ])
    const later = { ...opening(key), runId: `later-${appName}` }
    expect(await place.store.openRun(later)).toEqual({ unfinished: [`begun-${appName}`] })
  })

  test('a process that is only stopped keeps its lease until it expires', async () => {
    const key = newKey()
    const { appName } = key
    const child = await holderOf(place, key, 'accept')
    child.process.kill('SIGSTOP')
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    expect((await failureOf(place.store.openRun(opening(key)))).code).toBe('session-busy')
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName })).toEqual([])
    await setLease(place, key, 'lease_until', 1)
    await (await place.store.acquireLease(key)).release()
  })

  test.each([
    ['of another machine', 'elsewhere boot pid 999999999 1'],
    ['that is not known', ''],
  ])('the lease of a process %s is kept until it expires', async (_, holder) => {
    const key = newKey()
    await place.store.acquireLease(key)
    await setLease(place, key, 'holder', holder)
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    const { appName } = key
    expect((await failureOf(place.store.openRun(opening(key)))).code).toBe('session-busy')
    expect(await place.store.runs.listUnfinished({ abandoned: true, appName })).toEqual([])
  })

  test('a lease of this process is never taken for one of a process that is gone', async () => {
    const key = newKey()
    const lease = await place.store.acquireLease(key)
    expect((await failureOf(place.store.acquireLease(key))).code).toBe('session-busy')
    await lease.release()
  })
})

describe.each(LINUX_DRIVERS)('leases of processes by their start time in $name', driver => {
  const place = useStore(driver)

  test('the lease of a process whose number another process has by now is free', async () => {
    const key = newKey()
    await place.store.acquireLease(key)
    await setLease(place, key, 'holder', `${thisProcess().machine}${process.ppid} 1`)
    await (await place.store.acquireLease(key)).release()
  })

  test('a killed process that its parent does not wait for does not keep a lease', async () => {
    const key = newKey()
    const { appName, sessionId } = key
    const script = builtFile('test/support', 'store-child.ts')
    const args = [process.execPath, script, 'hold', place.url, appName, sessionId, String(TTL_MS)]
    // `sleep` replaces the shell, and never waits for its child.
    const parent = spawn('sh', ['-c', '"$@" & echo "$!"; exec sleep 600', 'sh', ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const lines: string[] = []
    for await (const line of createInterface({ input: parent.stdout })) {
      lines.push(line)
      if (lines.length === 2) break
    }
    const pid = Number(lines[0])
    process.kill(pid, 'SIGKILL')
    const lease = await place.store.acquireLease(key, { waitMs: TTL_MS })
    // Its entry in the table of processes is still there.
    expect(process.kill(pid, 0)).toBe(true)
    await lease.release()
  })
})
