// Logins to MCP servers by OAuth: the SDK's authorization server, the stored file, renewal, and what is said when it ends.
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { mcpLogins } from '../../src/config/mcp-logins.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { connectMcpServers, type McpServerConfig } from '../../src/tools/mcp.js'
import { type LoginOptions, logIn, logOut } from '../../src/tools/mcp-oauth.js'
import { eventually } from '../support/eventually.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type OAuthService, startOAuthService } from './oauth-service.js'
import { useTool } from './use-tool.js'

async function place() {
  const folder = join(await temporaryFolder(), 'logins')
  return { folder, logins: mcpLogins({ LANGO_MCP_LOGINS: folder }) }
}

/** A browser: it follows the address to the page and back. */
const browse = (address: URL) => void fetch(address).catch(() => {})

type Place = Awaited<ReturnType<typeof place>>

function enter({ url }: { url: string }, { logins }: Place, options: Partial<LoginOptions> = {}) {
  const { signal } = new AbortController()
  return logIn({ server: 'svc', url, logins, open: browse, signal, ...options })
}

async function connect({ url }: { url: string }, { logins }: Place, config: object = {}) {
  const connections = await connectMcpServers(
    { svc: { url, ...config } as McpServerConfig },
    { logins, restartDelayMs: 1, retryDelayMs: 20 },
  )
  onTestFinished(() => connections.close())
  const echo = async (word: string) => {
    const [tool] = connections.tools()
    return useTool(tool ?? expect.unreachable(connections.status()[0]?.problem), { word })
  }
  return { connections, echo }
}

const EXPIRED = 'The login to MCP server "svc" has expired. Run `lango mcp login svc`.'

test('a login registers a client, is stored for the user alone, and gives the tools', async () => {
  const service = await startOAuthService(['read', 'write'])
  const stored = await place()
  const login = await enter(service, stored)
  expect(login).toMatchObject({ url: service.url, tokens: { scope: 'read write' } })
  const { authorization } = service
  expect(authorization.clients.size).toBe(1)
  expect(authorization.asked).toEqual([
    {
      scopes: ['read', 'write'],
      redirectUri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
    },
  ])
  const [file = ''] = await readdir(stored.folder)
  expect((await stat(join(stored.folder, file))).mode & 0o777).toBe(0o600)
  expect((await stat(stored.folder)).mode & 0o777).toBe(0o700)
  const { echo } = await connect(service, stored)
  expect(await echo('hi')).toEqual({ result: 'hi' })
})

test('a client that was registered beforehand and chosen scopes are used', async () => {
  const service = await startOAuthService(['read', 'write'])
  const { authorization } = service
  const client = { client_id: 'mine', client_secret: 'secret', redirect_uris: ['http://127.0.0.1/callback'] }
  authorization.clients.set('mine', client)
  const stored = await place()
  await enter(service, stored, { oauth: { clientId: 'mine', clientSecret: 'secret', scope: 'read' } })
  expect([...authorization.clients.keys()]).toEqual(['mine'])
  expect(authorization.asked).toMatchObject([{ scopes: ['read'] }])
  authorization.expire()
  const { echo } = await connect(service, stored)
  expect(await echo('hi')).toEqual({ result: 'hi' })
})

test('a server that wants no token needs no login', async () => {
  const { startService } = await import('./mcp-service.js')
  const service = await startService(() => {})
  const stored = await place()
  expect(await enter(service, stored)).toBeUndefined()
  expect(await stored.logins.list()).toEqual([])
})

test('an expired token is renewed once, by however many calls and processes', async () => {
  const service = await startOAuthService()
  const stored = await place()
  await enter(service, stored)
  const [one, other] = [
    await connect(service, stored),
    await connect(service, { ...stored, logins: mcpLogins({ LANGO_MCP_LOGINS: stored.folder }) }),
  ]
  service.authorization.expire()
  const words = ['a', 'b', 'c', 'd', 'e', 'f']
  const results = await Promise.all(words.flatMap(word => [one.echo(word), other.echo(word)]))
  expect(results).toEqual(words.flatMap(word => [{ result: word }, { result: word }]))
  expect(service.authorization).toMatchObject({ refreshes: 1, reuses: 0 })
  expect(service.calls).toBe(12)
})

test('a token that cannot be renewed says which command to run, and a login is enough', async () => {
  const service = await startOAuthService()
  const stored = await place()
  await enter(service, stored)
  const { echo, connections } = await connect(service, stored)
  service.authorization.forgetAll()
  expect(await echo('a')).toEqual({ error: expect.stringContaining(EXPIRED) })
  expect((await stored.logins.read(service.url))?.tokens).toBeUndefined()
  await eventually(() => connections.status()[0]?.problem).toBe(EXPIRED)
  await enter(service, stored)
  await eventually(() => connections.status()[0]?.state).toBe('ready')
  expect(await echo('b')).toEqual({ result: 'b' })
  expect(service.calls).toBe(1)
})

test('an expired token is kept when the authorization server does not answer', async () => {
  const service = await startOAuthService()
  const stored = await place()
  await enter(service, stored)
  const { echo, connections } = await connect(service, stored)
  service.authorization.expire()
  service.tokensDown = true
  expect(await echo('a')).toEqual({ error: expect.stringMatching(/could not be renewed at http:\/\/127/) })
  service.tokensDown = false
  await eventually(() => connections.status()[0]?.state).toBe('ready')
  expect(await echo('b')).toEqual({ result: 'b' })
})

test('a token goes to its own address and never over a configured header', async () => {
  const service = await startOAuthService()
  const stored = await place()
  await enter(service, stored)
  const elsewhere = await connect({ url: `${service.url}?other` }, stored)
  expect(elsewhere.connections.status()[0]?.problem).toMatch(/^It refuses the credentials \(HTTP 401\)/)
  const headers = { Authorization: 'Bearer mine' }
  const own = await connect(service, stored, { headers })
  expect(own.connections.status()[0]?.problem).toMatch(
    /HTTP 401\)\. Run `lango mcp login svc`, or set `headers`/,
  )
})

describe('a login is not stored', () => {
  async function refusal(service: OAuthService, options: Partial<LoginOptions> = {}) {
    const stored = await place()
    const error = await enter(service, stored, options).then(
      () => expect.unreachable(),
      (failure: Error) => failure.message,
    )
    expect(await stored.logins.list()).toEqual([])
    return error
  }

  test('a login is not stored when the person refuses', async () => {
    const service = await startOAuthService()
    service.authorization.decision = 'deny'
    expect(await refusal(service)).toBe('The login was refused: access_denied: Not today.')
  })

  test('a login is not stored when the answer comes from another authorization server', async () => {
    const service = await startOAuthService()
    service.authorization.extra = { iss: 'https://evil.example' }
    expect(await refusal(service)).toContain('The answer came from https://evil.example')
  })

  test('a login is not stored when a stranger calls back, who cannot end the login either', async () => {
    const service = await startOAuthService()
    const stored = await place()
    const login = await enter(service, stored, {
      open: async address => {
        const back = address.searchParams.get('redirect_uri') ?? ''
        for (const query of ['code=x&state=y', 'error=access_denied&state=y', 'code=x', 'state='])
          expect((await fetch(`${back}?${query}`)).status).toBe(400)
        expect((await fetch(`${back}?code=x`, { method: 'POST' })).status).toBe(404)
        expect((await fetch(new URL('/', back))).status).toBe(404)
        browse(address)
      },
    })
    expect(login?.tokens).toBeDefined()
  })

  test('a login is not stored over an address without encryption', async () => {
    const service = { ...(await startOAuthService()), url: 'http://mcp.example/mcp' }
    expect(await refusal(service)).toContain('a login needs https')
  })

  test('a login is not stored when nobody listens, or something else does', async () => {
    const service = await startOAuthService()
    expect(await refusal({ ...service, url: 'http://127.0.0.1:1/mcp' })).toContain('does not answer')
    expect(await refusal({ ...service, url: service.url.replace('/mcp', '/nothing') })).toContain('HTTP 404')
  })

  test('a login is not stored when it is interrupted', async () => {
    const stop = new AbortController()
    const open = () => stop.abort(new Error('enough'))
    expect(await refusal(await startOAuthService(), { signal: stop.signal, open })).toBe('enough')
  })
})

test('a pasted address completes a login whose browser cannot come back', async () => {
  const service = await startOAuthService()
  const stored = await place()
  let paste: (text: string) => void = () => {}
  const pasted = new Promise<string>(resolve => {
    paste = resolve
  })
  const open = async (address: URL) => {
    const page = await fetch(address, { redirect: 'manual' })
    paste(page.headers.get('location') ?? '')
  }
  expect(await enter(service, stored, { open, pasted })).toMatchObject({ url: service.url })
})

test('a logout deletes the tokens and has them revoked', async () => {
  const service = await startOAuthService()
  const stored = await place()
  const login = await enter(service, stored)
  expect(await logOut(login ?? expect.unreachable(), stored.logins)).toEqual({ revoked: true })
  expect(service.authorization.revoked).toEqual([login?.tokens?.refresh_token])
  expect(await readdir(stored.folder)).toEqual([])
})

test('a damaged file is no login', async () => {
  const service = await startOAuthService()
  const stored = await place()
  await enter(service, stored)
  const [file = ''] = await readdir(stored.folder)
  const path = join(stored.folder, file)
  const text = await readFile(path, 'utf8')
  for (const damaged of ['', '{', '[]', text.replace(/"version": 1/, '"version": 2'), text.slice(0, -20)]) {
    await writeFile(path, damaged)
    expect(await stored.logins.read(service.url)).toBeUndefined()
  }
})

test('a run says which login is missing, and has the tools after it', async () => {
  const service = await startOAuthService()
  const stored = await place()
  vi.stubEnv('LANGO_MCP_LOGINS', stored.folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  const provider = new ScriptedProvider(() => ({ text: 'Ok.' }), { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { model: 'play/m' },
    mcpServers: { svc: { url: service.url } },
  })
  onTestFinished(() => runtime.close())
  const run = async () => {
    const events: RunEvent[] = []
    for await (const event of runtime.run({ sessionId: 's', text: 'Go.' })) events.push(event)
    return events
  }
  expect((await run()).find(({ type }) => type === 'tools-missing')).toMatchObject({
    server: 'svc',
    problem: expect.stringContaining('Run `lango mcp login svc`'),
  })
  await enter(service, stored)
  await expect
    .poll(
      async () => {
        await run()
        return provider.requests.at(-1)?.tools?.at(-1)?.name
      },
      { timeout: 60_000 },
    )
    .toBe('svc_echo')
})
