import { BaseTool, type LlmRequest, type LlmResponse } from '../sdk.js'

/**
 * Answers a call to a tool that does not exist with the names of those that do. ADK would end the step with an
 * error, leave every call of the batch unanswered and ask the model again without telling it anything.
 */
class UnknownTool extends BaseTool {
  readonly #known: readonly string[]

  constructor(name: string, known: readonly string[]) {
    super({ name, description: '' })
    this.#known = known
  }

  override async runAsync(): Promise<unknown> {
    const list =
      this.#known.length > 0 ? `Available tools: ${this.#known.join(', ')}.` : 'There are no tools.'
    return { error: `Tool "${this.name}" does not exist. ${list}` }
  }
}

/** Sees to it that every call of an answer has a tool to go to, and returns the names that had none. */
export function answerUnknownTools(llmRequest: LlmRequest, response: LlmResponse): string[] {
  const tools = llmRequest.toolsDict
  const called = (response.content?.parts ?? []).flatMap(part =>
    part.functionCall ? [part.functionCall.name ?? ''] : [],
  )
  // An own property: ADK looks names up with `in`, which also finds `constructor` and its kin.
  const unknown = [...new Set(called)].filter(name => !Object.hasOwn(tools, name))
  const known = Object.keys(tools)
  for (const name of unknown) tools[name] = new UnknownTool(name, known)
  return unknown
}
