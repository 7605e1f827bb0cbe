import { BasePlugin, type Context, type Event, type FunctionCall, isLlmAgent } from '../sdk.js'

/** A tool that can be started before ADK gets to it. */
export interface EarlyTool {
  readonly name: string
  /** Whether the tool may run beside others: it only reads or may be repeated, and asks nobody. */
  readonly runsBesideOthers: boolean
  /** Runs with the state of the session; what it writes is handed back and applied when ADK asks. */
  runEarly(args: Record<string, unknown>, callId: string, context: Context): Promise<EarlyResult>
}

export interface EarlyResult {
  result: unknown
  stateWrites: ReadonlyMap<string, unknown>
}

const batches = new WeakMap<Event, Map<string, Promise<EarlyResult>>>()

/**
 * ADK runs the calls of one turn one after another and offers no hook. So the first call of a turn that ADK
 * runs starts all of them, if every one may run beside the others; the later ones only wait for theirs.
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
  const known = batches.get(event)
  if (known) return known.get(callId)
  const calls = callsOf(event)
  const tools = calls.length > 1 && !isWatched(context) ? earlyTools(context, calls, isEarlyTool) : undefined
  if (!tools) return undefined
  const batch = new Map(
    calls.map((call, index) => {
      const id = call.id ?? ''
      // A failure belongs to the call that asks for it, which may be later than now.
      const running = (tools[index] as EarlyTool).runEarly(call.args ?? {}, id, context)
      running.catch(() => {})
      return [id, running] as const
    }),
  )
  batches.set(event, batch)
  return batch.get(callId)
}

function findCallEvent(context: Context, callId: string): Event | undefined {
  // Outside a runner (a test, another host) there may be no invocation to look into.
  const invocation = context.invocationContext
  // Agents beside each other share the session and do not see each other's ids, so they may use the same ones.
  const isOwn = (event: Event) =>
    event.author === context.agentName && (event.branch ?? '') === (invocation.branch ?? '')
  return invocation?.session?.events.findLast(
    event => isOwn(event) && callsOf(event).some(call => call.id === callId),
  )
}

function callsOf(event: Event): FunctionCall[] {
  return (event.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
}

/** The tools of all calls, or `undefined` when one of them must not run beside others. */
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
  const { agent, pluginManager } = context.invocationContext
  if (agent && isLlmAgent(agent) && agent.canonicalBeforeToolCallbacks.length > 0) return true
  // ADK keeps its plugins private; without the list nothing is known, and nothing is started early.
  const plugins = (pluginManager as unknown as { plugins?: Iterable<BasePlugin> }).plugins
  if (!plugins) return true
  return [...plugins].some(plugin => plugin.beforeToolCallback !== BasePlugin.prototype.beforeToolCallback)
}
