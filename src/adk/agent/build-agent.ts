import { AgentError } from '../../errors.js'
import type { Tool } from '../../tool.js'
import { type BaseLlm, type BaseTool, type BaseToolset, LlmAgent } from '../sdk.js'
import { agentName, checkAgents } from './check-agents.js'
import { takeAnyToolName } from './take-any-tool-name.js'
import { ToolAdapter, type ToolAdapterOptions } from './tool-adapter.js'

/** An agent as plain data: what `createRuntime` takes. */
export interface AgentDefinition {
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
  resolveModel(model: string | BaseLlm): BaseLlm
  /** How our own tools are run. */
  toolOptions?: ToolAdapterOptions
}

function build(definition: AgentDefinition, isRoot: boolean, parts: AgentParts): LlmAgent {
  const { instruction = '', model } = definition
  const agent = new LlmAgent({
    name: agentName(definition, isRoot),
    ...(model === undefined ? {} : { model: parts.resolveModel(model) }),
    ...(definition.description === undefined ? {} : { description: definition.description }),
    // A function is taken as it is; a string would be searched for {placeholders}.
    instruction: definition.templating ? instruction : () => instruction,
    tools: (definition.tools ?? []).map(tool => asAdkTool(tool, parts.toolOptions)),
    subAgents: (definition.subAgents ?? []).map(child => build(child, false, parts)),
  })
  return takeAnyToolName(agent)
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
