// lango-core as it would be published: packed, put into an empty folder with its dependencies and one SDK, without ADK. Its
// types compile there with the libraries' types checked, and a program repairs, lints, stores a session and asks a model.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CORE = join(ROOT, 'packages/core')

const PROGRAM = `
import { createProvider, lintHistory, messagesToProvider, openStore, repairHistory } from 'lango-core'
import { PROFILES } from 'lango-core/provider'
import { countMessageTokens } from 'lango-core/store'
import { startStrictProvider } from 'lango-core/testing'

const key = { appName: 'app', userId: 'ann', sessionId: 'trip' }
const store = await openStore('sqlite:./core.db')
await store.createSession(key)
await store.appendMessage(key, { role: 'user', content: 'Pay.', timestamp: 1 })
const call = { id: 'call_1', name: 'pay', input: '{}' }
await store.appendMessage(key, { role: 'assistant', content: '', toolCalls: [call], timestamp: 2 })
await store.appendMessage(key, { role: 'user', content: 'Well?', timestamp: 3 })
const session = await store.loadSession(key)
await store.close()
if (session?.totalMessages !== 3) throw new Error('the session was not stored')
if (countMessageTokens(session.messages[0]!) < 1) throw new Error('no tokens')

const messages = messagesToProvider(session.messages)
const findings = lintHistory(messages, 'openai-chat')
if (findings.length === 0) throw new Error('lint found nothing')
const repaired = repairHistory(messages, PROFILES['openai-chat'])
if (lintHistory(repaired.messages, 'openai-chat').some(({ severity }) => severity === 'breaks'))
  throw new Error('repair left something')

const server = await startStrictProvider({ profile: 'openai-chat', script: [{ text: 'Paid.' }] })
const provider = createProvider({ type: 'openai-compatible', baseUrl: server.baseUrl, apiKey: 'none' })
let text = ''
for await (const event of provider.generate({ model: 'gpt-4.1', messages })) {
  if (event.type === 'text-delta') text += event.text
  if (event.type === 'error') throw event.error
}
await server.close()
if (text !== 'Paid.') throw new Error('the model answered ' + text)
const claude = createProvider({ type: 'anthropic', apiKey: 'none' })
const missing = await claude.load?.().then(() => '', (error: Error) => error.message)
if (!missing?.endsWith('npm install @anthropic-ai/sdk@1')) throw new Error('no sentence: ' + missing)
const adk = '@google/adk'
if (await import(adk).then(() => true, () => false)) throw new Error('ADK is there')
console.log('ok')
process.exit()
`

function run(command, args, cwd) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args[0]} failed:\n${stdout}${stderr}`)
  return stdout
}

/** Packs lango-core, and returns the file. */
export function packCore(folder) {
  run(process.execPath, ['scripts/build.mjs', 'core', '--no-check'], ROOT)
  const out = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], CORE)
  return join(folder, out.trim().split('\n').at(-1))
}

/** The versions are those of Lango, in both lists. */
function checkVersions() {
  const read = file => JSON.parse(readFileSync(file, 'utf8'))
  const [core, lango] = [read(join(CORE, 'package.json')), read(join(ROOT, 'package.json'))]
  if (core.version !== lango.version) throw new Error(`lango-core is ${core.version}, Lango ${lango.version}`)
  const known = { ...lango.peerDependencies, ...lango.dependencies }
  for (const [name, range] of Object.entries({ ...core.peerDependencies, ...core.dependencies }))
    if (range.replaceAll('^', '') !== known[name]?.replaceAll('^', ''))
      throw new Error(`lango-core wants ${name} ${range}, Lango ${known[name]}`)
}

function check() {
  checkVersions()
  const folder = mkdtempSync(join(tmpdir(), 'lango-core-'))
  try {
    const modules = join(folder, 'node_modules')
    mkdirSync(join(modules, 'lango-core'), { recursive: true })
    run('tar', ['-xzf', packCore(folder), '-C', join(modules, 'lango-core'), '--strip-components=1'], folder)
    for (const name of ['@photostructure/sqlite', 'openai', '@types/node', 'typescript']) {
      mkdirSync(dirname(join(modules, name)), { recursive: true })
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'dir')
    }
    const options = {
      strict: true,
      exactOptionalPropertyTypes: true,
      target: 'ES2022',
      lib: ['ES2023'],
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      types: ['node'],
      skipLibCheck: false,
    }
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, include: ['*.ts'] }),
    )
    writeFileSync(join(folder, 'program.ts'), PROGRAM)
    run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')], folder)
    run(process.execPath, ['program.js'], folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  check()
  console.log('lango-core repairs, lints, stores and asks a model without ADK, and its types need none')
}
