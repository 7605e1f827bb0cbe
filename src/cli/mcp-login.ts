/** `lango mcp login`, `logout` and `status`: logins to the MCP servers that the agent takes tools from. */

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import type { LangoConfig } from '../config/config.js'
import { mcpLogins } from '../config/mcp-logins.js'
import { AgentError } from '../errors.js'
import { connectMcpServers } from '../tools/mcp.js'
import { hasAuthorization, loginCommand, loginEndsAt, type McpLogin } from '../tools/mcp-login.js'
import { logIn, logOut } from '../tools/mcp-oauth.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import type { Io } from './io.js'
import { loadSettings } from './open-runtime.js'
import { lineWidth, note, print, printJson, stylesOf, tableLines } from './output.js'
import { plainLine } from './plain-text.js'
import { count, localTime } from './wording.js'

type ServerSettings = LangoConfig['mcpServers'][string]

/** `lango mcp login`. */
export async function loginToMcp(io: Io, [server = '']: readonly string[], flags: Flags): Promise<number> {
  const { config } = await loadSettings(io, flags, { runs: true })
  const settings = serverOf(server, config)
  const { url, headers, oauth } = settings
  if (url === undefined)
    throw refused(
      `MCP server "${server}" is a program, which gets its keys by \`env\`. Only servers with a \`url\` have logins.`,
    )
  if (hasAuthorization(settings.headers ?? {}))
    throw refused(
      `MCP server "${server}" has an \`authorization\` header, which is used instead of a login. Remove it from \`headers\` first.`,
    )
  const logins = mcpLogins(io.env)
  return interruptible(io, async signal => {
    const login = await withinTime(signal, each =>
      logIn({
        server,
        url,
        headers,
        oauth: { ...oauth, ...defined({ scope: flags.scope }) },
        logins,
        signal: each,
        open: address => showAddress(io, address, flags),
        pasted: flags.browser === false ? pastedLine(io, each) : undefined,
      }),
    )
    const tools = await countTools(server, settings, logins)
    if (flags.json)
      await printJson(io, { server, ...(login ? loginFacts(login) : { login: 'none', url }), tools })
    else
      await print(
        io,
        login
          ? `Logged in to "${server}": ${count(tools, 'tool')}.\n`
          : `"${server}" asks for no login: ${count(tools, 'tool')}.\n`,
      )
    return 0
  })
}

/** `lango mcp logout`. */
export async function logoutOfMcp(io: Io, [server = '']: readonly string[], flags: Flags): Promise<number> {
  const isAddress = /^https?:\/\//i.test(server)
  const url = isAddress ? server : await configuredUrl(io, server, flags)
  const logins = mcpLogins(io.env)
  const login = url === undefined ? undefined : await logins.read(url)
  if (!login)
    throw refused(`There is no login to "${plainLine(server)}". "lango mcp status" lists the logins.`)
  const { revoked } = await logOut(login, logins)
  if (flags.json) await printJson(io, { url: login.url, revoked })
  else {
    const rest = revoked
      ? 'its authorization server has revoked the tokens'
      : 'the tokens are deleted here, but its authorization server did not revoke them'
    await print(io, `Logged out of "${plainLine(server)}": ${rest}.\n`)
  }
  return 0
}

/** `lango mcp status`. */
export async function mcpStatus(io: Io, flags: Flags): Promise<number> {
  const { config } = await loadSettings(io, flags, { runs: false })
  const stored = await mcpLogins(io.env).list()
  const servers = Object.entries(config.mcpServers).map(([server, settings]) => {
    const { url, command } = settings
    if (url === undefined) return { server, command, login: 'program' }
    const login = stored.find(each => each.url === url)
    if (hasAuthorization(settings.headers ?? {})) return { server, url, login: 'headers' }
    return { server, ...(login ? loginFacts(login) : { url, login: 'none' }) }
  })
  const others = stored
    .filter(({ url }) => !servers.some(each => 'url' in each && each.url === url))
    .map(login => ({ server: null, ...loginFacts(login) }))
  if (flags.json) {
    await printJson(io, { servers: [...servers, ...others] })
    return 0
  }
  if (servers.length + others.length === 0) {
    await print(io, 'No MCP servers are configured, and no logins are stored.\n')
    return 0
  }
  const rows = [...servers, ...others].map(row => [
    row.server ?? '-',
    plainLine(('url' in row ? row.url : row.command) ?? ''),
    stateText(row),
  ])
  const columns = [
    { title: 'SERVER' },
    { title: 'ADDRESS', flexible: true, least: 16 },
    { title: 'LOGIN', least: 12 },
  ]
  const [titles = '', ...lines] = tableLines(columns, rows, lineWidth(io))
  await print(io, `${[stylesOf(io, io.stdout).bold(titles), ...lines].join('\n')}\n`)
  return 0
}

function loginFacts(login: McpLogin) {
  const { url, tokens } = login
  const endsAt = loginEndsAt(login)
  const isRenewed = tokens?.refresh_token !== undefined
  const isOver = !tokens || (!isRenewed && endsAt !== undefined && endsAt <= Date.now())
  return {
    url,
    login: isOver ? 'expired' : 'stored',
    renewed: isRenewed,
    ...defined({
      scope: tokens?.scope,
      expiresAt: endsAt === undefined ? undefined : new Date(endsAt).toISOString(),
    }),
  }
}

function stateText(row: {
  server: string | null
  login: string
  renewed?: boolean
  expiresAt?: string | undefined
}): string {
  const { server, login, renewed, expiresAt } = row
  if (login === 'program') return 'by env'
  if (login === 'headers') return 'by headers'
  if (login === 'none') return `none; ${loginCommand(server ?? '')} if it asks for one`
  if (login === 'expired') return `expired; run ${loginCommand(server ?? '<server>')}`
  if (renewed || expiresAt === undefined) return 'logged in'
  return `logged in until ${localTime(Date.parse(expiresAt))}`
}

function serverOf(server: string, { mcpServers }: LangoConfig): ServerSettings {
  const found = own(mcpServers, server)
  if (found) return found
  const names = Object.keys(mcpServers)
  const known = names.length > 0 ? `It has: ${names.join(', ')}.` : 'It has none.'
  throw refused(`The configuration has no MCP server "${plainLine(server)}" in \`mcpServers\`. ${known}`)
}

async function configuredUrl(io: Io, server: string, flags: Flags): Promise<string | undefined> {
  const { config } = await loadSettings(io, flags, { runs: false })
  return serverOf(server, config).url
}

/** The proof of a login: the tools that the server lists with it. */
async function countTools(server: string, settings: ServerSettings, logins: ReturnType<typeof mcpLogins>) {
  // The settings have passed their check: there is either a command or an address.
  const config = settings as Parameters<typeof connectMcpServers>[0][string]
  const connections = await connectMcpServers({ [server]: config }, { logins })
  try {
    const [status] = connections.status()
    if (status?.state === 'ready') return status.tools
    throw new AgentError(
      'provider-auth',
      `The login is stored, but MCP server "${server}" cannot be used: ${status?.problem ?? 'it is not ready'}`,
    )
  } finally {
    await connections.close()
  }
}

const LOGIN_MS = 5 * 60_000

async function withinTime<Result>(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const over = new AbortController()
  const late = new AgentError('aborted', 'Nobody logged in within five minutes. Run the command again.')
  const timer = new AbortController()
  wait(LOGIN_MS, undefined, { ref: false, signal: timer.signal }).then(
    () => over.abort(late),
    () => {},
  )
  try {
    return await work(AbortSignal.any([signal, over.signal]))
  } finally {
    timer.abort()
    over.abort(late)
  }
}

/** The address goes to standard error: standard output is for the result. */
function showAddress(io: Io, address: URL, flags: Flags): void {
  if (flags.browser === false) {
    note(io, `Open this address in a browser:\n\n${address.href}\n`)
    note(
      io,
      'If the browser is on another machine, paste the address here that it cannot open after the login:',
    )
    return
  }
  note(io, `Opening a browser. If none opens, open this address:\n\n${address.href}\n`)
  openBrowser(io, address)
}

function openBrowser(io: Io, { protocol, href }: URL): void {
  if (protocol !== 'https:' && protocol !== 'http:') return
  const [command, ...args] = BROWSERS[process.platform] ?? ['xdg-open']
  const child = spawn(command ?? '', [...args, href], { env: io.env, stdio: 'ignore', detached: true })
  child.on('error', () => note(io, 'No browser could be started.'))
  child.unref()
}

const BROWSERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  // `start` is a command of the shell, which would interpret the address.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** The first line that is typed. The end of input is no answer: the browser may still come. */
function pastedLine(io: Io, signal: AbortSignal): Promise<string> {
  return new Promise(resolve => {
    const lines = createInterface({ input: io.stdin })
    lines.on('line', line => {
      if (line.trim() === '') return
      resolve(line.trim())
      lines.close()
    })
    const stop = () => {
      lines.close()
      io.stdin.destroy()
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}

function refused(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
