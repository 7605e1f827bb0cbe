import { AgentError } from '../../errors.js'

/** An agent as far as its name and place go. */
export interface NamedDefinition {
  readonly name?: string | undefined
  readonly subAgents?: readonly NamedDefinition[] | undefined
}

const DEFAULT_AGENT_NAME = 'lango-agent'

const VALID_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/

/** Names are valid and unique, and no agent is below itself. Needs no ADK, so it can be checked at once. */
export function checkAgents(root: NamedDefinition): void {
  const seen = new Set<string>()
  const visit = (definition: NamedDefinition, path: readonly NamedDefinition[]): void => {
    const where = [...path, definition]
      .map((agent, depth) => agentName(agent, depth === 0) || '(no name)')
      .join(' → ')
    if (path.includes(definition)) {
      throw invalid(`The agents form a circle: ${where}. An agent cannot be below itself.`)
    }
    checkName(agentName(definition, path.length === 0), where, seen)
    for (const child of definition.subAgents ?? []) visit(child, [...path, definition])
  }
  visit(root, [])
}

/** Only the root has a name by default. */
export function agentName(definition: NamedDefinition, isRoot: boolean): string {
  return definition.name ?? (isRoot ? DEFAULT_AGENT_NAME : '')
}

function checkName(name: string, where: string, seen: Set<string>): void {
  if (name === '') throw invalid(`A sub-agent has no name (${where}). Give each sub-agent a \`name\`.`)
  if (!VALID_NAME.test(name) || name === 'user') {
    throw invalid(
      `"${name}" is not a valid agent name (${where}). Start with a letter or underscore, go on with letters, digits, underscores or hyphens, and do not use "user".`,
    )
  }
  if (seen.has(name)) {
    throw invalid(`Two agents are called "${name}". Give each agent of the tree a name of its own.`)
  }
  seen.add(name)
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-config', message)
}
