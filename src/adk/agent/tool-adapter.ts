import { setMaxListeners } from 'node:events'
import { isRecord } from '../../base/is-record.js'
import { toJson, toJsonData } from '../../base/json.js'
import { OUTCOME_UNKNOWN } from '../../base/markers.js'
import { READ_OUTPUT_TOOL } from '../../base/names.js'
import { splitMedia, withMedia } from '../../base/tool-media.js'
import { AgentError, checkArgument, checkOptions, messageOf } from '../../errors.js'
import { shortenOutput } from '../../session/shorten-output.js'
import type { BegunCall, CallEnd, ExecuteCall, LedgerTool } from '../../session/tool-calls.js'
import type { Tool, ToolContext, VerifyContext } from '../../tool.js'
import { withoutInheritedNames } from '../adk-quirks.js'
import {
  BaseTool,
  type Context,
  type FunctionDeclaration,
  type RunAsyncToolRequest,
  type ToolProcessLlmRequest,
} from '../sdk.js'
import { beginCall, type LedgerOf, ledgerId } from './adopt-tools.js'
import {
  type Approve,
  type CallContext,
  callerOf,
  checkTimeLimit,
  type EarlyResult,
  refusalOf,
  runInBatch,
  startTimeLimit,
} from './tool-approval.js'
import { type CheckedParameters, checkedParameters, copyOf } from './tool-parameters.js'

export interface ToolAdapterOptions {
  /** Results over this are shortened, with a marker. Default 16,000. */
  outputLimitTokens?: number | undefined
  /** Requests a person's approval. Without it, a tool that needs approval is refused. */
  approve?: Approve | undefined
  /** An approval that is not answered within this time is a refusal. Default: it waits without end. */
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
 * A Lango tool as ADK runs it. The model always gets a JSON object: wrong arguments, a refusal, a thrown error and
 * a timeout are results that it can react to, never the end of the run.
 *
 * ```ts
 * import { LlmAgent } from '@google/adk'
 * import { defineTool, ToolAdapter } from 'lango/adk'
 *
 * const now = defineTool({
 *   name: 'now',
 *   description: 'The current time.',
 *   parameters: { type: 'object', properties: {} },
 *   execute: () => new Date().toISOString(),
 * })
 * export const agent = new LlmAgent({
 *   name: 'clock',
 *   model: 'gemini-3.5-flash',
 *   tools: [new ToolAdapter(now, { outputLimitTokens: 4_000 })],
 * })
 * ```
 */
export class ToolAdapter extends BaseTool {
  readonly tool: Tool
  readonly #parameters: CheckedParameters
  readonly #options: ToolAdapterOptions
  #ledgerOf: LedgerOf = () => undefined
  #executeCall: ExecuteCall = (_call, work) => work()

  constructor(tool: Tool, options: ToolAdapterOptions = {}) {
    checkArgument(
      isRecord(tool) && isRecord(tool.parameters),
      'new ToolAdapter',
      'needs a tool of defineTool',
    )
    checkOptions(options, 'new ToolAdapter')
    super({ name: tool.name, description: tool.description })
    checkTimeLimit(tool.name, 'timeoutMs', tool.timeoutMs)
    checkTimeLimit(tool.name, 'approvalTimeoutMs', options.approvalTimeoutMs)
    this.tool = tool
    this.#parameters = checkedParameters(tool.parameters)
    this.#options = options
  }

  /** Records calls in the ledger of the run that makes them, if there is one. */
  useLedger(ledgerOf: LedgerOf, execute?: ExecuteCall): void {
    this.#ledgerOf = ledgerOf
    if (execute) this.#executeCall = execute
  }

  /** What the ledger of a run needs to know of the tool. */
  get ledgerTool(): LedgerTool {
    const { effect = 'once', onUnknown, verify } = this.tool
    return {
      effect,
      onUnknown,
      ...(verify ? { verify: (args, context) => this.#verify(args, context) } : {}),
    }
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
    return this.#effect !== 'once' && (this.tool.needsApproval ?? false) === false
  }

  get #effect() {
    const own = this.ledgerTool
    return this.#ledgerOf()?.policyOf(this.name, own)?.effect ?? own.effect
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

  async #run(args: Record<string, unknown>, toolContext: Context, context: UnsignalledContext) {
    const checked = await this.#parameters.validate(args)
    if ('problem' in checked) {
      return { error: `Invalid arguments for tool "${this.name}": ${checked.problem}` }
    }
    const id = ledgerId(toolContext, context.callId)
    const recorded = this.#ledgerOf()?.recorded(id)
    if (recorded) {
      const { stateDelta } = recorded.actions ?? {}
      for (const [key, value] of Object.entries(stateDelta ?? {})) context.state.set(key, value)
      return recorded.answer
    }
    const call = { id, given: copyOf(args) as typeof args, args: checked.args as typeof args, toolContext }
    const writes = new Map<string, unknown>()
    const { result, end, begun } = await this.#execute(call, {
      ...context,
      state: recording(context, writes),
    })
    const shown = await this.#shortened(result, context)
    const actions = writes.size > 0 ? { stateDelta: toJsonData(Object.fromEntries(writes)) } : undefined
    // Stored before ADK gets it: a call that has run is not run again, whatever happens to this process.
    await begun?.end(end, shown, actions)
    return shown
  }

  async #execute(call: AdapterCall, context: UnsignalledContext): Promise<Execution> {
    const { abortSignal } = call.toolContext
    if (abortSignal?.aborted)
      return { result: { error: `Tool "${this.name}" was not run: the run was stopped.` }, end: 'failed' }
    const timeoutMs = this.tool.timeoutMs ?? DEFAULT_TIMEOUT_MS
    const stop = new AbortController()
    const aborted = () => stop.abort(abortSignal?.reason)
    // One listener for each tool that runs: their number is not a leak.
    if (abortSignal) setMaxListeners(0, abortSignal)
    abortSignal?.addEventListener('abort', aborted, { once: true })
    let begun: BegunCall | undefined
    let timer: NodeJS.Timeout | undefined
    // The tool's time begins when it does: a person who thinks about it does not use it up.
    const begin = (started: BegunCall) => {
      begun = started
      timer = startTimeLimit(() => stop.abort(TIMED_OUT), timeoutMs)
    }
    try {
      const work = this.#approvedExecute(call, untilStopped(context, stop.signal), begin)
      const stopped = whenStopped(stop.signal, () => this.#stoppedText(stop.signal, timeoutMs, begun))
      const ended = await Promise.race([work.then(result => ({ result, end: 'done' as const })), stopped])
      return { ...ended, begun }
    } catch (error) {
      // A tool that was stopped often ends with an error of its own: that says nothing about its effect.
      return { result: { error: messageOf(error) }, end: stop.signal.aborted ? 'unknown' : 'failed', begun }
    } finally {
      clearTimeout(timer)
      abortSignal?.removeEventListener('abort', aborted)
    }
  }

  async #approvedExecute(
    { id, given, args, toolContext }: AdapterCall,
    context: CallContext,
    begin: (begun: BegunCall) => void,
  ): Promise<unknown> {
    const { approve, approvalTimeoutMs = Number.POSITIVE_INFINITY } = this.#options
    const refusal = await refusalOf({ tool: this.tool, args, context }, { approve, approvalTimeoutMs })
    if (refusal !== undefined) {
      const answer = { error: refusal }
      // Nothing was begun, but the run needs the answer: ADK drops it beside a call that needs a confirmation.
      return (
        this.#ledgerOf()?.inside(
          id,
          async () => answer,
          result => result,
        ) ?? answer
      )
    }
    // The run may have been stopped while its answer was on the way.
    context.signal.throwIfAborted()
    const { callId, agentName, signal } = context
    const own = this.ledgerTool
    const call = { id, callId, tool: this.name, args: given, author: agentName, own, signal }
    const begun = await beginCall(this.#ledgerOf(), call, toolContext)
    if ('answer' in begun) return begun.answer
    if (signal.aborted) {
      await begun.end('failed', { error: `Tool "${this.name}" was not run: the run was stopped.` })
      signal.throwIfAborted()
    }
    begin(begun)
    const { idempotencyKey, attempt } = begun
    const { name: tool, description } = this.tool
    return this.#executeCall({ callId, tool, description, args: given, signal }, async () =>
      this.tool.execute(args, { ...context, idempotencyKey, attempt }),
    )
  }

  /** The result of a tool that is stopped before it answers. */
  #stoppedText(signal: AbortSignal, timeoutMs: number, begun: BegunCall | undefined): string {
    if (!begun) return `Tool "${this.name}" was not run: the run was stopped.`
    const stopped =
      signal.reason === TIMED_OUT
        ? `Tool "${this.name}" did not answer within ${timeoutMs} ms and was stopped.`
        : `Tool "${this.name}" was stopped before it answered, because the run was stopped.`
    return this.#effect === 'once' ? `${stopped} ${OUTCOME_UNKNOWN}` : stopped
  }

  /** Asks the tool whether a call took effect, for as long as the tool itself may take. */
  async #verify(
    given: Record<string, unknown>,
    context: VerifyContext,
  ): Promise<Record<string, unknown> | undefined> {
    const checked = await this.#parameters.validate(given)
    if ('problem' in checked) throw new AgentError('invalid-argument', checked.problem)
    const over = new AbortController()
    const signal = AbortSignal.any([context.signal, over.signal])
    const timer = startTimeLimit(() => over.abort(), this.tool.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    try {
      const args = checked.args as Record<string, unknown>
      const asked = Promise.resolve(this.tool.verify?.(args, { ...context, signal }))
      const stopped = whenStopped(signal, () => 'it was stopped before it answered')
      const found = await Promise.race([asked.then(result => ({ result, end: 'done' as const })), stopped])
      if (found.end === 'unknown') throw new AgentError('aborted', found.result.error)
      return found.result === undefined ? undefined : await this.#shortened(found.result)
    } finally {
      clearTimeout(timer)
    }
  }

  async #shortened(result: unknown, context?: UnsignalledContext): Promise<Record<string, unknown>> {
    const { result: data, media } = splitMedia(result)
    const json = toJson(asObject(data))
    const limitTokens = this.#options.outputLimitTokens ?? DEFAULT_OUTPUT_LIMIT_TOKENS
    let shorter = this.name === READ_OUTPUT_TOOL ? json : shortenOutput(json, limitTokens)
    if (shorter !== json && this.#options.keepWhole && context) {
      shorter = shortenOutput(json, limitTokens, await this.#wholeNote(json, context))
    }
    return withMedia(JSON.parse(shorter), media) as Record<string, unknown>
  }

  /** Where the whole output is, for the marker in the shortened one. Losing it does not lose the rest. */
  async #wholeNote(json: string, { callId, sessionId, userId, agentName }: UnsignalledContext) {
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
const DEFAULT_OUTPUT_LIMIT_TOKENS = 16_000
const TIMED_OUT = Symbol('timed out')

/** What a tool gets before its call has begun. */
type UnsignalledContext = Omit<CallContext, 'signal'>

/** A call as the model gave its arguments, and as the tool gets them. */
interface AdapterCall {
  /** As the ledger names it. */
  readonly id: string
  readonly given: Record<string, unknown>
  readonly args: Record<string, unknown>
  readonly toolContext: Context
}

interface Execution {
  readonly result: unknown
  readonly end: CallEnd
  readonly begun?: BegunCall | undefined
}

/** Resolves when a tool is stopped; never while it may continue. */
function whenStopped(
  signal: AbortSignal,
  text: () => string,
): Promise<{ result: { error: string }; end: 'unknown' }> {
  return new Promise(resolve => {
    const stopped = () => resolve({ result: { error: text() }, end: 'unknown' })
    signal.addEventListener('abort', stopped, { once: true })
  })
}

/** What the tool may do while it runs. Nobody waits for what a stopped tool still does, so it leaves no trace. */
function untilStopped(context: UnsignalledContext, signal: AbortSignal): CallContext {
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

/** The state of a call, which keeps what is written. */
function recording({ state }: UnsignalledContext, writes: Map<string, unknown>): UnsignalledContext['state'] {
  const set = (key: string, value: unknown) => {
    writes.set(key, value)
    state.set(key, value)
  }
  return { get: key => state.get(key), set }
}

function isToolAdapter(tool: object): tool is ToolAdapter {
  return tool instanceof ToolAdapter
}

function contextOf(context: Context): UnsignalledContext {
  if (context.actions) withoutInheritedNames(context.actions.stateDelta)
  return {
    callId: context.functionCallId ?? '',
    sessionId: context.sessionId,
    userId: context.userId,
    agentName: callerOf(context),
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
