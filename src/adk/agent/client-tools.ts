/**
 * Tools that the caller of a run executes. They are declared after the agent's own. A call of one ends the round: the
 * run waits, and the caller's results open the next round.
 *
 * - A call whose arguments a strict schema refuses, or one too many where only one is allowed, is answered here.
 * - Only agents that are reached by transfers have them: a workflow goes on to its next agent while a call waits.
 */
import { isAdkTool } from '../../base/names.js'
import { AgentError } from '../../errors.js'
import type { LedgerTool } from '../../session/tool-calls.js'
import type { ClientTool, ClientTools } from '../../tool.js'
import {
  BaseTool,
  type Context,
  type FunctionCall,
  type FunctionDeclaration,
  type GenerateContentConfig,
  isLlmAgent,
  type LlmRequest,
  type RunAsyncToolRequest,
} from '../sdk.js'
import { agentsOf } from './agent-tree.js'
import { findCallEvent } from './tool-approval.js'
import { type CheckedParameters, checkedParameters } from './tool-parameters.js'

/** What a run is asked for beside its message. */
interface ClientWishes {
  clientTools?: ClientTools | undefined
  generation?: GenerateContentConfig | undefined
}

/** What the caller adds to the requests of a run. */
export function clientRequests({ clientTools, generation }: ClientWishes): ClientRequests | undefined {
  return clientTools || generation ? new ClientRequests({ clientTools, generation }) : undefined
}

/** Adds the caller's tools and options to the requests of one run. */
class ClientRequests {
  readonly #tools: ReadonlyMap<string, ClientToolAdapter>
  readonly #wishes: ClientWishes
  #isFirst = true

  constructor(wishes: ClientWishes) {
    this.#wishes = wishes
    const { tools = [], choice } = wishes.clientTools ?? {}
    const offered = choice === 'none' ? [] : tools
    const problemOf = (call: FunctionCall, context: Context) => this.#problemOf(call, callsBeside(context))
    this.#tools = new Map(offered.map(tool => [tool.name, new ClientToolAdapter(tool, problemOf)]))
  }

  /** The choice of a tool holds for the first answer of each round: otherwise the agent could not end. */
  beginRound(): void {
    this.#isFirst = true
  }

  /** Called with each request of the run's own agents before it is sent. */
  prepare({ invocationContext }: Context, request: LlmRequest): void {
    const { generation } = this.#wishes
    if (generation) request.config = { ...request.config, ...generation }
    if (this.#tools.size === 0 || !isReachedByTransfer(invocationContext.agent)) return
    request.config ??= {}
    const declarations = [...this.#tools.values()].map(tool => tool._getDeclaration())
    request.config.tools = [...(request.config.tools ?? []), { functionDeclarations: declarations }]
    for (const [name, tool] of this.#tools) request.toolsDict[name] = tool
    if (this.#isFirst) this.#choose(request.config)
    this.#isFirst = false
  }

  /** A tool of the agent's own has ended: the round ends with it when a call of the caller's waits beside it. */
  async afterTool(context: Context): Promise<void> {
    if (this.#tools.size === 0) return
    const calls = callsBeside(context)
    for (const call of calls.filter(({ name = '' }) => this.#tools.has(name)))
      if ((await this.#problemOf(call, calls)) === undefined) context.actions.skipSummarization = true
  }

  /** Why a call is not passed on to the caller. */
  async #problemOf(call: FunctionCall, calls: readonly FunctionCall[]): Promise<string | undefined> {
    const { parallel = true } = this.#wishes.clientTools ?? {}
    const first = calls.find(({ name = '' }) => this.#tools.has(name))
    if (!parallel && first && first.id !== call.id)
      return `Tool "${call.name}" was not called: only one call at a time is allowed. Call it again after the first one was answered.`
    return this.#tools.get(call.name ?? '')?.invalid(call.args ?? {})
  }

  #choose(config: GenerateContentConfig): void {
    const { choice = 'auto' } = this.#wishes.clientTools ?? {}
    if (choice === 'auto' || choice === 'none') return
    const allowedFunctionNames = choice === 'required' ? [...this.#tools.keys()] : [...choice.names]
    // The value of the SDK's enumeration.
    config.toolConfig = { functionCallingConfig: { mode: 'ANY' as never, allowedFunctionNames } }
  }
}

/** A tool that executes nothing: without a result, ADK leaves the call open. */
class ClientToolAdapter extends BaseTool {
  readonly #tool: ClientTool
  readonly #parameters: CheckedParameters
  readonly #problemOf: (call: FunctionCall, context: Context) => Promise<string | undefined>
  /** A call that was cut off is made again: nothing was executed. */
  readonly ledgerTool: LedgerTool = { effect: 'idempotent' }

  constructor(
    tool: ClientTool,
    problemOf: (call: FunctionCall, context: Context) => Promise<string | undefined>,
  ) {
    super({ name: tool.name, description: tool.description ?? '', isLongRunning: true })
    this.#tool = tool
    this.#parameters = checkedParameters(tool.parameters ?? { type: 'object', properties: {} })
    this.#problemOf = problemOf
  }

  override _getDeclaration(): FunctionDeclaration {
    const { name, description = '' } = this.#tool
    return { name, description, parametersJsonSchema: this.#parameters.jsonSchema }
  }

  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<unknown> {
    const id = toolContext.functionCallId ?? ''
    const error = await this.#problemOf({ id, name: this.name, args }, toolContext)
    return error === undefined ? undefined : { error }
  }

  /** What a strict schema has against the arguments. */
  async invalid(args: Record<string, unknown>): Promise<string | undefined> {
    if (!this.#tool.strict) return undefined
    const checked = await this.#parameters.validate(args)
    return 'problem' in checked ? `Invalid arguments for tool "${this.name}": ${checked.problem}` : undefined
  }
}

/** The calls of the answer that a tool is called for. */
function callsBeside(context: Context): FunctionCall[] {
  const event = findCallEvent(context, context.functionCallId ?? '')
  return (event?.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
}

function isReachedByTransfer(agent: unknown): boolean {
  let each: unknown = agent
  while (isLlmAgent(each)) {
    if (!each.parentAgent) return true
    each = each.parentAgent
  }
  return false
}

/** Refuses tools that the agent could not tell from its own, and agents that cannot wait for a caller. */
export async function checkClientTools(root: object, given: ClientTools | undefined): Promise<void> {
  const { tools = [], choice = 'auto' } = given ?? {}
  const names = tools.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw refused(`The tool "${twice}" is declared twice. Give each tool a name of its own.`)
  const unknown = typeof choice === 'object' ? choice.names.find(name => !names.includes(name)) : undefined
  if (unknown !== undefined) throw refused(`The tool "${unknown}" is chosen but not declared.`, 'tool_choice')
  if (choice === 'required' && names.length === 0)
    throw refused('A tool is required, but none is declared.', 'tool_choice')
  if (names.length === 0) return
  if (!isLlmAgent(root))
    throw refused('The agent is a workflow, which cannot wait for tools of its caller. Leave the tools out.')
  for (const agent of agentsOf(root)) {
    if (!isLlmAgent(agent)) continue
    const own = new Set((await agent.canonicalTools()).map(({ name }) => name))
    const taken = names.find(name => own.has(name) || isAdkTool(name))
    if (taken !== undefined)
      throw refused(
        `The tool "${taken}" has the name of a tool that agent "${agent.name}" runs itself. Rename yours, or leave it out: the agent calls its own.`,
      )
  }
}

function refused(message: string, field = 'tools'): AgentError {
  return new AgentError('invalid-argument', message, { details: { field } })
}
