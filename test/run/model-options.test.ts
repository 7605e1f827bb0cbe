// What an agent or a run asks its model for: the wire of each vendor, answers of a schema, and what is refused.
import { LlmAgent } from '@google/adk'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { AgentError } from '../../src/errors.js'
import type { RunInput } from '../../src/run/run-host.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { crashable } from '../support/crashable-store.js'
import { eventually } from '../support/eventually.js'
import { searchTool } from '../support/tools.js'

let runtime: Runtime | undefined
let server: StrictProvider | undefined
afterEach(async () => {
  await runtime?.close()
  await server?.close()
})

type Vendor = 'gemini' | 'openai' | 'anthropic' | 'openai-compatible'

async function onStrict(
  profile: Parameters<typeof startStrictProvider>[0]['profile'],
  type: Vendor,
  agent: Partial<NonNullable<RuntimeOptions['agent']>> & { model: string },
  settings: object = {},
): Promise<Runtime> {
  server = await startStrictProvider({ profile })
  const { baseUrl } = server
  runtime = await createRuntime({
    store: 'memory:',
    providers: { p: { type, apiKey: 'k', baseUrl, ...settings } },
    agent: { ...agent, model: `p/${agent.model}` },
  })
  return runtime
}

const body = () => server?.requests.at(-1)?.body as Record<string, unknown>

const WIRES: [
  vendor: string,
  profile: Parameters<typeof startStrictProvider>[0]['profile'],
  type: Vendor,
  model: string,
  thinking: 'off' | 'low' | 'medium' | 'high',
  sent: object,
  settings?: object,
][] = [
  [
    'Gemini 3',
    'gemini-3',
    'gemini',
    'gemini-3.5-flash',
    'high',
    {
      generationConfig: {
        thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true },
        temperature: 0.5,
        maxOutputTokens: 2000,
      },
    },
  ],
  [
    'Gemini 3, off',
    'gemini-3',
    'gemini',
    'gemini-3.5-flash',
    'off',
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  ],
  [
    'Gemini 2.5',
    'gemini-2',
    'gemini',
    'gemini-2.5-flash',
    'low',
    { generationConfig: { thinkingConfig: { thinkingBudget: 1024, includeThoughts: true } } },
  ],
  [
    'Gemini 2.5, off',
    'gemini-2',
    'gemini',
    'gemini-2.5-flash',
    'off',
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  ],
  [
    'Gemini 2.5 Pro, off',
    'gemini-2',
    'gemini',
    'gemini-2.5-pro',
    'off',
    { generationConfig: { thinkingConfig: { thinkingBudget: 128 } } },
  ],
  [
    'GPT-5.2',
    'openai-responses',
    'openai',
    'gpt-5.2',
    'medium',
    { reasoning: { effort: 'medium' }, max_output_tokens: 2000 },
  ],
  ['GPT-5.2, off', 'openai-responses', 'openai', 'gpt-5.2', 'off', { reasoning: { effort: 'none' } }],
  ['GPT-4.1', 'openai-responses', 'openai', 'gpt-4.1', 'high', { temperature: 0.5, max_output_tokens: 2000 }],
  [
    'Chat Completions',
    'openai-chat',
    'openai',
    'gpt-5.2',
    'high',
    { reasoning_effort: 'high', max_completion_tokens: 2000 },
    { api: 'chat' },
  ],
  [
    'Claude 4.6',
    'anthropic-4.6',
    'anthropic',
    'claude-sonnet-4-6',
    'high',
    { thinking: { type: 'adaptive' }, output_config: { effort: 'high' }, max_tokens: 2000 },
  ],
  [
    'Claude 4.6, off',
    'anthropic-4.6',
    'anthropic',
    'claude-sonnet-4-6',
    'off',
    { temperature: 0.5, max_tokens: 2000 },
  ],
  [
    'Claude 4.5',
    'anthropic-4.5',
    'anthropic',
    'claude-sonnet-4-5',
    'low',
    { thinking: { type: 'enabled', budget_tokens: 2048 }, max_tokens: 4048 },
  ],
  [
    'DeepSeek, off',
    'deepseek-v4',
    'openai-compatible',
    'deepseek-chat',
    'off',
    { thinking: { type: 'disabled' }, max_tokens: 2000 },
    { preset: 'deepseek' },
  ],
]

test.each(WIRES)(
  'options on the wire to %s',
  async (_vendor, profile, type, model, thinking, sent, settings) => {
    const options = { thinking, temperature: 0.5, maxOutputTokens: 2000 }
    const given = await onStrict(profile, type, { model, ...options }, settings)
    await given.runAndCollect({ text: 'hello' })
    expect(body()).toMatchObject(sent)
    const ofAgent = JSON.stringify({ ...body(), messages: 0, contents: 0, input: 0 })
    await given.close()
    await server?.close()
    const plain = await onStrict(profile, type, { model }, settings)
    await plain.runAndCollect({ text: 'hello', ...options })
    expect(JSON.stringify({ ...body(), messages: 0, contents: 0, input: 0 })).toBe(ofAgent)
    expect(server?.violations).toEqual([])
  },
)

test('an option that a model lacks is reported as a repair', async () => {
  const given = await onStrict('openai-responses', 'openai', { model: 'gpt-4.1' })
  const { repairs } = await given.runAndCollect({ text: 'hello', thinking: 'high' })
  expect(repairs).toMatchObject([{ kind: 'option-dropped', names: ['thinkingConfig'] }])
  expect(body()).not.toHaveProperty('reasoning')
  const off = await given.runAndCollect({ text: 'hello', thinking: 'off' })
  expect(off.repairs.filter(({ step }) => step === 'options')).toEqual([])
})

test('Gemini 2 gets the schema in words where it has functions', async () => {
  const schema = z.object({ city: z.string() })
  const agent = { model: 'gemini-2.5-flash', tools: [searchTool], outputSchema: schema }
  const given = await onStrict('gemini-2', 'gemini', agent)
  await given.runAndCollect({ text: 'hello' }).catch(() => {})
  expect(server?.violations).toEqual([])
  expect(JSON.stringify(body().systemInstruction)).toContain('Answer with JSON that satisfies this schema')
})

test('Claude gets a schema without bounds, which stand in the description', async () => {
  const outputSchema = {
    type: 'object',
    properties: { minimum: { type: 'number', minimum: 3, description: 'least' } },
  }
  const given = await onStrict('anthropic-4.6', 'anthropic', { model: 'claude-sonnet-4-6' })
  await given.runAndCollect({ text: 'hello', outputSchema }).catch(() => {})
  expect(body()).toMatchObject({
    output_config: {
      format: {
        schema: {
          properties: { minimum: { type: 'number', description: 'least (minimum: 3)' } },
          additionalProperties: false,
        },
      },
    },
  })
})

const REPORT = z.object({ city: z.string(), degrees: z.number().default(7) })
const GOOD = '{"city":"Oslo"}'

async function onScript(
  script: Script,
  agent: NonNullable<RuntimeOptions['agent']> = {},
  options: Partial<RuntimeOptions> = {},
): Promise<ScriptedProvider> {
  const provider = new ScriptedProvider(script, { id: 'play' })
  runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', ...agent },
    ...options,
  })
  return provider
}

test('an answer of a schema is returned as data, with the defaults of a Zod schema, and typed', async () => {
  const provider = await onScript([{ text: GOOD }])
  const result = await runtime?.runAndCollect({ text: 'go', outputSchema: REPORT })
  const city: string | undefined = result?.output?.city
  expect(city).toBe('Oslo')
  expect(result).toMatchObject({ output: { city: 'Oslo', degrees: 7 }, finishReason: 'stop', text: GOOD })
  expect(provider.requests[0]?.options?.responseSchema).toMatchObject({ properties: { city: {} } })
})

test.each([
  ['that is no JSON', 'It is cold in Oslo.', 'it is not JSON'],
  ['that lacks a field', '{"town":"Oslo"}', 'city: '],
  ['that is a list', '[]', 'expected object'],
])('an answer %s is corrected once, and both are stored', async (_what, first, problem) => {
  const provider = await onScript([{ text: first }, { text: `\`\`\`json\n${GOOD}\n\`\`\`` }], {
    outputSchema: REPORT,
  })
  const result = await runtime?.runAndCollect({ sessionId: 's', text: 'go' })
  expect(result).toMatchObject({ output: { city: 'Oslo' }, finishReason: 'stop' })
  expect(provider.requests).toHaveLength(2)
  expect(JSON.stringify(provider.requests[1]?.messages.at(-1))).toContain(problem)
  const stored = await runtime?.store.readMessages({ appName: 'lango', userId: 'user', sessionId: 's' })
  expect(stored).toHaveLength(4)
  const shown = await runtime?.messages({ appName: 'lango', userId: 'user', sessionId: 's' })
  expect(shown?.filter(({ role, synthetic }) => role === 'user' && !synthetic)).toHaveLength(1)
})

test('a second answer that its schema refuses ends the run with output-invalid', async () => {
  const provider = await onScript(() => ({ text: 'no' }), { outputSchema: REPORT })
  const failure = await runtime?.runAndCollect({ text: 'go' }).catch(error => error)
  expect(failure).toBeInstanceOf(AgentError)
  expect(failure).toMatchObject({ code: 'output-invalid', retryable: false, details: { author: 'root' } })
  expect(provider.requests).toHaveLength(2)
})

test('an answer of a schema that a limit ended is no failure', async () => {
  await onScript(
    request =>
      request.options?.toolChoice === 'none'
        ? { text: 'No time left.' }
        : { toolCalls: [{ name: 'search', args: { query: `${request.messages.length}` } }] },
    { outputSchema: REPORT, tools: [searchTool], maxTurns: 2 },
  )
  const result = await runtime?.runAndCollect({ text: 'go' })
  expect(result).toMatchObject({ finishReason: 'turn-limit' })
  expect(result).not.toHaveProperty('output')
})

test('an answer is checked by the schema of the agent that answers', async () => {
  const transfer = { toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'helper' } }] }
  const helper = { name: 'helper', outputSchema: REPORT }
  const provider = await onScript([transfer, { text: GOOD }], { subAgents: [helper] })
  const result = await runtime?.runAndCollect({ text: 'go' })
  expect(result).toMatchObject({ output: { city: 'Oslo' } })
  expect(provider.requests.map(({ options }) => options?.responseSchema !== undefined)).toEqual([false, true])
})

test.each(['memory:', 'sqlite:'])(
  'a run in %s that is cut off before its correction is continued',
  async kind => {
    const { temporaryFolder } = await import('../support/temporary-folder.js')
    const address = kind === 'memory:' ? kind : `sqlite:${await temporaryFolder()}/lango.db`
    const store = await openStore(address)
    const dying = crashable(store)
    const runId = '00000000-0000-4000-8000-000000000009'
    let asked = 0
    const script: Script = () => {
      asked += 1
      if (asked === 2) void dying.crash()
      return asked <= 2 ? { text: 'no' } : { text: GOOD }
    }
    await onScript(script, {}, { store: dying.store })
    const outputSchema = REPORT
    const input: RunInput = { sessionId: 's', text: 'go', runId, outputSchema, thinking: 'low' }
    await runtime?.start(input)
    await eventually(() => asked).toBe(2)
    const next = new ScriptedProvider(script, { id: 'play' })
    runtime = await createRuntime({
      store,
      providers: { play: next },
      agent: { name: 'root', model: 'play/m' },
    })
    await runtime.resume(runId)
    const found: unknown[] = []
    for await (const event of runtime.follow(runId)) if (event.type === 'run-finish') found.push(event.output)
    expect(found).toEqual([{ city: 'Oslo' }])
    expect(next.requests.at(-1)?.options).toMatchObject({
      thinking: { effort: 'low' },
      responseSchema: { type: 'object' },
    })
    await runtime.close()
    runtime = undefined
    await store.close()
  },
)

test.each<[input: Record<string, unknown>, words: string]>([
  [{ thinking: 'max' }, '`thinking` must be one of `off`, `low`, `medium`, `high`.'],
  [{ temperature: 3 }, '`temperature` must be a number from 0 to 2.'],
  [{ temperature: Number.NaN }, '`temperature` must be a number from 0 to 2.'],
  [{ maxOutputTokens: 0 }, '`maxOutputTokens` must be a whole number of at least 1.'],
  [{ outputSchema: 'x' }, '`outputSchema` must be a Zod schema or a JSON schema.'],
  [{ fallback: 'openai/gpt-5.2' }, '`fallback` must be a list of models'],
  [{ fallback: ['nobody/m'] }, 'nobody'],
  [{ outputSchema: z.string() }, '`outputSchema` must describe an object'],
  [{ outputSchema: { type: 'object', if: {}, not: { type: 'string' } } }, 'cannot be checked'],
  [{ maxOutputToken: 1 }, 'Did you mean `maxOutputTokens`?'],
])('the options %j of a run are refused', async (input, words) => {
  const provider = await onScript([{ text: 'x' }])
  const failure = await runtime?.runAndCollect({ text: 'go', ...input }).catch(error => error)
  expect(failure).toBeInstanceOf(AgentError)
  expect(failure.message).toContain(words)
  expect(provider.requests).toEqual([])
})

test.each<[agent: Record<string, unknown>, words: string]>([
  [{ thinking: 'max' }, 'agent.thinking'],
  [{ temperature: -1 }, 'agent.temperature'],
  [{ fallback: ['nobody/m'] }, 'nobody'],
  [{ outputschema: {} }, 'outputSchema'],
  [{ subAgents: [{ name: 'a', maxOutputTokens: 0.5 }] }, 'maxOutputTokens'],
])('the options %j of an agent are refused', async (agent, words) => {
  const failure = await onScript([], agent).catch(error => error)
  expect(failure).toBeInstanceOf(AgentError)
  expect(failure.message).toContain(words)
})

test('options of a run for an agent whose model was made in code are refused', async () => {
  const { ModelAdapter } = await import('../../src/adk/model/model-adapter.js')
  const provider = new ScriptedProvider([{ text: 'x' }], { id: 'play' })
  const model = new ModelAdapter({ provider, model: 'm' })
  runtime = await createRuntime({ store: 'memory:', rootAgent: new LlmAgent({ name: 'root', model }) })
  const failure = await runtime.runAndCollect({ text: 'go', thinking: 'low' }).catch(error => error)
  expect(failure).toMatchObject({
    code: 'invalid-argument',
    details: { option: 'thinking', agent: 'root' },
  })
  await expect(createRuntime({ store: 'memory:', agent: { model, temperature: 1 } })).rejects.toMatchObject({
    code: 'invalid-config',
  })
})

test('a sub-agent without a model inherits it with its options, and may change them', async () => {
  const transfer = (name: string) => ({
    toolCalls: [{ name: 'transfer_to_agent', args: { agentName: name } }],
  })
  const provider = await onScript([transfer('a'), transfer('b'), { text: 'done' }], {
    thinking: 'high',
    temperature: 0.1,
    subAgents: [
      { name: 'a', temperature: 0.9 },
      { name: 'b', model: 'play/other' },
    ],
  })
  await runtime?.runAndCollect({ text: 'go' })
  expect(provider.requests.map(({ options }) => [options?.thinking?.effort, options?.temperature])).toEqual([
    ['high', 0.1],
    ['high', 0.9],
    [undefined, undefined],
  ])
})
