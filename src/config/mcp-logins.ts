/**
 * The logins to MCP servers: one file for each address, in a folder of the user, that only the user can read. They are
 * found by the address and not by the name, so that a configuration that gives a known name to another address gets no
 * token. Each file is replaced atomically. An unreadable one counts as no login.
 */
import { createHash, randomUUID } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isRecord } from '../base/is-record.js'
import { AgentError, messageOf } from '../errors.js'
import type { McpLogin, McpLogins } from '../tools/mcp-login.js'
import type { Environment } from './environment.js'
import { withLock } from './lock-file.js'
import { userFolder } from './trust-record.js'

/** The logins of the user. */
export function mcpLogins(env: Environment = process.env): McpLogins {
  const named = env.LANGO_MCP_LOGINS?.trim()
  const folder = named ? resolve(named) : join(userFolder(env), 'mcp-logins')
  const fileOf = (url: string) =>
    join(folder, `${createHash('sha256').update(url).digest('hex').slice(0, 32)}.json`)
  return {
    read: async url => {
      const login = await readLogin(fileOf(url))
      return login?.url === url ? login : undefined
    },
    write: async login => {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await replaceFile(fileOf(login.url), `${JSON.stringify(login, null, 2)}\n`)
      } catch (error) {
        throw notWritable(folder, error)
      }
    },
    remove: async url => {
      await rm(fileOf(url), { force: true })
    },
    list: async () => {
      const names = await readdir(folder).catch(() => [])
      const files = names.filter(name => name.endsWith('.json')).sort()
      const logins = await Promise.all(files.map(name => readLogin(join(folder, name))))
      return logins.filter(login => login !== undefined)
    },
    exclusive: async (url, work) => {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
      } catch (error) {
        throw notWritable(folder, error)
      }
      return withLock(`${fileOf(url)}.lock`, work, STALE_MS)
    },
  }
}

/** Longer than a token request may take. */
const STALE_MS = 40_000

async function readLogin(file: string): Promise<McpLogin | undefined> {
  try {
    const data: unknown = JSON.parse(await readFile(file, 'utf8'))
    return isLogin(data) ? data : undefined
  } catch {
    return undefined
  }
}

function isLogin(data: unknown): data is McpLogin {
  return (
    isRecord(data) &&
    data.version === 1 &&
    typeof data.url === 'string' &&
    typeof data.savedAt === 'number' &&
    isRecord(data.client) &&
    isRecord(data.discovery) &&
    (data.tokens === undefined || isRecord(data.tokens))
  )
}

async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}.new`
  await writeFile(draft, text, { mode: 0o600 })
  // The mode above is subject to the umask, which can only remove rights; a folder's default list may add some.
  await chmod(draft, 0o600)
  await rename(draft, file)
}

function notWritable(folder: string, cause: unknown): AgentError {
  return new AgentError(
    'invalid-argument',
    `Cannot write logins of MCP servers to ${folder}: ${messageOf(cause)}. Set LANGO_MCP_LOGINS to a writable folder.`,
    { cause },
  )
}
