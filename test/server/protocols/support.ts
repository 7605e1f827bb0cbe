/** A server before a strict provider: what a client's conversation becomes is judged by the provider's real rules. */
import type { BaseAgent } from '@google/adk'
import { onTestFinished } from 'vitest'
import { silentLogger } from '../../../src/logger.js'
import type { RuntimeOptions } from '../../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.js'
import { type RunningServer, type ServeOptions, serve } from '../../../src/server/serve.js'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../../src/testing/start-strict-provider.js'
import type { RequestSummary, ScriptStep } from '../../../src/testing/strict/script.js'
import { defineTool, type Tool } from '../../../src/tool.js'
import { dangerTool } from '../../support/obedient-provider.js'
import { searchTool } from '../../support/tools.js'

export interface ProtocolServer {
  url: string
  runtime: Runtime
  provider: StrictProvider
  server: RunningServer
}

export interface ProtocolServerOptions extends Partial<Omit<StrictProviderOptions, 'port' | 'host'>> {
  serve?: Partial<ServeOptions>
  /** Default `memory:`. */
  store?: string
  tools?: Tool[]
  /** An agent of ADK's in place of the plain one. */
  rootAgent?: (model: string) => BaseAgent
  maxTurns?: number
  history?: RuntimeOptions['history']
  /** How the runtime repeats requests to the strict provider. */
  retry?: { baseDelayMs: number }
}

const MODEL = 'strict/gpt-4.1'

export async function startProtocolServer(options: ProtocolServerOptions = {}): Promise<ProtocolServer> {
  const {
    serve: serveOptions,
    store = 'memory:',
    tools = [searchTool, dangerTool],
    rootAgent,
    maxTurns,
    history,
    retry,
    ...strict
  } = options
  const { profile = 'openai-chat' } = strict
  const provider = await startStrictProvider({ ...strict, profile })
  const wire = { apiKey: 'k', baseUrl: provider.baseUrl, ...(retry ? { retry } : {}) }
  const runtime = await createRuntime({
    store,
    ...(history ? { history } : {}),
    providers: {
      strict:
        profile === 'openai-chat'
          ? { type: 'openai', api: 'chat', ...wire }
          : { type: 'openai-compatible', profile, ...wire },
    },
    ...(rootAgent
      ? { rootAgent: rootAgent(MODEL) }
      : {
          agent: {
            name: 'root',
            model: MODEL,
            instruction: 'You are the root agent.',
            tools,
            ...(maxTurns === undefined ? {} : { maxTurns }),
          },
        }),
  })
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    version: '0.0.0-test',
    graceMs: 0,
    logger: silentLogger,
    ...serveOptions,
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
    await provider.close()
  })
  return { url: server.url, runtime, provider, server }
}

/** Calls the tool `search` for the user's words, then tells what was found. */
export const searchThenTell = (request: RequestSummary): ScriptStep => {
  const isAnswered = request.messages.at(-1)?.role === 'tool'
  const words = request.lastUserText
  return isAnswered
    ? { deltas: ['I found ', words, '.'], usage: { input: 20, output: 5 } }
    : {
        text: 'Let me look.',
        toolCalls: [{ name: 'search', args: { query: words } }],
        usage: { input: 10, output: 3 },
      }
}

/** Waits until something is true; gives up after a while. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    if (await isTrue()) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  throw new Error('It did not become true.')
}

/** A tool that does not end before it is let go. */
export function heldTool(): { tool: Tool; called: Promise<void>; letGo: () => void } {
  let letGo = () => {}
  let begin = () => {}
  const held = new Promise<void>(resolve => {
    letGo = resolve
  })
  const called = new Promise<void>(resolve => {
    begin = resolve
  })
  const tool = defineTool({
    name: 'search',
    description: 'Searches, slowly.',
    parameters: { type: 'object', properties: { query: { type: 'string' } } },
    effect: 'read',
    execute: async () => {
      begin()
      await held
      return { found: 'late' }
    },
  })
  return { tool, called, letGo }
}

export async function sessionIds(runtime: Runtime, userId = 'user'): Promise<string[]> {
  const { sessions } = await runtime.store.listSessions({ appName: 'lango', userId })
  return sessions.map(({ key }) => key.sessionId)
}
