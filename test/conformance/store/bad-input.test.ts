import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Message, SessionKey } from '../../../src/session/message.js'
import type { RunEventRecord, RunSignal } from '../../../src/session/run-store.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { inspectStore, openStore } from '../../../src/store/open-store.js'
import { runScript } from '../../support/child.js'
import { postgresUrl } from '../../support/postgres.js'
import { freePort } from '../../support/postgres-server.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { LONG } from '../../support/tiers.js'
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

interface Refusal {
  url: string
  code: string
  texts: readonly string[]
}

/** Two tests: opening fails with this code and these texts, and (long) a process that opens it reports that and ends with 1. */
function testRefusal(subject: string, refusal: () => Promise<Refusal>): void {
  test(`${subject} is refused with what to do`, async () => {
    const { url, code, texts } = await refusal()
    const failure = await failureOf(openStore(url))
    expect(failure.code).toBe(code)
    for (const text of texts) expect(failure.message).toContain(text)
  })

  test(`${subject} ends a process with 1`, LONG, async () => {
    const { url, code } = await refusal()
    await endsProcess(url, code)
  })
}

/** A process that opens it prints the error and ends with 1. */
async function endsProcess(url: string, code: string): Promise<void> {
  const { message } = await failureOf(openStore(url))
  const exit = await exitOf(url)
  expect(exit.code).toBe(1)
  expect(exit.errors).toContain(`${code}: ${message.slice(0, 40)}`)
}

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
])('%j is refused as the URL of a store', async (url, text) => {
  const failure = await failureOf(openStore(url))
  expect(failure.code).toBe('invalid-argument')
  expect(failure.message).toContain(text)
  expect(failure.message).not.toContain('s3cret')
})

test('a URL with an unknown scheme, or none, is refused with the schemes that work, and ends a process with 1', async () => {
  const failure = await failureOf(openStore('mysql://host/db'))
  expect(failure.code).toBe('invalid-argument')
  expect(failure.message).toContain('Use memory:, sqlite:./lango.db or postgres://')
  await endsProcess('mysql://host/db', 'invalid-argument')
  await expect(openStore(undefined as unknown as string)).rejects.toMatchObject({ code: 'invalid-argument' })
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

testRefusal('a SQLite file in a folder that does not exist', async () => {
  const folder = await temporaryFolder()
  return {
    url: `sqlite:${join(folder, 'mistyped', 'store.db')}`,
    code: 'store-unavailable',
    texts: [join(folder, 'mistyped'), 'does not exist', '?create=1'],
  }
})

test('a folder that does not exist is not created, neither by opening nor by inspecting', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'mistyped', 'store.db')}`
  expect(await failureOf(openStore(url))).toMatchObject({ code: 'store-unavailable' })
  expect(await failureOf(inspectStore(url))).toMatchObject({ code: 'store-unavailable' })
  expect(await inspectStore(`${url}?create=1`)).toMatchObject({ exists: false })
  expect(existsSync(join(folder, 'mistyped'))).toBe(false)
})

testRefusal('a file that is not a database', async () => {
  const file = join(await temporaryFolder(), 'notes.txt')
  await writeFile(file, 'These are my notes, and they are long enough to be looked at.\n'.repeat(100))
  return { url: `sqlite:${file}`, code: 'store-corrupt', texts: [file, 'restore it from a backup'] }
})

testRefusal('a read-only SQLite file', async () => {
  const file = join(await temporaryFolder(), 'store.db')
  await (await openStore(`sqlite:${file}`)).close()
  await chmod(file, 0o444)
  return { url: `sqlite:${file}`, code: 'store-unavailable', texts: [file, 'read-only', 'chmod u+w'] }
})

testRefusal('a folder instead of a SQLite file', async () => {
  const url = `sqlite:${await temporaryFolder()}`
  return { url, code: 'invalid-argument', texts: ['is a folder'] }
})

for (const [query, text] of [
  ['', 'does not exist'],
  ['?create=1', 'cannot be created'],
] as const)
  testRefusal(`a SQLite file in a file instead of a folder, with "${query}"`, async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), '')
    return {
      url: `sqlite:${join(folder, 'file', 'store.db')}${query}`,
      code: 'store-unavailable',
      texts: [text],
    }
  })

testRefusal('a SQLite file where no folder can be created', async () => ({
  url: 'sqlite:/proc/lango/deeper/store.db?create=1',
  code: 'store-unavailable',
  texts: ['cannot be created'],
}))

test('a driver that is not installed is reported with the command that installs it', async () => {
  const without = fileURLToPath(new URL('../../support/without-drivers.mjs', import.meta.url))
  const sqlite = await exitOf(`sqlite:${join(await temporaryFolder(), 'x.db')}`, [without])
  expect(sqlite.code).toBe(1)
  expect(sqlite.errors).toMatch(/^store-unavailable: .*npm install @photostructure\/sqlite/)
  const postgres = await exitOf('postgres://127.0.0.1:1/x', [without])
  expect(postgres.code).toBe(1)
  expect(postgres.errors).toMatch(/^store-unavailable: .*npm install pg/)
  const memory = await exitOf('memory:', [without])
  expect(memory.code).toBe(1)
  expect(memory.errors).toMatch(/^store-unavailable: .*npm install @photostructure\/sqlite/)
})

testRefusal('a PostgreSQL server that does not run', async () => {
  const port = await freePort()
  return {
    url: `postgres://ann:s3cret@127.0.0.1:${port}/x`,
    code: 'store-unavailable',
    texts: ['cannot be reached', 'check that the server runs'],
  }
})

test('an error of a PostgreSQL server that does not run does not show the password', async () => {
  const failure = await failureOf(openStore(`postgres://ann:s3cret@127.0.0.1:${await freePort()}/x`))
  expect(failure.message).not.toContain('s3cret')
})

testRefusal('a PostgreSQL server without TLS, when the URL requires it,', async () => ({
  url: await changedUrl({ search: '?sslmode=require' }),
  code: 'store-unavailable',
  texts: ['check TLS: sslmode in the URL'],
}))

testRefusal('a wrong password of PostgreSQL', async () => ({
  url: await changedUrl({ password: 'wr0ng' }),
  code: 'store-unavailable',
  texts: ['refused the login'],
}))

test('an error of a wrong password does not show it', async () => {
  const failure = await failureOf(openStore(await changedUrl({ password: 'wr0ng' })))
  expect(failure.message).not.toContain('wr0ng')
})

testRefusal('a PostgreSQL database that does not exist', async () => ({
  url: await changedUrl({ pathname: '/nowhere' }),
  code: 'store-unavailable',
  texts: ['/nowhere', 'create the database first'],
}))

/** The URL of the run's PostgreSQL, changed. */
async function changedUrl(change: Partial<URL>): Promise<string> {
  return Object.assign(new URL(await postgresUrl()), change).href
}

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
  ['throughSeq', (store, key) => store.forkSession(key, 'two', { throughSeq: -1 })],
  ['throughSeq', (store, key) => store.forkSession(key, 'two', { throughSeq: 1.5 })],
  ['appName', store => store.listSessions({ appName: '' })],
  ['userId', (store, key) => store.listSessions({ appName: key.appName, userId: '' })],
  ['limit', (store, key) => store.listSessions({ appName: key.appName, limit: 0 })],
  ['cursor', (store, key) => store.listSessions({ appName: key.appName, cursor: 'nonsense' })],
  ['cursor', (store, key) => store.listSessions({ appName: key.appName, cursor: 'WyJhIiwiYiJd' })],
  ['appName', store => store.runs.listAppRuns({ appName: '' })],
  ['userId', (store, key) => store.runs.listAppRuns({ ...key, userId: '' })],
  ['limit', (store, key) => store.runs.listAppRuns({ ...key, limit: 0 })],
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

  test.each(ATTEMPTS)(
    `an invalid argument of the ${driver.name} store is refused with its name: %s`,
    async (field, attempt) => {
      const key = newKey()
      if (!field.startsWith('state')) await place.store.createSession(key)
      const failure = await failureOf(attempt(place.store, key))
      expect(failure.code).toBe('invalid-argument')
      expect(failure.message.startsWith(field)).toBe(true)
      expect(await place.store.readMessages(key)).toEqual([])
    },
  )
})
