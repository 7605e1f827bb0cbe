// `/mcp` over HTTP: open streams are counted, and sessions that nobody uses end. Conversations are in test/cli/mcp-server.test.ts.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { startServer } from '../../support/start-server.js'

async function connect(url: string) {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`))
  // The SDK's types were not written for exactOptionalPropertyTypes.
  await client.connect(transport as Transport)
  onTestFinished(() => client.close())
  return { client, transport }
}

const post = (url: string, sessionId: string, body: object) =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': sessionId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  })

const openStreams = async (url: string) =>
  Number(/^lango_streams_open (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1] ?? -1)

test('MCP streams count against streamsPerUser until they end', async () => {
  const { url, runtime } = await startServer({ limits: { streamsPerUser: 2 } })
  const { client, transport } = await connect(url)
  const { sessionId = '' } = transport
  await eventually(() => openStreams(url)).toBe(1)
  const asked = client.callTool({ name: 'ask', arguments: { text: 'hang' } })
  await eventually(() => openStreams(url)).toBe(2)
  const refused = await post(url, sessionId, { id: 9, method: 'tools/list' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
  expect(await refused.json()).toMatchObject({
    error: { message: expect.stringContaining('Too many open streams') },
  })
  // A notification needs no stream: what is open can be cancelled.
  expect((await post(url, sessionId, { method: 'notifications/initialized' })).status).toBe(202)
  const [run] = await eventuallyRuns(runtime)
  await runtime.stop(run?.runId ?? '')
  await asked
  await eventually(() => openStreams(url)).toBe(1)
  expect((await client.listTools()).tools.length).toBeGreaterThan(0)
})

async function eventuallyRuns(runtime: Awaited<ReturnType<typeof startServer>>['runtime']) {
  const { sessions } = await runtime.store.listSessions({ appName: 'lango', limit: 1 })
  const [session] = sessions
  return session ? runtime.listRuns(session.key, { limit: 1 }) : []
}

test('an MCP session without an open request or stream ends', async () => {
  const { url } = await startServer({ limits: { mcpIdleMs: 1 } })
  const initialize = {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
  }
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', ...initialize }),
  })
  const sessionId = response.headers.get('mcp-session-id') ?? ''
  expect(sessionId).not.toBe('')
  await response.text()
  await eventually(async () => (await post(url, sessionId, { id: 2, method: 'tools/list' })).status).toBe(404)
})

test('DELETE /mcp ends an MCP session', async () => {
  const { url } = await startServer()
  const { transport } = await connect(url)
  const { sessionId = '' } = transport
  await transport.terminateSession()
  expect((await post(url, sessionId, { id: 2, method: 'tools/list' })).status).toBe(404)
})
