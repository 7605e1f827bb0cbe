/** Notes in which agent, or in the callback of which tool, an error was thrown: ADK throws it on as it is. */
import { markOrigin } from '../base/failure-origin.js'
import { BaseAgent, type LlmAgent } from './sdk.js'

/** Marks what agents throw: their callbacks, instructions and code of their own. To be called once in a process. */
export function wrapAgents(): void {
  const run = BaseAgent.prototype.runAsync
  BaseAgent.prototype.runAsync = function (context) {
    const events = run.call(this, context)
    const next = events.next.bind(events)
    const failed = (error: unknown): never => {
      markOrigin(error, { agent: this.name })
      throw error
    }
    // Not a generator around it: that would cost every event several promises.
    events.next = (...given) => next(...given).catch(failed)
    return events
  }
}

const marked = new WeakSet<object>()

/** Marks what the callbacks of an agent around its tools throw. */
export function markToolCallbacks(agent: LlmAgent): void {
  if (marked.has(agent)) return
  marked.add(agent)
  for (const name of ['beforeToolCallback', 'afterToolCallback'] as const) {
    const given: unknown = agent[name]
    if (given === undefined) continue
    // ADK calls both kinds with one object, which names the tool.
    const callbacks = (Array.isArray(given) ? given : [given]) as ToolCallback[]
    Reflect.set(agent, name, callbacks.map(markedCallback))
  }
}

type ToolCallback = (call: { tool: { name: string } }) => unknown

function markedCallback(callback: ToolCallback): ToolCallback {
  return async call => {
    try {
      return await callback(call)
    } catch (error) {
      markOrigin(error, { tool: call.tool.name })
      throw error
    }
  }
}
