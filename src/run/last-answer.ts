/** Which answer of a model is the last event of its run. */
import {
  type Event,
  isBaseAgent,
  isBaseToolset,
  isLlmAgent,
  LlmAgent,
  type Part,
  type RunnableRoot,
} from '../adk/sdk.js'

/**
 * Whether nothing comes after an answer of a model, neither of ADK's nor of the user's: it is the answer of a root agent
 * without other agents, has no calls, and the agent has no code of its own that would come after it.
 */
export function isLastEvent(root: RunnableRoot, { author, branch, content, errorCode }: Event): boolean {
  if (!isBaseAgent(root) || !isLlmAgent(root) || author !== root.name || branch || errorCode) return false
  const { afterAgentCallback, codeExecutor, mode, subAgents, tools } = root
  const isPlain = isPlainAgent(root) && subAgents.length === 0 && !codeExecutor && mode !== 'task'
  // Sets of tools are closed after the answer.
  if (!isPlain || afterAgentCallback.length > 0 || tools.some(isBaseToolset)) return false
  return content?.parts?.every(isWords) ?? false
}

/** Whether an agent does what ADK's own class does. */
function isPlainAgent(agent: LlmAgent): boolean {
  return (
    Object.getPrototypeOf(agent) === LlmAgent.prototype &&
    !AFTER_ANSWER.some(name => Object.hasOwn(agent, name))
  )
}

/** The methods that come to an end after the answer. */
const AFTER_ANSWER = [
  ...['runAsync', 'runAsyncImpl', 'runOneStepAsync', 'callLlmAsync', 'postprocess'],
  ...['runAndHandleError', 'handleAfterAgentCallback'],
]

/** ADK asks again after a part of any other kind. */
function isWords({ functionCall, functionResponse, executableCode, codeExecutionResult }: Part): boolean {
  return !functionCall && !functionResponse && !executableCode && !codeExecutionResult
}
