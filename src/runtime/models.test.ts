import { expect, test } from 'vitest'
import type { Provider } from '../provider/provider.js'
import { vendorNames } from '../provider/vendors.js'
import { listModels, listProviders } from './models.js'

test('every model can be named as it is listed, once', () => {
  const references = listModels({ env: {} }).map(({ reference }) => reference)
  expect(new Set(references).size).toBe(references.length)
  expect(references).toEqual(
    expect.arrayContaining([
      'gemini/gemini-3.5-flash',
      'mistral/mistral-large-latest',
      'ollama/qwen3',
      'demo/demo',
    ]),
  )
  expect(references).not.toContain('openai/gpt-oss')
})

test.each([
  [{ env: {} }, 'gemini', { keyPresent: false, keyVariable: 'GEMINI_API_KEY' }],
  [{ env: { GOOGLE_API_KEY: 'x' } }, 'gemini', { keyPresent: true, keyVariable: 'GEMINI_API_KEY' }],
  [{ env: { GEMINI_API_KEY: ' ' } }, 'gemini', { keyPresent: false }],
  [{ env: { GOOGLE_GENAI_USE_VERTEXAI: 'true' } }, 'gemini', { keyPresent: true }],
  [
    { env: {}, providers: { openai: { type: 'openai' as const, apiKey: 'x' } } },
    'openai',
    { keyPresent: true },
  ],
  [{ env: {} }, 'groq', { keyPresent: false, keyVariable: 'GROQ_API_KEY' }],
  [{ env: {} }, 'ollama', { keyPresent: true }],
  [
    { env: {} },
    'azure',
    {
      keyPresent: false,
      keyVariable: 'AZURE_OPENAI_API_KEY',
      missingVariable: 'AZURE_OPENAI_ENDPOINT',
    },
  ],
  [
    {
      env: { AZURE_OPENAI_AD_TOKEN: 'x' },
      providers: { azure: { baseUrl: 'https://name.openai.azure.com' } },
    },
    'azure',
    { keyPresent: true, keyVariable: 'AZURE_OPENAI_AD_TOKEN' },
  ],
  [
    { env: { AWS_ACCESS_KEY_ID: 'x' } },
    'bedrock',
    {
      keyPresent: false,
      keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
      findsCredentials: true,
      missingVariable: 'AWS_REGION',
    },
  ],
  [
    { env: { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'y', AWS_DEFAULT_REGION: 'us-east-1' } },
    'bedrock',
    { keyPresent: true, keyVariable: 'AWS_ACCESS_KEY_ID' },
  ],
  [{ env: { AWS_PROFILE: 'work' } }, 'bedrock', { keyPresent: true, keyVariable: 'AWS_PROFILE' }],
  [
    { env: { GOOGLE_APPLICATION_CREDENTIALS: '/key.json', GOOGLE_CLOUD_PROJECT: 'p' } },
    'vertex',
    { keyPresent: true, keyVariable: 'GOOGLE_APPLICATION_CREDENTIALS', findsCredentials: true },
  ],
  [{ env: {} }, 'demo', { keyPresent: true }],
  [
    {
      env: { GROQ_API_KEY: 'x' },
      providers: { fast: { type: 'openai-compatible' as const, preset: 'groq' } },
    },
    'fast',
    { keyPresent: true, keyVariable: 'GROQ_API_KEY' },
  ],
])('with %j, the key of %s is shown as %j', (options, name, key) => {
  expect(listProviders(options).find(({ provider }) => provider === name)).toMatchObject(key)
})

test('configured models come with their corrections, under the name that references use', () => {
  const models = { 'my-model': { contextWindow: 9000, outputLimit: 900, price: { input: 1, output: 2 } } }
  const local = { type: 'openai-compatible' as const, baseUrl: 'http://127.0.0.1:9/v1', models }
  const [mine] = listModels({ env: {}, providers: { local } })
  expect(mine).toMatchObject({
    reference: 'local/my-model',
    contextWindow: 9000,
    outputLimit: 900,
    price: { input: 1, output: 2 },
    keyPresent: true,
  })
})

test('a provider made in code needs no key', () => {
  const own = {
    id: 'own',
    generate: async function* () {},
    describeModel: () => undefined,
  } as unknown as Provider
  expect(listProviders({ env: {}, providers: { own } })[0]).toEqual({ provider: 'own', keyPresent: true })
})

test('every vendor is listed with the state of its key, whether it has a list of models or not', () => {
  const listed = listProviders({ env: {} })
  expect(listed.map(({ provider }) => provider)).toEqual(vendorNames())
  for (const { provider, keyPresent, keyVariable } of listed)
    expect({ provider, keyPresent }).toEqual({ provider, keyPresent: keyVariable === undefined })
})
