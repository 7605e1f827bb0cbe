import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import type { AgentConfig, SubAgentConfig } from './config.js'

/** An agent whose tools are resolved. */
export type ResolvedAgent<Agent extends AgentConfig | SubAgentConfig> = Omit<Agent, 'tools' | 'subAgents'> & {
  tools: object[]
  subAgents: ResolvedAgent<SubAgentConfig>[]
}

/**
 * Replaces the names of tools by the tools. `available` is all that built-in tools and MCP servers provide; the
 * root agent gets all of it when it names none. `name_*` stands for every tool with that prefix. A name that `mayCome`
 * expects later is left out.
 */
export function resolveTools<Agent extends AgentConfig | SubAgentConfig>(
  agent: Agent,
  available: readonly { readonly name: string }[],
  mayCome: (name: string) => boolean = () => false,
  path = 'agent',
): ResolvedAgent<Agent> {
  const byDefault = path === 'agent' ? available : []
  return {
    ...agent,
    tools: agent.tools?.flatMap((tool, index) => {
      const found = typeof tool === 'string' ? named(tool, available) : [tool]
      if (found.length > 0 || mayCome(String(tool))) return found
      throw unknownTool(String(tool), available, `${path}.tools[${index}]`)
    }) ?? [...byDefault],
    subAgents: (agent.subAgents ?? []).map((child, index) =>
      resolveTools(child, available, mayCome, `${path}.subAgents[${index}]`),
    ),
  }
}

/** Every tool that agents name: naming a built-in tool enables it. */
export function namedTools(agent: AgentConfig | SubAgentConfig | undefined): string[] {
  if (!agent) return []
  const own = (agent.tools ?? []).filter(tool => typeof tool === 'string')
  return [...new Set([...own, ...(agent.subAgents ?? []).flatMap(namedTools)])]
}

function named<Named extends { readonly name: string }>(name: string, available: readonly Named[]): Named[] {
  return name.endsWith('*')
    ? available.filter(tool => tool.name.startsWith(name.slice(0, -1)))
    : available.filter(tool => tool.name === name)
}

function unknownTool(
  tool: string,
  available: readonly { readonly name: string }[],
  path: string,
): AgentError {
  const names = available.map(({ name }) => name)
  const near = suggest(tool, names)
  const fix = near === undefined ? `Known tools: ${names.join(', ') || 'none'}.` : `Did you mean "${near}"?`
  return new AgentError('invalid-config', `\`${path}\` is "${tool}", but no such tool exists. ${fix}`, {
    details: { path, tool },
  })
}
