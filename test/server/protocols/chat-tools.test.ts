// Tools and options of the client in chat completions: a waiting run continues with the results, and nothing is ignored.
import { join } from 'node:path'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import type { Script } from '../../../src/testing/strict/script.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { longUnless } from '../../support/tiers.js'
import { type ProtocolServer, sessionIds, startProtocolServer, until } from './support.js'

type Body = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming
type Said = OpenAI.Chat.ChatCompletionMessageParam

const TOOLS: OpenAI.Chat.ChatCompletionTool[] = ['get_weather', 'get_time'].map(name => ({
  type: 'function',
  function: { name, description: name, parameters: { type: 'object', properties: {} } },
}))
const QUESTION: Said = { role: 'user', content: 'Rain?' }

function clientOf({ url }: ProtocolServer, session?: string): OpenAI {
  const defaultHeaders = session === undefined ? {} : { 'x-lango-session': session }
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', defaultHeaders, maxRetries: 0 })
}

/** Both sides' tools in one answer, then the answer. */
const MIXED = [
  {
    text: 'Let me look.',
    toolCalls: [{ name: 'search', args: { query: 'rain' } }, { name: 'get_weather' }, { name: 'get_time' }],
    usage: { input: 10, output: 5 },
  },
  { text: 'It rains.', usage: { input: 20, output: 3 } },
]

function resultsOf(message: OpenAI.Chat.ChatCompletionMessage): Said[] {
  const calls = message.tool_calls ?? []
  return [message, ...calls.map(({ id }): Said => ({ role: 'tool', tool_call_id: id, content: '{"ok":1}' }))]
}

for (const session of [undefined, 'weather']) {
  const where = session === undefined ? 'without a session' : 'in a session'
  /** Tests whose rule does not depend on the session. */
  const longInSession = longUnless(session === undefined)

  test(`chat completions ${where}: results of the client’s tools, called next to the agent’s, continue the same run`, async () => {
    const server = await startProtocolServer({ script: MIXED })
    const client = clientOf(server, session)
    const body: Body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
    const first = await client.chat.completions.create(body).withResponse()
    const [choice] = first.data.choices
    expect(choice?.finish_reason).toBe('tool_calls')
    expect(choice?.message.content).toBe('Let me look.')
    expect(choice?.message.tool_calls).toMatchObject([
      { type: 'function', function: { name: 'get_weather', arguments: '{}' } },
      { type: 'function', function: { name: 'get_time' } },
    ])
    expect(first.data.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 })
    if (!choice) return
    const messages = [QUESTION, ...resultsOf(choice.message)]
    const second = await client.chat.completions.create({ ...body, messages }).withResponse()
    expect(second.data.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'It rains.' },
    })
    expect(second.data.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 3 })
    const runs = [first, second].map(({ response }) => response.headers.get('x-lango-run'))
    expect(runs[0]).toBe(runs[1])
    expect(first.data.id).not.toBe(second.data.id)
    expect(server.provider.requests).toHaveLength(2)
    expect(server.provider.violations).toEqual([])
    const ids = session === undefined ? [] : [session]
    await until(async () => String(await sessionIds(server.runtime)) === String(ids))
  })

  test(
    `chat completions ${where}: streamed tool calls; results that are sent twice get the same answer`,
    longInSession,
    async () => {
      const server = await startProtocolServer({ script: MIXED })
      const client = clientOf(server, session)
      const body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
      const first = await client.chat.completions.stream(body).finalChatCompletion()
      const message = first.choices[0]?.message
      expect(message?.tool_calls).toHaveLength(2)
      if (!message) return
      const next = { ...body, messages: [QUESTION, ...resultsOf(message)] }
      const [one, other] = await Promise.all([
        client.chat.completions.create(next),
        client.chat.completions.create(next),
      ])
      expect(one.choices[0]?.message.content).toBe('It rains.')
      expect(other.choices[0]?.message.content).toBe('It rains.')
      expect(server.provider.requests).toHaveLength(2)
    },
  )

  test(`chat completions ${where}: a new message after the results is answered`, longInSession, async () => {
    const server = await startProtocolServer({ script: MIXED })
    const client = clientOf(server, session)
    const body: Body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
    const message = (await client.chat.completions.create(body)).choices[0]?.message
    if (!message) return
    const more: Said = { role: 'user', content: 'Never mind.' }
    const answer = await client.chat.completions.create({
      ...body,
      messages: [QUESTION, ...resultsOf(message), more],
    })
    expect(answer.choices[0]?.message.content).toBe('It rains.')
    expect(server.provider.violations).toEqual([])
  })

  test(`chat completions ${where}: results with other options start another run, which has the results`, async () => {
    const server = await startProtocolServer({ script: MIXED })
    const client = clientOf(server, session)
    const body: Body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
    const message = (await client.chat.completions.create(body)).choices[0]?.message
    if (!message) return
    const next: Body = { ...body, messages: [QUESTION, ...resultsOf(message)], temperature: 0.1 }
    const answer = await client.chat.completions.create(next)
    expect(answer.choices[0]?.message.content).toBe('It rains.')
    const sent = server.provider.requests.at(-1)?.body as { temperature: number; messages: Said[] }
    expect(sent.temperature).toBe(0.1)
    expect(sent.messages.filter(({ role }) => role === 'tool').length).toBeGreaterThanOrEqual(2)
    expect(server.provider.violations).toEqual([])
  })

  test(
    `chat completions ${where}: a missing result is a 400 that names the call`,
    longInSession,
    async () => {
      const server = await startProtocolServer({ script: MIXED })
      const client = clientOf(server, session)
      const body: Body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
      const message = (await client.chat.completions.create(body)).choices[0]?.message
      if (!message) return
      const messages = [QUESTION, ...resultsOf(message).slice(0, -1)]
      const failure = client.chat.completions.create({ ...body, messages })
      const missing = message.tool_calls?.[1]?.id ?? 'none'
      await expect(failure).rejects.toThrow(missing)
    },
  )

  test(
    `chat completions ${where}: the older functions and function_call work as tools do`,
    longInSession,
    async () => {
      const script = [{ toolCalls: [{ name: 'get_time' }] }, { text: 'Noon.' }]
      const server = await startProtocolServer({ script })
      const client = clientOf(server, session)
      const body: Body = { model: 'lango', messages: [QUESTION], functions: [{ name: 'get_time' }] }
      const [choice] = (await client.chat.completions.create(body)).choices
      expect(choice?.finish_reason).toBe('function_call')
      expect(choice?.message.function_call).toEqual({ name: 'get_time', arguments: '{}' })
      if (!choice) return
      const result: Said = { role: 'function', name: 'get_time', content: '12:00' }
      const answer = await client.chat.completions.create({
        ...body,
        messages: [QUESTION, choice.message, result],
      })
      expect(answer.choices[0]?.message.content).toBe('Noon.')
      expect(server.provider.violations).toEqual([])
    },
  )
}

test('results of the client’s tools reach the waiting run on another server, without a session too', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const script: Script = ({ messages }) => {
    const isAnswered = messages.at(-1)?.role === 'tool'
    return isAnswered ? { text: 'It rains.' } : { ...MIXED[0] }
  }
  const [one, other] = [
    await startProtocolServer({ store, script }),
    await startProtocolServer({ store, script }),
  ]
  const body: Body = { model: 'lango', messages: [QUESTION], tools: TOOLS }
  const first = await clientOf(one).chat.completions.create(body).withResponse()
  const message = first.data.choices[0]?.message
  if (!message) throw new TypeError('There is no message.')
  await one.server.close()
  await one.runtime.close()
  const next = { ...body, messages: [QUESTION, ...resultsOf(message)] }
  const second = await clientOf(other).chat.completions.create(next).withResponse()
  expect(second.data.choices[0]?.message.content).toBe('It rains.')
  expect(second.response.headers.get('x-lango-run')).toBe(first.response.headers.get('x-lango-run'))
  expect([one, other].map(({ provider }) => provider.requests.length)).toEqual([1, 1])
  // The model of the other process has the agent's own result, which the client never saw.
  expect(JSON.stringify(other.provider.requests[0]?.body)).toContain('"query')
})

test('every option of a chat completion reaches the model', async () => {
  const server = await startProtocolServer({ script: [{ text: '{"a":1}' }] })
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' } },
    required: ['a'],
    additionalProperties: false,
  }
  await clientOf(server).chat.completions.create({
    ...{ model: 'lango', messages: [QUESTION], temperature: 0.5, top_p: 0.9, seed: 7, stop: 'X' },
    ...{ max_completion_tokens: 99, presence_penalty: 0.1, frequency_penalty: 0.2 },
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } },
    ...{ tools: TOOLS, tool_choice: { type: 'function', function: { name: 'get_time' } } },
  })
  expect(server.provider.requests[0]?.body).toMatchObject({
    ...{ temperature: 0.5, top_p: 0.9, seed: 7, stop: ['X'] },
    ...{ presence_penalty: 0.1, frequency_penalty: 0.2 },
    response_format: { type: 'json_schema', json_schema: { schema } },
    tool_choice: { type: 'function', function: { name: 'get_time' } },
  })
  expect(JSON.stringify(server.provider.requests[0]?.body)).toContain(':99')
})

test('a chat completion that must be JSON is without the text before the agent’s own tool calls', async () => {
  const script = [
    { text: 'Let me look.', toolCalls: [{ name: 'search', args: { query: 'a' } }] },
    { deltas: ['{"a":', '1}'] },
  ]
  const server = await startProtocolServer({ script })
  const body: Body = {
    ...{ model: 'lango', messages: [QUESTION] },
    response_format: { type: 'json_object' },
  }
  const answer = await clientOf(server).chat.completions.create(body)
  expect(answer.choices[0]?.message.content).toBe('{"a":1}')
})

test('an unknown route and a context overflow have errors in OpenAI’s form', async () => {
  const server = await startProtocolServer()
  const client = clientOf(server)
  const embedding = client.embeddings.create({ model: 'lango', input: 'x' })
  await expect(embedding).rejects.toMatchObject({ status: 404, type: 'not_found_error' })
  const overflow = await startProtocolServer({ faults: [{ kind: 'context-overflow' }] })
  const failure = clientOf(overflow).chat.completions.create({ model: 'lango', messages: [QUESTION] })
  await expect(failure).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' })
})
