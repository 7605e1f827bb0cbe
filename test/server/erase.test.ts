import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { createTestRuntime, startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

async function until(client: LangoClient, runId: string, type: RunEvent['type']): Promise<void> {
  for await (const event of client.follow(runId)) if (event.type === type) return
}

test('a user erases their own data over HTTP; runs end, and nothing is stored afterwards', async () => {
  const { client, runtime } = await startServer()
  const { runId } = await client.start('one', { text: 'hang' })
  await until(client, runId, 'text-delta')
  const queued = await client.start('one', { text: 'say 2', whenBusy: 'queue' })
  const receipt = await client.eraseUser('user')
  expect(receipt).toMatchObject({ sessions: 1, runs: expect.any(Number), residue: 'none' })
  expect(receipt.messages).toBeGreaterThan(0)
  expect((await client.sessions()).sessions).toEqual([])
  for (const id of [runId, queued.runId])
    await expect.poll(() => runtime.store.runs.findRun(id)).toBeUndefined()
  const again = await client.eraseUser('user')
  expect(again).toMatchObject({ sessions: 0, messages: 0, runs: 0, events: 0 })
})

test('erasing the data of another user is refused, and nothing is erased', async () => {
  const tokens = { 'token-of-ann-0123456789': 'ann', 'token-of-bob-0123456789': 'bob' }
  const { url } = await startServer({ tokens })
  const [ann, bob] = Object.keys(tokens).map(token => createClient({ baseUrl: url, token }))
  await ann?.createSession({ sessionId: 's' })
  await expect(bob?.eraseUser('ann')).rejects.toMatchObject({ status: 403, code: 'forbidden' })
  expect((await ann?.sessions())?.sessions).toHaveLength(1)
})

/** A store whose leases are renewed often: a silent run learns from the renewal that its session was deleted. */
async function openWithShortLeases(url: string): Promise<SessionStore> {
  const store = await openStore(url)
  const openRun = store.openRun.bind(store)
  store.openRun = (opening, options) => openRun(opening, { ...options, ttlMs: 600 })
  return store
}

test('a silent run ends with an error when another process erases its user', async () => {
  const url = `sqlite:${join(await temporaryFolder(), 'store.db')}`
  const store = await openWithShortLeases(url)
  const runtime = await createTestRuntime(store)
  const other = await openStore(url)
  const key = { appName: 'lango', userId: 'ann', sessionId: 'one' }
  const last: RunEvent[] = []
  for await (const event of runtime.run({ ...key, text: 'hang' })) {
    if (event.type === 'text-delta') await other.erase(key)
    last.push(event)
  }
  expect(last.slice(-2)).toMatchObject([
    { type: 'error', error: { code: 'lease-lost', message: expect.stringContaining('deleted') } },
    { type: 'run-finish', finishReason: 'error' },
  ])
  expect((await other.listSessions({ appName: 'lango' })).sessions).toEqual([])
  expect(await other.erase(key)).toMatchObject({
    sessions: 0,
    messages: 0,
    runs: 0,
    events: 0,
    requests: 0,
  })
  await runtime.close()
  await store.close()
  await other.close()
})
