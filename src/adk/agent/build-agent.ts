import { defined } from '../../base/defined.js'
import { DEFAULT_AGENT_NAME, isAgentName } from '../../base/names.js'
import { AgentError } from '../../errors.js'
import type { ModelOptions } from '../../session/model-options.js'
import type { Tool } from '../../tool.js'
import { takeAnyToolName, takeServerTools, verbatim } from '../adk-quirks.js'
import {
  type BaseContextCompactor,
  type BaseLlm,
  type BaseTool,
  type BaseToolset,
  CONTENT_REQUEST_PROCESSOR,
  isLlmAgent,
  LLMRegistry,
  LlmAgent,
} from '../sdk.js'
import { keepStoredOrder } from '../stored-contents.js'
import { agentsOf } from './agent-tree.js'
import { ToolAdapter, type ToolAdapterOptions } from './tool-adapter.js'

/** An agent as plain data: what `createRuntime` takes. A model is inherited with its options. */
export interface AgentDefinition extends ModelOptions {
  /** Default `lango-agent` for the root; required for sub-agents. */
  name?: string | undefined
  /** A reference such as `openai/gpt-5.2`, or a model of ADK's. Sub-agents inherit it. */
  model?: string | BaseLlm | undefined
  /** What the agent is for: other agents decide by it whether to hand over. */
  description?: string | undefined
  instruction?: string | undefined
  /** Fill `{name}` in the instruction from the session's state, as ADK does. Default false: braces are braces. */
  templating?: boolean | undefined
  /** Tools, or names of built-in and MCP tools (`files_*`: all that begin so). */
  tools?: readonly (AgentTool | string)[] | undefined
  subAgents?: readonly AgentDefinition[] | undefined
}

/** A tool of Lango's or of ADK's. */
export type AgentTool = Tool | BaseTool | BaseToolset

/** Builds ADK's tree of agents. Names are checked before anything is built. */
export function buildAgent(root: AgentDefinition, parts: AgentParts): LlmAgent {
  checkAgents(root)
  return build(root, true, parts)
}

export interface AgentParts {
  resolveModel(model: string | BaseLlm, options: ModelOptions): BaseLlm
  /** How our own tools are run. */
  toolOptions?: ToolAdapterOptions
  /** ADK's compaction, for every agent. */
  contextCompactors?: readonly BaseContextCompactor[] | undefined
}

/** A model, and what it is asked for. */
interface ChosenModel {
  model?: string | BaseLlm | undefined
  options: ModelOptions
}

function build(
  definition: AgentDefinition,
  isRoot: boolean,
  parts: AgentParts,
  above: ChosenModel = { options: {} },
): LlmAgent {
  const { instruction = '' } = definition
  const { chosen, isInherited } = chooseModel(definition, above)
  const model = isInherited ? undefined : chosen.model
  const agent = new LlmAgent({
    name: agentName(definition, isRoot),
    ...(model === undefined ? {} : { model: parts.resolveModel(model, chosen.options) }),
    ...(definition.description === undefined ? {} : { description: definition.description }),
    instruction: definition.templating ? instruction : verbatim(instruction),
    tools: (definition.tools ?? []).map(tool => asAdkTool(tool, parts.toolOptions)),
    subAgents: (definition.subAgents ?? []).map(child => build(child, false, parts, chosen)),
    ...(parts.contextCompactors ? { contextCompactors: [...parts.contextCompactors] } : {}),
  })
  takeServerTools(agent, model === undefined ? undefined : agent.canonicalModel.model)
  return keepStoredOrder(takeAnyToolName(agent), CONTENT_REQUEST_PROCESSOR)
}

/** An agent without a model has that of the agent above it, with its options; what it sets itself comes first. */
function chooseModel(
  { model, thinking, temperature, maxOutputTokens, fallback }: AgentDefinition,
  above: ChosenModel,
): { chosen: ChosenModel; isInherited: boolean } {
  const options = defined({ thinking, temperature, maxOutputTokens, fallback })
  if (model !== undefined) return { chosen: { model, options }, isInherited: false }
  const isInherited = Object.keys(options).length === 0
  return { chosen: { model: above.model, options: { ...above.options, ...options } }, isInherited }
}

function asAdkTool(tool: AgentTool | string, options: ToolAdapterOptions = {}): BaseTool | BaseToolset {
  if (typeof tool === 'string')
    throw new AgentError(
      'invalid-config',
      `There is no tool "${tool}". Give the tool itself, or configure it.`,
    )
  return 'execute' in tool && 'parameters' in tool && !('runAsync' in tool)
    ? new ToolAdapter(tool as Tool, options)
    : (tool as BaseTool | BaseToolset)
}

/**
 * Gives every agent of a tree that names its model by a string a model of ours, in place, and lets it take
 * tools of any name: nothing else of a user's agent is touched. Agents inside tools and workflows belong to the tree too.
 */
export function resolveAgentModels<Root extends object>(
  root: Root,
  /** `undefined`: ADK resolves the name. */
  resolve: (reference: string) => BaseLlm | undefined,
  /** The reference of a model that was put there before, by another runtime or this one. */
  referenceOf: (model: BaseLlm) => string | undefined = () => undefined,
): Root {
  for (const agent of agentsOf(root)) {
    if (!isLlmAgent(agent)) continue
    keepStoredOrder(takeAnyToolName(agent), CONTENT_REQUEST_PROCESSOR)
    const { model } = agent
    const reference = typeof model === 'string' ? model : model && referenceOf(model)
    const resolved = reference && resolve(reference)
    if (resolved) agent.model = resolved
    takeServerTools(agent, reference)
  }
  return root
}

type FindModel = (name: string) => BaseLlm | undefined

let findModel: FindModel | undefined

/**
 * Lets `find` answer first when an agent asks ADK's registry for the model that it names. The walk over the tree does not
 * see every agent: toolsets make agents, custom agents hold them in fields, workflows contain them, and callbacks add
 * or clone them during a run. All of them ask the registry. Where `find` returns nothing, ADK answers as always.
 */
export function answerForRegistry(find: FindModel): void {
  if (findModel === undefined) {
    const newLlm = LLMRegistry.newLlm.bind(LLMRegistry)
    LLMRegistry.newLlm = name => findModel?.(name) ?? newLlm(name)
  }
  findModel = find
}

/** Whether ADK has a class for models of that name. */
export function isKnownToAdk(name: string): boolean {
  try {
    return LLMRegistry.resolve(name) !== undefined
  } catch {
    return false
  }
}

/** An agent as far as its name and place go. */
interface NamedDefinition {
  readonly name?: string | undefined
  readonly subAgents?: readonly NamedDefinition[] | undefined
}

/** Names are valid and unique, and no agent is below itself. Needs no ADK, so it can be checked at once. */
function checkAgents(root: NamedDefinition): void {
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
function agentName(definition: NamedDefinition, isRoot: boolean): string {
  return definition.name ?? (isRoot ? DEFAULT_AGENT_NAME : '')
}

function checkName(name: string, where: string, seen: Set<string>): void {
  if (name === '') throw invalid(`A sub-agent has no name (${where}). Give each sub-agent a \`name\`.`)
  if (!isAgentName(name)) {
    throw invalid(
      `"${name}" is not a valid agent name (${where}). Use a letter or an underscore, then letters, digits, underscores or hyphens; not "user".`,
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
