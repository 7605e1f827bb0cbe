/**
 * What belongs to a root: agents and their sub-agents, the nodes of a workflow, and what tools run. Nodes that code
 * makes while it runs are not part of it; each of them is the root of a tree of its own.
 */
import {
  type BaseAgent,
  type BaseNode,
  type BaseTool,
  type BaseToolset,
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isLlmAgent,
  isWorkflow,
} from '../sdk.js'

/** Every node below a root and the root itself, depth first, each once. Agents are nodes too. */
export function nodesOf(root: object): BaseNode[] {
  const found = new Set<BaseNode>()
  const visit = (node: object): void => {
    if (!isBaseNode(node) || found.has(node)) return
    found.add(node)
    for (const child of childrenOf(node)) visit(child)
  }
  visit(root)
  return [...found]
}

/** The agents among them. */
export function agentsOf(root: object): BaseAgent[] {
  return nodesOf(root).filter(isBaseAgent)
}

/** The tools of a node: those that an agent offers to its model, or the one that a node of a workflow calls. */
export function toolsOf(node: BaseNode): readonly (BaseTool | BaseToolset)[] {
  if (isLlmAgent(node)) return node.tools.flatMap(tool => (isBaseNode(tool) ? [] : [tool]))
  const tool: unknown = Reflect.get(node, 'tool')
  return isBaseTool(tool) ? [tool] : []
}

/** The agent or node that a tool runs, if it runs one. ADK declares the fields private. */
export function innerOf(tool: object): object | undefined {
  if (isAgentTool(tool)) return Reflect.get(tool, 'agent')
  return isNodeTool(tool) ? Reflect.get(tool, 'node') : undefined
}

/** Whether a tool runs a node within the session and the invocation of its agent. */
export function isNodeTool(tool: object): boolean {
  return Reflect.get(tool, NODE_TOOL) === true
}

function isBaseNode(value: unknown): value is BaseNode {
  return typeof value === 'object' && value !== null && Reflect.get(value, BASE_NODE) === true
}

/** ADK marks its objects with these, and exports no test for them. */
const BASE_NODE = Symbol.for('google.adk.workflow.baseNode')
const NODE_TOOL = Symbol.for('google.adk.workflow.nodeTool')

function childrenOf(node: BaseNode): object[] {
  const inTools = toolsOf(node).flatMap(tool => innerOf(tool) ?? [])
  const worker: unknown = Reflect.get(node, 'inner')
  return [
    ...(isBaseAgent(node) ? node.subAgents : []),
    ...(isLlmAgent(node) ? node.tools.filter(isBaseNode) : []),
    ...(isWorkflow(node) ? (node.graph?.nodes ?? []) : []),
    ...(isBaseNode(worker) ? [worker] : []),
    ...inTools,
  ]
}
