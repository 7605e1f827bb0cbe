import { AgentError } from '../../errors.js'
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

/** Answers in a row that call nothing but tools that do not exist. A run of Lango's ends such a loop by its own limits. */
const MOST_MISSES = 5

/**
 * Throws when a model keeps calling tools that do not exist, although it was answered with the names of those that do.
 * `unknown`: the names in its last answer, as `answerUnknownTools` returns them; `model`: for the message.
 */
export function refuseEndlessMisses(llmRequest: LlmRequest, unknown: readonly string[], model: string): void {
  if (unknown.length === 0 || 1 + earlierMisses(llmRequest, new Set(unknown)) < MOST_MISSES) return
  const known = Object.keys(llmRequest.toolsDict ?? {}).filter(name => !unknown.includes(name))
  const names = unknown.map(name => `"${name}"`).join(', ')
  const list = known.length > 0 ? `It has these tools: ${known.join(', ')}.` : 'It has no tools.'
  throw new AgentError(
    'output-invalid',
    `${model} called tools that do not exist ${MOST_MISSES} times in a row, the last time ${names}. ${list} Name them in the instruction, or use another model.`,
    { details: { model, names: unknown } },
  )
}

/** How many answers just before a request called nothing but tools that do not exist. */
function earlierMisses({ contents, toolsDict }: LlmRequest, unknown: ReadonlySet<string>): number {
  const isUnknown = (name = '') => unknown.has(name) || !Object.hasOwn(toolsDict ?? {}, name)
  let misses = 0
  for (const { parts = [] } of contents.toReversed()) {
    const calls = parts.flatMap(part => part.functionCall ?? [])
    const isAnswer = calls.length === 0 && parts.some(part => part.functionResponse)
    if (isAnswer) continue
    if (calls.length === 0 || !calls.every(({ name }) => isUnknown(name))) break
    misses += 1
  }
  return misses
}

/** A name that no tool has: a call to nothing must not reach something. */
function freeName(tools: LlmRequest['toolsDict']): string {
  let name = 'unknown_tool'
  for (let number = 2; Object.hasOwn(tools, name); number += 1) name = `unknown_tool_${number}`
  return name
}
