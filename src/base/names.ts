/** Names that ADK or Lango gives a meaning to: of agents and of the tools that ADK itself calls. */

/** The root agent's name when none was given, and the author of stored answers without one. */
export const DEFAULT_AGENT_NAME = 'lango-agent'

/** The form of an agent's name. `user` has the form too and is refused: it names the person. */
export const AGENT_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_-]*$/

/** Whether an agent may have that name. */
export function isAgentName(name: string): boolean {
  return AGENT_NAME_PATTERN.test(name) && name !== 'user'
}

/** How much a model may be asked to think. */
export const THINKING_LEVELS = ['off', 'low', 'medium', 'high'] as const

/** The built-in tool that pages through outputs which were too long: a page is never shortened itself. */
export const READ_OUTPUT_TOOL = 'read_output'

/** The tool by which ADK transfers a conversation to another agent. */
export const TRANSFER_TOOL = 'transfer_to_agent'

/** The call by which ADK requests a person's approval. */
export const CONFIRMATION_TOOL = 'adk_request_confirmation'

/** The call by which a workflow of ADK's asks a person for input. */
export const INPUT_TOOL = 'adk_request_input'

/** Whether a call of that name is a request to a person (approval, credentials, input), made by ADK itself. */
export function isRequestTool(toolName: string | undefined): boolean {
  return toolName?.startsWith('adk_request_') ?? false
}

/** Whether ADK itself offers the tool of that name to models, to steer an agent: it changes nothing outside the session. */
export function isAdkTool(toolName: string): boolean {
  return toolName === TRANSFER_TOOL || toolName === 'set_model_response' || isRequestTool(toolName)
}

/** The plugin that a run adds to ADK. */
export const RUN_PLUGIN = 'lango-run'
