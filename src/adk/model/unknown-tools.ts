import { withoutInheritedNames } from '../adk-quirks.js'
import { BaseTool, type LlmRequest, type LlmResponse } from '../sdk.js'

/**
 * Answers a call to a tool that does not exist with the names of those that do. ADK would end the step with an
 * error, leave every call of the batch unanswered and ask the model again without telling it anything.
 */
class UnknownTool extends BaseTool {
  readonly #problem: string
  readonly #known: readonly string[]

  constructor(name: string, problem: string, known: readonly string[]) {
    super({ name, description: '' })
    this.#problem = problem
    this.#known = known
  }

  override async runAsync(): Promise<unknown> {
    const list =
      this.#known.length > 0 ? `Available tools: ${this.#known.join(', ')}.` : 'There are no tools.'
    return { error: `${this.#problem} ${list}` }
  }
}

/**
 * Sees to it that every call of an answer has a tool to go to, and returns the names that had none. A call
 * without a name gets one, because neither ADK nor a provider that sees it again accepts it.
 */
export function answerUnknownTools(llmRequest: LlmRequest, response: LlmResponse): string[] {
  // ADK always sets it; a caller without ADK may not.
  llmRequest.toolsDict ??= {}
  const tools = withoutInheritedNames(llmRequest.toolsDict)
  const known = Object.keys(tools)
  const calls = (response.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
  const standIn = freeName(tools)
  const unknown = new Set<string>()
  for (const call of calls) {
    const isNameless = !call.name
    const name = call.name || standIn
    call.name = name
    if (Object.hasOwn(tools, name)) continue
    const problem = isNameless ? 'The call names no tool.' : `Tool "${name}" does not exist.`
    tools[name] = new UnknownTool(name, problem, known)
    unknown.add(name)
  }
  return [...unknown]
}

/** A name that no tool has: a call to nothing must not reach something. */
function freeName(tools: LlmRequest['toolsDict']): string {
  let name = 'unknown_tool'
  for (let number = 2; Object.hasOwn(tools, name); number += 1) name = `unknown_tool_${number}`
  return name
}
