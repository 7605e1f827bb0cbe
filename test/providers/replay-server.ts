import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One answer of the server: a recorded stream, or a status with a body, or a hand on the socket. */
export type Reply =
  | { file: string; cut?: boolean }
  | { status: number; body: unknown; headers?: Record<string, string> }
  | { hang: true }
  | { reset: true }

export interface ReceivedRequest {
  url: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

export interface ReplayServer {
  url: string
  requests: ReceivedRequest[]
  /** Requests whose client went away before the answer was complete. */
  abandoned(): number
  close(): Promise<void>
}

/** Answers each request with the next reply, and keeps what it was asked. */
export async function startReplayServer(replies: readonly Reply[]): Promise<ReplayServer> {
  const requests: ReceivedRequest[] = []
  let abandoned = 0
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) abandoned += 1
    })
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
      requests.push({ url: request.url ?? '', headers: request.headers, body })
      answer(response, replies[requests.length - 1])
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    abandoned: () => abandoned,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function answer(response: ServerResponse, reply: Reply | undefined): void {
  if (reply === undefined) {
    response
      .writeHead(418, { 'content-type': 'application/json' })
      .end('{"error":{"message":"no reply left"}}')
  } else if ('file' in reply) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const stream = readFileSync(new URL(`../fixtures/wire/${reply.file}`, import.meta.url))
    if (!reply.cut) response.end(stream)
    else response.write(stream, () => response.destroy())
  } else if ('status' in reply) {
    const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(body)
  } else if ('reset' in reply) {
    response.destroy()
  }
}
