/** An MCP server of the official SDK over streamable HTTP, in this process: it can come late, refuse and change its tools. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { onTestFinished } from 'vitest'

export interface McpService {
  url: string
  port: number
  /** The servers of the connections, in the order in which they were made. */
  servers: McpServer[]
  /** The token that requests must have; any when there is none. */
  token: string | undefined
  close(): Promise<void>
}

/** A port that nobody listens to. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await listen(server, 0)
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

/** Starts a server; `register` adds the tools of each connection. */
export async function startService(register: (server: McpServer) => void, port = 0): Promise<McpService> {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const service: Pick<McpService, 'servers' | 'token'> = { servers: [], token: undefined }
  const http = createServer(async (request, response) => {
    if (service.token !== undefined && request.headers.authorization !== `Bearer ${service.token}`)
      return void response.writeHead(401).end('who are you?')
    const id = request.headers['mcp-session-id']
    let transport = transports.get(String(id))
    if (id && !transport) return void response.writeHead(404).end('no such session')
    if (!transport) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: sessionId => void transports.set(sessionId, made),
      })
      transport = made
      const server = new McpServer({ name: 'service', version: '1.0.0' })
      register(server)
      service.servers.push(server)
      // The SDK's types were not written for exactOptionalPropertyTypes.
      await server.connect(made as Parameters<McpServer['connect']>[0])
    }
    await transport.handleRequest(request, response)
  })
  await listen(http, port)
  const actual = (http.address() as AddressInfo).port
  const close = async () => {
    http.closeAllConnections()
    await new Promise(resolve => http.close(resolve))
  }
  onTestFinished(close)
  return Object.assign(service, { port: actual, url: `http://127.0.0.1:${actual}/mcp`, close })
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
}
