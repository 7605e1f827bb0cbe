import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import type { AgentConfig, SubAgentConfig, ToolConfig } from './config.js'

/** An agent whose tools are tools and no longer names. */
export type ResolvedAgent<Agent extends AgentConfig | SubAgentConfig> = Omit<Agent, 'tools' | 'subAgents'> & {
  tools: object[]
  subAgents: ResolvedAgent<SubAgentConfig>[]
}

/**
 * Puts tools in the place of their names. `available` is all that built-in tools and MCP servers provide; the
 * root agent gets all of it when it names none. `name_*` takes every tool that begins so.
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

/** Every tool that agents name, so that a built-in tool is switched on by naming it. */
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
  throw new AgentError('invalid-config', `\`${path}\` is "${tool}", but there is no such tool. ${fix}`, {
    details: { path, tool },
  })
}
