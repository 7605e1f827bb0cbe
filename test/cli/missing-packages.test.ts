// Lango as it is installed alone: what does not come with it is missing, and each absence is one sentence with the line that
// installs it.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { OPTIONAL_NAMES, OPTIONAL_PACKAGES, type OptionalName, packageOf } from '../../src/packages.js'
import { BROKEN_SESSIONS } from '../../src/testing/broken-sessions.js'
import { installWithoutPeers } from '../support/lango-without-peers.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { TestTerminal } from '../support/terminal.js'
import { longUnless } from '../support/tiers.js'
import { langoProcess } from './lango.js'

const KEYS = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2' }

let cwd = ''
let file = ''
beforeAll(async () => {
  cwd = await makeFolder()
  file = await installWithoutPeers(cwd)
})
afterAll(() => removeFolder(cwd))

/** The sentence, without its first words. */
function sentence(name: OptionalName): string {
  const { what, install } = OPTIONAL_PACKAGES[name]
  const packages = `the package${install.length > 1 ? 's' : ''} ${install.map(packageOf).join(', ')}`
  return `${what} needs ${packages}; install with: npm install ${install.join(' ')}`
}

test('the versions in the sentences about missing packages are those of the peer dependencies', async () => {
  const text = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8')
  const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(text)
  const named = OPTIONAL_NAMES.flatMap(name => [...OPTIONAL_PACKAGES[name].install])
  for (const spec of named) {
    const name = packageOf(spec)
    const range = peerDependencies[name] ?? `^${dependencies[name]}`
    // The oldest versions of the range: they run on every Node that Lango runs on. A caret fixes the first number that is not 0.
    const [, fixed] = /^(?:\^|>=)((?:0\.)*[1-9]\d*)\./.exec(range) ?? []
    expect(spec).toBe(`${name}@${fixed}`)
    if (peerDependencies[name]) expect(peerDependenciesMeta[name]).toEqual({ optional: true })
  }
  const peers = Object.keys(peerDependencies)
  const others = Object.values(OPTIONAL_PACKAGES.telemetry.instead)
  expect([...named.map(packageOf), ...others]).toEqual(expect.arrayContaining(peers))
})

test('a program that misses a package for a model, a store, an MCP server or traces is told which one to install', {
  timeout: 60_000,
}, async () => {
  const program = `
    import { createRuntime, createTelemetry } from 'lango'
    import { createProvider } from 'lango/provider'
    import { migrateDbos } from 'lango/dbos'
    import { openStore } from 'lango/store'
    const load = (type, model) => createProvider({ type, apiKey: 'k', region: 'x', project: 'p', baseUrl: 'http://127.0.0.1:9' }).load(model)
    const work = {
      openai: () => load('openai', 'gpt-5.2'),
      anthropic: () => load('anthropic', 'claude-sonnet-4-6'),
      bedrock: () => load('bedrock', 'amazon.nova'),
      'bedrock-claude': () => load('bedrock', 'claude-x'),
      'vertex-claude': () => load('vertex', 'claude-x'),
      postgres: () => openStore('postgres://127.0.0.1:9/x'),
      dbos: () => migrateDbos({ url: 'postgres://127.0.0.1:9/x' }),
      mcp: async () => {
        const agent = { name: 'a', model: 'demo/demo' }
        const runtime = await createRuntime({ store: 'memory:', agent, mcpServers: { one: { command: 'true' } } })
        for await (const event of runtime.run({ text: 'hi' })) if (event.type === 'error') throw event.error
      },
      telemetry: () => createTelemetry({ endpoint: 'http://127.0.0.1:9' }),
    }
    const found = {}
    for (const [name, start] of Object.entries(work))
      found[name] = await start().then(() => 'no error', error => error.code + ': ' + error.message)
    console.log(JSON.stringify(found))
    await load('gemini', 'gemini-3.5-flash')
    await (await openStore('sqlite:./x.db')).close()
    process.exit()`
  await writeFile(join(cwd, 'program.mjs'), program)
  const { code, stdout, stderr } = await langoProcess([], { cwd, file: join(cwd, 'program.mjs') })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const names = [
    'openai',
    'anthropic',
    'bedrock',
    'bedrock-claude',
    'vertex-claude',
    'postgres',
    'dbos',
    'mcp',
    'telemetry',
  ] as const
  const wanted = names.map(name => [
    name,
    `${name === 'postgres' ? 'store-unavailable' : 'invalid-config'}: ${sentence(name)}`,
  ])
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(wanted))
})

/** One command for each way to the check stays in the short tier: a model, a store, a protocol. */
const COMMANDS = [
  ['run', ['run', 'hi', '--model', 'openai/gpt-5.2'], 'openai', true],
  ['run with the key of a vendor', ['run', 'hi'], 'openai', false],
  ['serve', ['serve', '--port', '0', '--model', 'anthropic/claude-sonnet-4-6'], 'anthropic', false],
  ['chat', ['chat', '--model', 'groq/llama'], 'openai', false],
  ['sessions', ['sessions', 'list', '--store', 'postgres://127.0.0.1:9/x'], 'postgres', true],
  ['mcp serve', ['mcp', 'serve', '--model', 'demo/demo'], 'mcp', false],
  ['acp', ['acp'], 'acp', true],
] as const

for (const [title, args, name, isShort] of COMMANDS) {
  test(
    `lango ${title} names the package that it misses and the command that installs it`,
    longUnless(isShort),
    async () => {
      const { code, stdout, stderr } = await langoProcess(args, { cwd, file, env: KEYS, input: '' })
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toBe(`lango: ${sentence(name)} (or: lango add ${name})\n`)
    },
  )
}

test('lango demo shows every history refused and answered without any SDK of a vendor', async () => {
  const { code, stdout, stderr } = await langoProcess(['demo', '--json'], { cwd, file })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const shown = JSON.parse(stdout) as { asItIs: { status: number }; throughLango: { text: string } }[]
  expect(shown.map(({ asItIs }) => asItIs.status)).toEqual(BROKEN_SESSIONS.map(() => 400))
  expect(shown.map(({ throughLango }) => throughLango.text)).toEqual(
    BROKEN_SESSIONS.map(({ answer }) => answer),
  )
})

test('lango run --json reports a missing package with its command as data', async () => {
  const { code, stdout, stderr } = await langoProcess(['run', 'hi', '--json'], {
    cwd,
    file,
    env: KEYS,
    input: '',
  })
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    type: 'error',
    error: {
      code: 'invalid-config',
      details: { packages: ['openai'], install: 'npm install openai@6', add: 'openai' },
    },
  })
})

test('lango chat without the terminal package says so, and is a chat line by line that can ask', async () => {
  const terminal = new TestTerminal({ cwd, file, args: ['chat', '--model', 'demo/demo'], columns: 300 })
  onTestFinished(() => terminal.kill())
  await terminal.waitFor(`${sentence('terminal')} (or: lango add terminal)`)
  await terminal.waitFor(/^>/m)
  terminal.type('Hello there\r')
  await terminal.waitFor(/Hello there[\s\S]*\n>$/)
  terminal.type('/exit\r')
  expect(await terminal.ended()).toBe(0)
})
