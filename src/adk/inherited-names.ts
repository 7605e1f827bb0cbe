import type { LlmAgent } from './sdk.js'

/**
 * ADK looks tools and state up with `in` and with `object[name]`, which also find what every object inherits:
 * `constructor`, `toString`, `__proto__` and their kin. Objects that ADK looks foreign names up in lose their
 * prototype here, in place, because ADK holds on to the object that it made.
 */
export function withoutInheritedNames<Fields extends object>(fields: Fields): Fields {
  if (Object.getPrototypeOf(fields) !== null) Object.setPrototypeOf(fields, null)
  return fields
}

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
