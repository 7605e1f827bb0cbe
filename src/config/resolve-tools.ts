import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import type { AgentConfig, SubAgentConfig, ToolConfig } from './config.js'

/** An agent whose tools are resolved. */
export type ResolvedAgent<Agent extends AgentConfig | SubAgentConfig> = Omit<Agent, 'tools' | 'subAgents'> & {
  tools: object[]
  subAgents: ResolvedAgent<SubAgentConfig>[]
}

/**
 * Replaces the names of tools by the tools. `available` is all that built-in tools and MCP servers provide; the
 * root agent gets all of it when it names none. `name_*` stands for every tool with that prefix.
 */
export function resolveTools<Agent extends AgentConfig | SubAgentConfig>(
  agent: Agent,
  available: readonly { readonly name: string }[],
  path = 'agent',
): ResolvedAgent<Agent> {
  const byDefault = path === 'agent' ? available : []
  return {
    ...agent,
    tools: agent.tools?.flatMap((tool, index) => find(tool, available, `${path}.tools[${index}]`)) ?? [
      ...byDefault,
    ],
    subAgents: (agent.subAgents ?? []).map((child, index) =>
      resolveTools(child, available, `${path}.subAgents[${index}]`),
    ),
  }
}

/** Every tool that agents name: naming a built-in tool enables it. */
export function namedTools(agent: AgentConfig | SubAgentConfig | undefined): string[] {
  if (!agent) return []
  const own = (agent.tools ?? []).filter(tool => typeof tool === 'string')
  return [...new Set([...own, ...(agent.subAgents ?? []).flatMap(namedTools)])]
}

function find(tool: ToolConfig, available: readonly { readonly name: string }[], path: string): object[] {
  if (typeof tool !== 'string') return [tool]
  const found = tool.endsWith('*')
    ? available.filter(({ name }) => name.startsWith(tool.slice(0, -1)))
    : available.filter(({ name }) => name === tool)
  if (found.length > 0) return found
  const names = available.map(({ name }) => name)
  const near = suggest(tool, names)
  const fix = near === undefined ? `Known tools: ${names.join(', ') || 'none'}.` : `Did you mean "${near}"?`
  throw new AgentError('invalid-config', `\`${path}\` is "${tool}", but no such tool exists. ${fix}`, {
    details: { path, tool },
  })
}
