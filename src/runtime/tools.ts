/** The tools of a runtime that come from options: built-in ones, those of MCP servers, and `read_output`. */

import type { ToolAdapterOptions } from '../adk/agent/tool-adapter.js'
import type { AgentConfig } from '../config/config.js'
import { namedTools } from '../config/resolve-tools.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import { runScope } from '../run/run-scope.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import type { Tool } from '../tool.js'
import type { McpConnections } from '../tools/mcp.js'
import type { CheckedOptions } from './options.js'

export interface RuntimeTools {
  /** What agents may name. */
  available: readonly Tool[]
  /** Servers whose tools may come, change and go. */
  servers?: McpConnections | undefined
  /** How tools are run: whom to ask, and where long outputs go. */
  adapterOptions: ToolAdapterOptions
  close(): Promise<void>
}

export async function gatherTools(
  options: CheckedOptions,
  store: SessionStore,
  appName: string,
  logger: Logger,
): Promise<RuntimeTools> {
  const { tools = {}, mcpServers = {} } = options
  const {
    builtIn = [],
    workspace = process.cwd(),
    keepOutputs,
    approvalTimeoutMs,
    outputLimitTokens,
    effects: _effects,
    ...rest
  } = tools
  const own = await makeBuiltIn(builtIn, namedTools(options.agent as AgentConfig | undefined), {
    workspace,
    ...rest,
  })
  const servers =
    Object.keys(mcpServers).length === 0
      ? undefined
      : await (await import('../tools/mcp.js')).connectMcpServers(mcpServers, { logger })
  const available = [...own, ...(servers?.tools() ?? [])]
  const outputs =
    (keepOutputs ?? (available.length > 0 || servers)) ? new KeptOutputs(store, appName) : undefined
  if (outputs) available.push(await makeReadOutput(outputs))
  return {
    available,
    servers,
    adapterOptions: {
      approve: ({ tool, args, context }) =>
        runScope.getStore()?.approve({ callId: context.callId, tool: tool.name, args }, context.signal) ??
        'no',
      ...(approvalTimeoutMs === undefined ? {} : { approvalTimeoutMs }),
      ...(outputLimitTokens === undefined ? {} : { outputLimitTokens }),
      ...(outputs ? { keepWhole: (_callId, name, json, owner) => outputs.keep(name, json, owner) } : {}),
    },
    close: async () => servers?.close(),
  }
}

/** Those that the options name, and those that agents name: naming a built-in tool is what switches it on. */
async function makeBuiltIn(
  configured: readonly string[],
  named: readonly string[],
  options: Parameters<typeof import('../tools/built-in-tools.js').builtInTools>[1],
): Promise<Tool[]> {
  if (configured.length + named.length === 0) return []
  const [{ builtInTools }, { BUILT_IN_TOOL_NAMES }] = await Promise.all([
    import('../tools/built-in-tools.js'),
    import('../tools/tool-names.js'),
  ])
  const known: readonly string[] = BUILT_IN_TOOL_NAMES
  return builtInTools([...configured, ...named.filter(name => known.includes(name))], options)
}

async function makeReadOutput(outputs: KeptOutputs): Promise<Tool> {
  const { readOutputTool } = await import('../tools/read-output.js')
  return readOutputTool((reference, offset, length, context) =>
    outputs.read(reference, offset, length, context),
  )
}

/** Whose output it is. */
interface OutputOwner {
  userId: string
  sessionId: string
}

/**
 * Tool outputs that were too long for a model, kept whole: one message each in a session that is nested in the
 * one it belongs to, so that it is not listed and goes with it.
 */
class KeptOutputs {
  readonly #store: SessionStore
  readonly #appName: string

  constructor(store: SessionStore, appName: string) {
    this.#store = store
    this.#appName = appName
  }

  /** Keeps an output and returns the name by which it is found again. */
  async keep(tool: string, json: string, owner: OutputOwner): Promise<string> {
    const key = this.#keyOf(owner)
    try {
      await this.#store.createSession(key, {}, { nestedIn: this.#appName })
    } catch (error) {
      if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
    }
    const message = { role: 'tool', author: tool, content: json, timestamp: Date.now() }
    const { seq } = await this.#store.appendMessage(key, message)
    return `output-${seq}`
  }

  /** A part of an output, or `undefined` when there is none of that name in the session. */
  async read(reference: string, offset: number, length: number, owner: OutputOwner) {
    const seq = Number(/^output-(\d{1,9})$/.exec(reference)?.[1] ?? 0)
    if (seq === 0) return undefined
    const [message] = await this.#store.readMessages(this.#keyOf(owner), { afterSeq: seq - 1, limit: 1 })
    if (!message || message.seq !== seq) return undefined
    const { content } = message
    return { text: content.slice(offset, offset + length), totalCharacters: content.length }
  }

  #keyOf({ userId, sessionId }: OutputOwner): SessionKey {
    return { appName: `${this.#appName}:outputs`, userId, sessionId }
  }
}
