import { expect, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { silentLogger } from '../../src/logger.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { serve } from '../../src/server/serve.js'
import { gapsIn, textOf } from '../support/event-numbers.js'
import { createTestRuntime, startServer, startServerProcess } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

test('closing waits for a run that can finish in time, and its followers get the end', async () => {
  const server = await startServer({ graceMs: 10_000 })
  const { runId } = await server.client.start('s1', { text: 'slow 30 10' })
  const events: RunEvent[] = []
  const followed = (async () => {
    for await (const event of server.client.follow(runId)) events.push(event)
  })()
  await expect.poll(() => events.length).toBeGreaterThan(0)
  const closing = server.close()
  await expect(server.client.start('s2', { text: 'say 1' })).rejects.toMatchObject({
    status: 503,
    code: 'shutting-down',
    retryable: true,
  })
  expect((await fetch(`${server.url}/api/ready`)).status).toBe(503)
  expect((await fetch(`${server.url}/api/health`)).status).toBe(200)
  await Promise.all([closing, followed])
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
})

/** The server that executes the run. A real process is in `npm run test:long`. */
const OTHERS = [
  { other: 'another server', startOther: (store: string) => startServer({ store }), isShort: true },
  { other: 'another process', startOther: startServerProcess, isShort: false },
]

for (const { other, startOther, isShort } of OTHERS)
  test(
    `closing sends a reconnect event to the stream of a run that ${other} executes`,
    longUnless(isShort),
    async () => {
      const store = `sqlite:${await temporaryFolder()}/lango.db`
      const [near, far] = [await startServer({ store, graceMs: 5000 }), await startOther(store)]
      const { runId } = await far.client.start('s1', { text: 'hang' })
      const response = await fetch(`${near.url}/api/runs/${runId}/events`)
      const [text] = await Promise.all([response.text(), near.close()])
      expect(text).toContain('"type":"run-start"')
      expect(text).toMatch(/event: reconnect\nretry: 1000\ndata: \{\}\n\n$/)
    },
  )

test('closing leaves a run that cannot finish in time to the runtime, and its followers get a reconnect event', async () => {
  const store = `sqlite:${await temporaryFolder()}/lango.db`
  const first = await startServer({ store, graceMs: 20 })
  const { runId } = await first.client.start('s1', { text: 'hang' })
  const response = await fetch(`${first.url}/api/runs/${runId}/events`)
  const [text] = await Promise.all([response.text(), first.close()])
  expect(text).toMatch(/event: reconnect\nretry: 1000\ndata: \{\}\n\n$/)
  expect(text).not.toContain('run-interrupted')
  expect(first.runtime.active()).toMatchObject([{ runId }])
  expect(await first.runtime.findRun(runId)).toMatchObject({ finished: false, state: 'running' })
})

for (const { other: name, startOther, isShort } of OTHERS)
  test(
    `a client follows a run of ${name} over a restart of the server on the same port`,
    longUnless(isShort),
    async () => {
      const store = `sqlite:${await temporaryFolder()}/lango.db`
      const runtime = await createTestRuntime(store)
      const start = (port: number) =>
        serve({ runtime, port, host: '127.0.0.1', logger: silentLogger, version: '1', graceMs: 0 })
      const other = await startOther(store)
      const { runId } = await other.client.start('s1', { text: 'slow 40 20' })
      const first = await start(0)
      const states: string[] = []
      const seen: RunEvent[] = []
      const client = createClient({ baseUrl: first.url })
      let second: Awaited<ReturnType<typeof start>> | undefined
      for await (const event of client.follow(runId, { onConnection: state => states.push(state) })) {
        seen.push(event)
        if (second || textOf(seen).length < 60) continue
        await first.close()
        second = await start(first.port)
      }
      expect(gapsIn(seen)).toEqual([])
      expect(seen.at(-1)).toMatchObject({ type: 'run-finish', text: textOf(seen) })
      expect(states).toEqual(['open', 'lost', 'open'])
      await second?.close()
      await runtime.close()
    },
  )
