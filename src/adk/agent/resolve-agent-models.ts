import { type BaseAgent, type BaseLlm, isAgentTool, isLlmAgent } from '../sdk.js'
import { takeAnyToolName } from './take-any-tool-name.js'

/**
 * Gives every agent of a tree that names its model by a string a model of ours, in place, and lets it take
 * tools of any name: nothing else of a user's agent is touched. Agents inside `AgentTool`s belong to the tree too.
 */
export function resolveAgentModels(
  root: BaseAgent,
  resolve: (reference: string) => BaseLlm,
  /** The reference of a model that was put there before, by another runtime or this one. */
  referenceOf: (model: BaseLlm) => string | undefined = () => undefined,
): BaseAgent {
  const visited = new Set<BaseAgent>()
  const visit = (agent: BaseAgent): void => {
    if (visited.has(agent)) return
    visited.add(agent)
    if (isLlmAgent(agent)) {
      takeAnyToolName(agent)
      const { model } = agent
      const reference = typeof model === 'string' ? model : model && referenceOf(model)
      if (reference) agent.model = resolve(reference)
      for (const tool of agent.tools) {
        if (isAgentTool(tool)) visit(innerAgent(tool))
      }
    }
    for (const child of agent.subAgents) visit(child)
  }
  visit(root)
  return root
}

/** ADK declares the field private, but an agent inside a tool needs its model as much as any other. */
function innerAgent(tool: object): BaseAgent {
  return (tool as { agent: BaseAgent }).agent
}
