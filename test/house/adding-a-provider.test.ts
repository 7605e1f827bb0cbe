// docs/adding-a-provider.md, followed on purpose: its patch for a compatible server and a recorded patch for a vendor
// with an API of its own are applied to a copy of the sources, which must compile and answer.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { builtCopy } from '../support/built-lango.js'
import { LONG } from '../support/tiers.js'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = readFileSync(join(ROOT, 'docs/adding-a-provider.md'), 'utf8')
const run = promisify(execFile)

// Both patches add a row at the end of the table; the one with less context is applied last.
const patches = {
  acme: readFileSync(join(ROOT, 'test/fixtures/adding-a-provider/acme.patch'), 'utf8'),
  compatible: /```diff\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '',
}

/** Files that a patch changes, and files that it adds. */
function filesOf(patch: string): { changed: string[]; added: string[] } {
  const files = [...patch.matchAll(/^--- (\S+)\n\+\+\+ b\/(\S+)$/gm)]
  const names = (isNew: boolean) =>
    files.flatMap(([, before, after]) => (after && (before === '/dev/null') === isNew ? [after] : []))
  return { changed: names(false), added: names(true) }
}

/** The existing files that the page lists, by the heading of its section. */
function listedFiles(heading: string): string[] {
  const section = PAGE.slice(PAGE.indexOf(heading)).split('\n## ')[0] ?? ''
  return [...section.matchAll(/^\| `([^`]+)` \| changed \|/gm)].flatMap(([, name]) => name ?? [])
}

test.each([
  ['## A compatible server', patches.compatible, 3],
  ['## A vendor with its own API', patches.acme, 6],
])('the section "%s" changes only existing files that it lists, and few of them', (heading, patch, most) => {
  const listed = listedFiles(heading)
  expect(listed.length).toBeGreaterThan(0)
  expect(listed.length).toBeLessThanOrEqual(most)
  expect(listed.filter(name => !existsSync(join(ROOT, name)))).toEqual([])
  expect(listed).toEqual(expect.arrayContaining(filesOf(patch).changed))
})

/** The TypeScript with both patches, and the same as JavaScript. */
const tree = mkdtempSync(join(tmpdir(), 'lango-vendor-'))
let built = ''
afterAll(() => {
  rmSync(tree, { recursive: true, force: true })
  if (built !== '') rmSync(built, { recursive: true, force: true })
})

beforeAll(async () => {
  for (const name of ['src', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  for (const [name, patch] of Object.entries(patches)) {
    writeFileSync(join(tree, `${name}.patch`), patch)
    await run('git', ['apply', `${name}.patch`], { cwd: tree })
  }
  const patched = Object.values(patches).flatMap(patch => Object.values(filesOf(patch)).flat())
  const sources = patched.filter(name => /^src\/.*(?<!\.test)\.ts$/.test(name))
  built = await builtCopy(new Map(sources.map(name => [name, readFileSync(join(tree, name), 'utf8')])))
})

test('with both patches the registry and the configuration compile', {
  ...LONG,
  timeout: 300_000,
}, async () => {
  const { default: ts } = await import('typescript')
  const { config } = ts.readConfigFile(join(tree, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, tree)
  const roots = ['src/provider/provider-registry.ts', 'src/config/config.ts'].map(name => join(tree, name))
  const program = ts.createProgram(roots, options)
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(join(tree, 'src')))
  expect(own.map(({ fileName }) => relative(tree, fileName))).toEqual(
    expect.arrayContaining(filesOf(patches.acme).added),
  )
  const problems = own.flatMap(file => program.getSemanticDiagnostics(file))
  expect(problems.map(({ file, messageText }) => [file?.fileName, messageText])).toEqual([])
})

/** The answer of a model through `createRuntime` of the patched sources. */
async function answerOf(model: string, baseUrl: string, env: Record<string, string>): Promise<string> {
  const script = `
    import { createRuntime } from './src/index.js'
    const [name] = '${model}'.split('/')
    const type = name === 'acme' ? {} : { type: 'openai-compatible', preset: name }
    const runtime = await createRuntime({
      store: 'memory:',
      providers: { [name]: { ...type, baseUrl: '${baseUrl}' } },
      agent: { model: '${model}' },
    })
    let text = ''
    for await (const event of runtime.run({ sessionId: 's', text: 'Hello?' })) {
      if (event.type === 'text-delta') text += event.text
      if (event.type === 'error') throw event.error
    }
    await runtime.close()
    const { loadConfig } = await import('./src/config/load-config.js')
    const { model: chosen } = await loadConfig({ cwd: './scripts', env: process.env })
    console.log(JSON.stringify([text, chosen]))`
  writeFileSync(join(built, 'answer.mjs'), script)
  const { PATH } = process.env
  const { stdout } = await run(process.execPath, ['answer.mjs'], { cwd: built, env: { PATH, ...env } })
  return stdout.trim()
}

test('with both patches a vendor with its own API answers, and its key makes it the default', async () => {
  const seen: unknown[] = []
  const server = createServer(async (request, response) => {
    seen.push(request.headers.authorization, JSON.parse(Buffer.concat(await request.toArray()).toString()))
    response.end('{"text":"Hello "}\n{"text":"from Acme."}\n{"end":true}\n')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const answer = await answerOf('acme/acme-1', baseUrl, { ACME_API_KEY: 'k' })
  expect(JSON.parse(answer)).toEqual(['Hello from Acme.', 'acme/acme-1'])
  expect(seen).toEqual([
    'Bearer k',
    { model: 'acme-1', lines: expect.arrayContaining([{ role: 'user', text: 'Hello?' }]) },
  ])
})

test('with both patches a compatible server answers', async () => {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    script: [{ text: 'Hello from Kimi.' }],
  })
  onTestFinished(() => server.close())
  const answer = await answerOf('nebius/some-model', server.baseUrl, { NEBIUS_API_KEY: 'k' })
  expect(JSON.parse(answer)).toEqual(['Hello from Kimi.', 'demo/demo'])
})
