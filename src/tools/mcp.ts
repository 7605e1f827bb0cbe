import { createHash } from 'node:crypto'
import { AgentError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import type { Tool } from '../tool.js'
import type { McpProcess } from './mcp-process.js'
import { McpServer, type McpServerStatus, type McpToolFacts, type McpUrl } from './mcp-server.js'

export type { McpServerStatus } from './mcp-server.js'

/** A server to take tools from: a program to start, or an address. */
export type McpServerConfig = (McpProcess | McpUrl) & {
  /** Whether each call requires approval. Default false. */
  needsApproval?: boolean | undefined
  /** For one call. Default 120,000. */
  timeoutMs?: number | undefined
}

export interface McpOptions {
  logger?: Logger | undefined
  /** Its abort closes the connections. */
  signal?: AbortSignal | undefined
  /** How long a server may take to start and list its tools. Default 30,000. */
  startTimeoutMs?: number | undefined
  /** The delay before the first restart of a crashed server. Default 250. */
  restartDelayMs?: number | undefined
}

export interface McpConnections {
  /** The current tools of the servers. They keep working when their server is restarted. */
  tools(): Tool[]
  /** The state of each server. */
  status(): McpServerStatus[]
  /** Closes the connections, and ends the servers that were started here with all their processes. */
  close(): Promise<void>
}

/** Connects to all servers in parallel. A failed connection is reported by `status` and the log, not thrown. */
export async function connectMcpServers(
  servers: Readonly<Record<string, McpServerConfig>>,
  { logger = silentLogger, signal, startTimeoutMs = 30_000, restartDelayMs = 250 }: McpOptions = {},
): Promise<McpConnections> {
  const options = { logger, startTimeoutMs, restartDelayMs }
  const connections = Object.entries(servers).map(([name, config]) => {
    checkConfig(name, config)
    return { config, server: new McpServer(name, config, options) }
  })
  const close = async () => {
    signal?.removeEventListener('abort', closeQuietly)
    await Promise.all(connections.map(({ server }) => server.close()))
  }
  const closeQuietly = () => void close().catch(() => {})
  signal?.addEventListener('abort', closeQuietly, { once: true })
  if (signal?.aborted) closeQuietly()
  else await Promise.all(connections.map(({ server }) => server.start()))
  return {
    tools: () => {
      const names = new McpNames()
      return connections.flatMap(({ server, config }) =>
        server.tools.map(facts => mcpTool(server, facts, config, names.give(server.name, facts.name))),
      )
    },
    status: () => connections.map(({ server }) => server.status),
    close,
  }
}

function mcpTool(server: McpServer, facts: McpToolFacts, config: McpServerConfig, name: string): Tool {
  const { timeoutMs = 120_000, needsApproval = false } = config
  const { readOnly, idempotent } = facts
  return {
    name,
    description: facts.description,
    parameters: facts.inputSchema,
    effect: readOnly ? 'read' : idempotent ? 'idempotent' : 'once',
    needsApproval,
    // The call's own timeout fires first, because it notifies the server.
    timeoutMs: timeoutMs + 5_000,
    execute: (args, { signal }) => server.call(facts.name, args, signal, timeoutMs),
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
