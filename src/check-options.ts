/** What can be said about a runtime's options before anything is loaded or opened. */
import { checkAgents, type NamedDefinition } from './adk/agent/check-agents.js'
import { suggest } from './config/suggest.js'
import { AgentError } from './errors.js'
import type { ProviderRegistry } from './provider/provider-registry.js'
import type { RuntimeOptions } from './runtime-options.js'

const KEYS = [
  'app',
  'store',
  'providers',
  'agent',
  'rootAgent',
  'model',
  'history',
  'tools',
  'mcpServers',
  'telemetry',
  'adk',
  'logger',
]
const REPAIR_MODES = ['repair', 'strict', 'explain']
const EFFECTS = ['read', 'idempotent', 'once']

export function checkOptions(options: RuntimeOptions): void {
  if (typeof options !== 'object' || options === null)
    throw invalid('createRuntime needs an object of options.')
  for (const key of Object.keys(options)) {
    if (KEYS.includes(key)) continue
    const near = suggest(key, KEYS)
    throw invalid(
      `There is no option "${key}". ${near ? `Did you mean "${near}"?` : `Options: ${KEYS.join(', ')}.`}`,
    )
  }
  checkAgent(options)
  checkHistory(options.history)
}

/** Every model that the agents name has a provider. */
export function checkModels({ agent, model }: RuntimeOptions, registry: ProviderRegistry): void {
  if (model !== undefined) registry.resolve(model)
  const visit = (definition: AgentLike): void => {
    if (typeof definition.model === 'string') registry.resolve(definition.model)
    for (const child of definition.subAgents ?? []) visit(child)
  }
  if (agent) visit(agent as AgentLike)
}

interface AgentLike extends NamedDefinition {
  readonly model?: unknown
  readonly tools?: readonly unknown[]
  readonly subAgents?: readonly AgentLike[]
}

function checkAgent({ agent, rootAgent }: RuntimeOptions): void {
  if (agent && rootAgent) throw invalid('Give either `agent` or `rootAgent`, not both.')
  if (!agent && !rootAgent) {
    throw invalid('An agent is missing: give `agent: { model: "provider/model", … }` or `rootAgent`.')
  }
  if (rootAgent && !Array.isArray(rootAgent.subAgents)) throw invalid('`rootAgent` is not an ADK agent.')
  if (!agent) return
  if (agent.model === undefined) {
    throw invalid(
      '`agent.model` is missing. Name one as `provider/model`, for example `openai/gpt-5.2`, or `demo/demo` to try without a key.',
    )
  }
  for (const field of ['maxTurns', 'maxDelegations'] as const) {
    const value = agent[field]
    if (value !== undefined && !(Number.isInteger(value) && value > 0)) {
      throw invalid(`\`agent.${field}\` is ${String(value)}, but must be a whole number greater than 0.`)
    }
  }
  checkAgents(agent)
  checkTools(agent as AgentLike, 'agent')
}

function checkTools(agent: AgentLike, path: string): void {
  const names = new Set<string>()
  for (const [index, tool] of (agent.tools ?? []).entries()) {
    const where = `\`${path}.tools[${index}]\``
    if (typeof tool === 'string') continue
    if (typeof tool !== 'object' || tool === null) throw invalid(`${where} is not a tool.`)
    if (!('runAsync' in tool) && !('getTools' in tool)) checkOwnTool(tool, where)
    const { name } = tool as { name?: unknown }
    if (typeof name !== 'string') continue
    if (names.has(name))
      throw invalid(`${where} is a second tool called "${name}". Give each tool of an agent its own name.`)
    names.add(name)
  }
  for (const [index, child] of (agent.subAgents ?? []).entries())
    checkTools(child, `${path}.subAgents[${index}]`)
}

function checkOwnTool(tool: object, where: string): void {
  const { name, execute, parameters, effect } = tool as Record<string, unknown>
  if (typeof name !== 'string' || !/^[A-Za-z_][\w.:-]{0,127}$/.test(name) || name === '__proto__') {
    throw invalid(`${where} needs a \`name\` of letters, digits, underscores, dots or hyphens.`)
  }
  if (typeof execute !== 'function') throw invalid(`${where} ("${name}") needs a function \`execute\`.`)
  if (typeof parameters !== 'object' && typeof parameters !== 'function') {
    throw invalid(`${where} ("${name}") needs \`parameters\`: a Zod schema or a JSON schema.`)
  }
  if (effect !== undefined && !EFFECTS.includes(String(effect))) {
    throw invalid(
      `${where} ("${name}") has the effect "${String(effect)}", but there are: ${EFFECTS.join(', ')}.`,
    )
  }
}

function checkHistory(history: RuntimeOptions['history']): void {
  const { maxMessageTokenBudget: budget, maxMessages, repair } = history ?? {}
  if (budget !== undefined && budget !== 'off' && !(Number.isInteger(budget) && budget >= 0)) {
    throw invalid(
      `\`history.maxMessageTokenBudget\` is ${String(budget)}, but must be a whole number of tokens, 0 for the default, or 'off'.`,
    )
  }
  if (maxMessages !== undefined && !(Number.isInteger(maxMessages) && maxMessages > 0)) {
    throw invalid(
      `\`history.maxMessages\` is ${String(maxMessages)}, but must be a whole number greater than 0.`,
    )
  }
  if (repair !== undefined && !REPAIR_MODES.includes(repair)) {
    throw invalid(`\`history.repair\` is "${String(repair)}", but there are: ${REPAIR_MODES.join(', ')}.`)
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-config', message)
}
