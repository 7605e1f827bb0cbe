/**
 * No option and no server tool is lost in silence: towards every vendor it changes the body, or is named in a receipt,
 * or is refused.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { GenerateContentConfig } from '@google/genai'
import { expect, test } from 'vitest'
import { CONFIG_KEYS, convertOptions } from '../../src/adk/model/convert-config.js'
import type { AgentError } from '../../src/errors.js'
import type { GenerateRequest, RepairMode } from '../../src/provider/provider.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import type { RequestEvent } from '../../src/provider/stream-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { NO_OPTIONS, OPTION_EXAMPLES, VERTEX_EXAMPLES } from '../support/gemini-options.js'

const EXAMPLES = [...OPTION_EXAMPLES, ...VERTEX_EXAMPLES]
const REQUIRE = createRequire(import.meta.url)

/** The keys of an interface of the installed SDK. */
function keysOf(name: string): string[] {
  const folder = REQUIRE.resolve('@google/genai').replace(/dist[\\/].*$/, 'dist')
  const types = readFileSync(`${folder}/genai.d.ts`, 'utf8')
  const [, body = ''] =
    new RegExp(`export declare interface ${name} \\{\r?\n([\\s\\S]*?)\n\\}`).exec(types) ?? []
  return [...body.matchAll(/^ {4}(\w+)\?:/gm)].map(match => match[1] as string).sort()
}

test('the table of options names every key of the installed SDK, and every key has an example', () => {
  const keys = keysOf('GenerateContentConfig')
  expect(keys.length).toBeGreaterThan(30)
  expect(Object.keys(CONFIG_KEYS).sort()).toEqual(keys)
  expect([...new Set([...EXAMPLES.map(([key]) => key), ...NO_OPTIONS])].sort()).toEqual(keys)
})

const WIRES: Readonly<Record<string, { options: ProviderOptions; model: string }>> = {
  'the Gemini API': { options: { type: 'gemini' }, model: 'gemini-2.5-flash' },
  'Vertex AI': { options: { type: 'gemini', vertexai: true }, model: 'gemini-2.5-flash' },
  'Claude 4.5': { options: { type: 'anthropic' }, model: 'claude-haiku-4-5' },
  'Claude 5': { options: { type: 'anthropic' }, model: 'claude-opus-5-5' },
  'Responses, sampling': { options: { type: 'openai' }, model: 'gpt-4o' },
  'Responses, reasoning': { options: { type: 'openai' }, model: 'gpt-5.2' },
  'Chat Completions, sampling': { options: { type: 'openai', api: 'chat' }, model: 'gpt-4o' },
  'Chat Completions, reasoning': { options: { type: 'openai', api: 'chat' }, model: 'gpt-5.2' },
  Mistral: { options: { type: 'openai-compatible', preset: 'mistral' }, model: 'mistral-large' },
  DeepSeek: { options: { type: 'openai-compatible', preset: 'deepseek' }, model: 'deepseek-reasoner' },
  Groq: { options: { type: 'openai-compatible', preset: 'groq' }, model: 'llama-3.3-70b' },
  Ollama: { options: { type: 'openai-compatible', preset: 'ollama' }, model: 'qwen3' },
  'a server known by its address': {
    options: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9' },
    model: 'some-model',
  },
}

/** What would be sent, or the error instead of it. Nothing is sent: the request is left at its first event. */
async function prepared(
  wire: string,
  request: Omit<GenerateRequest, 'model' | 'messages'>,
): Promise<RequestEvent | AgentError> {
  const { options, model } = WIRES[wire] as (typeof WIRES)[string]
  const provider = createProvider({
    ...options,
    apiKey: 'key',
    baseUrl: options.baseUrl ?? 'http://127.0.0.1:9',
  })
  const messages = [{ role: 'user', parts: [{ type: 'text' as const, text: 'Hello' }] }]
  for await (const event of provider.generate({ model, messages, ...request })) {
    if (event.type === 'request') return event
    if (event.type === 'error') return event.error
  }
  throw new TypeError('The provider said nothing.')
}

async function withConfig(wire: string, config: object, repairMode: RepairMode = 'repair') {
  return prepared(wire, { options: convertOptions(config as GenerateContentConfig), repairMode })
}

const dropped = (event: RequestEvent) =>
  event.repairs.flatMap(({ kind, names }) => (kind === 'option-dropped' ? [...(names ?? [])] : []))

/** What a model does anyway: no body changes. */
const DEFAULTS = [
  [/./, '"thinkingBudget":-1'],
  [/^Claude 4.5/, '"thinkingBudget":0'],
  // The model of this wire does not think.
  [/^Chat Completions, sampling/, '"thinkingBudget":0'],
] as const

for (const wire of Object.keys(WIRES)) {
  test.each(EXAMPLES)(
    `${wire}: option %s as %j is sent, named in a receipt, or refused`,
    async (key, config) => {
      if (key.startsWith('automatic') || key === 'httpOptions') return
      const event = await withConfig(wire, config)
      if (event instanceof Error) {
        expect(event).toMatchObject({ code: 'invalid-config', details: { options: [key] } })
        expect(event.message).toContain(key)
        return
      }
      const plain = (await withConfig(wire, {})) as RequestEvent
      const isSent = JSON.stringify(event.body) !== JSON.stringify(plain.body)
      const isAsDefault = DEFAULTS.some(
        ([where, what]) => where.test(wire) && JSON.stringify(config).includes(what),
      )
      expect(isSent || isAsDefault || dropped(event).length > 0).toBe(true)
      if (!isSent && !isAsDefault) {
        const strict = await withConfig(wire, config, 'strict')
        expect(strict).toMatchObject({ code: 'invalid-config' })
        expect(dropped((await withConfig(wire, config, 'explain')) as RequestEvent)).toEqual(dropped(event))
      }
    },
  )
}

test('a safety setting that blocks is never left out', async () => {
  const safetySettings = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_LOW_AND_ABOVE' }]
  const error = await withConfig('Claude 4.5', { safetySettings })
  expect(error).toMatchObject({ code: 'invalid-config', details: { options: ['safetySettings'] } })
  expect((error as Error).message).toContain('anthropic/claude-haiku-4-5')
})

const NAMES = { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a', 'b'] } } }
const TOOLS = ['a', 'b', 'c'].map(name => ({ name, description: name, parameters: { type: 'object' } }))

test.each<[string, object]>([
  ['the Gemini API', NAMES],
  [
    'Responses, sampling',
    {
      tool_choice: {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'a' },
          { type: 'function', name: 'b' },
        ],
      },
    },
  ],
  [
    'Chat Completions, sampling',
    {
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'required',
          tools: [
            { type: 'function', function: { name: 'a' } },
            { type: 'function', function: { name: 'b' } },
          ],
        },
      },
    },
  ],
  ['Claude 4.5', { tool_choice: { type: 'any' }, tools: [{ name: 'a' }, { name: 'b' }] }],
  ['Mistral', { tool_choice: 'any', tools: [{ function: { name: 'a' } }, { function: { name: 'b' } }] }],
])('%s is told to call one of two tools', async (wire, expected) => {
  const options = convertOptions(NAMES as GenerateContentConfig)
  const event = (await prepared(wire, { options, tools: TOOLS })) as RequestEvent
  expect(event.body).toMatchObject(expected)
  expect(dropped(event)).toEqual([])
})

const SERVER_TOOLS = keysOf('Tool').filter(name => name !== 'functionDeclarations')

test('the server tools of the installed SDK are found', () => {
  expect(SERVER_TOOLS.length).toBeGreaterThan(10)
})

test.each(SERVER_TOOLS)('the server tool %s is declared or refused by every vendor', async name => {
  for (const wire of Object.keys(WIRES)) {
    const event = await prepared(wire, { serverTools: [{ name, config: {} }] })
    if (!(event instanceof Error)) expect(event.body).toMatchObject({ tools: [expect.any(Object)] })
    else {
      expect(event).toMatchObject({ code: 'invalid-config', details: { tool: name } })
      expect(event.message).toMatch(/^The request uses the server tool \w+, which \S+ does not have\. Use /)
    }
  }
})

test.each<[string, string, object]>([
  ['Claude 4.5', 'googleSearch', { type: 'web_search_20250305', name: 'web_search' }],
  ['Claude 4.5', 'urlContext', { type: 'web_fetch_20250910', name: 'web_fetch' }],
  ['Claude 4.5', 'codeExecution', { type: 'code_execution_20250825', name: 'code_execution' }],
  ['Responses, reasoning', 'googleSearch', { type: 'web_search' }],
  ['Responses, reasoning', 'codeExecution', { type: 'code_interpreter', container: { type: 'auto' } }],
])('%s translates the server tool %s', async (wire, name, tool) => {
  const event = await prepared(wire, { serverTools: [{ name, config: {} }] })
  expect((event as RequestEvent).body).toMatchObject({ tools: [tool] })
})

test.each([
  ['gemini', 'gemini-3', 'gemini-3-pro-preview'],
  ['openai', 'openai-responses', 'gpt-5.2'],
  ['anthropic', 'anthropic-4.6', 'claude-sonnet-4-6'],
] as const)(
  "ADK's own label of the agent is no option that %s lacks, in strict mode either",
  async (type, profile, model) => {
    const strict = await startStrictProvider({ profile, script: [{ text: 'Hello' }] })
    const runtime = await createRuntime({
      store: 'memory:',
      providers: { own: { type, apiKey: 'k', baseUrl: strict.baseUrl } },
      agent: { model: `own/${model}` },
      history: { repair: 'strict' },
    })
    const { text, repairs } = await runtime.runAndCollect({ text: 'Hi' })
    expect({ text, repairs }).toEqual({ text: 'Hello', repairs: [] })
    await runtime.close()
    await strict.close()
  },
)

for (const wire of Object.keys(WIRES)) {
  const tool = {
    name: 'googleSearch',
    config: { excludeDomains: ['a.example'], timeRangeFilter: { startTime: '2026' } },
  }

  test(`${wire}: each setting of a search is sent, or named in a receipt`, async () => {
    const event = await prepared(wire, { serverTools: [tool] })
    // The vendor has no search.
    if (event instanceof Error) return expect(event).toMatchObject({ code: 'invalid-config' })
    const body = JSON.stringify(event.body)
    for (const [setting, value] of [
      ['excludeDomains', 'a.example'],
      ['timeRangeFilter', '2026'],
    ] as const)
      expect([setting, body.includes(value)]).toEqual([
        setting,
        !dropped(event).includes(`googleSearch.${setting}`),
      ])
    if (dropped(event).length > 0)
      expect(await prepared(wire, { serverTools: [tool], repairMode: 'strict' })).toMatchObject({
        code: 'invalid-config',
      })
  })
}
