// Azure, Bedrock and Vertex AI: the vendors' real clients, over HTTP, against servers with the platforms' paths, keys
// and streams. Nothing here is fetched from an account: keys and tokens are made up.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import type Anthropic from '@anthropic-ai/sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ProviderMessage, ReasoningPart } from '../../src/provider/provider.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/testing/start-strict-provider.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { collect, testProvider, toMessage } from './collect.js'

const tools = [
  { name: 'clock', description: 'Tells the time.', parameters: { type: 'object', properties: {} } },
]

const AWS_ACCOUNT = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'a secret of the account' }

interface Row {
  name: string
  server: StrictProviderOptions
  options: Omit<ProviderOptions, 'baseUrl'>
  model: string
  /** A part of the path of every request. */
  path: string
  keepsThinking?: boolean
}

const ROWS: readonly Row[] = [
  {
    name: 'azure, Responses of the v1 API',
    server: { platform: 'azure', profile: 'openai-responses', apiKey: 'azure-key' },
    options: { type: 'azure', apiKey: 'azure-key' },
    model: 'gpt-5.2',
    path: '/openai/v1/responses',
    keepsThinking: true,
  },
  {
    name: 'azure, Chat of the v1 API with a token',
    server: { platform: 'azure', profile: 'openai-chat', apiKey: 'entra-token' },
    options: { type: 'azure', apiKey: undefined, env: { AZURE_OPENAI_AD_TOKEN: 'entra-token' } },
    model: 'my-chat',
    path: '/openai/v1/chat/completions',
  },
  {
    name: 'azure, a dated version',
    server: { platform: 'azure', profile: 'openai-chat', apiKey: 'azure-key' },
    options: { type: 'azure', apiKey: 'azure-key', apiVersion: '2024-10-21' },
    model: 'gpt-4.1',
    path: '/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21',
  },
  {
    name: 'azure, Responses of a dated version, by deployment',
    server: { platform: 'azure', profile: 'openai-responses', apiKey: 'azure-key' },
    options: {
      type: 'azure',
      apiKey: 'azure-key',
      apiVersion: '2025-04-01-preview',
      deployments: { prod: 'gpt-5.2' },
    },
    model: 'prod',
    path: '/openai/responses?api-version=2025-04-01-preview',
    keepsThinking: true,
  },
  {
    name: 'bedrock, Claude up to 4.6 with an account',
    server: { platform: 'bedrock', profile: 'anthropic-4.6', apiKey: 'AKIAEXAMPLE' },
    options: { type: 'bedrock', apiKey: undefined, region: 'us-east-1', env: AWS_ACCOUNT },
    model: 'us.anthropic.claude-opus-4-6-v1',
    path: '/model/us.anthropic.claude-opus-4-6-v1/invoke-with-response-stream',
    keepsThinking: true,
  },
  {
    name: 'bedrock, Claude from 5.1 with a key',
    server: { platform: 'bedrock', profile: 'anthropic-5.1', apiKey: 'bedrock-key' },
    options: { type: 'bedrock', apiKey: 'bedrock-key', env: { AWS_REGION: 'eu-west-1' } },
    model: 'global.anthropic.claude-opus-5-5',
    path: '/model/global.anthropic.claude-opus-5-5/invoke-with-response-stream',
    keepsThinking: true,
  },
  {
    name: 'bedrock, other models with an account',
    server: { platform: 'bedrock', profile: 'converse', apiKey: 'AKIAEXAMPLE' },
    options: { type: 'bedrock', apiKey: undefined, region: 'us-east-1', env: AWS_ACCOUNT },
    model: 'us.amazon.nova-pro-v1:0',
    path: '/model/us.amazon.nova-pro-v1%3A0/converse-stream',
  },
  {
    name: 'bedrock, other models with a key',
    server: { platform: 'bedrock', profile: 'converse', apiKey: 'bedrock-key' },
    options: { type: 'bedrock', region: 'us-east-1', env: { AWS_BEARER_TOKEN_BEDROCK: 'bedrock-key' } },
    model: 'openai.gpt-oss-120b-1:0',
    path: '/model/openai.gpt-oss-120b-1%3A0/converse-stream',
  },
  {
    name: 'vertex, Gemini',
    server: { platform: 'vertex', profile: 'gemini-3', apiKey: 'google-token' },
    options: { type: 'vertex', apiKey: 'google-token', project: 'my-project' },
    model: 'gemini-3.5-flash',
    path: '/v1beta1/projects/my-project/locations/global/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
  },
  {
    name: 'vertex, Claude up to 4.6',
    server: { platform: 'vertex', profile: 'anthropic-4.5', apiKey: 'google-token' },
    options: {
      type: 'vertex',
      env: {
        GOOGLE_OAUTH_ACCESS_TOKEN: 'google-token',
        GOOGLE_CLOUD_PROJECT: 'my-project',
        GOOGLE_CLOUD_LOCATION: 'europe-west1',
      },
    },
    model: 'claude-sonnet-4-5@20250929',
    path: '/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict',
    keepsThinking: true,
  },
  {
    name: 'vertex, Claude from 5.1',
    server: { platform: 'vertex', profile: 'anthropic-5.1', apiKey: 'google-token' },
    options: { type: 'vertex', apiKey: 'google-token', project: 'my-project', location: 'us' },
    model: 'claude-opus-5-5',
    path: '/v1/projects/my-project/locations/us/publishers/anthropic/models/claude-opus-5-5:streamRawPredict',
    keepsThinking: true,
  },
]

const open: StrictProvider[] = []

async function start(options: StrictProviderOptions): Promise<StrictProvider> {
  const server = await startStrictProvider(options)
  open.push(server)
  return server
}

afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(open.splice(0).map(server => server.close()))
})

/** A provider whose key comes from the environment where the row has one there. */
function providerOf({ options }: Row, baseUrl: string) {
  const { apiKey = undefined, ...rest } = options
  return testProvider({ ...rest, apiKey, baseUrl, retry: { maxAttempts: 1 } })
}

for (const row of ROWS) {
  test(`${row.name}: a tool loop is accepted, and thinking is sent back unchanged`, async () => {
    let step = 0
    const server = await start({
      ...row.server,
      script: () => {
        step += 1
        return step % 3 === 0
          ? { thinking: 'done', text: 'It is noon.' }
          : { thinking: 'look', toolCalls: [{ name: 'clock', args: { step } }] }
      },
    })
    const provider = providerOf(row, server.baseUrl)
    const options = { thinking: { effort: 'low', includeThoughts: true } } as const
    const messages: ProviderMessage[] = []
    for (let turn = 0; turn < 2; turn += 1) {
      messages.push({ role: 'user', parts: [{ type: 'text', text: `What time is it? (${turn})` }] })
      for (let call = 0; call < 3; call += 1) {
        const answer = toMessage(await collect(provider, { model: row.model, messages, tools, options }))
        messages.push(answer)
        const results = answer.parts.flatMap(part =>
          part.type === 'tool-call'
            ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: 'noon' }]
            : [],
        )
        if (results.length === 0) break
        messages.push({ role: 'tool', parts: results })
      }
    }
    expect(server.violations).toEqual([])
    expect(server.requests.map(({ path }) => path)).toEqual(Array(6).fill(row.path))
    const texts = messages.at(-1)?.parts.flatMap(part => (part.type === 'text' ? part.text : []))
    expect(texts?.join('')).toBe('It is noon.')
    if (!row.keepsThinking) return
    const thoughts = messages.flatMap(({ parts }) =>
      parts.filter((part): part is ReasoningPart => part.type === 'reasoning'),
    )
    expect(thoughts.length).toBe(6)
    const sent = JSON.stringify(server.requests.at(-1)?.body)
    for (const { signature } of thoughts.slice(0, -1))
      expect(sent).toContain(JSON.stringify(signature).slice(1, -1))
  })
}

describe.each([
  ['@anthropic-ai/bedrock-sdk', 'bedrock', 'us.anthropic.claude-opus-5-5'],
  ['@anthropic-ai/vertex-sdk', 'vertex', 'claude-opus-5-5'],
] as const)('%s', (name, platform, model) => {
  test.each([false, true])(`${name} runs a tool loop with thinking, streaming %s`, async stream => {
    const server = await start({
      platform,
      profile: 'anthropic-4.6',
      apiKey: 'key-or-token',
      script: [{ thinking: 'Noon?', toolCalls: [{ name: 'clock' }] }, { text: 'It is noon.' }],
    })
    const client =
      platform === 'bedrock'
        ? new AnthropicBedrock({
            apiKey: 'key-or-token',
            awsRegion: 'x',
            baseURL: server.baseUrl,
            maxRetries: 0,
          })
        : new AnthropicVertex({
            region: 'global',
            projectId: 'p',
            baseURL: `${server.baseUrl}/v1`,
            authClient: TOKEN_CLIENT as never,
            maxRetries: 0,
          })
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'What time is it?' }]
    const request = {
      model,
      max_tokens: 4000,
      tools: [{ name: 'clock', input_schema: { type: 'object' as const } }],
      messages,
    }
    const ask = (): Promise<Anthropic.Message> =>
      stream ? client.messages.stream(request).finalMessage() : client.messages.create(request)
    const first = await ask()
    const call = first.content.find(block => block.type === 'tool_use')
    messages.push({ role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] })
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'noon' }
    messages.push({ role: 'user', content: [result] })
    expect((await ask()).content).toMatchObject([{ type: 'text', text: 'It is noon.' }])
    expect(server.violations).toEqual([])
    await expect(client.post('/v1/other', { body: request })).rejects.toMatchObject({ status: 404 })
  })
})

const TOKEN_CLIENT = {
  getRequestHeaders: async () => new Headers({ authorization: 'Bearer key-or-token' }),
}

test('a model that calls tools only without streaming gets a request without streaming', async () => {
  const model = 'us.meta.llama4-maverick-17b-instruct-v1:0'
  const server = await start({
    profile: 'converse',
    script: [
      {
        text: 'Let me see.',
        toolCalls: [{ name: 'clock', args: { zone: 'UTC' } }],
        usage: { input: 9, output: 3 },
      },
      { text: 'It is noon.' },
    ],
  })
  const provider = testProvider({ type: 'bedrock', region: 'us-east-1', baseUrl: server.baseUrl })
  const messages: ProviderMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'What time is it?' }] }]
  const events = await collect(provider, { model, messages, tools })
  expect(events.slice(1)).toMatchObject([
    { type: 'text-delta', text: 'Let me see.' },
    { type: 'tool-call', name: 'clock', args: { zone: 'UTC' } },
    { type: 'usage', usage: { inputTokens: 9, outputTokens: 3 } },
    { type: 'done', finishReason: 'tool-calls' },
  ])
  const answer = toMessage(events)
  const call = answer.parts.find(part => part.type === 'tool-call')
  messages.push(answer, {
    role: 'tool',
    parts: [{ type: 'tool-result', id: call?.id ?? '', name: 'clock', result: 'noon' }],
  })
  await collect(provider, { model, messages, tools })
  expect(server.requests.map(({ path }) => path.replace(/.*\//, ''))).toEqual([
    'converse-stream',
    'converse',
    'converse',
  ])
})

test('an image, a document, an error and an absent description are written in the forms of Converse', async () => {
  const server = await start({ profile: 'converse' })
  const provider = testProvider({ type: 'bedrock', region: 'us-east-1', baseUrl: server.baseUrl })
  const media = (mimeType: string, more: object) => ({
    type: 'media' as const,
    mimeType,
    data: 'aGk=',
    ...more,
  })
  const messages: ProviderMessage[] = [
    { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
    {
      role: 'user',
      parts: [
        media('image/png', {}),
        media('application/pdf', { name: 'the report: v2.pdf' }),
        media('audio/wav', {}),
      ],
    },
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'c1', name: 'clock', args: {} }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'c1', name: 'clock', result: ' ', isError: true }] },
  ]
  const events = await collect(provider, {
    model: 'us.amazon.nova-2-lite-v1:0',
    messages,
    tools: [{ name: 'clock', description: '', parameters: {} }],
    options: { toolChoice: { name: 'clock' }, thinking: { effort: 'high' }, maxOutputTokens: 99, seed: 1 },
  })
  expect(events[0]).toMatchObject({ repairs: [{}, { kind: 'option-dropped', names: ['seed'] }] })
  expect(server.violations).toEqual([])
  expect(server.requests[0]?.body).toEqual({
    system: [{ text: 'Be brief.' }],
    messages: [
      {
        role: 'user',
        content: [
          { image: { format: 'png', source: { bytes: 'aGk=' } } },
          { text: 'The file the report v2 pdf:' },
          { document: { format: 'pdf', name: 'the report v2 pdf', source: { bytes: 'aGk=' } } },
          { text: expect.stringContaining('[audio/wav') },
        ],
      },
      { role: 'assistant', content: [{ toolUse: { toolUseId: 'c1', name: 'clock', input: {} } }] },
      {
        role: 'user',
        content: [{ toolResult: { toolUseId: 'c1', content: [{ text: '(no output)' }], status: 'error' } }],
      },
    ],
    inferenceConfig: { maxTokens: 99 },
    toolConfig: {
      tools: [{ toolSpec: { name: 'clock', inputSchema: { json: { type: 'object', properties: {} } } } }],
      toolChoice: { tool: { name: 'clock' } },
    },
    additionalModelRequestFields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
  })
})

test.each([
  ['bedrock', 'us.anthropic.claude-opus-4-6-v1', { region: 'us-east-1' }],
  ['vertex', 'claude-opus-4-6', { project: 'p' }],
] as const)(
  'Claude on %s accepts sampling and a remote image, and is read from a stream in pieces',
  async (platform, model, more) => {
    const server = await start({
      platform,
      profile: 'anthropic-4.6',
      faults: [
        { at: 0, kind: 'slow-drip' },
        { at: 1, kind: 'error-in-stream', afterEvents: 0 },
      ],
    })
    const provider = testProvider({ type: platform, ...more, baseUrl: server.baseUrl })
    const image = { type: 'media' as const, mimeType: 'image/png', url: 'https://example.com/cat.png' }
    const messages: ProviderMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }, image] }]
    const options = { temperature: 0.5, gemini: { serviceTier: 'priority' } }
    for (let turn = 0; turn < 2; turn += 1) {
      const events = await collect(provider, { model, messages, options })
      expect(events.at(-1)).toMatchObject({ type: 'done', finishReason: 'stop' })
      const dropped = expect.objectContaining({ names: ['serviceTier'] })
      expect(events[0]).toMatchObject({ repairs: expect.arrayContaining([dropped]) })
    }
    expect(server.violations).toEqual([])
    expect(JSON.stringify(server.requests[0]?.body)).toContain('[image/png at https://example.com/cat.png')
    const serverTools = [{ name: 'codeExecution', config: {} }]
    const [refused] = await collect(provider, { model, messages, serverTools })
    expect(refused).toMatchObject({ type: 'error', error: { code: 'invalid-config' } })
  },
)

/** The sentence of the error that a request ends with. */
async function failure(options: ProviderOptions, model: string): Promise<string> {
  const messages: ProviderMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]
  const events = await collect(testProvider({ ...options, retry: { maxAttempts: 1 } }), { model, messages })
  const last = events.at(-1)
  return last?.type === 'error' ? `${last.error.code}: ${last.error.message}` : `${last?.type}`
}

const served = { models: ['served'], apiKey: 'right-key' }
test.each([
  [
    'azure',
    { profile: 'openai-chat' },
    {},
    'gone',
    /provider-rejected: azure\/gone .*deployment.* does not exist.*use a deployment's name/,
  ],
  [
    'azure',
    { profile: 'openai-chat' },
    { apiVersion: '2024-10-21' },
    'gone',
    /use a deployment's name, or create one/,
  ],
  [
    'azure',
    { profile: 'openai-chat' },
    { apiKey: 'wrong-key' },
    'served',
    /provider-auth: .*refused the key \(401\): Access denied/,
  ],
  [
    'azure',
    { profile: 'openai-responses' },
    { api: 'chat' },
    'served',
    /Resource not found .*AZURE_OPENAI_ENDPOINT is the address/,
  ],
  [
    'bedrock',
    { profile: 'anthropic-4.6' },
    { region: 'x' },
    'claude-gone',
    /model identifier is invalid.*whether the region \(AWS_REGION\) serves it/,
  ],
  [
    'bedrock',
    { profile: 'converse' },
    { region: 'x' },
    'amazon.gone',
    /provider-rejected: .*model identifier is invalid.*AWS_REGION/,
  ],
  [
    'bedrock',
    { profile: 'converse' },
    { region: 'x', apiKey: 'wrong-key' },
    'served',
    /provider-auth: .*\(403\): The security token/,
  ],
  [
    'vertex',
    { profile: 'gemini-3' },
    { project: 'p' },
    'gemini-gone',
    /Publisher Model .* not found.*GOOGLE_CLOUD_LOCATION; "global" serves most/,
  ],
  [
    'vertex',
    { profile: 'anthropic-4.6' },
    { project: 'p' },
    'claude-gone',
    /Publisher Model .* not found.*Model Garden/,
  ],
  [
    'vertex',
    { profile: 'anthropic-4.6' },
    { project: 'p', apiKey: 'wrong-key' },
    'claude-x',
    /provider-auth: .*\(401\)/,
  ],
] as const)(
  '%s with %j, %j and model %s fails with an error that says what to do',
  async (platform, { profile }, options, model, sentence) => {
    const server = await start({ platform, profile, ...served })
    const all = { type: platform, apiKey: 'right-key', baseUrl: server.baseUrl, ...options }
    expect(await failure(all, model)).toMatch(sentence)
  },
)

test.each([
  [{ type: 'azure' }, 'm', /^provider-auth: No API key for azure\/m\. Set AZURE_OPENAI_API_KEY/],
  [
    { type: 'azure', apiKey: 'k' },
    'm',
    /azure\/m needs an endpoint\. Set AZURE_OPENAI_ENDPOINT .*https:\/\/NAME\.openai\.azure\.com, or baseUrl/,
  ],
  [
    { type: 'azure', apiKey: 'k', baseUrl: 'https://x/openai/deployments/d?api-version=1' },
    'm',
    /the address of the resource alone/,
  ],
  [
    { type: 'bedrock', apiKey: 'k' },
    'claude-x',
    /bedrock\/claude-x needs a region\. Set AWS_REGION in the environment/,
  ],
  [{ type: 'bedrock', apiKey: 'k' }, 'amazon.x', /bedrock\/amazon\.x needs a region/],
  [
    { type: 'vertex', apiKey: 'k' },
    'claude-x',
    /vertex\/claude-x needs a project\. Set GOOGLE_CLOUD_PROJECT .*or project in/,
  ],
  [{ type: 'vertex', apiKey: 'k' }, 'gemini-3.5-flash', /needs a project/],
] as const)(
  'the error of %j with model %s and without its settings says what to set',
  async (options, model, sentence) => {
    expect(await failure({ apiKey: undefined, ...options }, model)).toMatch(sentence)
  },
)

test.each([
  [
    'bedrock',
    'anthropic.claude-x',
    /^provider-auth: .* has no credentials: .*AWS credentials.*AWS_ACCESS_KEY_ID with/,
  ],
  [
    'bedrock',
    'amazon.x',
    /^provider-auth: .* has no credentials: .*Set AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS/,
  ],
  ['vertex', 'claude-x', /^provider-auth: .* has no credentials: .*gcloud auth application-default login/],
  [
    'vertex',
    'gemini-3.5-flash',
    /^provider-auth: .* has no credentials: .*gcloud auth application-default login/,
  ],
] as const)(
  'the error of %s/%s on a machine without credentials says what to do',
  async (type, model, sentence) => {
    const server = await start({ profile: 'converse' })
    // No request leaves the machine: where an account might be asked for over the network, the libraries are told not to.
    const home = await temporaryFolder()
    for (const name of Object.keys(process.env))
      if (/^(AWS|GOOGLE|CLOUDSDK)_/.test(name)) vi.stubEnv(name, undefined)
    vi.stubEnv('HOME', home)
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
    vi.stubEnv('METADATA_SERVER_DETECTION', 'none')
    const options = { type, apiKey: undefined, region: 'x', project: 'p', baseUrl: server.baseUrl } as const
    expect(await failure(options, model)).toMatch(sentence)
    expect(server.requests).toEqual([])
  },
)

test('a platform whose package is not installed names it and the command that installs it', async () => {
  const script = `
      import { register } from 'node:module'
      const hook = "export const resolve = (name, context, next) => next(name, /bedrock|vertex-sdk/.test(name) && !name.startsWith('.') ? { ...context, parentURL: 'file:///nowhere/x.js' } : context)"
      register('data:text/javascript,' + encodeURIComponent(hook))
      const { createProvider } = await import(${JSON.stringify(new URL('../../src/provider/provider-registry.ts', import.meta.url).href)})
      for (const [type, model] of [['bedrock', 'claude-x'], ['bedrock', 'amazon.x'], ['vertex', 'claude-x']]) {
        const provider = createProvider({ type, apiKey: 'k', region: 'x', project: 'p' })
        await provider.load(model).catch(error => console.log(error.code + ': ' + error.message))
      }`
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    '--input-type=module',
    '-e',
    script,
  ])
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^invalid-config: .* install with: npm install @anthropic-ai\/bedrock-sdk@1$/),
    expect.stringMatching(
      /^invalid-config: .* install with: npm install @aws-sdk\/client-bedrock-runtime@3$/,
    ),
    expect.stringMatching(/^invalid-config: .* install with: npm install @anthropic-ai\/vertex-sdk@1$/),
  ])
})
