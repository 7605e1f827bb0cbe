import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// Vendors' SDKs cost hundreds of milliseconds and tens of megabytes each: nobody pays for one that is not used.

const run = promisify(execFile)
const hook = new URL('./list-loaded-modules.mjs', import.meta.url)
const HEAVY =
  /node_modules\/(openai|@anthropic-ai\/[\w-]+|@google\/genai|@google\/adk|@aws-sdk\/client-bedrock-runtime)\//

async function urlsLoadedBy(script: string): Promise<string> {
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', '--import', hook.href, '--input-type=module', '-e', script],
    {
      cwd: new URL('../..', import.meta.url),
    },
  )
  return stdout.slice(stdout.lastIndexOf('['))
}

async function packagesLoadedBy(script: string): Promise<string[]> {
  const urls = JSON.parse(await urlsLoadedBy(script)) as string[]
  expect(urls.length).toBeGreaterThan(0)
  return [...new Set(urls.flatMap(url => HEAVY.exec(url)?.[1] ?? []))]
}

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url)

test.each(['entries/provider.ts', 'entries/store.ts', 'index.ts'])(
  'importing %s loads no SDK and no ADK',
  async path => {
    expect(await packagesLoadedBy(`await import(${JSON.stringify(source(path).href)})`)).toEqual([])
  },
)

test.each([
  ['openai', '{ type: "openai", apiKey: "k", baseUrl: "http://127.0.0.1:9/v1" }', ['openai']],
  ['anthropic', '{ type: "anthropic", apiKey: "k", baseUrl: "http://127.0.0.1:9" }', ['@anthropic-ai/sdk']],
  ['gemini', '{ type: "gemini", apiKey: "k", baseUrl: "http://127.0.0.1:9" }', ['@google/genai']],
  ['demo', '{ type: "demo" }', []],
])('a request to %s loads its own SDK and no other', async (_, options, packages) => {
  const script = `
    const { createProvider } = await import(${JSON.stringify(source('provider/provider-registry.ts').href)})
    const provider = createProvider({ ...${options}, retry: { maxAttempts: 1 } })
    for await (const event of provider.generate({ model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] })) {}
  `
  expect(await packagesLoadedBy(script)).toEqual(packages)
})

test('importing index.ts loads no Zod; createRuntime loads it to check its options, and nothing of ADK', async () => {
  const importing = `const { createRuntime } = await import(${JSON.stringify(source('index.ts').href)})`
  const creating = `${importing}
    await (await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' } })).close()`
  expect(await urlsLoadedBy(importing)).not.toMatch(/node_modules\/zod\//)
  expect(await urlsLoadedBy(creating)).toMatch(/node_modules\/zod\//)
  expect(await packagesLoadedBy(creating)).toEqual([])
})
