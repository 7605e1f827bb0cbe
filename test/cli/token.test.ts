import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, startLango } from './lango.js'

const TOKEN = /lango_[A-Za-z0-9_-]{43}/
const HASH = /lango-sha256:[0-9a-f]{64}/

async function configure(server: object): Promise<string> {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ store: 'memory:', server }))
  return cwd
}

/** Starts the server and returns its address and what it wrote to standard error until then. */
async function startServing(cwd: string, env: Record<string, string> = {}) {
  const child = startLango(['serve', '--port', '0', '--json'], { cwd, env })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output = { errors: '' }
  child.stderr?.setEncoding('utf8').on('data', chunk => {
    output.errors += chunk
  })
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  return { url, output }
}

async function userAt(url: string, token: string): Promise<unknown> {
  const answer = await fetch(`${url}/api/info`, { headers: { authorization: `Bearer ${token}` } })
  return answer.status === 200 ? ((await answer.json()) as { user: string }).user : answer.status
}

test('lango token new prints another token each time, with its hashed form, and writes nothing', async () => {
  const cwd = await temporaryFolder()
  const [plain, json, group] = await Promise.all([
    lango(['token', 'new'], { cwd }),
    lango(['token', 'new', '--json'], { cwd }),
    lango(['token'], { cwd }),
  ])
  const made = JSON.parse(json.stdout) as { token: string; hash: string }
  expect(Object.keys(made)).toEqual(['token', 'hash'])
  const tokens = [plain.stdout, made.token, group.stdout].map(text => TOKEN.exec(text)?.[0])
  const hashes = [plain.stdout, made.hash, group.stdout].map(text => HASH.exec(text)?.[0])
  expect(new Set([...tokens, ...hashes]).size).toBe(6)
  expect([plain, json, group].map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ''],
    [0, ''],
    [0, ''],
  ])
  expect(await readdir(cwd)).toEqual([])
})

test('lango token new works in a folder whose configuration is broken', async () => {
  const cwd = await configure({ port: 'none' })
  expect((await lango(['token', 'new'], { cwd })).code).toBe(0)
})

test('a server with the hash of a token accepts it, from the file and from the environment', async () => {
  const { token, hash } = JSON.parse(
    (await lango(['token', 'new', '--json'], { cwd: import.meta.dirname })).stdout,
  ) as { token: string; hash: string }
  const cwd = await configure({ tokens: { [hash]: 'ann' } })
  const [file, environment, shown, doctor] = await Promise.all([
    startServing(cwd),
    startServing(await configure({}), { LANGO_TOKENS: `${hash},another-long-token` }),
    lango(['config', 'show', '--json'], { cwd }),
    lango(['doctor', '--offline', '--json'], { cwd }),
  ])
  expect(await userAt(file.url, token)).toBe('ann')
  expect(await userAt(file.url, hash)).toBe(401)
  expect(await userAt(environment.url, token)).toBe('user')
  expect(await userAt(environment.url, 'another-long-token')).toBe('user')
  expect(file.output.errors).not.toContain('Warning')
  expect(shown.stdout).not.toContain(hash)
  expect(JSON.parse(doctor.stdout).checks).toContainEqual({
    name: 'tokens',
    status: 'ok',
    message: '1 token is hashed or long enough',
  })
})

test('a token of fewer than 16 characters works, and serve, config check and doctor warn of it', async () => {
  const warning =
    '1 token in server.tokens has fewer than 16 characters. The next release refuses such tokens.'
  const cwd = await configure({ tokens: { 'short-token': 'ann', 'a-long-enough-token': 'bob' } })
  const [serving, check, checkJson, doctor] = await Promise.all([
    startServing(cwd),
    lango(['config', 'check'], { cwd }),
    lango(['config', 'check', '--json'], { cwd }),
    lango(['doctor', '--offline', '--json'], { cwd }),
  ])
  expect(await userAt(serving.url, 'short-token')).toBe('ann')
  await expect.poll(() => serving.output.errors).toContain(`Warning: ${warning} Replace each with`)
  expect(check).toMatchObject({ code: 0, stdout: expect.stringContaining(`warn  ${warning}`) })
  const { ok, warnings } = JSON.parse(checkJson.stdout) as { ok: boolean; warnings: string[] }
  expect([ok, warnings]).toEqual([true, [expect.stringContaining(warning)]])
  expect(JSON.parse(doctor.stdout).checks).toContainEqual({
    name: 'tokens',
    status: 'warn',
    message: warning,
    fix: "Replace each with one that 'lango token new' generates.",
  })
  const outputs = [serving.output.errors, check.stdout, checkJson.stdout, doctor.stdout].join('\n')
  expect(outputs).not.toMatch(/short-token|a-long-enough-token/)
})

test.each([
  ['sha256:'.padEnd(71, '0'), 'as "lango token new" prints it'],
  ['has spaces in it', 'without spaces'],
])('lango config check refuses the token entry %s without repeating it', async (entry, rule) => {
  const cwd = await configure({ tokens: { [entry]: 'ann' } })
  const { code, stderr } = await lango(['config', 'check'], { cwd })
  expect([code, stderr]).toEqual([1, expect.stringContaining(rule)])
  expect(stderr).not.toContain(entry)
})

test('lango config check refuses a proxy that is no address', async () => {
  const cwd = await configure({ trustedProxies: ['10.0.0.0/99'] })
  const { code, stderr } = await lango(['config', 'check'], { cwd })
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('`server.trustedProxies[0]` is "10.0.0.0/99", but must be an IP address'),
  ])
})
