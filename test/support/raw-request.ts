import { request } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test is about
  json(): any
}

export interface RawOptions {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
  /** Sends the body in pieces, without saying how long it is. */
  chunked?: boolean
}

/** A request that no fetch would send: any path, any Host, any Origin, byte for byte. */
export function rawRequest(url: string, path: string, options: RawOptions = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const { method = 'GET', headers = {}, body, chunked = false } = options
  return new Promise((resolve, reject) => {
    const length = body === undefined || chunked ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request({ hostname, port, path, method, headers: { ...length, ...headers } }, answer => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text,
          json: () => JSON.parse(text),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Bytes on a socket, and what comes back until the other side closes it. */
export async function rawSocket(
  url: string,
  bytes: string,
): Promise<{ socket: Socket; closed: Promise<string> }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  const closed = new Promise<string>(resolve => {
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(text))
  })
  await new Promise<void>(resolve => socket.once('connect', () => resolve()))
  socket.write(bytes)
  return { socket, closed }
}
