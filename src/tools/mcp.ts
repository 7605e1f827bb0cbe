import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { AgentError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import { loadOptional } from '../packages.js'
import type { Tool } from '../tool.js'
import type { McpHost } from './mcp-calls.js'
import type { McpLogins, McpUrl } from './mcp-login.js'
import type { McpProcess } from './mcp-process.js'
import { McpServer, type McpServerStatus, type McpToolFacts } from './mcp-server.js'

export type { McpHost } from './mcp-calls.js'
export type { McpServerStatus } from './mcp-server.js'

/** A server to take tools from: a program to start, or an address. */
export type McpServerConfig = (McpProcess | McpUrl) & {
  /** Whether each call requires approval. Default false. */
  needsApproval?: boolean | undefined
  /** For one call without progress. Default 120,000. */
  timeoutMs?: number | undefined
  /** For one call in all, however much progress it reports. Default: fifteen times `timeoutMs`. */
  maxTimeoutMs?: number | undefined
  /** Whether the server may ask the run's model, under the run's budget. Default false. */
  sampling?: boolean | undefined
  /** Folders that the server may work in, sent to it as its roots. Default: none. */
  roots?: readonly string[] | undefined
}

export interface McpOptions extends McpHost {
  logger?: Logger | undefined
  /** Logins to servers with an address. Default: none. */
  logins?: McpLogins | undefined
  /** Its abort closes the connections. */
  signal?: AbortSignal | undefined
  /** How long a server may take to start and list its tools. Default 30,000. */
  startTimeoutMs?: number | undefined
  /** The delay before the first restart of a crashed server. Default 250. */
  restartDelayMs?: number | undefined
  /** The delay between attempts to reach a server that has failed. Default 30,000. */
  retryDelayMs?: number | undefined
}

/** A server whose tools are not known, because it was never available. */
export interface MissingServer {
  readonly server: string
  /** How the names of its tools begin. */
  readonly prefix: string
  readonly problem: string
}

export interface McpConnections {
  /**
   * The tools of the servers, in the order in which they were first seen. They keep working when their server is
   * restarted. One that its server has removed stays, so that requests extend each other, and answers with an error; one
   * whose description or schema has changed is another object of the same name.
   */
  tools(): Tool[]
  /** The servers that were never available. */
  missing(): MissingServer[]
  /** Whether an agent may name a tool that is not there: a server that was never available may have it. */
  mayCome(name: string): boolean
  /** Tries the missing servers once more, and waits a moment for them. */
  refresh(signal: AbortSignal): Promise<void>
  /** The state of each server. */
  status(): McpServerStatus[]
  /** Closes the connections, and ends the servers that were started here with all their processes. */
  close(): Promise<void>
}

/**
 * Connects to all servers in parallel. A failed connection is reported by `status` and the log, not thrown; without the
 * protocol's package there can be none.
 */
export async function connectMcpServers(
  servers: Readonly<Record<string, McpServerConfig>>,
  options: McpOptions = {},
): Promise<McpConnections> {
  const { logger = silentLogger, signal, startTimeoutMs = 30_000 } = options
  const { restartDelayMs = 250, retryDelayMs = 30_000, ask, complete, logins } = options
  const limits = { logger, logins, startTimeoutMs, restartDelayMs, retryDelayMs }
  await loadOptional('mcp', () => import('@modelcontextprotocol/sdk/client/index.js'))
  const connections = Object.entries(servers).map(([name, config]) => {
    checkConfig(name, config)
    const { sampling = false, roots } = config
    const host = { ask, complete: sampling ? complete : undefined, roots: roots?.map(root => resolve(root)) }
    return { config, server: new McpServer(name, config, { ...limits, ...host }) }
  })
  const close = async () => {
    signal?.removeEventListener('abort', closeQuietly)
    await Promise.all(connections.map(({ server }) => server.close()))
  }
  const closeQuietly = () => void close().catch(() => {})
  signal?.addEventListener('abort', closeQuietly, { once: true })
  if (signal?.aborted) closeQuietly()
  else await Promise.all(connections.map(({ server }) => server.start()))
  const known = new KnownTools()
  return {
    tools: () => {
      for (const { server, config } of connections) known.update(server, config)
      return known.all
    },
    missing: () =>
      connections.flatMap(({ server }) => {
        const { name, state, problem } = server.status
        const prefix = legal(`${name}_`)
        return server.hasListed ? [] : [{ server: name, prefix, problem: problem ?? state }]
      }),
    mayCome: name =>
      connections.some(({ server }) => {
        const prefix = legal(`${server.name}_`)
        if (name.endsWith('*')) return prefix.startsWith(name.slice(0, -1)) || name.startsWith(prefix)
        return !server.hasListed && name.startsWith(prefix)
      }),
    refresh: async stop => {
      await Promise.all(connections.map(({ server }) => server.refresh(stop)))
    },
    status: () => connections.map(({ server }) => server.status),
    close,
  }
}

/** All tools that were ever seen, with the names that they were given first. */
class KnownTools {
  readonly #names = new McpNames()
  readonly #tools = new Map<string, { facts: McpToolFacts; tool: Tool }>()

  get all(): Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool)
  }

  update(server: McpServer, config: McpServerConfig): void {
    for (const facts of server.tools) {
      const key = `${server.name}\0${facts.name}`
      const known = this.#tools.get(key)
      if (known && (known.facts === facts || isDeepStrictEqual(known.facts, facts))) continue
      const name = known?.tool.name ?? this.#names.give(server.name, facts.name)
      this.#tools.set(key, { facts, tool: mcpTool(server, facts, config, name) })
    }
  }
}

function mcpTool(server: McpServer, facts: McpToolFacts, config: McpServerConfig, name: string): Tool {
  const { timeoutMs = 120_000, needsApproval = false } = config
  const { maxTimeoutMs = timeoutMs * 15 } = config
  const limits = { timeoutMs, maxTimeoutMs: Math.max(timeoutMs, maxTimeoutMs) }
  const { readOnly, idempotent } = facts
  return {
    name,
    description: facts.description,
    parameters: facts.inputSchema,
    effect: readOnly ? 'read' : idempotent ? 'idempotent' : 'once',
    needsApproval,
    // The call's own timeout fires first, because it notifies the server.
    timeoutMs: limits.maxTimeoutMs + 5_000,
    execute: (args, context) => server.call(facts.name, args, context, limits),
  }
}

function checkConfig(name: string, config: McpServerConfig): void {
  const { command, url } = config as { command?: unknown; url?: unknown }
  if (typeof url === 'string' && command === undefined) {
    if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return
    throw invalid(`MCP server "${name}": "${url}" is not an http or https address.`)
  }
  if (typeof command === 'string' && command !== '' && url === undefined) return
  throw invalid(`MCP server "${name}" needs either \`command\` or \`url\`.`)
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-config', message)
}

const MAX_LENGTH = 64

/**
 * Names for the tools of servers, `server_tool`: of characters that every vendor allows, at most 64 of them, each
 * unique. The same tools in the same order get the same names.
 */
export class McpNames {
  readonly #given = new Set<string>()

  give(server: string, tool: string): string {
    const wanted = shortened(legal(`${server}_${tool}`), `${server}\0${tool}`)
    let name = wanted
    for (let number = 2; this.#given.has(name); number++) {
      const suffix = `_${number}`
      name = wanted.slice(0, MAX_LENGTH - suffix.length) + suffix
    }
    this.#given.add(name)
    return name
  }
}

function legal(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  return /^[A-Za-z_]/.test(plain) ? plain : `_${plain}`
}

/** A name that is too long ends in a hash of the whole one, so that names stay distinct. */
function shortened(name: string, whole: string): string {
  if (name.length <= MAX_LENGTH) return name
  const print = createHash('sha256').update(whole).digest('hex').slice(0, 8)
  return `${name.slice(0, MAX_LENGTH - print.length - 1)}_${print}`
}
