import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { gapsIn, inOnePiece } from '../support/event-numbers.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { startServerProcess } from '../support/start-server.js'

let database: TestDatabase
beforeAll(async () => {
  database = await createStoreDatabase()
})
afterAll(() => database.drop())

async function collect(client: LangoClient, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  return events
}

async function until(client: LangoClient, runId: string, type: RunEvent['type']): Promise<void> {
  for await (const event of client.follow(runId)) if (event.type === type) return
}

test('two servers on one PostgreSQL share runs: followed, stopped, approved and taken over', async () => {
  const [one, other] = await Promise.all([startServerProcess(database.url), startServerProcess(database.url)])

  const followed = await one.client.start('followed', { text: 'slow 40 10' })
  const [near, far] = await Promise.all([
    collect(one.client, followed.runId),
    collect(other.client, followed.runId),
  ])
  expect(inOnePiece(far)).toEqual(inOnePiece(near))
  expect(gapsIn(far)).toEqual([])

  const stopped = await one.client.start('stopped', { text: 'hang' })
  await until(other.client, stopped.runId, 'text-delta')
  await other.client.stop(stopped.runId)
  expect((await collect(other.client, stopped.runId)).at(-1)).toMatchObject({ finishReason: 'aborted' })

  const approved = await one.client.start('approved', { text: 'danger' })
  await until(other.client, approved.runId, 'approval-request')
  await other.client.approve(approved.runId, 'call-danger', 'once')
  const answered = await collect(other.client, approved.runId)
  expect(answered.find(({ type }) => type === 'approval-answer')).toMatchObject({ answer: 'once' })
  expect(answered.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })

  const busy = await one.client.start('killed', { text: 'hang' })
  await until(other.client, busy.runId, 'text-delta')
  await expect(other.client.start('killed', { text: 'say 1' })).rejects.toMatchObject({
    code: 'session-busy',
  })
  const rest = collect(other.client, busy.runId)
  await one.kill()
  // The other server continues the run, whose model stops again after one word.
  await until(other.client, busy.runId, 'step-restart')
  await other.client.stop(busy.runId)
  const continued = await rest
  expect(gapsIn(continued)).toEqual([])
  expect(continued.map(({ type }) => type)).toEqual(expect.arrayContaining(['run-resumed', 'step-restart']))
  expect(continued.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
  const next = await other.client.start('killed', { text: 'say 3' })
  expect((await collect(other.client, next.runId)).at(-1)).toMatchObject({ finishReason: 'stop' })
  expect((await other.client.session('killed')).activeRun).toBeUndefined()
})
