import { existsSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { RunEventRecord, RunSignal } from '../../../src/session/run-store.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { inspectStore, openStore } from '../../../src/store/open-store.js'
import { runScript } from '../../support/child.js'
import { postgresUrl } from '../../support/postgres.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

/** A process that only opens the store: prints the error and exits with 1. */
async function exitOf(
  url: string,
  imports: readonly string[] = [],
): Promise<{ code: number | null; errors: string }> {
  const child = runScript('store-child.ts', ['open', url], imports)
  const { code } = await child.ended
  return { code, errors: child.errors() }
}

/** Opening fails with this code and these texts, in this process and in one of its own. */
async function refuses(url: string, code: string, ...texts: string[]): Promise<void> {
  const failure = await failureOf(openStore(url))
  expect(failure.code).toBe(code)
  for (const text of texts) expect(failure.message).toContain(text)
  const exit = await exitOf(url)
  expect(exit.code).toBe(1)
  expect(exit.errors).toContain(`${code}: ${failure.message.slice(0, 40)}`)
}

describe('opening', () => {
  test.each([
    ['', 'no scheme'],
    ['lango.db', 'no scheme'],
    ['mysql://host/db', '"mysql:"'],
    ['memory:x', 'memory:'],
    ['sqlite:', 'names no file'],
    ['sqlite://', 'names no file'],
    ['sqlite::memory:', 'memory:'],
    ['sqlite:x.db?sync=maybe', 'sync is "maybe"'],
    ['sqlite:x.db?color=red', '"color"'],
    ['postgres://user:s3cret@:bad:/x', 'not a valid URL'],
    ['postgres://user:s3cret@host/x?pool=0', 'pool is "0"'],
    ['postgres://user:s3cret@host/x?query_timeout=soon', 'query_timeout is "soon"'],
  ])('refuses %j as a URL', async (url, text) => {
    const failure = await failureOf(openStore(url))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message).toContain(text)
    expect(failure.message).not.toContain('s3cret')
  })

  test('a bad URL ends a process with 1', async () => {
    await refuses('mysql://host/db', 'invalid-argument', 'Use memory:, sqlite:./lango.db or postgres://')
    await expect(openStore(undefined as unknown as string)).rejects.toMatchObject({
      code: 'invalid-argument',
    })
  })

  test('?create=1 creates the folder of a SQLite file; paths are taken plainly and as URLs', async () => {
    const folder = await temporaryFolder()
    const key = newKey()
    const file = join(folder, 'deep', 'er', 'my store.db')
    const first = await openStore(`sqlite:${file}?create=1`)
    await first.createSession(key)
    await first.close()
    for (const url of [`sqlite://${file}`, `sqlite://${encodeURI(file)}`, `sqlite:${file}?sync=normal`]) {
      const store = await openStore(url)
      expect(await store.loadSession(key)).toBeDefined()
      await store.close()
    }
  })

  test('a folder that does not exist is named and not created, by opening and by inspecting', async () => {
    const folder = await temporaryFolder()
    const url = `sqlite:${join(folder, 'mistyped', 'store.db')}`
    await refuses(url, 'store-unavailable', join(folder, 'mistyped'), 'does not exist', '?create=1')
    expect(await failureOf(inspectStore(url))).toMatchObject({ code: 'store-unavailable' })
    expect(await inspectStore(`${url}?create=1`)).toMatchObject({ exists: false })
    expect(existsSync(join(folder, 'mistyped'))).toBe(false)
  })

  test('a file that is not a database', async () => {
    const file = join(await temporaryFolder(), 'notes.txt')
    await writeFile(file, 'These are my notes, and they are long enough to be looked at.\n'.repeat(100))
    await refuses(`sqlite:${file}`, 'store-corrupt', file, 'restore it from a backup')
  })

  test('a read-only file', async () => {
    const file = join(await temporaryFolder(), 'store.db')
    await (await openStore(`sqlite:${file}`)).close()
    await chmod(file, 0o444)
    await refuses(`sqlite:${file}`, 'store-unavailable', file, 'read-only', 'chmod u+w')
  })

  test('a folder instead of a file, and a file instead of a folder', async () => {
    const folder = await temporaryFolder()
    await mkdir(join(folder, 'sub'))
    await writeFile(join(folder, 'file'), '')
    await refuses(`sqlite:${join(folder, 'sub')}`, 'invalid-argument', 'is a folder')
    await refuses(`sqlite:${join(folder, 'file', 'store.db')}`, 'store-unavailable', 'does not exist')
    const inFile = `sqlite:${join(folder, 'file', 'store.db')}?create=1`
    await refuses(inFile, 'store-unavailable', 'cannot be created')
  })

  test('a place where no folder can be made', async () => {
    await refuses('sqlite:/proc/lango/deeper/store.db?create=1', 'store-unavailable', 'cannot be created')
  })

  test('a driver that is not installed', async () => {
    const without = fileURLToPath(new URL('../../support/without-drivers.mjs', import.meta.url))
    const sqlite = await exitOf(`sqlite:${join(await temporaryFolder(), 'x.db')}`, [without])
    expect(sqlite.code).toBe(1)
    expect(sqlite.errors).toMatch(/^store-unavailable: .*npm install @photostructure\/sqlite/)
    const postgres = await exitOf('postgres://127.0.0.1:1/x', [without])
    expect(postgres.code).toBe(1)
    expect(postgres.errors).toMatch(/^store-unavailable: .*npm install pg/)
    expect((await exitOf('memory:', [without])).code).toBe(0)
  })

  describe('PostgreSQL', () => {
    let url: URL
    beforeAll(async () => {
      url = new URL(await postgresUrl())
    })
    const changed = (change: Partial<URL>) => Object.assign(new URL(url), change).href

    test('a server that does not run', async () => {
      const closed = await new Promise<number>(resolve => {
        const server = createServer().listen(0, '127.0.0.1', () => {
          const { port } = server.address() as { port: number }
          server.close(() => resolve(port))
        })
      })
      await refuses(
        `postgres://ann:s3cret@127.0.0.1:${closed}/x`,
        'store-unavailable',
        'cannot be reached',
        'check that the server runs',
      )
      const failure = await failureOf(openStore(`postgres://ann:s3cret@127.0.0.1:${closed}/x`))
      expect(failure.message).not.toContain('s3cret')
    })

    test('a server without TLS when the URL requires it', async () => {
      await refuses(
        changed({ search: '?sslmode=require' }),
        'store-unavailable',
        'check TLS: sslmode in the URL',
      )
    })

    test('a wrong password', async () => {
      await refuses(changed({ password: 'wr0ng' }), 'store-unavailable', 'refused the login')
      expect((await failureOf(openStore(changed({ password: 'wr0ng' })))).message).not.toContain('wr0ng')
    })

    test('a database that does not exist', async () => {
      await refuses(
        changed({ pathname: '/nowhere' }),
        'store-unavailable',
        '/nowhere',
        'create the database first',
      )
    })
  })
})

const message: Message = { role: 'user', content: 'x', timestamp: 1 }

type Attempt = (store: SessionStore, key: SessionKey) => Promise<unknown>

const ATTEMPTS: [string, Attempt][] = [
  ['key', store => store.createSession(undefined as unknown as SessionKey)],
  ['key.appName', (store, key) => store.createSession({ ...key, appName: '' })],
  ['key.userId', (store, key) => store.loadSession({ ...key, userId: 7 as unknown as string })],
  ['key.sessionId', (store, key) => store.deleteSession({ ...key, sessionId: 'a\0b' })],
  ['key.sessionId', (store, key) => store.acquireLease({ ...key, sessionId: '\ud800' })],
  ['key.sessionId', (store, key) => store.readMessages({ ...key, sessionId: 'x'.repeat(513) })],
  ['state', (store, key) => store.createSession(key, [] as unknown as Record<string, unknown>)],
  ['state["a"]', (store, key) => store.createSession(key, { a: () => 1 })],
  ['state["a"]', (store, key) => store.createSession(key, { a: 1n })],
  ['a key of state', (store, key) => store.createSession(key, { ['k'.repeat(1001)]: 1 })],
  ['delta', (store, key) => store.updateState(key, null as unknown as Record<string, unknown>)],
  ['message', (store, key) => store.appendMessage(key, null as unknown as Message)],
  [
    'message.role',
    (store, key) => store.appendMessage(key, { ...message, role: undefined as unknown as string }),
  ],
  [
    'message.content',
    (store, key) => store.appendMessage(key, { ...message, content: 7 as unknown as string }),
  ],
  ['message.timestamp', (store, key) => store.appendMessage(key, { ...message, timestamp: Number.NaN })],
  [
    'message.timestamp',
    (store, key) => store.appendMessage(key, { ...message, timestamp: '1' as unknown as number }),
  ],
  [
    'message.author',
    (store, key) => store.appendMessage(key, { ...message, author: null as unknown as string }),
  ],
  ['message.id', (store, key) => store.appendMessage(key, { ...message, id: 7 as unknown as string })],
  [
    'message.toolCalls',
    (store, key) => store.appendMessage(key, { ...message, toolCalls: {} as unknown as [] }),
  ],
  [
    'message.toolCalls[0]',
    (store, key) => store.appendMessage(key, { ...message, toolCalls: [null as never] }),
  ],
  [
    'message.toolCalls[0].output',
    (store, key) =>
      store.appendMessage(key, {
        ...message,
        toolCalls: [{ id: '', name: '', output: {} as unknown as string }],
      }),
  ],
  [
    'message.extra',
    (store, key) => store.appendMessage(key, { ...message, extra: [] as unknown as Record<string, unknown> }),
  ],
  ['message', (store, key) => store.appendMessage(key, { ...message, extra: { a: 1n } })],
  [
    'stateDelta',
    (store, key) =>
      store.appendMessage(key, message, { stateDelta: 'x' as unknown as Record<string, unknown> }),
  ],
  ['fence', (store, key) => store.appendMessage(key, message, { fence: 0 })],
  ['fence', (store, key) => store.updateState(key, {}, { fence: 1.5 })],
  ['budgetTokens', (store, key) => store.loadSession(key, { budgetTokens: -1 })],
  ['budgetTokens', (store, key) => store.loadSession(key, { budgetTokens: 'all' as 'off' })],
  ['maxMessages', (store, key) => store.loadSession(key, { maxMessages: 0 })],
  ['afterSeq', (store, key) => store.readMessages(key, { afterSeq: -1 })],
  ['beforeSeq', (store, key) => store.readMessages(key, { beforeSeq: 1.5 })],
  ['limit', (store, key) => store.readMessages(key, { limit: -1 })],
  ['newSessionId', (store, key) => store.forkSession(key, '')],
  ['throughSeq', (store, key) => store.forkSession(key, 'two', { throughSeq: 0 })],
  ['throughSeq', (store, key) => store.forkSession(key, 'two', { throughSeq: 1.5 })],
  ['appName', store => store.listSessions({ appName: '' })],
  ['userId', (store, key) => store.listSessions({ appName: key.appName, userId: '' })],
  ['limit', (store, key) => store.listSessions({ appName: key.appName, limit: 0 })],
  ['cursor', (store, key) => store.listSessions({ appName: key.appName, cursor: 'nonsense' })],
  ['cursor', (store, key) => store.listSessions({ appName: key.appName, cursor: 'WyJhIiwiYiJd' })],
  ['appName', store => store.runs.listAppRuns?.({ appName: '' }) ?? Promise.resolve()],
  ['userId', (store, key) => store.runs.listAppRuns?.({ ...key, userId: '' }) ?? Promise.resolve()],
  ['limit', (store, key) => store.runs.listAppRuns?.({ ...key, limit: 0 }) ?? Promise.resolve()],
  ['ttlMs', (store, key) => store.acquireLease(key, { ttlMs: 0 })],
  ['waitMs', (store, key) => store.acquireLease(key, { waitMs: -1 })],
  ['runId', (store, key) => store.runs.appendEvents(key, '', [])],
  ['events', (store, key) => store.runs.appendEvents(key, 'r', {} as unknown as RunEventRecord[])],
  ['events[0].seq', (store, key) => store.runs.appendEvents(key, 'r', [{ seq: 0.5 }])],
  ['afterSeq', store => store.runs.readEvents('r', { afterSeq: 0.5 })],
  ['limit', store => store.runs.readEvents('r', { limit: 0 })],
  ['step', store => store.runs.saveRequest('r', -1, {})],
  ['record', store => store.runs.saveRequest('r', 1, null as unknown as Record<string, unknown>)],
  ['signal.type', store => store.runs.sendSignal('r', { type: 'go' } as unknown as RunSignal)],
  ['appName', store => store.runs.prune({ appName: '', before: 1 })],
  ['before', store => store.runs.prune({ appName: 'app', before: Number.NaN })],
  ['model', store => store.calibration.read('')],
  ['bytes', store => store.calibration.record('m', 0, 1)],
  ['tokens', store => store.calibration.record('m', 1, -1)],
]

describe.each(DRIVERS)('bad arguments to $name', driver => {
  const place = useStore(driver)

  test.each(ATTEMPTS)('%s is named', async (field, attempt) => {
    const key = newKey()
    if (!field.startsWith('state')) await place.store.createSession(key)
    const failure = await failureOf(attempt(place.store, key))
    expect(failure.code).toBe('invalid-argument')
    expect(failure.message.startsWith(field)).toBe(true)
    expect(await place.store.readMessages(key)).toEqual([])
  })
})
