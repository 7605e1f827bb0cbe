/** What Anthropic's own tools leave in an answer: a call with its result, both made by the server. */
import { type AnswerPlan, type AnswerRequest, splitEvery } from '../family.js'
import { type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { freshToken } from '../seal.js'

/** A block of an answer: whole, and as it is streamed. */
export interface Block {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly deltas: readonly JsonObject[]
}

/** What server tools were asked, and what they found, before the text. */
export function serverBlocks(request: AnswerRequest): Block[] {
  const { plan, body } = request
  const code = declares(body, 'code_execution') ? plan.code : undefined
  return [
    ...(plan.serverTool ? scriptedBlocks(plan.serverTool, pendingId(body)) : []),
    ...(searches(request) ? searchBlocks(request) : []),
    ...(code ? codeBlocks(code) : []),
  ]
}

/** Whether the answer comes from a search, and cites what it found. */
export function searches({ plan, body }: AnswerRequest): boolean {
  return plan.sources.length > 0 && declares(body, 'web_search')
}

/** The code of an earlier answer that waits for a tool of the client. */
function pendingId(body: JsonObject): unknown {
  const blocks = listOf(body.messages).flatMap(message => listOf(objectOf(message).content).map(objectOf))
  const found = new Set(blocks.map(({ tool_use_id: id }) => id))
  return blocks.findLast(({ type, id }) => type === 'server_tool_use' && !found.has(id))?.id
}

/** The sandbox of code that ran or waits: that of the request, or a new one. */
export function containerFor({ plan, body }: AnswerRequest): JsonObject | undefined {
  if (!declares(body, 'code_execution') || (!plan.code && !plan.serverTool)) return undefined
  const id = textOf(body.container) || `container_01${freshToken(22)}`
  return { id, expires_at: new Date(Date.now() + 600_000).toISOString() }
}

function scriptedBlocks(
  { name, input = {}, result }: NonNullable<AnswerPlan['serverTool']>,
  pending: unknown,
): Block[] {
  if (pending !== undefined && result !== undefined) {
    const answer = { type: `${name}_tool_result`, tool_use_id: pending, content: result }
    return [{ whole: answer, start: answer, deltas: [] }]
  }
  const content = result === undefined ? undefined : { type: `${name}_tool_result`, content: result }
  return serverTool(name, input, content)
}

/** Whether a request declares this tool, in any of its versions. */
function declares(body: JsonObject, name: string): boolean {
  return listOf(body.tools).some(tool => textOf(objectOf(tool).type).startsWith(`${name}_2`))
}

/** A search and what it found; the pages' text comes encrypted. */
function searchBlocks({ plan, summary }: AnswerRequest): Block[] {
  const content = plan.sources.map(({ url, title }) => ({
    type: 'web_search_result',
    url,
    title,
    encrypted_content: freshToken(24),
    page_age: null,
  }))
  return serverTool(
    'web_search',
    { query: summary.lastUserText },
    { type: 'web_search_tool_result', content },
  )
}

function codeBlocks({ code, output }: NonNullable<AnswerPlan['code']>): Block[] {
  const content = {
    type: 'bash_code_execution_result',
    stdout: output,
    stderr: '',
    return_code: 0,
    content: [],
  }
  const result = { type: 'bash_code_execution_tool_result', content }
  return serverTool('bash_code_execution', { command: code }, result)
}

/** A call with its result, or without one: then the call stays open. */
function serverTool(name: string, input: unknown, result: JsonObject | undefined): Block[] {
  const id = `srvtoolu_01${freshToken(22)}`
  const head = { type: 'server_tool_use', id, name }
  const deltas = ['', ...splitEvery(JSON.stringify(input), 8)].map(partial_json => ({
    type: 'input_json_delta',
    partial_json,
  }))
  const question: Block = { whole: { ...head, input }, start: { ...head, input: {} }, deltas }
  if (result === undefined) return [question]
  const answer = { ...result, tool_use_id: id }
  return [question, { whole: answer, start: answer, deltas: [] }]
}
