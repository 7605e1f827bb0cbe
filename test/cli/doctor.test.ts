import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { checkNode, checkStore, doctor } from '../../src/cli/doctor/doctor.js'
import { examine } from '../../src/cli/doctor/treat-sessions.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { MULTI_TOOL_PLAY } from '../support/multi-tool-play.js'
import { createDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'
import { captured } from './doctor-output.js'
import { memoryIo } from './memory-io.js'

const ALL = Object.keys(PROFILES).length
const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
const BROKEN: Message[] = [
  { role: 'user', content: 'hi', timestamp: 1 },
  {
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'a', name: 'search', input: '{}', signature: 'c2ln', kind: 'call' }],
    timestamp: 2,
  },
  { role: 'user', content: 'well?', timestamp: 3 },
]

async function storeWith(...sessions: [id: string, messages: Message[]][]): Promise<string> {
  const url = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const store = await openStore(url)
  for (const [sessionId, messages] of sessions) {
    await store.createSession({ ...key, sessionId }, { cart: 1, 'user:name': 'Ann' })
    for (const message of messages) await store.appendMessage({ ...key, sessionId }, message)
  }
  await store.close()
  return url
}

async function sessionOf(url: string, sessionId: string) {
  const store = await openStore(url)
  try {
    return await store.loadSession({ ...key, sessionId }, { budgetTokens: 'off' })
  } finally {
    await store.close()
  }
}

test('lango doctor says of a broken session where it is wrong, who rejects it how, and what helps', async () => {
  const store = await storeWith(['s1', BROKEN])
  const { code, text } = await captured(io => doctor(io, { store, session: 's1' }))
  expect(code).toBe(3)
  expect(text).toContain('Session s1 of user in lango: 3 messages, 1 problem.')
  expect(text).toContain('rejected by all but ollama')
  expect(text).toContain('Message 2: A call has no result.')
  expect(text).toContain('R1: “No tool output found for function call”')
  expect(text).toContain('lango doctor --session s1 --fix')
})

test('lango doctor --fix writes a copy, leaves the original as it was, and does nothing the second time', async () => {
  const store = await storeWith(['s1', BROKEN])
  const original = await sessionOf(store, 's1')
  const first = await captured(io => doctor(io, { store, session: 's1', fix: true }))
  expect(first).toMatchObject({
    code: 0,
    text: expect.stringContaining('Repaired copy: s1-healed (4 messages)'),
  })
  const copy = await sessionOf(store, 's1-healed')
  expect(copy?.state).toEqual({ cart: 1, 'user:name': 'Ann' })
  expect(copy?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  expect(copy?.messages[1]?.toolCalls).toEqual(BROKEN[1]?.toolCalls)
  expect(await sessionOf(store, 's1')).toEqual(original)

  const second = await captured(io => doctor(io, { store, session: 's1', fix: true }))
  expect(second).toMatchObject({
    code: 0,
    text: expect.stringContaining('Already repaired: the copy is s1-healed'),
  })
  const healthy = await captured(io => doctor(io, { store, session: 's1-healed', fix: true }))
  expect(healthy).toMatchObject({ code: 0, text: expect.stringContaining('No problems') })
  expect(await sessionOf(store, 's1-healed')).toEqual(copy)
  expect(await sessionOf(store, 's1-healed-healed')).toBeUndefined()
})

test('a repaired copy that was left unfinished is completed, and one in progress is left alone', async () => {
  const store = await storeWith(['s1', BROKEN], ['s1-healed', BROKEN.slice(0, 2)])
  const { text } = await captured(io => doctor(io, { store, session: 's1', fix: true }))
  expect(text).toContain('Repaired copy: s1-healed (4 messages)')
  const opened = await openStore(store)
  await opened.appendMessage(
    { ...key, sessionId: 's1-healed' },
    { role: 'assistant', content: 'yes', timestamp: 9 },
  )
  await opened.close()
  const again = await captured(io => doctor(io, { store, session: 's1', fix: true }))
  expect(again.text).toContain('Already repaired')
  expect((await sessionOf(store, 's1-healed'))?.totalMessages).toBe(5)
})

test('lango doctor --fix takes no other session for its copy', async () => {
  const other: Message[] = [{ role: 'user', content: 'something else', timestamp: 1 }]
  const store = await storeWith(['s1', BROKEN], ['s1-healed', other])
  await expect(doctor(memoryIo(), { store, session: 's1', fix: true })).rejects.toMatchObject({
    code: 'session-exists',
  })
  const { code } = await captured(io =>
    doctor(io, { store, session: 's1', fix: true, as: 'mine', json: true }),
  )
  expect(code).toBe(0)
  expect((await sessionOf(store, 'mine'))?.totalMessages).toBe(4)
  const all = await captured(io => doctor(io, { store, all: true, fix: true, json: true }))
  expect(all.code).toBe(3)
  expect(JSON.parse(all.text)).toMatchObject({
    sessions: 3,
    unwell: [{ key: { sessionId: 's1' }, failure: expect.stringContaining('already') }],
  })
})

test('lango doctor names what only Lango sends in a valid form, and repairs it in the copy', async () => {
  const legacy: Message[] = [
    { role: 'user', content: 'hi', timestamp: 1 },
    { role: 'model', content: '', toolCalls: [{ id: '', name: 'search', input: '{}' }], timestamp: 2 },
    { role: 'function', content: '{"a":1}', timestamp: 3 },
  ]
  const store = await storeWith(['s1', legacy])
  expect((await captured(io => doctor(io, { store, session: 's1' }))).code).toBe(0)
  const { code, text } = await captured(io => doctor(io, { store, session: 's1', fix: true }))
  expect(code).toBe(0)
  expect(text).toContain(
    'Message 2: The role "model" is one vendor\'s name for assistant. Lango sends it in a valid form',
  )
  expect(text.slice(0, text.indexOf('Message 3'))).not.toContain('G4')
  const copy = await sessionOf(store, 's1-healed')
  expect(copy?.messages.map(({ role, toolCalls }) => [role, toolCalls?.[0]?.id])).toEqual([
    ['user', undefined],
    ['assistant', 'call_search'],
    ['tool', 'call_search'],
  ])
})

test('lango doctor --all --fix exits 0 when all were repaired, also the second time, and 3 when one could not be', async () => {
  const legacy: Message[] = [
    { role: 'user', content: 'hi', timestamp: 1 },
    { role: 'model', content: 'hello', timestamp: 2 },
  ]
  const store = await storeWith(['bad', BROKEN], ['odd', legacy], ['good', BROKEN.slice(0, 1)])
  const run = (flags: object) => captured(io => doctor(io, { store, all: true, ...flags }))
  expect((await run({})).code).toBe(3)
  expect((await run({ fix: true })).code).toBe(0)
  expect((await run({ fix: true })).code).toBe(0)
  const other: Message[] = [{ role: 'user', content: 'something else', timestamp: 1 }]
  const taken = await storeWith(['odd', legacy], ['odd-healed', other])
  const { code, text } = await captured(io => doctor(io, { store: taken, all: true, fix: true }))
  expect(code).toBe(3)
  expect(text).toContain('not repaired')
})

test('lango doctor --all lists the sessions with problems', async () => {
  const store = await storeWith(['good', BROKEN.slice(0, 1)], ['bad', BROKEN])
  const { code, text } = await captured(io => doctor(io, { store, all: true }))
  expect(code).toBe(3)
  expect(text).toBe(
    `bad of user in lango: 1 problem, rejected by ${ALL - 1} of ${ALL} profiles\n2 sessions checked, 1 with problems.\n`,
  )
})

test('lango doctor --all checks the sessions of every app, and with --app those of one', async () => {
  const store = await storeWith(['good', BROKEN.slice(0, 1)])
  const opened = await openStore(store)
  const imported = { appName: 'shop', userId: 'ann', sessionId: 's1' }
  await opened.createSession(imported)
  for (const message of BROKEN) await opened.appendMessage(imported, message)
  await opened.close()
  expect(await captured(io => doctor(io, { store, all: true }))).toEqual({
    code: 3,
    text: `s1 of ann in shop: 1 problem, rejected by ${ALL - 1} of ${ALL} profiles\n2 sessions checked, 1 with problems.\n`,
    notes: '',
  })
  expect(await captured(io => doctor(io, { store, all: true, app: 'lango' }))).toMatchObject({
    code: 0,
    text: '1 session checked, 0 with problems.\n',
  })
  const fixed = await captured(io => doctor(io, { store, all: true, fix: true, json: true }))
  expect(fixed.code).toBe(0)
  expect(JSON.parse(fixed.text)).toMatchObject({
    sessions: 2,
    unwell: [{ key: imported, copy: { sessionId: 's1-healed' } }],
  })
})

test('lango doctor finds no problem in sessions that Lango wrote: parallel calls, chains, thoughts, transfers', async () => {
  const store = await openStore('memory:')
  const steps: ScriptStep[] = [
    ...MULTI_TOOL_PLAY,
    { text: 'Ask the other. ', toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'helper' } }] },
    { toolCalls: [{ name: 'search', args: { query: 'd' } }] },
    { text: 'It is d.' },
    { toolCalls: [{ name: 'search', args: { query: 'e' } }] },
  ]
  const provider = new ScriptedProvider((_request, index) => steps[index] ?? { text: 'Done.' }, {
    id: 'play',
  })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: {
      name: 'root',
      model: 'play/model',
      tools: [searchTool, { ...searchTool, name: 'save' }],
      subAgents: [{ name: 'helper', description: 'helps', tools: [searchTool] }],
    },
  })
  for (const text of ['one', 'two', 'three']) await runtime.runAndCollect({ sessionId: 's1', text })
  const found = await examine(store, key)
  await runtime.close()
  expect(found.messages).toBeGreaterThan(12)
  expect(found.problems).toEqual([])
  expect(found.healed).toBeUndefined()
})

test.each([
  [{ fix: true }, /--fix needs --session or --all/],
  [{ session: 's1', all: true }, /cannot be combined/],
  [{ session: 's1', as: 'x' }, /--as needs --session and --fix/],
  [{ all: true, fix: true, as: 'x' }, /--as needs --session and --fix/],
])('lango doctor with %j is refused', async (flags, message) => {
  await expect(doctor(memoryIo(), flags)).rejects.toThrow(message)
})

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  vi.unstubAllEnvs()
})

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (/_API_KEY$|^LANGO_|^DATABASE_URL$|^PORT$/.test(name)) vi.stubEnv(name, undefined)
  }
})

async function listen(status: number): Promise<number> {
  const server = createServer((_request, response) => response.writeHead(status).end())
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function installation(config: object | string, flags: { offline?: boolean } = {}) {
  const file = join(await temporaryFolder(), 'lango.config.json')
  await writeFile(file, typeof config === 'string' ? config : JSON.stringify(config))
  const { code, text } = await captured(io => doctor(io, { config: file, json: true, trust: true, ...flags }))
  const { checks } = JSON.parse(text) as {
    checks: { name: string; status: string; message: string; fix?: string }[]
  }
  const of = (name: string) => checks.find(check => check.name === name)
  return { code, text, checks, of }
}

test('every check of lango doctor says what it found in an installation without problems', async () => {
  const port = await listen(404)
  const { code, text, of } = await installation({
    store: 'sqlite:./not-there-yet.db',
    server: { port: 0 },
    tools: { sandbox: 'off' },
    providers: {
      mine: { type: 'openai', apiKey: 'sk-never-shown-anywhere', baseUrl: `http://127.0.0.1:${port}/v1` },
    },
    agent: { name: 'a', model: 'mine/gpt-5.2' },
  })
  expect(code).toBe(0)
  expect(of('configuration')?.message).toMatch(/lango\.config\.json is valid/)
  expect(of('keys')).toMatchObject({ status: 'ok', message: expect.stringContaining('mine') })
  expect(of('store')).toMatchObject({ status: 'ok', message: expect.stringContaining('will be created') })
  expect(of('provider')).toMatchObject({
    status: 'ok',
    message: `mine is reachable at http://127.0.0.1:${port}/v1`,
  })
  expect(text).not.toContain('never-shown')
})

test('lango doctor fails with a fix for what is missing: a key, a port, a store, a provider, a sandbox', async () => {
  const taken = await listen(200)
  const gone = await listen(200)
  await new Promise(resolve => servers.pop()?.close(resolve))
  const { code, of } = await installation({
    store: 'postgres://joe:secret@127.0.0.1:1/x',
    server: { port: taken },
    providers: {
      local: { type: 'openai-compatible', preset: 'ollama', baseUrl: `http://127.0.0.1:${gone}/v1` },
    },
    agent: { name: 'a', model: 'anthropic/claude-sonnet-4-6' },
  })
  expect(code).toBe(1)
  expect(of('keys')).toMatchObject({ status: 'fail', fix: expect.stringContaining('ANTHROPIC_API_KEY') })
  expect(of('store')?.status).toBe('fail')
  expect(of('store')?.message).not.toContain('secret')
  expect(of('provider')).toMatchObject({ status: 'fail', message: expect.stringContaining('ECONNREFUSED') })
  expect(of('port')).toMatchObject({ status: 'warn', fix: expect.stringContaining('--port 0') })
})

test.each([
  ['azure', {}, /needs an endpoint\. Set AZURE_OPENAI_ENDPOINT/],
  [
    'azure',
    { baseUrl: 'http://127.0.0.1:9/openai/deployments/x' },
    /must be the address of the resource alone/,
  ],
  ['bedrock', {}, /needs a region\. Set AWS_REGION in the environment, such as us-east-1, or region/],
  ['vertex', {}, /needs a project\. Set GOOGLE_CLOUD_PROJECT/],
])(
  'lango doctor fails for the platform of %s with %j, and says what to set',
  async (provider, options, message) => {
    const { code, of } = await installation(
      {
        server: { port: 0 },
        providers: { [provider]: { apiKey: 'k', env: {}, ...options } },
        agent: { name: 'a', model: `${provider}/claude-sonnet-4-6` },
      },
      { offline: true },
    )
    expect(code).toBe(1)
    expect(of('platform')).toMatchObject({ status: 'fail', message: expect.stringMatching(message) })
  },
)

test('lango doctor accepts a complete platform, reaches its address, and allows credentials of the machine', async () => {
  const port = await listen(404)
  const { code, of } = await installation({
    server: { port: 0 },
    tools: { sandbox: 'off' },
    providers: {
      bedrock: { region: 'eu-west-1', env: {}, baseUrl: `http://127.0.0.1:${port}` },
    },
    agent: { name: 'a', model: 'bedrock/eu.amazon.nova-pro-v1:0' },
  })
  expect(code).toBe(0)
  expect(of('keys')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining('credentials of the machine are used'),
    fix: expect.stringContaining('AWS_BEARER_TOKEN_BEDROCK'),
  })
  expect(of('platform')).toMatchObject({ status: 'ok' })
  expect(of('provider')?.message).toBe(`bedrock is reachable at http://127.0.0.1:${port}`)
})

test('lango doctor --offline connects to nothing, and names the demo where no key is set', async () => {
  const { code, of } = await installation({ server: { port: 0 } }, { offline: true })
  expect(code).toBe(0)
  expect(of('provider')?.message).toContain('--offline')
  expect(of('keys')).toMatchObject({ status: 'warn', fix: expect.stringContaining('API_KEY') })
})

test('lango doctor reads a store and changes nothing: current, newer, of a development version, and not a database', async () => {
  const folder = await temporaryFolder()
  const path = join(folder, 'lango.db')
  await (await openStore(`sqlite:${path}`)).close()
  const current = await installation({ store: `sqlite:${path}` }, { offline: true })
  expect(current.of('store')?.message).toMatch(/, schema version \d+$/)

  const { DatabaseSync } = await import('@photostructure/sqlite')
  const database = new DatabaseSync(path)
  database.exec("INSERT INTO lango_schema (version, digest) VALUES (999, 'later')")
  database.close()
  const newer = await installation({ store: `sqlite:${path}` }, { offline: true })
  expect(newer.of('store')).toMatchObject({ status: 'fail', fix: expect.stringContaining('Update Lango') })

  const early = new DatabaseSync(path)
  early.exec("UPDATE lango_schema SET digest = 'other'")
  early.close()
  const development = await installation({ store: `sqlite:${path}` }, { offline: true })
  expect(development.of('store')).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('written by a development version of Lango before its first release'),
    fix: 'Set store to another file or database.',
  })

  const other = join(folder, 'other.db')
  await writeFile(other, 'this is no database, and it is long enough to be taken for one'.repeat(40))
  const broken = await installation({ store: `sqlite:${other}` }, { offline: true })
  expect(broken.of('store')).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('not a usable'),
  })
})

test('lango doctor reads a PostgreSQL store without creating its tables', async () => {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  expect((await checkStore(database.url)).message).toMatch(
    /schema version 0; it is migrated to \d+ when it is opened/,
  )
  expect(await database.query("SELECT 1 FROM pg_tables WHERE tablename LIKE 'lango%'")).toEqual([])
  await (await openStore(database.url)).close()
  expect((await checkStore(database.url)).message).toMatch(/, schema version [1-9]\d*$/)
})

test('lango doctor fails for an invalid configuration, and skips the checks that need it', async () => {
  const { code, checks } = await installation('{"agent":{"name":1}}')
  expect(code).toBe(1)
  expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
    'node ok',
    'packages ok',
    'configuration fail',
  ])
})

test.each([
  ['18.20.0', 'fail'],
  ['20.18.3', 'fail'],
  ['20.19.0', 'ok'],
  ['24.1.0', 'ok'],
])('Node %s is %s', (version, status) => {
  expect(checkNode(version).status).toBe(status)
})

test('lango doctor asks each fallback model for a word, and names the one that does not answer', async () => {
  const { startStrictProvider } = await import('../../src/testing/start-strict-provider.js')
  const server = await startStrictProvider({ profile: 'openai-chat', apiKey: 'right' })
  onTestFinished(() => server.close())
  const folder = await temporaryFolder()
  const provider = { type: 'openai', api: 'chat', baseUrl: server.baseUrl }
  const config = {
    store: 'memory:',
    providers: { good: { ...provider, apiKey: 'right' }, bad: { ...provider, apiKey: 'wrong' } },
    agent: {
      model: 'demo/demo',
      fallback: ['good/gpt-4.1'],
      subAgents: [{ name: 'below', fallback: ['bad/gpt-4.1'] }],
    },
  }
  const file = join(folder, 'lango.config.json')
  await writeFile(file, JSON.stringify(config))
  const { code, text: out } = await captured(io => doctor(io, { config: file, json: true, trust: true }))
  const checks = JSON.parse(out).checks.filter((check: { name: string }) => check.name === 'fallback')
  expect(code).toBe(1)
  expect(checks).toMatchObject([
    { status: 'ok', message: 'good/gpt-4.1 answers' },
    { status: 'fail', message: expect.stringContaining('bad/gpt-4.1 does not answer') },
  ])
  const quiet = await captured(io => doctor(io, { config: file, json: true, trust: true, offline: true }))
  expect(quiet.text).not.toContain('fallback')
})

test('lango doctor --report has versions, checks and the form of a history, and none of its text', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'report.db')}`
  const opened = await openStore(store)
  const key = { appName: 'lango', userId: 'user', sessionId: 'secret' }
  await opened.createSession(key)
  await opened.appendMessage(key, { role: 'user', content: 'My password is swordfish', timestamp: 1 })
  const toolCalls = [{ id: 'call_1', name: 'book_table', input: '{"name":"Ann"}' }]
  await opened.appendMessage(key, { role: 'assistant', content: '', toolCalls, timestamp: 2 })
  await opened.close()
  const { code, text } = await captured(io => doctor(io, { report: true, session: 'secret', store }))
  expect(code).toBe(0)
  expect(text).toMatch(/\| Lango \| \d+\.\d+\.\d+ \|/)
  expect(text).toMatch(/\| @google\/adk \| \d/)
  expect(text).toContain('- ok node: Node')
  expect(text).toContain('1 user: text 24')
  expect(text).toContain('2 assistant: call book_table call_1 14')
  expect(text).toMatch(/Rejected as it is by: .*anthropic-4\.6/)
  expect(text).not.toMatch(/swordfish|Ann/)
  await expect(doctor(memoryIo(), { report: true, json: true })).rejects.toThrow(/cannot be combined/)
})
