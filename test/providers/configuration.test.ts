import { afterEach, expect, test } from 'vitest'
import { createProvider, createRegistry } from '../../src/provider/provider-registry.js'

import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { collect } from './collect.js'
import { type ReceivedRequest, type ReplayServer, startReplayServer } from './replay-server.js'

// What a user configures, or has in the environment, is what reaches the server.

let server: ReplayServer | undefined
afterEach(() => server?.close())

const FILES = {
  gemini: 'gemini/text-signed.sse',
  anthropic: 'anthropic/text.sse',
  chat: 'openai-chat/text.sse',
  responses: 'openai-responses/text.sse',
}

async function ask(
  file: string,
  model: string,
  options: (url: string) => ProviderOptions,
): Promise<ReceivedRequest> {
  server = await startReplayServer([{ file }])
  const events = await collect(createProvider(options(server.url)), { model })
  expect(events.at(-1)).toMatchObject({ type: 'done' })
  return server.requests[0]!
}

test.each([
  ['GEMINI_API_KEY', { GEMINI_API_KEY: 'k1', GOOGLE_API_KEY: 'k2' }, 'k1'],
  ['GOOGLE_API_KEY', { GOOGLE_API_KEY: 'k2' }, 'k2'],
])('the key and address of gemini come from %s and GOOGLE_GEMINI_BASE_URL', async (_, env, key) => {
  const request = await ask(FILES.gemini, 'gemini-2.5-flash', url => ({
    type: 'gemini',
    env: { ...env, GOOGLE_GEMINI_BASE_URL: url },
  }))
  expect(request.headers['x-goog-api-key']).toBe(key)
  expect(request.url).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
})

test('the key and address of openai come from OPENAI_API_KEY and OPENAI_BASE_URL', async () => {
  const request = await ask(FILES.responses, 'gpt-5.2', url => ({
    type: 'openai',
    env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1` },
  }))
  expect([request.url, request.headers.authorization]).toEqual(['/v1/responses', 'Bearer k'])
})

test('the key and address of anthropic come from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL', async () => {
  const request = await ask(FILES.anthropic, 'claude-opus-5', url => ({
    type: 'anthropic',
    env: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: url },
  }))
  expect(request.url).toBe('/v1/messages')
  expect(request.headers.authorization ?? request.headers['x-api-key']).toContain('k')
})

test.each(['host and port', 'url', 'url with path'])(
  'the address of ollama comes from OLLAMA_HOST as %s, and no key is sent',
  async form => {
    const request = await ask(FILES.chat, 'qwen3:8b', url => {
      const host = { 'host and port': url.slice('http://'.length), url, 'url with path': `${url}/v1/` }[form]
      return {
        type: 'openai-compatible',
        preset: 'ollama',
        env: { OLLAMA_HOST: host, OPENAI_API_KEY: 'not-for-you', OPENAI_ORG_ID: 'org' },
      }
    })
    expect(request.url).toBe('/v1/chat/completions')
    expect(request.headers.authorization).toBeUndefined()
    expect(JSON.stringify(request.headers)).not.toContain('not-for-you')
  },
)

test.each([
  ['deepseek', 'DEEPSEEK_API_KEY'],
  ['mistral', 'MISTRAL_API_KEY'],
  ['groq', 'GROQ_API_KEY'],
  ['openrouter', 'OPENROUTER_API_KEY'],
  ['together', 'TOGETHER_API_KEY'],
  ['cerebras', 'CEREBRAS_API_KEY'],
])('the key of %s comes from %s', async (preset, variable) => {
  const request = await ask(FILES.chat, 'm', url => ({
    type: 'openai-compatible',
    preset,
    baseUrl: `${url}/v1`,
    env: { [variable]: 'k' },
  }))
  expect(request.headers.authorization).toBe('Bearer k')
  const events = await collect(createProvider({ type: 'openai-compatible', preset, env: {} }), {
    model: 'm',
  })
  expect(events.at(-1)).toMatchObject({
    error: { code: 'provider-auth', message: expect.stringContaining(variable) },
  })
})

test('a key is read when the request is made, so that it may be set later', async () => {
  const env: Record<string, string> = {}
  server = await startReplayServer([{ file: FILES.chat }])
  const provider = createProvider({ type: 'openai', api: 'chat', baseUrl: `${server.url}/v1`, env })
  expect((await collect(provider, { model: 'gpt-4.1' })).at(-1)).toMatchObject({
    error: { code: 'provider-auth' },
  })
  env.OPENAI_API_KEY = 'k'
  expect((await collect(provider, { model: 'gpt-4.1' })).at(-1)).toMatchObject({ type: 'done' })
})

test.each([
  ['gemini', FILES.gemini, 'gemini-2.5-flash', (url: string) => ({ type: 'gemini', baseUrl: url })],
  ['openai', FILES.chat, 'gpt-4.1', (url: string) => ({ type: 'openai', api: 'chat', baseUrl: `${url}/v1` })],
  ['anthropic', FILES.anthropic, 'claude-opus-5', (url: string) => ({ type: 'anthropic', baseUrl: url })],
] as const)('%s sends the configured headers', async (_, file, model, options) => {
  const request = await ask(
    file,
    model,
    url => ({ ...options(url), apiKey: 'k', headers: { 'x-team': 'blue' } }) as ProviderOptions,
  )
  expect(request.headers['x-team']).toBe('blue')
})

test('Claude is asked with the version that knows a temperature only when one is set', async () => {
  const versions: unknown[] = []
  for (const options of [{}, { temperature: 0.5 }]) {
    const started = await startReplayServer([{ file: FILES.anthropic }])
    await collect(createProvider({ type: 'anthropic', apiKey: 'k', baseUrl: started.url }), {
      model: 'claude-sonnet-4-6',
      options,
    })
    versions.push(started.requests[0]?.headers['anthropic-version'])
    await started.close()
  }
  expect(versions).toEqual([expect.stringMatching(/^2026/), '2023-06-01'])
})

test('requests to Vertex AI use its own path', async () => {
  const request = await ask(FILES.gemini, 'gemini-2.5-flash', url => ({
    type: 'gemini',
    vertexai: true,
    apiKey: 'k',
    baseUrl: url,
  }))
  expect(request.url).toMatch(/publishers\/google\/models\/gemini-2\.5-flash:streamGenerateContent/)
})

test('tool names that the model refuses are mapped there and back', async () => {
  server = await startReplayServer([{ file: 'openai-chat/forced-call-stop.sse' }])
  const provider = createProvider({ type: 'openai', api: 'chat', apiKey: 'k', baseUrl: `${server.url}/v1` })
  const tools = [{ name: 'get weather', description: 'd', parameters: {} }]
  await collect(provider, { model: 'gpt-4.1', tools, options: { toolChoice: { name: 'get weather' } } })
  const body = server.requests[0]?.body as {
    tools: { function: { name: string } }[]
    tool_choice: { function: { name: string } }
  }
  const name = body.tools[0]?.function.name
  expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  expect(body.tool_choice.function.name).toBe(name)
})

test('strict mode refuses a broken history with the list, and sends nothing', async () => {
  server = await startReplayServer([{ file: FILES.chat }])
  const { provider, model } = createRegistry({
    mine: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: `${server.url}/v1` },
  }).resolve('mine/gpt-4.1')
  const events = await collect(provider, {
    model,
    repairMode: 'strict',
    messages: [{ role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'x', result: {} }] }],
  })
  expect(events).toMatchObject([{ type: 'error', error: { code: 'history-illegal' } }])
  expect(server.requests).toEqual([])
})
