import { AgentError, messageOf } from '../../errors.js'
import { toJson } from '../../session/json.js'
import { shortenOutput } from '../../session/shorten-output.js'
import type { Tool, ToolContext } from '../../tool.js'
import { withoutInheritedNames } from '../inherited-names.js'
import {
  BaseTool,
  type Context,
  type FunctionDeclaration,
  type RunAsyncToolRequest,
  type ToolProcessLlmRequest,
} from '../sdk.js'
import { checkTimeLimit, startTimeLimit } from './time-limit.js'
import { type Approve, refusalOf } from './tool-approval.js'
import { type EarlyResult, runInBatch } from './tool-batch.js'
import { type CheckedParameters, checkedParameters } from './tool-parameters.js'

export interface ToolAdapterOptions {
  /** Results over this are shortened, with a marker. Default 16,000. */
  outputLimitTokens?: number | undefined
  /** Asks a person. Without it, a tool that needs approval is refused. */
  approve?: Approve | undefined
  /** A request that nobody answers within this is refused. Default 300,000. */
  approvalTimeoutMs?: number | undefined
  /** Keeps a result that is over the limit, as JSON, and returns the name that `read_output` finds it by. */
  keepWhole?:
    | ((callId: string, name: string, json: string, context: OutputContext) => Promise<string>)
    | undefined
}

/** Whose output it is. */
export type OutputContext = Pick<ToolContext, 'sessionId' | 'userId' | 'agentName'>

export type { ApprovalRequest, Approve } from './tool-approval.js'

/**
 * A tool of ours as ADK runs it. Whatever happens, the model gets a JSON object: wrong arguments, a refusal, a
 * thrown error and a timeout are results that it can react to, never the end of the run.
 */
export class ToolAdapter extends BaseTool {
  readonly tool: Tool
  readonly #parameters: CheckedParameters
  readonly #options: ToolAdapterOptions

  constructor(tool: Tool, options: ToolAdapterOptions = {}) {
    super({ name: tool.name, description: tool.description })
    checkTimeLimit(tool.name, 'timeoutMs', tool.timeoutMs)
    checkTimeLimit(tool.name, 'approvalTimeoutMs', options.approvalTimeoutMs)
    this.tool = tool
    this.#parameters = checkedParameters(tool.parameters)
    this.#options = options
  }

  override _getDeclaration(): FunctionDeclaration {
    const { name, description } = this.tool
    return { name, description, parametersJsonSchema: this.#parameters.jsonSchema }
  }

  override async processLlmRequest(request: ToolProcessLlmRequest): Promise<void> {
    withoutInheritedNames(request.llmRequest.toolsDict)
    await super.processLlmRequest(request)
  }

  /** A tool that asks nobody and may be repeated may run while its neighbours do. */
  get runsBesideOthers(): boolean {
    const { effect = 'once', needsApproval = false } = this.tool
    return effect !== 'once' && needsApproval === false
  }

  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<unknown> {
    const batched = runInBatch(toolContext, isToolAdapter)
    if (!batched) return this.#run(args, toolContext, contextOf(toolContext))
    const { result, stateWrites } = await batched
    for (const [key, value] of stateWrites) toolContext.state.set(key, value)
    return result
  }

  /** Runs before ADK asks: what it writes to the state is kept until then. */
  async runEarly(args: Record<string, unknown>, callId: string, toolContext: Context): Promise<EarlyResult> {
    const stateWrites = new Map<string, unknown>()
    const state = {
      get: (key: string) => (stateWrites.has(key) ? stateWrites.get(key) : toolContext.state.get(key)),
      set: (key: string, value: unknown) => void stateWrites.set(key, value),
    }
    const result = await this.#run(args, toolContext, { ...contextOf(toolContext), callId, state })
    return { result, stateWrites }
  }

  async #run(args: unknown, toolContext: Context, context: Omit<ToolContext, 'signal'>): Promise<unknown> {
    const checked = await this.#parameters.validate(args)
    if ('problem' in checked) {
      return { error: `Invalid arguments for tool "${this.name}": ${checked.problem}` }
    }
    const result = await this.#execute(checked.args as Record<string, unknown>, toolContext, context)
    return this.#shortened(result, context)
  }

  async #execute(
    args: Record<string, unknown>,
    toolContext: Context,
    context: Omit<ToolContext, 'signal'>,
  ): Promise<unknown> {
    const notRun = { error: `Tool "${this.name}" was not run: the run was stopped.` }
    if (toolContext.abortSignal?.aborted) return notRun
    const timeoutMs = this.tool.timeoutMs ?? DEFAULT_TIMEOUT_MS
    const stop = new AbortController()
    const aborted = () => stop.abort(toolContext.abortSignal?.reason)
    toolContext.abortSignal?.addEventListener('abort', aborted, { once: true })
    let hasBegun = false
    let timer: NodeJS.Timeout | undefined
    // The tool's time begins when it does: a person who thinks about it does not use it up.
    const begin = () => {
      hasBegun = true
      timer = startTimeLimit(() => stop.abort(TIMED_OUT), timeoutMs)
    }
    try {
      const work = this.#approvedExecute(args, untilStopped(context, stop.signal), begin)
      return await Promise.race([work, whenStopped(stop.signal, this.name, timeoutMs, () => hasBegun)])
    } catch (error) {
      return { error: messageOf(error) }
    } finally {
      clearTimeout(timer)
      toolContext.abortSignal?.removeEventListener('abort', aborted)
    }
  }

  async #approvedExecute(
    args: Record<string, unknown>,
    context: ToolContext,
    begin: () => void,
  ): Promise<unknown> {
    const { approve, approvalTimeoutMs = DEFAULT_APPROVAL_TIMEOUT_MS } = this.#options
    const refusal = await refusalOf({ tool: this.tool, args, context }, { approve, approvalTimeoutMs })
    if (refusal !== undefined) return { error: refusal }
    // The run may have been stopped while its answer was on the way.
    context.signal.throwIfAborted()
    begin()
    return this.tool.execute(args, context)
  }

  async #shortened(result: unknown, context: Omit<ToolContext, 'signal'>): Promise<Record<string, unknown>> {
    const json = toJson(asObject(result))
    const limitTokens = this.#options.outputLimitTokens ?? DEFAULT_OUTPUT_LIMIT_TOKENS
    let shorter = shortenOutput(json, limitTokens)
    if (shorter !== json && this.#options.keepWhole) {
      shorter = shortenOutput(json, limitTokens, await this.#wholeNote(json, context))
    }
    return JSON.parse(shorter) as Record<string, unknown>
  }

  /** Where the whole output is, for the marker in the shortened one. Losing it does not lose the rest. */
  async #wholeNote(json: string, { callId, sessionId, userId, agentName }: Omit<ToolContext, 'signal'>) {
    try {
      const owner = { sessionId, userId, agentName }
      const reference = await this.#options.keepWhole?.(callId, this.name, json, owner)
      return `; all of it is kept as "${reference}": page through it with the tool read_output`
    } catch (error) {
      return `; keeping all of it failed: ${messageOf(error)}`
    }
  }
}

const DEFAULT_TIMEOUT_MS = 120_000
const DEFAULT_APPROVAL_TIMEOUT_MS = 300_000
const DEFAULT_OUTPUT_LIMIT_TOKENS = 16_000
const TIMED_OUT = Symbol('timed out')

/** The result of a tool that is stopped before it answers; it never comes while the tool may go on. */
function whenStopped(
  signal: AbortSignal,
  name: string,
  timeoutMs: number,
  hasBegun: () => boolean,
): Promise<unknown> {
  return new Promise(resolve => {
    const stopped = () => {
      const timedOut = `Tool "${name}" did not answer within ${timeoutMs} ms and was stopped.`
      const aborted = hasBegun()
        ? `Tool "${name}" was stopped before it answered, because the run was stopped.`
        : `Tool "${name}" was not run: the run was stopped.`
      resolve({ error: signal.reason === TIMED_OUT ? timedOut : aborted })
    }
    signal.addEventListener('abort', stopped, { once: true })
  })
}

/** What the tool may do while it runs. Nobody waits for what a stopped tool still does, so it leaves no trace. */
function untilStopped(context: Omit<ToolContext, 'signal'>, signal: AbortSignal): ToolContext {
  const { state } = context
  const set = (key: string, value: unknown) => {
    // ADK loses this key when it merges the state of several calls, so it is refused in all cases.
    if (key === '__proto__')
      throw new AgentError(
        'invalid-argument',
        'A tool cannot write the state key "__proto__". Use another key.',
      )
    if (!signal.aborted) state.set(key, value)
  }
  return { ...context, signal, state: { get: key => state.get(key), set } }
}

function isToolAdapter(tool: object): tool is ToolAdapter {
  return tool instanceof ToolAdapter
}

function contextOf(context: Context): Omit<ToolContext, 'signal'> {
  if (context.actions) withoutInheritedNames(context.actions.stateDelta)
  return {
    callId: context.functionCallId ?? '',
    sessionId: context.sessionId,
    userId: context.userId,
    agentName: context.agentName,
    state: {
      get: key => context.state.get(key),
      set: (key, value) => context.state.set(key, value),
    },
  }
}

/** Wrapped as ADK itself wraps: `result` for single values, `results` for lists. */
function asObject(result: unknown): unknown {
  if (result instanceof Error) return { error: result.message }
  if (Array.isArray(result)) return { results: result }
  const data: unknown = JSON.parse(toJson(result))
  if (Array.isArray(data)) return { results: data }
  return typeof data === 'object' && data !== null ? data : { result: data }
}
