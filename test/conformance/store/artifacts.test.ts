import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { ArtifactStore } from '../../../src/session/artifacts.js'
import type { SessionKey } from '../../../src/session/message.js'
import { openStore } from '../../../src/store/open-store.js'
import { sql } from '../../../src/store/sql-database.js'
import { DRIVERS, failureOf, newKey, openDatabase, SHARED_DRIVERS, useStore } from './drivers.js'

const artifact = (body: string, header: Record<string, unknown> = { kind: 'text' }) => ({ header, body })

describe.each(DRIVERS)('artifacts in $name', driver => {
  const place = useStore(driver)

  const artifactsOf = (): ArtifactStore => place.store.artifacts

  async function session(key: SessionKey = newKey()): Promise<SessionKey> {
    await place.store.createSession(key)
    return key
  }

  test('versions of an artifact are numbered from 0, and the newest is loaded by default', async () => {
    const key = { ...(await session()), name: 'plan.md' }
    const saved = []
    for (const text of ['one', 'two', 'three']) saved.push(await artifactsOf().save(key, artifact(text)))
    expect(saved).toEqual([0, 1, 2])
    expect(await artifactsOf().load(key)).toEqual(artifact('three'))
    expect(await artifactsOf().load(key, 0)).toEqual(artifact('one'))
    expect(await artifactsOf().load(key, 3)).toBeUndefined()
    const versions = await artifactsOf().versions(key)
    expect(versions).toEqual([0, 1, 2].map(version => ({ version, header: { kind: 'text' } })))
    expect(await artifactsOf().load({ ...key, name: 'other' })).toBeUndefined()
  })

  test('an artifact with any text and header comes back as it was, empty and of several pieces', async () => {
    const key = { ...(await session()), name: 'a/b "c" ü' }
    const bodies = [
      '',
      'a\0b',
      '\ud800',
      '\u0001',
      '🙂'.repeat(300_001),
      randomBytes(900_000).toString('base64'),
    ]
    for (const body of bodies) {
      const given = artifact(body, { list: [1, null, '\ud800'], nested: { a: 'b' } })
      await artifactsOf().save(key, given)
      const loaded = await artifactsOf().load(key)
      expect(loaded?.body === body).toBe(true)
      expect(loaded?.header).toEqual(given.header)
    }
  })

  test('artifacts of a user are seen in every session of the user, and in no other app or user', async () => {
    const key = await session()
    const second = await session({ ...key, sessionId: 'second' })
    const stranger = await session({ ...key, userId: 'stranger' })
    await artifactsOf().save({ ...key, name: 'user:profile' }, artifact('me'))
    await artifactsOf().save({ ...key, name: 'z' }, artifact('mine'))
    expect(await artifactsOf().list(key)).toEqual(['user:profile', 'z'])
    expect(await artifactsOf().list(second)).toEqual(['user:profile'])
    expect(await artifactsOf().load({ ...second, name: 'user:profile' })).toEqual(artifact('me'))
    expect(await artifactsOf().load({ ...second, name: 'z' })).toBeUndefined()
    expect(await artifactsOf().list(stranger)).toEqual([])
    expect(await artifactsOf().list({ ...key, appName: `${key.appName}-other` })).toEqual([])
    expect(await artifactsOf().list({ ...key, sessionId: 'none' })).toEqual(['user:profile'])
  })

  test('deleting an artifact deletes all its versions, and numbers begin again', async () => {
    const key = { ...(await session()), name: 'f' }
    await artifactsOf().save(key, artifact('x'.repeat(600_000)))
    await artifactsOf().save(key, artifact('y'))
    await artifactsOf().save({ ...key, name: 'g' }, artifact('kept'))
    expect(await artifactsOf().delete(key)).toBe(2)
    expect(await artifactsOf().delete(key)).toBe(0)
    expect(await artifactsOf().list(key)).toEqual(['g'])
    expect(await artifactsOf().save(key, artifact('z'))).toBe(0)
  })

  test('writers of one artifact at the same time get different version numbers', async () => {
    const key = { ...(await session()), name: 'user:shared' }
    const saved = await Promise.all([1, 2, 3, 4, 5].map(n => artifactsOf().save(key, artifact(String(n)))))
    expect(saved.sort()).toEqual([0, 1, 2, 3, 4])
  })

  test('artifacts of a session are deleted with it; those of the user stay', async () => {
    const key = await session()
    await artifactsOf().save({ ...key, name: 'f' }, artifact('x'.repeat(600_000)))
    await artifactsOf().save({ ...key, name: 'user:f' }, artifact('y'))
    await place.store.deleteSession(key)
    expect(await artifactsOf().list(key)).toEqual(['user:f'])
    await session(key)
    expect(await artifactsOf().list(key)).toEqual(['user:f'])
  })

  test('erasing a user deletes and counts all artifacts', async () => {
    const key = await session()
    await artifactsOf().save({ ...key, name: 'f' }, artifact('x'.repeat(600_000)))
    await artifactsOf().save({ ...key, name: 'user:f' }, artifact('y'))
    await artifactsOf().save({ ...key, name: 'user:f' }, artifact(''))
    const receipt = await place.store.erase({ appName: key.appName, userId: key.userId })
    expect(receipt).toMatchObject({ artifacts: 3, artifactPieces: 4 })
    expect(await artifactsOf().list(key)).toEqual([])
  })

  test('a fork has the artifacts of its source, and each its own from then on', async () => {
    const key = await session()
    const body = 'x'.repeat(1_500_000)
    await artifactsOf().save({ ...key, name: 'f' }, artifact(body))
    const { key: fork } = await place.store.forkSession(key, 'fork')
    expect((await artifactsOf().load({ ...fork, name: 'f' }))?.body === body).toBe(true)
    expect(await artifactsOf().save({ ...fork, name: 'f' }, artifact('new'))).toBe(1)
    expect(await artifactsOf().versions({ ...key, name: 'f' })).toHaveLength(1)
    await place.store.deleteSession(fork)
    expect((await artifactsOf().load({ ...key, name: 'f' }))?.body === body).toBe(true)
  })

  test('invalid arguments for artifacts are refused', async () => {
    const key = { ...newKey(), name: 'f' }
    expect((await failureOf(artifactsOf().save(key, artifact('x')))).code).toBe('session-not-found')
    for (const wrong of [
      artifactsOf().save({ ...key, name: '' }, artifact('x')),
      artifactsOf().save(key, { header: {}, body: 1 } as never),
      artifactsOf().save(key, { header: 1, body: '' } as never),
      artifactsOf().load(key, -1),
    ])
      expect((await failureOf(wrong)).code).toBe('invalid-argument')
  })

  test('a large artifact is stored and loaded in slices: timers fire in between', async () => {
    const key = { ...(await session()), name: 'large' }
    const body = 'ab'.repeat(8_000_000)
    const steps = { save: 0, load: 0 }
    for (const step of ['save', 'load'] as const) {
      const timer = setInterval(() => {
        steps[step] += 1
      }, 1)
      if (step === 'save') await artifactsOf().save(key, artifact(body))
      else expect((await artifactsOf().load(key))?.body.length).toBe(body.length)
      clearInterval(timer)
    }
    if (driver.name !== 'memory') expect(Math.min(steps.save, steps.load)).toBeGreaterThan(0)
  })
})

describe.each(SHARED_DRIVERS)('artifacts in $name, several processes', driver => {
  const place = useStore(driver)

  test('a session that another process deletes while an artifact is saved leaves no pieces', async () => {
    const other = await openStore(place.url)
    const key = newKey()
    await place.store.createSession(key)
    const saving = place.store.artifacts.save({ ...key, name: 'f' }, artifact('x'.repeat(20_000_000)))
    await Promise.all([
      saving.catch(error => expect(error.code).toBe('session-not-found')),
      other.deleteSession(key),
    ])
    await other.close()
    const database = await openDatabase(place.url)
    const rows = await database.run(
      sql(
        'SELECT count(*) AS pieces FROM lango_artifact_pieces p WHERE NOT EXISTS (SELECT 1 FROM lango_sessions s WHERE s.pk = p.session_pk)',
      ),
    )
    expect(Number(rows[0]?.pieces)).toBe(0)
    await database.close()
  })
})
