// The vendors' own clients against the strict servers: what they parse is what counts.
import Anthropic from '@anthropic-ai/sdk'
import { type Content, GoogleGenAI, type Part } from '@google/genai'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import type { StrictProfile, StrictStep } from '../../src/entries/testing.js'
import { serverPool, WEATHER_SCHEMA } from './support.js'

const pool = serverPool()

/** Thinking, then parallel calls, then a chained call, then text. */
const SCRIPT: StrictStep[] = [
  {
    thinking: 'Two cities, 두 도시.',
    toolCalls: [
      { name: 'weather', args: { city: 'Seoul 서울' } },
      { name: 'weather', args: { city: 'Zürich' } },
    ],
  },
  { thinking: 'One more.', toolCalls: [{ name: 'weather', args: { city: 'Oslo' } }] },
  { text: 'It is sunny 🌞 in Seoul,\nrainy in Zürich.', usage: { input: 100, output: 20, cached: 40 } },
]
const FINAL = 'It is sunny 🌞 in Seoul,\nrainy in Zürich.'
const CITIES = [['Seoul 서울', 'Zürich'], ['Oslo'], []]

for (const profile of ['gemini-2', 'gemini-3', 'gemini-3-strict'] as const) {
  test.each([false, true])(`@google/genai runs a tool loop with ${profile}, streaming %s`, async stream => {
    const server = await pool.start({ profile, script: SCRIPT })
    const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: server.baseUrl } })
    const contents: Content[] = [{ role: 'user', parts: [{ text: 'go' }] }]
    const cities: unknown[] = []
    const request = {
      model: 'gemini',
      contents,
      config: {
        systemInstruction: 'be brief',
        tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: WEATHER_SCHEMA }] }],
      },
    }
    for (let step = 0; step < 3; step += 1) {
      const parts: Part[] = []
      if (stream) {
        for await (const chunk of await client.models.generateContentStream(request)) {
          parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
        }
      } else {
        const whole = await client.models.generateContent(request)
        parts.push(...(whole.candidates?.[0]?.content?.parts ?? []))
      }
      const calls = parts.flatMap(part => (part.functionCall === undefined ? [] : [part.functionCall]))
      cities.push(calls.map(call => call.args?.city))
      contents.push({ role: 'model', parts })
      if (calls.length === 0) break
      contents.push({
        role: 'user',
        parts: calls.map(({ id, name = '' }) => ({
          functionResponse: { ...(id === undefined ? {} : { id }), name, response: { output: 'fine' } },
        })),
      })
    }
    expect(server.violations).toEqual([])
    expect(cities).toEqual(CITIES)
    expect(
      contents
        .at(-1)
        ?.parts?.map(part => part.text)
        .join(''),
    ).toBe(FINAL)
    expect(server.requests[0]?.headers).not.toHaveProperty('x-goog-api-key')
  })
}

test('@google/genai reads usage, counts tokens, lists models and reports a refusal unchanged', async () => {
  const server = await pool.start({
    profile: 'gemini-3',
    script: [{ text: 'a', usage: { input: 9, output: 3, cached: 2 } }],
  })
  const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: server.baseUrl } })
  const { usageMetadata } = await client.models.generateContent({ model: 'm', contents: 'hi' })
  expect(usageMetadata).toMatchObject({
    promptTokenCount: 9,
    totalTokenCount: 12,
    cachedContentTokenCount: 2,
  })
  expect((await client.models.countTokens({ model: 'm', contents: 'hi' })).totalTokens).toBeGreaterThan(0)
  const names: unknown[] = []
  for await (const model of await client.models.list()) names.push(model.name)
  expect(names).toEqual(['models/gemini-3.5-flash'])
  const contents = [{ role: 'function', parts: [{ text: 'x' }] }]
  await expect(client.models.generateContent({ model: 'm', contents })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('Please use a valid role: user, model.'),
  })
})

for (const profile of ['anthropic-4.5', 'anthropic-4.6'] as const) {
  test.each([false, true])(
    `@anthropic-ai/sdk runs a tool loop with thinking with ${profile}, streaming %s`,
    async stream => {
      const script = [{ ...SCRIPT[0], redactedThinking: true }, ...SCRIPT.slice(1)]
      const server = await pool.start({ profile, script })
      const client = new Anthropic({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'go' }]
      const cities: unknown[] = []
      let last: Anthropic.Message | undefined
      for (let step = 0; step < 3; step += 1) {
        const request = {
          model: 'claude',
          max_tokens: 4000,
          thinking: { type: 'enabled' as const, budget_tokens: 1024 },
          tools: [{ name: 'weather', input_schema: WEATHER_SCHEMA as Anthropic.Tool.InputSchema }],
          messages,
        }
        last = stream
          ? await client.messages.stream(request).finalMessage()
          : await client.messages.create(request)
        const calls = last.content.filter(block => block.type === 'tool_use')
        cities.push(calls.map(call => (call.input as { city: string }).city))
        messages.push({ role: 'assistant', content: last.content as Anthropic.ContentBlockParam[] })
        if (calls.length === 0) break
        messages.push({
          role: 'user',
          content: calls.map(call => ({ type: 'tool_result', tool_use_id: call.id, content: 'fine' })),
        })
      }
      expect(server.violations).toEqual([])
      expect(cities).toEqual(CITIES)
      expect(messages[1]?.content).toMatchObject([
        { type: 'thinking' },
        { type: 'redacted_thinking' },
        {},
        {},
      ])
      expect(last).toMatchObject({
        content: [{ type: 'text', text: FINAL }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 20 },
      })
      expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
    },
  )
}

test('@anthropic-ai/sdk counts tokens, lists models and reports a refusal unchanged', async () => {
  const server = await pool.start({ profile: 'anthropic-4.6' })
  const client = new Anthropic({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'hi' }]
  expect((await client.messages.countTokens({ model: 'm', messages })).input_tokens).toBeGreaterThan(0)
  const names: string[] = []
  for await (const model of client.models.list()) names.push(model.id)
  expect(names).toEqual(['claude-sonnet-4-6'])
  const prefilled: Anthropic.MessageParam[] = [...messages, { role: 'assistant', content: 'So' }]
  const refused = client.messages.create({ model: 'm', max_tokens: 5, messages: prefilled })
  await expect(refused).rejects.toMatchObject({ status: 400, type: 'invalid_request_error' })
})

const CHAT: StrictProfile[] = ['openai-chat', 'mistral', 'deepseek-thinking', 'groq', 'vllm', 'ollama']

for (const profile of CHAT) {
  test.each([false, true])(`openai runs a tool loop with ${profile}, streaming %s`, async stream => {
    const server = await pool.start({ profile, script: SCRIPT })
    const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'go' }]
    const cities: unknown[] = []
    let text: string | null = null
    for (let step = 0; step < 3; step += 1) {
      const request = {
        model: 'm',
        messages,
        tools: [{ type: 'function' as const, function: { name: 'weather', parameters: WEATHER_SCHEMA } }],
      }
      const { choices } = stream
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request)
      const message = choices[0]?.message
      const calls = (message?.tool_calls ?? []).filter(call => call.type === 'function')
      cities.push(calls.map(call => JSON.parse(call.function.arguments).city))
      text = message?.content ?? null
      if (calls.length === 0) break
      const thought = profile === 'deepseek-thinking' ? { reasoning_content: '' } : {}
      messages.push({
        role: 'assistant',
        content: message?.content ?? '',
        tool_calls: calls.map(({ id, function: called }) => ({
          id,
          type: 'function' as const,
          function: { name: called.name, arguments: called.arguments },
        })),
        ...thought,
      })
      for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: 'fine' })
    }
    expect(server.violations).toEqual([])
    expect(cities).toEqual(CITIES)
    expect(text).toBe(FINAL)
  })
}

test('openai reads usage at the end of a chat stream and lists models', async () => {
  const server = await pool.start({
    profile: 'openai-chat',
    script: [{ text: 'a b c d', usage: { input: 11, output: 7, cached: 5 } }],
  })
  const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
  const stream = await client.chat.completions.create({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { prompt_tokens: 11, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 5 } },
  })
  expect(chunks.slice(0, -1).every(chunk => chunk.usage === null)).toBe(true)
  expect((await client.models.list()).data.map(model => model.id)).toEqual(['gpt-4.1'])
  expect((await client.models.retrieve('gpt-9')).id).toBe('gpt-9')
})

test('a call that OpenAI was forced to make ends with stop', async () => {
  const server = await pool.start({ profile: 'openai-chat' })
  const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
  const { choices } = await client.chat.completions.create({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'function', function: { name: 'weather', parameters: WEATHER_SCHEMA } }],
    tool_choice: { type: 'function', function: { name: 'weather' } },
  })
  expect(choices).toMatchObject([
    { finish_reason: 'stop', message: { tool_calls: [{ function: { arguments: '{"city":"hi"}' } }] } },
  ])
})

test.each([false, true])(
  'openai runs a tool loop with reasoning and without storage, streaming %s',
  async stream => {
    const server = await pool.start({ profile: 'openai-responses', script: SCRIPT })
    const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'go' }]
    const cities: unknown[] = []
    let text = ''
    for (let step = 0; step < 3; step += 1) {
      const request = {
        model: 'm',
        input,
        store: false,
        include: ['reasoning.encrypted_content' as const],
        reasoning: { summary: 'auto' as const },
        tools: [{ type: 'function' as const, name: 'weather', parameters: WEATHER_SCHEMA, strict: null }],
      }
      const response = stream
        ? await client.responses.stream(request as never).finalResponse()
        : await client.responses.create(request as never)
      const { output, output_text: said } = response as OpenAI.Responses.Response
      const calls = output.filter(item => item.type === 'function_call')
      cities.push(calls.map(call => JSON.parse(call.arguments).city))
      text = said
      for (const item of output) input.push(withoutHelperFields(item))
      if (calls.length === 0) break
      for (const call of calls)
        input.push({ type: 'function_call_output', call_id: call.call_id, output: 'fine' })
    }
    expect(server.violations).toEqual([])
    expect(cities).toEqual(CITIES)
    expect(text).toBe(FINAL)
  },
)

test('the encrypted content in the added event of Responses differs from the final one', async () => {
  const server = await pool.start({ profile: 'openai-responses', script: [{ thinking: 'hm', text: 'a' }] })
  const client = new OpenAI({ apiKey: 'k', baseURL: server.baseUrl, maxRetries: 0 })
  const stream = await client.responses.create({
    model: 'm',
    input: 'hi',
    include: ['reasoning.encrypted_content'],
    stream: true,
  })
  const blobs: unknown[] = []
  const types: string[] = []
  for await (const event of stream) {
    types.push(event.type)
    const settled = event.type === 'response.output_item.added' || event.type === 'response.output_item.done'
    if (settled && event.item.type === 'reasoning') blobs.push(event.item.encrypted_content)
  }
  expect(new Set(blobs).size).toBe(2)
  expect(types[0]).toBe('response.created')
  expect(types.at(-1)).toBe('response.completed')
})

/** The SDK's stream helper adds `parsed_arguments` and `parsed`, which the API does not take back. */
function withoutHelperFields(item: OpenAI.Responses.ResponseOutputItem): OpenAI.Responses.ResponseInputItem {
  const copy = JSON.parse(
    JSON.stringify(item, (key, value) => (key.startsWith('parsed') ? undefined : value)),
  )
  return copy as OpenAI.Responses.ResponseInputItem
}
