import { ToolAdapter, type ToolAdapterOptions } from '../../src/adk/agent/tool-adapter.js'
import type { Context } from '../../src/adk/sdk.js'
import type { Tool } from '../../src/tool.js'

export interface UseOptions extends ToolAdapterOptions {
  signal?: AbortSignal
}

/** Calls a tool as an agent does: arguments checked, defaults filled in, every failure a result. */
export async function useTool(
  tool: Tool,
  args: Record<string, unknown>,
  { signal, ...options }: UseOptions = {},
): Promise<Record<string, unknown>> {
  const state = new Map<string, unknown>()
  const toolContext = {
    functionCallId: 'call-1',
    sessionId: 's1',
    userId: 'ann',
    agentName: 'agent',
    abortSignal: signal,
    state: {
      get: (key: string) => state.get(key),
      set: (key: string, value: unknown) => state.set(key, value),
    },
  } as unknown as Context
  const adapter = new ToolAdapter(tool, { approve: () => true, ...options })
  return (await adapter.runAsync({ args, toolContext })) as Record<string, unknown>
}
