import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { inOnePiece } from '../support/event-numbers.js'
import { startServer, type TestServer, type TestServerOptions } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** A server whose store takes a moment for every look at runs, as one at the other end of a network does. */
async function startFarServer(options: TestServerOptions): Promise<TestServer> {
  const server = await startServer(options)
  const { runs } = server.runtime.store
  const [find, list] = [runs.findRun.bind(runs), runs.listRuns.bind(runs)]
  runs.findRun = runId => sleep(20).then(() => find(runId))
  runs.listRuns = (key, range) => sleep(20).then(() => list(key, range))
  return server
}

async function collect({ client }: TestServer, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  return events
}

test.each(['one server', 'two servers'])(
  'a request that comes twice at once to %s and may wait is one run with the same events for both',
  async servers => {
    const store = `sqlite:${await temporaryFolder()}/lango.db`
    const one = await startFarServer({ store })
    const other = servers === 'one server' ? one : await startFarServer({ store })
    const request = { text: 'slow 6 50', runId: randomUUID(), whenBusy: 'queue' as const }
    await Promise.all([one, other].map(({ client }) => client.start('s1', request)))
    const [near, far] = await Promise.all([collect(one, request.runId), collect(other, request.runId)])
    expect(near?.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
    expect(inOnePiece(far ?? [])).toEqual(inOnePiece(near ?? []))
    expect((await one.client.messages('s1')).totalMessages).toBe(2)
    await expect(other.client.start('s2', request)).rejects.toMatchObject({ code: 'invalid-argument' })
  },
)

// Which of the two executes the run is not known, so each of them stops one.
test.each(['first', 'second'])('a run that came to two servers is stopped by the %s of them', async which => {
  const store = `sqlite:${await temporaryFolder()}/lango.db`
  const servers = [await startFarServer({ store }), await startFarServer({ store })]
  const request = { text: 'hang', runId: randomUUID(), whenBusy: 'queue' as const }
  await Promise.all(servers.map(({ client }) => client.start('s1', request)))
  await servers[which === 'first' ? 0 : 1]?.client.stop(request.runId)
  for (const server of servers) {
    expect((await collect(server, request.runId)).at(-1)).toMatchObject({ finishReason: 'aborted' })
  }
})

test('12 runs that one user starts at once are limited to runsPerUser, as runs one after the other are', async () => {
  const { client } = await startFarServer({ limits: { runsPerUser: 3 } })
  const starts = Array.from({ length: 12 }, (_, index) =>
    client.start(`s${index}`, { text: 'hang' }).then(
      () => 202,
      error => error.status,
    ),
  )
  const statuses = await Promise.all(starts)
  expect(statuses.filter(status => status === 202)).toHaveLength(3)
  expect(statuses.filter(status => status === 429)).toHaveLength(9)
})
