/** Requests to a watched server, and a model for it that answers as a message asks. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Characters of an answer that are kept. */
const KEPT = 20_000

/** What every request needs of a server. */
interface Address {
  url: string
}

/** A session with its events, as ADK's clients read it. */
export function readAdk(server: Address, id: string): Promise<Answer> {
  return get(server, `/apps/lango/users/user/sessions/${id}`)
}

export interface Answer {
  status: number
  bytes: number
  text: string
}

export function complete(server: Address, messages: readonly object[]): Promise<Answer> {
  return post(server, '/v1/chat/completions', { model: 'lango', messages })
}

export function get(server: Address, path: string): Promise<Answer> {
  return send(server, 'GET', path)
}

export function post(server: Address, path: string, body: object): Promise<Answer> {
  return send(server, 'POST', path, body)
}

/** A connection for each request: one that was kept open may be closed by the server while it is reused. */
export async function send({ url }: Address, method: string, path: string, body?: object): Promise<Answer> {
  const sent = request(url + path, { method, agent: false, headers: { 'content-type': 'application/json' } })
  // An error after the answer has begun ends the loop over its chunks.
  sent.on('error', () => {})
  sent.end(body ? JSON.stringify(body) : undefined)
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const answer = { status: response.statusCode ?? 0, bytes: 0, text: '' }
    for await (const chunk of response) {
      answer.bytes += chunk.length
      if (answer.text.length < KEPT) answer.text += String(chunk)
    }
    return answer
  } catch (error) {
    return { status: 0, bytes: 0, text: String(error) }
  }
}

const ANSWER_BYTES = 40 * 1024 * 1024
const DELTA_BYTES = 4096

/** A model on a port of its own: `long` is answered with 40 MB, `hang` when it is released, `tool` with a call of the tool `big`. */
export interface LoadModel {
  /** The configuration of a provider for it. */
  provider: object
  /** Ends the answers that hang. */
  release(): void
  close(): void
}

export async function startLoadModel(): Promise<LoadModel> {
  const hanging = new Set<() => void>()
  const server: Server = createServer(async (incoming, response) => {
    let body = ''
    for await (const piece of incoming) body += piece
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const asked = lastMessage(body)
    if (asked === 'hang') {
      response.write(chunk({ content: 'Wait.' }))
      await new Promise<void>(resolve => hanging.add(resolve))
    }
    if (asked === 'long') {
      const delta = chunk({ content: 'abcdefg '.repeat(DELTA_BYTES / 8) })
      for (let sent = 0; sent < ANSWER_BYTES; sent += DELTA_BYTES) {
        if (!response.write(delta)) await once(response, 'drain')
      }
    } else if (asked === 'tool') {
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'big', arguments: '{}' } }
      response.write(chunk({ tool_calls: [call] }))
    } else if (asked !== 'hang') response.write(chunk({ content: 'Yes.' }))
    response.end(`${chunk({}, asked === 'tool' ? 'tool_calls' : 'stop')}data: [DONE]\n\n`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    provider: { type: 'openai-compatible', baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'none' },
    release: () => {
      for (const resume of hanging) resume()
      hanging.clear()
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** The text of the last message; empty when it is a tool's result. */
function lastMessage(body: string): string {
  const { messages } = JSON.parse(body) as { messages: { role: string; content: unknown }[] }
  const last = messages.at(-1)
  if (last?.role !== 'user') return ''
  const [part] = Array.isArray(last.content) ? (last.content as { text?: string }[]) : []
  return typeof last.content === 'string' ? last.content : (part?.text ?? '')
}

function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  const data = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'model', choices }
  return `data: ${JSON.stringify(data)}\n\n`
}
