import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// Vendors' SDKs cost hundreds of milliseconds and tens of megabytes each: nobody pays for one that is not used.

const run = promisify(execFile)
const hook = new URL('./list-loaded-modules.mjs', import.meta.url)
const HEAVY =
  /node_modules\/(openai|@anthropic-ai\/[\w-]+|@google\/genai|@google\/adk|@aws-sdk\/client-bedrock-runtime|zod)\//

/** A step of a script: its name and code. */
type Step = readonly [string, string]

/** An import of a module that does nothing: it separates the steps in the list of loaded modules. */
const MARK = 'data:text/javascript,void%20'

/**
 * The packages of the list above that each step loads for the first time, in one process. A step that loads a package of
 * an earlier step is not seen here: where that matters, the steps run in another order as well.
 */
async function packagesLoadedBy(steps: readonly Step[]): Promise<Record<string, string[]>> {
  const script = steps.map(([, code], index) => `await import('${MARK}${index}')\n{ ${code} }`).join('\n')
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', '--import', hook.href, '--input-type=module', '-e', script],
    { cwd: new URL('../..', import.meta.url) },
  )
  const urls = JSON.parse(stdout.slice(stdout.lastIndexOf('['))) as string[]
  const marks = steps.map((_, index) => urls.indexOf(`${MARK}${index}`))
  const seen = new Set<string>()
  return Object.fromEntries(
    steps.map(([name], index) => {
      const loaded = urls.slice(marks[index], marks[index + 1])
      // Besides the mark, each step loads modules of its own.
      expect(loaded.length, name).toBeGreaterThan(1)
      const packages = new Set(loaded.flatMap(url => HEAVY.exec(url)?.[1] ?? []))
      const added = [...packages].filter(one => !seen.has(one))
      for (const one of added) seen.add(one)
      return [name, added]
    }),
  )
}

const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

const imported = (path: string): Step => [path, `await import(${source(path)})`]

const CREATE_RUNTIME: Step = [
  'createRuntime',
  `const { createRuntime } = await import(${source('index.ts')})
   await (await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' } })).close()`,
]

function requestTo(name: string, options: object): Step {
  return [
    name,
    `const { createProvider } = await import(${source('provider/provider-registry.ts')})
     const provider = createProvider({ ...${JSON.stringify(options)}, retry: { maxAttempts: 1 } })
     const messages = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }]
     for await (const event of provider.generate({ model: 'm', messages })) {}`,
  ]
}

const DEMO = requestTo('demo', { type: 'demo' })
const SDKS = [
  requestTo('openai', { type: 'openai', apiKey: 'k', baseUrl: 'http://127.0.0.1:9/v1' }),
  requestTo('anthropic', { type: 'anthropic', apiKey: 'k', baseUrl: 'http://127.0.0.1:9' }),
  requestTo('gemini', { type: 'gemini', apiKey: 'k', baseUrl: 'http://127.0.0.1:9' }),
]
const OWN_SDKS = { openai: ['openai'], anthropic: ['@anthropic-ai/sdk'], gemini: ['@google/genai'] }

test('imports load no SDK, no ADK and no Zod, createRuntime loads only Zod, and each request loads its own SDK', async () => {
  const entries = ['index.ts', 'entries/provider.ts', 'entries/store.ts']
  expect(await packagesLoadedBy([...entries.map(imported), CREATE_RUNTIME, DEMO, ...SDKS])).toEqual({
    'index.ts': [],
    'entries/provider.ts': [],
    'entries/store.ts': [],
    createRuntime: ['zod'],
    demo: [],
    ...OWN_SDKS,
  })
})

// In the other order, so that no request can load the SDK of another one unseen.
test('a request to gemini, anthropic or openai loads its own SDK and no other', async () => {
  expect(await packagesLoadedBy([DEMO, ...SDKS.toReversed()])).toEqual({ demo: [], ...OWN_SDKS })
})
