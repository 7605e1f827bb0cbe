// What was spent, over HTTP: own calls by day and model, a budget in the body, and a run that goes on.
import { afterEach, expect, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { billedBy, startBilling } from '../support/billing-provider.js'
import { searchTool } from '../support/tools.js'

const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function start() {
  const billed = await startBilling((request, index) =>
    request.toolChoice === 'none'
      ? { text: 'So far.' }
      : { toolCalls: [{ name: 'search', args: { query: `${index}` } }], outputTokens: 400 },
  )
  open.push(billed.server)
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { bank: billedBy(billed.server) },
    agent: { name: 'root', model: 'bank/bill-1', tools: [searchTool] },
    limits: { maxTurns: 5 },
  })
  open.push(runtime)
  const server = await serve({ runtime, logger: silentLogger, version: '0', host: '127.0.0.1', port: 0 })
  open.push(server)
  return { billed, client: createClient({ baseUrl: server.url }), url: server.url }
}

test('a run ends at its spending limit, continues with a higher one, and both parts are in the usage', async () => {
  const { billed, client } = await start()
  const { runId } = await client.start('s', { text: 'Go', budget: { perRunUsd: 0.06 } })
  const finishOf = async (id: string) => {
    for await (const event of client.follow(id)) if (event.type === 'run-finish') return event
    return undefined
  }
  const first = await finishOf(runId)
  expect(first).toMatchObject({ finishReason: 'budget' })
  const next = await client.goOn(runId, { perRunUsd: 1 })
  const second = await finishOf(next.runId)
  expect(second).toMatchObject({ finishReason: 'turn-limit' })
  const { lines } = await client.usage()
  expect(lines).toMatchObject([{ model: 'bank/bill-1', kind: 'run', unpricedCalls: 0 }])
  const sum = (first?.usage.cost ?? 0) + (second?.usage.cost ?? 0)
  expect(lines[0]?.usage.cost).toBeCloseTo(sum, 9)
  expect(sum).toBeCloseTo(billed.bill(), 9)
  expect((await client.usage({ model: 'other/model' })).lines).toEqual([])
})

test.each([
  { perRunUsd: 0 },
  { perUserUsdPerDay: 1000, perRunUsd: 1 },
  { perRunUsd: 1, unknownPrice: 'ignore' },
])('a run with the budget %j in its body is refused', async budget => {
  const { url, billed } = await start()
  const answer = await fetch(`${url}/api/sessions/s/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'Go', budget }),
  })
  expect(answer.status).toBe(400)
  expect(billed.server.requests).toEqual([])
})
