import { expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { startServer } from '../support/start-server.js'

test('a broken history is opened, refused as it is, and answered through Lango', async () => {
  const { client } = await startServer()
  const { histories } = await client.brokenHistories()
  expect(histories.length).toBeGreaterThanOrEqual(6)
  const { sessionId } = await client.openBroken('two-answers-for-one-call')
  expect(await client.session(sessionId)).toMatchObject({
    title: 'Two answers for one call',
    totalMessages: 4,
  })
  expect(await client.sendBroken('two-answers-for-one-call')).toMatchObject({
    profile: 'anthropic-4.6',
    status: 400,
    message: expect.stringContaining('each tool_use must have a single result'),
  })
  const { runId } = await client.healBroken(sessionId)
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(events.flatMap(event => (event.type === 'repair' ? event.repairs : []))).toMatchObject([
    { kind: 'note-duplicate' },
  ])
  const { steps } = await client.inspect(runId)
  expect(steps[0]).toMatchObject({ profile: 'anthropic-4.6' })
  // The session is one like any other now: the server's own model goes on with it.
  const next = await client.start(sessionId, { text: 'say 2' })
  for await (const event of client.follow(next.runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
})

test('unknown histories and other sessions are refused, and nothing is stored', async () => {
  const { client } = await startServer()
  for (const attempt of [() => client.openBroken('nope'), () => client.sendBroken('nope')])
    await expect(attempt()).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('lost-ids'),
    })
  await client.createSession({ sessionId: 'mine' })
  await expect(client.healBroken('mine')).rejects.toMatchObject({ status: 400 })
  await expect(client.healBroken('gallery-lost-ids-00000000')).rejects.toMatchObject({ status: 404 })
  expect((await client.sessions()).sessions).toHaveLength(1)
})
