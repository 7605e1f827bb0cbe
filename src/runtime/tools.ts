/** The tools of a runtime that come from options: built-in ones, those of MCP servers, and `read_output`. */

import { toolsWithoutEffect } from '../adk/agent/adopt-tools.js'
import type { ToolAdapterOptions } from '../adk/agent/tool-adapter.js'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import type { AgentConfig } from '../config/config.js'
import { namedTools } from '../config/resolve-tools.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import type { Provider, ProviderPart } from '../provider/provider.js'
import type { QuestionOutcome } from '../run/run-approvals.js'
import { runScope } from '../run/run-scope.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { completeUsage } from '../session/usage.js'
import type { JsonSchema, Tool } from '../tool.js'
import type { McpConnections, McpHost } from '../tools/mcp.js'
import type { McpAnswer, McpPrompt } from '../tools/mcp-calls.js'
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
  logger: Logger,
  models: SamplingModels,
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
      : await connectServers(mcpServers, { logger, ...mcpHost(models) })
  const available = [...own, ...(servers?.tools() ?? [])]
  const outputs =
    (keepOutputs ?? (available.length > 0 || servers)) ? new KeptOutputs(store, options.app) : undefined
  if (outputs) available.push(await makeReadOutput(outputs))
  return {
    available,
    servers,
    adapterOptions: {
      approve: ({ tool, args, context, reason }) => {
        const call = { callId: context.callId, tool: tool.name, args, ...defined({ reason }) }
        return runScope.getStore()?.approve(call, context.signal) ?? 'no'
      },
      ...(approvalTimeoutMs === undefined ? {} : { approvalTimeoutMs }),
      ...(outputLimitTokens === undefined ? {} : { outputLimitTokens }),
      ...(outputs ? { keepWhole: (_callId, name, json, owner) => outputs.keep(name, json, owner) } : {}),
    },
    close: async () => servers?.close(),
  }
}

async function connectServers(servers: Parameters<Connect>[0], options: Parameters<Connect>[1]) {
  const [{ connectMcpServers }, { mcpLogins }] = await Promise.all([
    import('../tools/mcp.js'),
    import('../config/mcp-logins.js'),
  ])
  return connectMcpServers(servers, { ...options, logins: mcpLogins() })
}

type Connect = typeof import('../tools/mcp.js').connectMcpServers

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

/** The models that a server of tools may ask. */
interface SamplingModels {
  /** The model that runs use unless they name another. */
  readonly rootReference: string
  /** A model, with calls that are held to the budget of the current run. */
  beside(reference: string): Promise<{ provider: Provider; model: string }>
}

/** What MCP servers may ask of the run that has called them. */
function mcpHost(models: SamplingModels): McpHost {
  return {
    ask: async ({ server, tool, message, schema, url }, { callId, signal }) => {
      const run = runScope.getStore()
      if (!run) return { action: 'cancel' }
      const reason = `MCP server "${server}" asks: ${[message, url].filter(Boolean).join(' ')}`
      const args = { server, message, ...defined({ schema, url }) }
      const asked = await run.ask({ callId, tool: `${server}_${tool}`, args, reason }, signal)
      return toMcpAnswer(asked, schema)
    },
    complete: async (prompt, { signal }) => {
      const run = runScope.getStore()
      const reference = run?.model ?? models.rootReference
      if (!run || reference === '' || run.wrapUpGranted)
        throw new AgentError('invalid-argument', 'The run has no model that a server may ask now.')
      const { provider, model } = await models.beside(reference)
      let text = ''
      let stopReason = 'endTurn'
      for await (const event of provider.generate({ model, ...samplingRequest(prompt) }, signal)) {
        if (event.type === 'error') throw event.error
        if (event.type === 'text-delta') text += event.text
        if (event.type === 'usage') run.modelUsed({}, 0, reference, completeUsage(event.usage))
        if (event.type === 'done' && event.finishReason === 'length') stopReason = 'maxTokens'
      }
      return { text, model, stopReason }
    },
  }
}

/** A yes sends the defaults of the form; fields that need a value need an object as the answer. */
function toMcpAnswer({ answer, response }: QuestionOutcome, schema: JsonSchema = {}): McpAnswer {
  if (answer === 'timeout' || answer === 'aborted') return { action: 'cancel' }
  const { action, confirmed, payload, content, ...fields } = response ?? {}
  if (answer === 'no' || action === 'decline' || confirmed === false) return { action: 'decline' }
  if (action === 'cancel') return { action }
  const given = [content, payload, fields].find(each => isRecord(each)) as Record<string, unknown>
  const properties = Object.entries(isRecord(schema.properties) ? schema.properties : {})
  const defaults = properties.flatMap(([name, field]) =>
    isRecord(field) && field.default !== undefined ? [[name, field.default] as const] : [],
  )
  const filled = { ...Object.fromEntries(defaults), ...given }
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : []
  const missing = required.filter(name => !Object.hasOwn(filled, String(name)))
  if (missing.length > 0)
    throw new AgentError('invalid-argument', `The answer lacks ${missing.join(', ')}: answer with an object.`)
  // The server checks the values against its own schema.
  return { action: 'accept', content: filled as NonNullable<McpAnswer['content']> }
}

function samplingRequest({ messages, systemPrompt, maxTokens, temperature, stopSequences }: McpPrompt) {
  const said = messages.map(({ role, content }) => ({
    role,
    parts: (Array.isArray(content) ? content : [content]).map(samplingPart),
  }))
  const system = systemPrompt
    ? [{ role: 'system', parts: [{ type: 'text' as const, text: systemPrompt }] }]
    : []
  const options = { maxOutputTokens: maxTokens, ...defined({ temperature, stopSequences }) }
  return { messages: [...system, ...said], options }
}

function samplingPart(part: {
  type: string
  text?: unknown
  mimeType?: unknown
  data?: unknown
}): ProviderPart {
  if (part.type === 'text') return { type: 'text', text: String(part.text) }
  if (part.type === 'image' || part.type === 'audio')
    return { type: 'media', mimeType: String(part.mimeType), data: String(part.data) }
  throw new AgentError('invalid-argument', `A server cannot ask the model with a part of type ${part.type}.`)
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

/** Names the tools of ADK that are treated as `once` because nobody said what they change. */
export function reportEffects(rootAgent: object, { tools }: CheckedOptions, logger: Logger): void {
  const unsaid = toolsWithoutEffect(rootAgent).filter(name => !Object.hasOwn(tools?.effects ?? {}, name))
  const [first] = unsaid
  if (first === undefined) return
  logger.warn(
    'These tools of ADK do not say what they change, so their effect is "once": a call that is interrupted is not ' +
      'repeated, and the model reads that its outcome is unknown. Say which of them only read: ' +
      `tools: { effects: { ${JSON.stringify(first)}: 'read' } }. "once" confirms the default`,
    { tools: unsaid },
  )
}
