import { RUN_PLUGIN } from '../../base/names.js'
import { AgentError, messageOf } from '../../errors.js'
import { APPROVALS_STATE_KEY, type ApprovalOutcome, type Tool, type ToolContext } from '../../tool.js'
import { BasePlugin, type Context, type Event, type FunctionCall, isLlmAgent } from '../sdk.js'

/** What is known of a call before it begins. */
export type CallContext = Omit<ToolContext, 'idempotencyKey' | 'attempt'>

/** A call that waits for a person. */
export interface ApprovalRequest {
  tool: Tool
  args: Record<string, unknown>
  /** Why the tool asks, where it says so. */
  reason?: string
  /** `signal` is aborted when the run is stopped or the time for an answer is over. */
  context: CallContext
}

/** Asks a person. `true` means once, `false` means no. */
export type Approve = (
  request: ApprovalRequest,
) => Promise<ApprovalOutcome | boolean> | ApprovalOutcome | boolean

export interface ApprovalSeam {
  approve?: Approve | undefined
  approvalTimeoutMs: number
}

/**
 * Whether a call may run: `undefined`, or the words that tell the model why it may not. Only a plain yes lets it
 * run: silence, an abort and a failure to ask are refusals.
 */
export async function refusalOf(
  call: Omit<ApprovalRequest, 'reason'>,
  seam: ApprovalSeam,
): Promise<string | undefined> {
  const { tool, args, context } = call
  const { needsApproval } = tool
  const asks = typeof needsApproval === 'function' ? await needsApproval(args) : (needsApproval ?? false)
  if (!asks || approvedTools(context).includes(tool.name)) return undefined
  if (!seam.approve) return `Tool "${tool.name}" needs a person's approval, and nobody can be asked here.`
  const request = typeof asks === 'string' ? { ...call, reason: asks } : call
  const outcome = await ask(request, seam.approve, seam.approvalTimeoutMs)
  if (outcome === 'always') context.state.set(APPROVALS_STATE_KEY, [...approvedTools(context), tool.name])
  return outcome === 'once' || outcome === 'always' ? undefined : refusalText(tool.name, outcome, seam)
}

function approvedTools(context: CallContext): string[] {
  const names = context.state.get(APPROVALS_STATE_KEY)
  return Array.isArray(names) ? names.filter(name => typeof name === 'string') : []
}

/** Asks until an answer, the end of the run, or the end of the time; the first of them counts. */
async function ask(
  request: ApprovalRequest,
  approve: Approve,
  timeoutMs: number,
): Promise<ApprovalOutcome | { failure: string }> {
  const over = new AbortController()
  const signal = AbortSignal.any([request.context.signal, over.signal])
  const ended = new Promise<ApprovalOutcome>(resolve => {
    const end = () => resolve(request.context.signal.aborted ? 'aborted' : 'timeout')
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
  const timer = startTimeLimit(() => over.abort(), timeoutMs)
  try {
    const answer = Promise.resolve(approve({ ...request, context: { ...request.context, signal } }))
    return outcomeOf(await Promise.race([ended, answer]))
  } catch (error) {
    return { failure: messageOf(error) }
  } finally {
    clearTimeout(timer)
    // A pending approval request ends with the call.
    over.abort()
  }
}

function outcomeOf(answer: ApprovalOutcome | boolean): ApprovalOutcome {
  if (answer === true) return 'once'
  // What comes from a caller's code or another process may be anything: all that is not a yes is a no.
  return answer === 'once' || answer === 'always' || answer === 'timeout' || answer === 'aborted'
    ? answer
    : 'no'
}

function refusalText(
  name: string,
  outcome: ApprovalOutcome | { failure: string },
  seam: ApprovalSeam,
): string {
  if (typeof outcome === 'object')
    return `Tool "${name}" was not run: asking for approval failed (${outcome.failure}).`
  if (outcome === 'aborted')
    return `Tool "${name}" was not run: the run was stopped while it waited for approval.`
  if (outcome === 'timeout') {
    const seconds = seam.approvalTimeoutMs / 1000
    return `Tool "${name}" was refused and not run: nobody answered the request for approval within ${seconds} s.`
  }
  return `The user refused tool "${name}". It was not run. Do not try again unless the user asks for it.`
}

/** Refuses a limit that is none: a timer would take it for one millisecond. `undefined` is the default. */
export function checkTimeLimit(toolName: string, option: string, limitMs: number | undefined): void {
  if (limitMs === undefined || (typeof limitMs === 'number' && limitMs > 0)) return
  const advice = 'Use a positive number of milliseconds, or Infinity for no limit.'
  throw new AgentError(
    'invalid-argument',
    `Tool "${toolName}" cannot have ${option} ${String(limitMs)}. ${advice}`,
    { details: { tool: toolName, option, value: String(limitMs) } },
  )
}

/** Calls `end` when the time is up; with `Infinity` it never is. The timer is for `clearTimeout`. */
export function startTimeLimit(end: () => void, limitMs: number): NodeJS.Timeout | undefined {
  return limitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(end, Math.min(limitMs, LONGEST_MS))
}

/** Almost 25 days. A timer that is set to more fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** A tool that can be started before ADK gets to it. */
interface EarlyTool {
  readonly name: string
  /** Whether the tool may run in parallel: it only reads or may be repeated, and needs no approval. */
  readonly runsBesideOthers: boolean
  /** Runs with the state of the session; what it writes is handed back and applied when ADK asks. */
  runEarly(args: Record<string, unknown>, callId: string, context: Context): Promise<EarlyResult>
}

export interface EarlyResult {
  result: unknown
  stateWrites: ReadonlyMap<string, unknown>
}

/** By event: its calls that were started together; `undefined` when each has to run alone. */
const batches = new WeakMap<Event, Map<string, Promise<EarlyResult>> | undefined>()

/**
 * ADK runs the calls of one turn one after another and offers no hook. So the first call of a turn that ADK
 * runs starts all of them, if all of them may run in parallel; the later ones only wait for theirs.
 * Returns `undefined` when this call has to run alone.
 */
export function runInBatch(
  context: Context,
  isEarlyTool: (tool: object) => tool is EarlyTool,
): Promise<EarlyResult> | undefined {
  const callId = context.functionCallId
  if (!callId) return undefined
  const event = findCallEvent(context, callId)
  if (!event) return undefined
  if (batches.has(event)) return batches.get(event)?.get(callId)
  const calls = callsOf(event)
  const tools = calls.length > 1 && !isWatched(context) ? earlyTools(context, calls, isEarlyTool) : undefined
  const batch =
    tools &&
    startInSlices(calls, (call, index) => {
      return (tools[index] as EarlyTool).runEarly(call.args ?? {}, call.id ?? '', context)
    })
  batches.set(event, batch)
  return batch?.get(callId)
}

/** Starts all calls at once, or in slices where there are many: what else waits for the event loop comes in between. */
function startInSlices(
  calls: readonly FunctionCall[],
  start: (call: FunctionCall, index: number) => Promise<EarlyResult>,
): Map<string, Promise<EarlyResult>> {
  const batch = new Map<string, Promise<EarlyResult>>()
  let before: Promise<unknown> | undefined
  for (const [index, call] of calls.entries()) {
    const pause =
      index % SLICE === SLICE - 1 ? () => new Promise(resolve => setImmediate(resolve)) : undefined
    const running = before ? before.then(() => start(call, index)) : start(call, index)
    if (pause) before = before ? before.then(pause) : pause()
    // A failure belongs to the call that asks for it, which may be later than now.
    running.catch(() => {})
    batch.set(call.id ?? '', running)
  }
  return batch
}

/** Calls that are started in one turn of the event loop. */
const SLICE = 64

/** The agent that calls a tool. A node of a workflow that calls one has no agent, and ADK throws when it is asked for. */
export function callerOf(context: Context): string {
  return context.invocationContext && !context.invocationContext.agent ? '' : context.agentName
}

/** The event that holds a call, as its agent sees it. */
export function findCallEvent(context: Context, callId: string): Event | undefined {
  // Outside a runner (a test, another host) there may be no invocation to look into.
  const invocation = context.invocationContext
  // Parallel agents share the session and do not see each other's ids, so they may use the same ones.
  const caller = callerOf(context)
  const isOwn = (event: Event) =>
    event.author === caller && (event.branch ?? '') === (invocation.branch ?? '')
  return invocation?.session?.events.findLast(event => isOwn(event) && callIdsOf(event).has(callId))
}

/** By event: ADK looks for the event of each call of an answer. Its calls do not change. */
const callIds = new WeakMap<Event, ReadonlySet<string | undefined>>()

function callIdsOf(event: Event): ReadonlySet<string | undefined> {
  const known = callIds.get(event)
  if (known) return known
  const ids = new Set(callsOf(event).map(({ id }) => id))
  callIds.set(event, ids)
  return ids
}

function callsOf(event: Event): FunctionCall[] {
  return (event.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
}

/** The tools of all calls, or `undefined` when one of them must not run in parallel. */
function earlyTools(
  context: Context,
  calls: readonly FunctionCall[],
  isEarlyTool: (tool: object) => tool is EarlyTool,
): EarlyTool[] | undefined {
  const { agent } = context.invocationContext
  if (!agent || !isLlmAgent(agent)) return undefined
  const own = new Map((agent.tools as object[]).filter(isEarlyTool).map(tool => [tool.name, tool]))
  const tools = calls.flatMap(call => own.get(call.name ?? '') ?? [])
  return tools.length === calls.length && tools.every(tool => tool.runsBesideOthers) ? tools : undefined
}

/** Whether somebody wants to see each call before it runs: then nothing is started early. */
function isWatched(context: Context): boolean {
  const { agent } = context.invocationContext
  if (agent && isLlmAgent(agent) && agent.canonicalBeforeToolCallbacks.length > 0) return true
  return hasPluginWith(context, 'beforeToolCallback')
}

/** Whether somebody works on each result before it is stored. */
export function isAwaited(context: Context): boolean {
  const agent = context.invocationContext?.agent
  if (!agent || (isLlmAgent(agent) && agent.canonicalAfterToolCallbacks.length > 0)) return true
  return hasPluginWith(context, 'afterToolCallback')
}

/** Whether a plugin of the user's has a callback. */
function hasPluginWith(context: Context, callback: 'beforeToolCallback' | 'afterToolCallback'): boolean {
  const { pluginManager } = context.invocationContext
  // ADK keeps its plugins private; without the list nothing is known, and there may be one.
  const plugins = (pluginManager as unknown as { plugins?: Iterable<BasePlugin> } | undefined)?.plugins
  if (!plugins) return true
  return [...plugins].some(
    plugin => plugin.name !== RUN_PLUGIN && plugin[callback] !== BasePlugin.prototype[callback],
  )
}
