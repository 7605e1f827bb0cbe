import { isRecord } from '../../base/is-record.js'
import type { Tool } from '../../tool.js'
import { type BaseTool, isLlmAgent, type LlmAgent, type LlmRequest } from '../sdk.js'
import { agentsOf } from './agent-tree.js'
import { ToolAdapter, type ToolAdapterOptions } from './tool-adapter.js'

/** Where tools come from that may arrive, change or be removed while agents work. */
export interface ToolSource {
  /** All tools that were ever there; a changed one is another object of the same name. */
  tools(): readonly Tool[]
  /** The servers whose tools are not known. */
  missing(): readonly MissingTools[]
  /** Tries the missing servers once more, and waits a moment for them. */
  refresh(signal: AbortSignal): Promise<void>
}

export interface MissingTools {
  readonly server: string
  /** How the names of its tools begin. */
  readonly prefix: string
  readonly problem: string
}

/** The names that an agent lists; `name_*` stands for all that begin so. */
export type WantedTools = readonly string[] | 'all'

export interface LateToolsOptions {
  source: ToolSource
  /** What the agent of that name gets. */
  wanted(agent: string): WantedTools
  toolOptions: ToolAdapterOptions
  /** Called with a tool before an agent uses it. */
  adopt(tool: BaseTool): void
  /** Called when an agent works without tools of a server, before its model is asked. */
  onMissing(missing: MissingTools, branch: string): void
}

/**
 * Keeps the tools of a tree of agents up to date, before each model call. New tools are added at the end, so that the
 * list that models have seen stays its beginning; none is taken away. A model whose agent lacks the tools of a server is
 * informed by its instruction, in words that do not change from one request to the next.
 */
export function followTools(root: object, options: LateToolsOptions): void {
  for (const agent of agentsOf(root)) {
    if (isLlmAgent(agent)) agent.requestProcessors.push(followerOf(agent, options))
  }
}

function followerOf(agent: LlmAgent, options: LateToolsOptions): LlmAgent['requestProcessors'][number] {
  const { source, onMissing } = options
  const wanted = options.wanted(agent.name)
  const lacks = ({ prefix }: MissingTools) => wanted === 'all' || wanted.some(name => overlaps(name, prefix))
  const given = new WeakSet<Tool>(source.tools())
  return {
    // biome-ignore lint/correctness/useYield: ADK's processors may emit events; this one has none.
    async *runAsync({ abortSignal, branch = '' }, llmRequest) {
      if (source.missing().some(lacks)) await source.refresh(abortSignal ?? new AbortController().signal)
      addNew(agent, wanted, given, options)
      const missing = source.missing().filter(lacks)
      for (const each of missing) onMissing(each, branch)
      if (missing.length > 0) tellModel(llmRequest, missing)
    },
  }
}

function overlaps(name: string, prefix: string): boolean {
  return name.startsWith(prefix) || (name.endsWith('*') && prefix.startsWith(name.slice(0, -1)))
}

function addNew(
  agent: LlmAgent,
  wanted: WantedTools,
  /** Tools of the source that the agent has, or had before they changed. */
  given: WeakSet<Tool>,
  { source, toolOptions, adopt }: LateToolsOptions,
): void {
  const places = new Map(agent.tools.map((tool, index) => [nameOf(tool), index]))
  for (const tool of source.tools()) {
    const place = places.get(tool.name)
    const known = place === undefined ? undefined : agent.tools[place]
    // A tool that the agent has of itself keeps its name.
    const isOurs = known === undefined || (known instanceof ToolAdapter && given.has(known.tool))
    const isNew = !(known instanceof ToolAdapter && known.tool === tool)
    if (!isOurs || !isNew || !isWanted(tool.name, wanted)) continue
    const adapter = new ToolAdapter(tool, toolOptions)
    given.add(tool)
    adopt(adapter)
    if (place === undefined) agent.tools.push(adapter)
    else agent.tools[place] = adapter
  }
}

function isWanted(tool: string, wanted: WantedTools): boolean {
  if (wanted === 'all') return true
  return wanted.some(name => (name.endsWith('*') ? tool.startsWith(name.slice(0, -1)) : tool === name))
}

function nameOf(tool: unknown): string {
  return isRecord(tool) && typeof tool.name === 'string' ? tool.name : ''
}

function tellModel(llmRequest: LlmRequest, missing: readonly MissingTools[]): void {
  const names = missing.map(({ server }) => `"${server}"`).join(', ')
  const text = `[The tools of MCP server ${names} are missing, because it is not available. They are added as soon as it is. Say so when the user needs them.]`
  const { config = {} } = llmRequest
  const before = typeof config.systemInstruction === 'string' ? `${config.systemInstruction}\n\n` : ''
  llmRequest.config = { ...config, systemInstruction: `${before}${text}` }
}
