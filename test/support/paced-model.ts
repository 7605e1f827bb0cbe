/**
 * A model over HTTP, in the wire form of an OpenAI-compatible server, whose every word waits for the test. So a
 * test can look at a page in mid-answer without a clock.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A piece of an answer: words, or a call of a tool. */
export type Piece =
  | string
  | { call: string; args?: Record<string, unknown>; id?: string }
  | { reasoning: string }
  | { status: number; message: string }

export interface PacedRequest {
  model: string
  /** What the user said last. */
  text: string
  /** How many tool results have come since. */
  results: number
  body: { messages: { role: string; content: unknown }[] }
}

export interface PacedModel {
  baseUrl: string
  requests: PacedRequest[]
  close(): Promise<void>
}

/** Answers every request with the pieces that `answer` yields, when it yields them. */
export async function startPacedModel(
  answer: (request: PacedRequest) => AsyncIterable<Piece> | Iterable<Piece>,
): Promise<PacedModel> {
  const requests: PacedRequest[] = []
  const server = createServer((request, response) => {
    handle(request, response, requests, answer).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  requests: PacedRequest[],
  answer: (request: PacedRequest) => AsyncIterable<Piece> | Iterable<Piece>,
): Promise<void> {
  let text = ''
  for await (const chunk of request) text += chunk
  if (!request.url?.endsWith('/chat/completions')) {
    response.writeHead(404).end('{}')
    return
  }
  const known = read(JSON.parse(text))
  requests.push(known)
  let calls = 0
  for await (const piece of answer(known)) {
    if (typeof piece === 'object' && 'status' in piece) {
      response.writeHead(piece.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: piece.message, type: 'error' } }))
      return
    }
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
    send(response, known.model, { delta: deltaOf(piece, calls), finish_reason: null })
    if (typeof piece === 'object' && 'call' in piece) calls += 1
  }
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
  send(response, known.model, { delta: {}, finish_reason: calls > 0 ? 'tool_calls' : 'stop' }, USAGE)
  response.end('data: [DONE]\n\n')
}

const USAGE = { prompt_tokens: 1200, completion_tokens: 340, total_tokens: 1540 }

function send(response: ServerResponse, model: string, choice: object, usage?: object): void {
  const chunk = { id: 'paced', object: 'chat.completion.chunk', created: 0, model }
  const choices = [{ index: 0, ...choice }]
  response.write(`data: ${JSON.stringify({ ...chunk, choices, ...(usage ? { usage } : {}) })}\n\n`)
}

function deltaOf(piece: Exclude<Piece, { status: number }>, index: number): object {
  if (typeof piece === 'string') return { content: piece }
  if ('reasoning' in piece) return { reasoning_content: piece.reasoning }
  const { call, args = {}, id = `call_${index}_${Date.now()}` } = piece
  const calls = [{ index, id, type: 'function', function: { name: call, arguments: JSON.stringify(args) } }]
  return { tool_calls: calls }
}

function read(body: PacedRequest['body'] & { model: string }): PacedRequest {
  const last = body.messages.findLastIndex(({ role }) => role === 'user')
  const results = body.messages.slice(last + 1).filter(({ role }) => role === 'tool').length
  return { model: body.model, text: textOf(body.messages[last]?.content), results, body }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map(part => (typeof part?.text === 'string' ? part.text : '')).join('')
}

/** A gate that stays closed until it is opened. */
export function gate(): { passed: Promise<void>; open: () => void } {
  let open = () => {}
  const passed = new Promise<void>(resolve => {
    open = resolve
  })
  return { passed, open }
}
