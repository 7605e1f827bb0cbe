import { withoutInheritedNames } from '../inherited-names.js'
import type { LlmAgent } from '../sdk.js'

type RequestProcessor = LlmAgent['requestProcessors'][number]

/** ADK refuses a tool called `constructor` as a duplicate: it finds the name in its own, still empty table. */
export function takeAnyToolName(agent: LlmAgent): LlmAgent {
  const { requestProcessors } = agent
  if (!requestProcessors.includes(PLAIN_TOOL_TABLE)) requestProcessors.unshift(PLAIN_TOOL_TABLE)
  return agent
}

const PLAIN_TOOL_TABLE: RequestProcessor = {
  // biome-ignore lint/correctness/useYield: ADK's processors may emit events; this one has none.
  async *runAsync(_invocation, llmRequest) {
    withoutInheritedNames(llmRequest.toolsDict)
  },
}
