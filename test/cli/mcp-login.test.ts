// `lango mcp login`, `logout` and `status` against the authorization server of the MCP SDK.
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { startOAuthService } from '../tools/oauth-service.js'
import { lango, outcomeOf, startLango } from './lango.js'

/** A folder with a configuration, and a browser that follows each address that it is given. */
async function stage(servers: Record<string, object>) {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ mcpServers: servers }))
  const bin = join(cwd, 'bin')
  await mkdir(bin)
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(bin, name), `#!${process.execPath}\nfetch(process.argv[2])\n`)
    await chmod(join(bin, name), 0o755)
  }
  const env = { PATH: `${bin}:${process.env.PATH ?? ''}` }
  const run = (...args: string[]) => lango(['mcp', ...args], { cwd, env })
  const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)
  return { cwd, env, run, json, logins: join(cwd, '.config/lango/mcp-logins') }
}

test('lango mcp login stores a login, status shows it, and logout revokes it', async () => {
  const service = await startOAuthService(['read'])
  const { run, json, logins } = await stage({
    svc: { url: service.url },
    tool: { command: 'true' },
    keyed: { url: 'https://keyed.example/mcp', headers: { authorization: 'Bearer abcdef' } },
  })
  const login = await run('login', 'svc')
  expect(login).toMatchObject({ code: 0, stdout: 'Logged in to "svc": 1 tool.\n' })
  expect(login.stderr).toContain(`${new URL(service.url).origin}/authorize?`)
  expect(await readdir(logins)).toHaveLength(1)
  const { servers } = await json('status')
  expect(servers).toMatchObject([
    { server: 'svc', url: service.url, login: 'stored', renewed: true, scope: 'read' },
    { server: 'tool', login: 'program' },
    { server: 'keyed', login: 'headers' },
  ])
  const shown = await run('status')
  expect(shown.stdout).toMatch(/svc +http.*logged in\n/)
  expect(shown.stdout + JSON.stringify(servers)).not.toMatch(/access-|refresh-|abcdef/)
  service.authorization.expire()
  expect(await run('logout', 'svc')).toMatchObject({ code: 0, stdout: expect.stringContaining('revoked') })
  expect(await readdir(logins)).toEqual([])
  expect(await run('logout', 'svc')).toMatchObject({ code: 1, stderr: expect.stringContaining('no login') })
})

test('lango mcp login --no-browser prints the address and takes the pasted one', async () => {
  const service = await startOAuthService()
  const { cwd, env, json } = await stage({ svc: { url: service.url } })
  const child = startLango(['mcp', 'login', 'svc', '--no-browser', '--scope', 'write', '--json'], {
    cwd,
    env,
    input: null,
  })
  const ended = outcomeOf(child)
  for await (const line of createInterface({ input: child.stderr ?? expect.unreachable() })) {
    if (!line.startsWith('http')) continue
    const page = await fetch(line, { redirect: 'manual' })
    child.stdin?.write(`${page.headers.get('location')}\n`)
    break
  }
  const { code, stdout } = await ended
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { server: 'svc', scope: 'write', tools: 1 }])
  await writeFile(join(cwd, 'lango.config.json'), '{}')
  expect(await json('status')).toMatchObject({ servers: [{ server: null, url: service.url }] })
  expect(await json('logout', service.url)).toEqual({ url: service.url, revoked: true })
})

test.each([
  [['login', 'other'], /no MCP server "other".*It has: svc, tool, keyed\./],
  [['login', 'tool'], /"tool" is a program/],
  [['login', 'keyed'], /has an `authorization` header/],
  [['login', 'svc'], /does not answer/],
  [['logout', 'svc'], /There is no login to "svc"/],
  [['login'], /server/],
])('lango mcp %j is refused with a reason', async (args, words) => {
  const { run } = await stage({
    svc: { url: 'http://127.0.0.1:1/mcp' },
    tool: { command: 'true' },
    keyed: { url: 'https://keyed.example/mcp', headers: { Authorization: 'Bearer abcdef' } },
  })
  const { code, stdout, stderr } = await run(...args)
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(words)
})
