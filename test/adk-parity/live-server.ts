// A server of Gemini's Live API on loopback: the WebSocket handshake, text frames, and answers by a function. ADK's own
// Gemini model and the vendor's SDK connect to it.
import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** What a client sent, as JSON. */
export type LiveMessage = Record<string, unknown>

export interface LiveServer {
  readonly baseUrl: string
  /** Every message of every connection, in order. */
  readonly received: readonly LiveMessage[]
  close(): Promise<void>
}

/** Answers each message of a client with any number of messages. */
export async function startLiveServer(
  answer: (message: LiveMessage) => readonly LiveMessage[],
): Promise<LiveServer> {
  const received: LiveMessage[] = []
  const sockets = new Set<Duplex>()
  const server: Server = createServer()
  server.on('upgrade', (request, socket) => {
    sockets.add(socket)
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}${GUID}`)
      .digest('base64')
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
    socket.write([...lines, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'))
    let waiting = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      waiting = Buffer.concat([waiting, chunk])
      for (let frame = readFrame(waiting); frame; frame = readFrame(waiting)) {
        waiting = waiting.subarray(frame.size)
        if (frame.opcode === CLOSE) socket.end()
        if (frame.opcode === CLOSE) return
        const message = JSON.parse(frame.text) as LiveMessage
        received.push(message)
        for (const each of answer(message)) socket.write(writeFrame(JSON.stringify(each)))
      }
    })
    socket.on('error', () => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const CLOSE = 8

/** A whole frame at the start of the bytes: clients mask what they send. */
function readFrame(bytes: Buffer): { opcode: number; text: string; size: number } | undefined {
  if (bytes.length < 2) return undefined
  const short = (bytes[1] ?? 0) & 0x7f
  const head = short === 126 ? 4 : short === 127 ? 10 : 2
  if (bytes.length < head + 4) return undefined
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
  const size = head + 4 + length
  if (bytes.length < size) return undefined
  const mask = bytes.subarray(head, head + 4)
  const data = Buffer.from(bytes.subarray(head + 4, size)).map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  return { opcode: (bytes[0] ?? 0) & 0x0f, text: Buffer.from(data).toString('utf8'), size }
}

function writeFrame(text: string): Buffer {
  const data = Buffer.from(text)
  const head =
    data.length < 126
      ? Buffer.from([0x81, data.length])
      : Buffer.from([0x81, 126, data.length >> 8, data.length & 0xff])
  return Buffer.concat([head, data])
}
