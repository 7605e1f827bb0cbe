/** The runtimes of `lango acp`: one for each folder that an editor works in, and for each set of its MCP servers. */
import { stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import type { McpServer } from '@agentclientprotocol/sdk'
import type { LangoConfig } from '../../config/config.js'
import { AgentError } from '../../errors.js'
import type { ClosableLogger } from '../../observe/log.js'
import type { RuntimeOptions } from '../../runtime/options.js'
import type { Runtime } from '../../runtime/runtime.js'
import type { SessionStore } from '../../session/session-store.js'
import type { Flags } from '../command.js'
import type { Io } from '../io.js'
import { loadSettings, runtimeOptions } from '../open-runtime.js'
import { protocolLogger } from '../protocol-stdio.js'

export interface AcpFolder {
  readonly cwd: string
  /** The folder that file tools are restricted to. */
  readonly workspace: string
  readonly runtime: Runtime
  readonly config: LangoConfig
  readonly logger: ClosableLogger
  /** What the first prompt of its sessions adds. */
  readonly notices: readonly string[]
}

type McpServers = NonNullable<RuntimeOptions['mcpServers']>
type Files = NonNullable<RuntimeOptions['tools']>['files']

export class AcpFolders {
  readonly #io: Io
  readonly #flags: Flags
  readonly #files: Files
  readonly #opened = new Map<string, Promise<AcpFolder>>()
  readonly #stores = new Map<string, Promise<SessionStore>>()

  /** `files`: text files as the editor has them. */
  constructor(io: Io, flags: Flags, files: Files) {
    this.#io = io
    this.#flags = flags
    this.#files = files
  }

  /** The folder's runtime, with its own configuration and agent. A folder that failed to open is tried again. */
  async open(given: string, servers: readonly McpServer[]): Promise<AcpFolder> {
    await checkFolder(given)
    const cwd = resolve(given)
    const key = JSON.stringify([cwd, servers])
    const known = this.#opened.get(key)
    if (known) return known
    const opening = this.#open(cwd, servers)
    this.#opened.set(key, opening)
    opening.catch(() => this.#opened.delete(key))
    return opening
  }

  /** Hands unfinished runs over, and closes the stores. */
  async close(): Promise<void> {
    const folders = await settled(this.#opened)
    await Promise.all(folders.map(({ runtime }) => runtime.close()))
    for (const store of await settled(this.#stores)) await store.close()
    for (const { logger } of folders) logger.close()
  }

  async #open(cwd: string, given: readonly McpServer[]): Promise<AcpFolder> {
    // With `json` nothing is asked on a terminal: standard input is the protocol's.
    const loaded = await loadSettings(this.#io, { ...this.#flags, json: true }, { cwd, runs: true })
    const logger = await protocolLogger(loaded)
    const options = await runtimeOptions(loaded, logger)
    const { createRuntime } = await import('../../runtime/runtime.js')
    const mcpServers = joinServers(options.mcpServers ?? {}, given)
    const runtime = await createRuntime({
      ...options,
      store: await this.#store(loaded.config.store),
      tools: { ...options.tools, files: this.#files },
      mcpServers,
    })
    const { config } = loaded
    const notices = given.length > 0 ? toolNotices(options) : []
    return { cwd, workspace: config.tools.workspace, runtime, config, logger, notices }
  }

  /** Runtimes on one database share its connection, and what is only in memory. */
  #store(address: string): Promise<SessionStore> {
    const opening =
      this.#stores.get(address) ??
      import('../../store/open-store.js').then(({ openStore }) => openStore(address))
    this.#stores.set(address, opening)
    opening.catch(() => this.#stores.delete(address))
    return opening
  }
}

async function settled<Value>(opening: ReadonlyMap<string, Promise<Value>>): Promise<Value[]> {
  const results = await Promise.allSettled(opening.values())
  return results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
}

async function checkFolder(cwd: string): Promise<void> {
  if (!isAbsolute(cwd)) throw invalid(`cwd is "${cwd}", but must be an absolute path.`)
  const facts = await stat(cwd).catch(() => undefined)
  if (!facts?.isDirectory()) throw invalid(`cwd is "${cwd}", but there is no such folder.`)
}

/** The configured servers, then the client's under names that tools can have. */
function joinServers(configured: McpServers, given: readonly McpServer[]): McpServers {
  const joined: Record<string, McpServers[string]> = { ...configured }
  for (const server of given) {
    const name = server.name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 32) || 'server'
    if (Object.hasOwn(joined, name))
      throw invalid(
        `The MCP server "${server.name}" of the editor has the name of another one. Rename or remove one of them.`,
      )
    joined[name] = serverOf(server)
  }
  return joined
}

function serverOf(server: McpServer): McpServers[string] {
  if (!('type' in server)) {
    const { command, args, env } = server
    return { command, args, env: Object.fromEntries(env.map(({ name, value }) => [name, value])) }
  }
  if (server.type === 'http') {
    const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]))
    return { url: server.url, headers }
  }
  throw invalid(
    `The MCP server "${server.name}" speaks SSE, which Lango does not. Give its streamable HTTP address, or a command.`,
  )
}

function toolNotices({ rootAgent, agent }: RuntimeOptions): string[] {
  if (rootAgent) return ['The agent was made in code: it does not use the MCP servers of the editor.']
  if (agent?.tools === undefined) return []
  return ['The agent lists its tools: it uses those of the editor’s MCP servers that it names.']
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
