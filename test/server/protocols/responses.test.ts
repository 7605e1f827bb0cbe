// OpenAI's Responses API with OpenAI's own client: events in order, sessions by earlier responses, tools of both sides.
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import {
  heldTool,
  type ProtocolServer,
  searchThenTell,
  sessionIds,
  startProtocolServer,
  until,
} from './support.js'

type Request = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Event = OpenAI.Responses.ResponseStreamEvent

const WEATHER: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}
const MIXED = [
  {
    text: 'Let me look.',
    thinking: 'Hm.',
    toolCalls: [
      { name: 'search', args: { query: 'rain' } },
      { name: 'get_weather', args: { city: 'Rome' } },
    ],
    usage: { input: 10, output: 5 },
  },
  { text: 'It rains.', usage: { input: 20, output: 3 } },
]

function clientOf({ url }: ProtocolServer): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
}

async function eventsOf(stream: AsyncIterable<Event>): Promise<Event[]> {
  const events: Event[] = []
  for await (const event of stream) events.push(event)
  return events
}

function callsOf({ output }: OpenAI.Responses.Response): OpenAI.Responses.ResponseFunctionToolCall[] {
  return output.filter(item => item.type === 'function_call')
}

function resultsOf(response: OpenAI.Responses.Response): OpenAI.Responses.ResponseInputItem[] {
  return callsOf(response).map(({ call_id }) => ({
    type: 'function_call_output',
    call_id,
    output: '{"weather":"rain"}',
  }))
}

test('responses: previous_response_id continues its session, and an older one forks it', async () => {
  const server = await startProtocolServer({ script: searchThenTell })
  const client = clientOf(server)
  const first = await client.responses.create({ model: 'lango', input: 'apples', metadata: { a: 'b' } })
  expect(first).toMatchObject({
    object: 'response',
    status: 'completed',
    output_text: 'Let me look.\n\nI found apples.',
    metadata: { a: 'b' },
    usage: { input_tokens: 30, output_tokens: 8, total_tokens: 38 },
  })
  const previous_response_id = first.id
  const second = await client.responses.create({ model: 'lango', input: 'pears', previous_response_id })
  expect(second.output_text).toContain('I found pears.')
  expect(second.previous_response_id).toBe(first.id)
  expect(await sessionIds(server.runtime)).toHaveLength(1)
  const branch = await client.responses.create({ model: 'lango', input: 'plums', previous_response_id })
  expect(branch.output_text).toContain('I found plums.')
  expect(await sessionIds(server.runtime)).toHaveLength(2)
  const sent = JSON.stringify(server.provider.requests.at(-1)?.body)
  expect(sent).toContain('apples')
  expect(sent).not.toContain('pears')
  expect(server.provider.violations).toEqual([])
  expect(await client.responses.retrieve(first.id)).toEqual(first)
  const items = await client.responses.inputItems.list(second.id, { order: 'asc' })
  expect(JSON.stringify(items.data)).toMatch(/apples.*I found apples.*pears/)
})

test('a streamed response has every event in order, and can be read again from any of them', async () => {
  const server = await startProtocolServer({ script: MIXED })
  const client = clientOf(server)
  const request = { model: 'lango', input: 'Rain?', tools: [WEATHER] }
  const events = await eventsOf(await client.responses.create({ ...request, stream: true }))
  const sequence = events.map(({ sequence_number }) => sequence_number)
  expect(sequence).toEqual([...new Set(sequence)].sort((one, other) => one - other))
  const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])
  expect(types).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ])
  const last = events.at(-1)
  if (last?.type !== 'response.completed') throw new TypeError('The response is not completed.')
  const again = await client.responses.retrieve(last.response.id, {
    stream: true,
    starting_after: sequence[5] ?? 0,
  })
  expect(await eventsOf(again)).toEqual(events.slice(6))
})

test.each([
  ['with the earlier response', true, true],
  ['with the whole history', false, true],
  ['with the whole history, not stored', false, false],
])(
  'responses: results of the client’s tools, sent %s, continue the same run once',
  async (_name, isNamed, store) => {
    const server = await startProtocolServer({ script: MIXED })
    const client = clientOf(server)
    const request: Request = { model: 'lango', input: 'Rain?', tools: [WEATHER], store }
    const first = await client.responses.create(request)
    expect(callsOf(first)).toMatchObject([{ name: 'get_weather', arguments: '{"city":"Rome"}' }])
    const question = { role: 'user' as const, content: 'Rain?' }
    const history = first.output as OpenAI.Responses.ResponseInputItem[]
    const next: Request = isNamed
      ? { ...request, previous_response_id: first.id, input: resultsOf(first) }
      : { ...request, input: [question, ...history, ...resultsOf(first)] }
    const wanted = isNamed ? next : { ...next, input: [question, ...history, ...resultsOf(first)] }
    const [second, twin] = await Promise.all([
      client.responses.create(wanted),
      client.responses.create(wanted),
    ])
    expect(second.output_text).toBe('It rains.')
    expect(second.id).not.toBe(first.id)
    expect(twin.output_text).toBe('It rains.')
    expect(server.provider.requests).toHaveLength(2)
    expect(server.provider.violations).toEqual([])
    await until(async () => (await sessionIds(server.runtime)).length === (store ? 1 : 0))
  },
)

test('responses resolve references to items of earlier responses, and refuse unknown ones', async () => {
  const server = await startProtocolServer({ script: MIXED })
  const client = clientOf(server)
  const request: Request = { model: 'lango', tools: [WEATHER], input: 'Rain?' }
  const first = await client.responses.create(request)
  const references = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: id ?? '' }))
  const input = [{ role: 'user' as const, content: 'Rain?' }, ...references, ...resultsOf(first)]
  const second = await client.responses.create({ ...request, input })
  expect(second.output_text).toBe('It rains.')
  const unknown = [{ type: 'item_reference' as const, id: 'msg_x' }]
  const failure = client.responses.create({ ...request, input: unknown })
  await expect(failure).rejects.toMatchObject({ status: 400, code: 'item_not_found' })
})

test('responses: tool results with other instructions and tools are another run with the history that was sent', async () => {
  const server = await startProtocolServer({ script: MIXED })
  const client = clientOf(server)
  const request: Request = { model: 'lango', instructions: 'Be A.', input: 'Rain?', tools: [WEATHER] }
  const first = await client.responses.create(request)
  const question = { role: 'user' as const, content: 'Rain?' }
  const history = first.output as OpenAI.Responses.ResponseInputItem[]
  const input = [question, ...history, ...resultsOf(first)]
  const second = await client.responses.create({ ...request, instructions: 'Be B.', tools: [], input })
  expect(second.output_text).toBe('It rains.')
  const sent = JSON.stringify(server.provider.requests.at(-1)?.body)
  expect(sent).toContain('Be B.')
  expect(sent).not.toContain('Be A.')
  expect(sent).toContain('rain')
  expect(server.provider.violations).toEqual([])
})

test('a background response is started at once, retrieved, cancelled and deleted', async () => {
  const { tool, called } = heldTool()
  const server = await startProtocolServer({ script: searchThenTell, tools: [tool] })
  const client = clientOf(server)
  const started = await client.responses.create({ model: 'lango', input: 'apples', background: true })
  expect(started).toMatchObject({ status: 'queued', background: true })
  await called
  expect(await client.responses.retrieve(started.id)).toMatchObject({ status: 'in_progress', output: [] })
  expect(await client.responses.cancel(started.id)).toMatchObject({ status: 'cancelled' })
  expect(await client.responses.retrieve(started.id)).toMatchObject({ status: 'cancelled' })
  await client.responses.delete(started.id)
  await expect(client.responses.retrieve(started.id)).rejects.toMatchObject({ status: 404 })
})

test('a conversation of the Responses API is a session', async () => {
  const server = await startProtocolServer({ script: searchThenTell })
  const client = clientOf(server)
  const { id } = await client.conversations.create()
  await client.responses.create({ model: 'lango', input: 'apples', conversation: id })
  const second = await client.responses.create({ model: 'lango', input: 'pears', conversation: { id } })
  expect(second.output_text).toContain('pears')
  expect(await sessionIds(server.runtime)).toEqual([id])
  const unknown = client.responses.create({ model: 'lango', input: 'x', conversation: 'conv_x' })
  await expect(unknown).rejects.toMatchObject({ status: 404 })
  expect(await client.conversations.retrieve(id)).toMatchObject({ id, object: 'conversation' })
  await client.conversations.delete(id)
  await expect(client.conversations.retrieve(id)).rejects.toMatchObject({ status: 404 })
  expect(await sessionIds(server.runtime)).toEqual([])
})

test('responses send an answer schema and options to the model', async () => {
  const script = [
    { text: 'Let me look.', toolCalls: [{ name: 'search', args: { query: 'a' } }] },
    { deltas: ['{"a":', '1}'] },
  ]
  const server = await startProtocolServer({ script })
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' } },
    required: ['a'],
    additionalProperties: false,
  }
  const answer = await clientOf(server).responses.create({
    ...{ model: 'lango', input: 'Hi', temperature: 0.3, max_output_tokens: 50 },
    text: { format: { type: 'json_schema', name: 'a', schema, strict: true } },
  })
  expect(answer.output_text).toBe('{"a":1}')
  expect(server.provider.requests[0]?.body).toMatchObject({
    temperature: 0.3,
    response_format: { json_schema: { schema } },
  })
})

test.each([
  ['tools.0.type', { tools: [{ type: 'web_search' }] }, 'unsupported_parameter'],
  ['tools', { tools: [{ ...WEATHER, name: 'search' }] }, 'invalid-argument'],
  ['include', { include: ['message.output_text.logprobs'] }, 'unsupported_parameter'],
  ['prompt', { prompt: { id: 'p' } }, 'unsupported_parameter'],
  ['max_tool_calls', { max_tool_calls: 3 }, 'unsupported_parameter'],
  ['background', { background: true, store: false }, 'invalid_value'],
  ['previous_response_id', { previous_response_id: 'resp_x' }, 'previous_response_not_found'],
  ['wishes', { wishes: 1 }, 'unknown_parameter'],
  [
    'input.0.content.0.file_id',
    { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
    'unsupported_parameter',
  ],
])('a response with an unusable %s is a 400 that names it', async (param, body, code) => {
  const server = await startProtocolServer()
  const failure = clientOf(server).responses.create({ model: 'lango', input: 'hi', ...body } as Request)
  await expect(failure).rejects.toMatchObject({ status: 400, param, code })
  expect(await sessionIds(server.runtime)).toEqual([])
})

test('a failed run is an error status of /v1/responses, and in the background a failed response', async () => {
  const server = await startProtocolServer({ faults: [{ kind: 'auth' }] })
  const client = clientOf(server)
  const failure = client.responses.create({ model: 'lango', input: 'hi' })
  await expect(failure).rejects.toMatchObject({ status: 403, code: 'provider-auth' })
  const streamed = client.responses.create({ model: 'lango', input: 'ho', stream: true })
  await expect(streamed).rejects.toMatchObject({ status: 403 })
  const { id } = await client.responses.create({ model: 'lango', input: 'hu', background: true })
  await until(async () => (await client.responses.retrieve(id)).status === 'failed')
  expect((await client.responses.retrieve(id)).error).toMatchObject({ code: 'provider-auth' })
})
