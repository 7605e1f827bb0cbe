import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase } from '../support/postgres.js'
import { startTcpProxy } from '../support/tcp-proxy.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, startLango } from './lango.js'

test('lango serve prints agent, address and store, keeps sessions over a restart, and exits on a signal', {
  timeout: 120_000,
}, async () => {
  const cwd = await temporaryFolder()
  const start = async (...args: string[]) => {
    const child = startLango(['serve', '--port', '0', ...args], { cwd })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = new Promise(resolve => child.on('close', resolve))
    const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
    const line: string = (await lines.next()).value ?? ''
    let log = ''
    child.stderr?.on('data', chunk => {
      log += chunk
    })
    const end = () => {
      child.kill('SIGTERM')
      return ended
    }
    return { line, end, log: () => log }
  }
  const first = await start()
  const [, url = ''] =
    /^Serving lango-agent \(demo\/demo\) at (http:\S+), store sqlite:\.\/lango\.db$/.exec(first.line) ?? []
  const info = await (await fetch(`${url}/api/info`)).json()
  expect(info).toMatchObject({ agent: 'lango-agent', demo: true, user: 'user', store: 'sqlite' })
  const title = 'kept'
  const made = await fetch(`${url}/api/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sessionId: 's1', title }),
  })
  expect(made.status).toBe(201)
  const taken = await lango(['serve', '--port', new URL(url).port], { cwd })
  expect(taken).toMatchObject({ code: 1, stdout: '' })
  expect(taken.stderr).toContain(`cannot listen on 127.0.0.1:${new URL(url).port}`)
  expect(await first.end()).toBe(0)
  expect(first.log()).toMatch(/"runsHandedOver":0,"message":"Server stopped"/)
  const second = await start('--json')
  const { url: again } = JSON.parse(second.line) as { url: string }
  expect(await (await fetch(`${again}/api/sessions/s1`)).json()).toMatchObject({ sessionId: 's1', title })
  expect(await second.end()).toBe(0)
})

test('lango serve refuses what would be open to everybody, and ports that are none', async () => {
  const cwd = await temporaryFolder()
  const open = await lango(['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:'], { cwd })
  expect(open.code).toBe(1)
  expect(open.stderr).toMatch(
    /^lango: Listening on "0\.0\.0\.0" without tokens lets anyone on the network use this server\. Set server\.tokens/,
  )
  const port = await lango(['serve', '--port', '99999'], { cwd })
  expect(port).toMatchObject({ code: 1, stderr: expect.stringContaining('from 0 to 65535') })
  const tokens = { 'a-token-of-ann': 'ann' }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ store: 'memory:', server: { tokens } }))
  const child = startLango(['serve', '--host', '0.0.0.0', '--port', '0'], { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const line: string = (await lines.next()).value ?? ''
  expect(line).toMatch(/ at http:\/\/localhost:\d+, store memory:$/)
  const url = (/http:\S+(?=,)/.exec(line)?.[0] ?? '').replace('localhost', '127.0.0.1')
  expect((await fetch(`${url}/api/info`)).status).toBe(401)
  const known = await fetch(`${url}/api/info`, { headers: { authorization: 'Bearer a-token-of-ann' } })
  expect(await known.json()).toMatchObject({ user: 'ann' })
})

test('when lango serve listens, everything that runs, messages and checks need is loaded', {
  timeout: 120_000,
}, async () => {
  const cwd = await temporaryFolder()
  const model = await startStrictProvider({ profile: 'openai-chat', script: () => ({ text: 'Loaded.' }) })
  onTestFinished(() => model.close())
  const local = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'none' }
  const config = { store: 'sqlite:./lango.db', providers: { local }, agent: { model: 'local/gpt-4.1' } }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  const imports = [pathToFileURL(join(import.meta.dirname, 'refuse-after-listen.mjs')).href]
  const child = startLango(['serve', '--port', '0', '--json'], { cwd, imports })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  const client = createClient({ baseUrl: url })
  const { runId } = await client.start('s1', { text: 'Hello' })
  const events = []
  for await (const event of client.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'Loaded.' })
  expect(await client.messages('s1')).toMatchObject({ totalMessages: 2 })
  expect(await client.session('s1')).toMatchObject({ totalMessages: 2 })
  for (const path of ['/api/models', '/api/sessions/s1/lint', '/metrics', '/api/openapi.json']) {
    expect((await fetch(url + path)).status, path).toBe(200)
  }
})

test('lango serve waits for a database that is not there yet, and refuses a wrong password or name at once', {
  timeout: 120_000,
}, async () => {
  const database = await createStoreDatabase()
  onTestFinished(() => database.drop())
  const proxy = await startTcpProxy(1)
  onTestFinished(() => proxy.close())
  const cwd = await temporaryFolder()
  const at = (change: Partial<URL>) => Object.assign(new URL(database.url), change).href
  const args = (store: string) => ['serve', '--port', '0', '--json', '--store', store]
  const child = startLango(args(at({ port: String(proxy.port) })), { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  await eventually(() => log.split('The server waits for its store').length).toBeGreaterThan(2)
  proxy.leadTo(Number(new URL(database.url).port))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  expect((await fetch(`${url}/api/ready`)).status).toBe(200)
  const wrong = [
    [at({ password: 'wrong' }), 'refused the login'],
    [at({ pathname: '/nowhere' }), 'does not exist: create the database first'],
  ] as const
  for (const [store, problem] of wrong) {
    const { code, stderr } = await lango(args(store), { cwd })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(problem) })
    expect(stderr).not.toContain('waits for its store')
  }
})

test('lango serve exits on a signal while it waits for its database, also as the first process of a container', {
  timeout: 120_000,
}, async () => {
  const store = 'postgres://ann:pw@127.0.0.1:1/lango'
  const child = startLango(['serve', '--port', '0', '--store', store], { cwd: await temporaryFolder() })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise(resolve => child.on('close', (code, signal) => resolve({ code, signal })))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  await eventually(() => log).toContain('The server waits for its store')
  child.kill('SIGTERM')
  // Ended by its own handler: the first process of a container does not get the default action of a signal.
  expect(await ended).toEqual({ code: 0, signal: null })
})
