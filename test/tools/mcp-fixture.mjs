/** A server of the official SDK, over stdio or, with `http [port]`, over streamable HTTP. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const text = value => ({ content: [{ type: 'text', text: String(value) }] })

function createMcpServer() {
  const server = new McpServer({ name: 'fixture', version: '1.0.0' })
  const inputSchema = { word: z.string().describe('Any word.'), times: z.number().int().min(1).optional() }
  server.registerTool(
    'echo',
    { description: 'Says it again.', inputSchema, annotations: { readOnlyHint: true } },
    ({ word, times = 1 }) => text(Array(times).fill(word).join(' ')),
  )
  server.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({ ...text(a + b), structuredContent: { sum: a + b } }),
  )
  server.registerTool('fail', { description: 'Fails.' }, () => {
    throw new RangeError('too far')
  })
  server.registerTool('die', { description: 'Dies in the middle of the call.' }, () => {
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  })
  server.registerTool('hang', { description: 'Never answers.' }, ({ signal }) => {
    console.error('hanging')
    signal.addEventListener('abort', () => console.error('cancelled'))
    return new Promise(() => {})
  })
  server.registerTool('picture', { description: 'Answers with all sorts of things.' }, () => ({
    content: [
      { type: 'text', text: 'see' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'file:///x', text: 'inner' } },
      { type: 'resource_link', uri: 'file:///y', name: 'y' },
    ],
  }))
  server.registerTool('environment', { description: 'Names its variables.' }, () =>
    text(Object.keys(process.env)),
  )
  server.registerTool('start_child', { description: 'Starts a process.' }, () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore', detached: true })
    return text(child.pid)
  })
  server.registerTool('pid', { description: 'Tells its process.' }, () => text(process.pid))
  return server
}

function serveHttp(port) {
  const sessions = new Map()
  const http = createServer(async (request, response) => {
    if (request.headers.authorization !== 'Bearer right')
      return void response.writeHead(401).end('who are you?')
    const id = request.headers['mcp-session-id']
    let transport = sessions.get(id)
    if (id && !transport) return void response.writeHead(404).end('no such session')
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: sessionId => void sessions.set(sessionId, transport),
      })
      await createMcpServer().connect(transport)
    }
    await transport.handleRequest(request, response)
  })
  http.listen(port, '127.0.0.1', () => console.log(http.address().port))
}

console.error('fixture starts')
const [mode, port = '0'] = process.argv.slice(2)
if (mode === 'http') serveHttp(Number(port))
else await createMcpServer().connect(new StdioServerTransport())
