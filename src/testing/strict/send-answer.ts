/** Writing an answer to a socket, well or badly. */
import type { ServerResponse } from 'node:http'
import type { Framing } from './event-stream.js'
import type { Answer, HttpError } from './family.js'
import type { Fault } from './script.js'

export interface Delivery {
  readonly response: ServerResponse
  readonly answer: Answer
  /** Set when the request asked for a stream of events. */
  readonly stream: boolean
  readonly fault: Fault | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly framing: Framing | undefined
  /** What the vendor writes into a stream that fails. */
  readonly streamError: string
  /** Some bodies are wrapped in a list. */
  readonly wrap: (body: unknown) => unknown
}

export async function sendAnswer(delivery: Delivery): Promise<void> {
  if (delivery.stream) await sendStream(delivery)
  else await sendWhole(delivery)
}

export function sendJson(response: ServerResponse, error: HttpError): void {
  const text = JSON.stringify(error.body)
  response.writeHead(error.status, { 'content-type': 'application/json', ...error.headers })
  response.end(text)
}

async function sendStream(delivery: Delivery): Promise<void> {
  const { response, fault, headers, framing } = delivery
  response.writeHead(200, {
    'content-type': framing?.contentType ?? 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...headers,
  })
  const frames = streamTexts(delivery).map(text => framing?.encode(text) ?? Buffer.from(text))
  if (fault?.kind === 'slow-drip') return drip(response, Buffer.concat(frames))
  for (const frame of frames) await write(response, frame)
  if (fault?.kind === 'hang') return
  if (fault?.kind === 'cut') response.destroy()
  else response.end()
}

/** The frames that this delivery writes, in order. */
function streamTexts({ answer, fault, streamError }: Delivery): string[] {
  const texts = answer.frames.map(frame => frame.text)
  const sent = Math.min(fault?.afterEvents ?? 1, Math.max(0, texts.length - 1))
  switch (fault?.kind) {
    case 'cut':
    case 'hang':
      return texts.slice(0, sent)
    case 'error-in-stream':
      return [...texts.slice(0, sent), streamError]
    case 'garbage':
      return texts.map((text, index) => (index === sent ? broken(text) : text))
    case 'no-terminal':
      return answer.frames.filter(frame => !frame.terminal).map(frame => frame.text)
    default:
      return texts
  }
}

/** The same frame with half of its JSON. */
function broken(text: string): string {
  return text.replace(/^data: (.*?)(\r?)$/m, (_line, data: string, end: string) => {
    return `data: ${data.slice(0, Math.ceil(data.length / 2))}${end}`
  })
}

async function sendWhole(delivery: Delivery): Promise<void> {
  const { response, answer, fault, headers, wrap } = delivery
  if (fault?.kind === 'hang') return
  const text = JSON.stringify(wrap(fault?.kind === 'no-terminal' ? answer.unfinished : answer.json))
  const sent = fault?.kind === 'garbage' ? text.slice(0, Math.ceil(text.length / 2)) : text
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(sent)),
    ...headers,
  })
  if (fault?.kind === 'slow-drip') return drip(response, Buffer.from(sent))
  if (fault?.kind !== 'cut') return void response.end(sent)
  await write(response, sent.slice(0, Math.ceil(sent.length / 2)))
  response.destroy()
}

const DRIP_BYTES = 7

/** A few bytes at a time, so that frames, lines and characters arrive in pieces. */
async function drip(response: ServerResponse, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length && !response.destroyed; at += DRIP_BYTES) {
    await write(response, bytes.subarray(at, at + DRIP_BYTES))
  }
  response.end()
}

/** Resolves when the bytes have left, or when nobody is there to take them. */
async function write(response: ServerResponse, data: string | Buffer): Promise<void> {
  if (response.destroyed || response.closed) return
  await new Promise<void>(resolve => {
    response.once('close', resolve)
    response.write(data, () => {
      response.off('close', resolve)
      // The next frame goes into a packet of its own.
      setImmediate(resolve)
    })
  })
}
