/** A server whose agent has a tool that must not run twice, and a scripted model. */
import { onTestFinished } from 'vitest'
import type { AgentError } from '../../../src/errors.js'
import { silentLogger } from '../../../src/logger.js'
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.js'
import { type RunningServer, type ServeOptions, serve } from '../../../src/server/serve.js'
import { ScriptedProvider, type ScriptStep } from '../../../src/testing/scripted-provider.js'
import { defineTool } from '../../../src/tool.js'

export interface OnceServer extends RunningServer {
  runtime: Runtime
  provider: ScriptedProvider
  /** How often the tool ran. */
  charges(): number
  /** The texts of all stored messages of a role, by default the user's, in all sessions. */
  userTexts(role?: string): Promise<string[]>
}

export interface OnceServerOptions {
  store?: string
  /** The tool waits for it. */
  held?: Promise<void>
  /** Called when the tool has begun. */
  onCharge?: () => void
  /** The answer after the tool: words, or a failure. */
  answer?: string | AgentError | (() => string | AgentError)
  limits?: ServeOptions['limits']
  tokens?: ServeOptions['tokens']
}

export async function startOnceServer(options: OnceServerOptions = {}): Promise<OnceServer> {
  const { store = 'memory:', held, onCharge = () => {}, answer = 'Charged.', limits, tokens } = options
  let charges = 0
  const charge = defineTool({
    name: 'charge',
    description: 'Charges the card.',
    parameters: { type: 'object', properties: {} },
    effect: 'once',
    execute: async () => {
      charges += 1
      onCharge()
      await held
      return { charged: true }
    },
  })
  const provider = new ScriptedProvider(
    ({ messages }): ScriptStep => {
      const isCharged = messages.at(-1)?.parts.some(({ type }) => type === 'tool-result')
      if (!isCharged) return { text: 'One moment.', toolCalls: [{ name: 'charge' }] }
      const given = typeof answer === 'function' ? answer() : answer
      return typeof given === 'string' ? { text: given } : { error: given }
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [charge] },
  })
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    version: '0.0.0-test',
    graceMs: 0,
    logger: silentLogger,
    limits,
    tokens,
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  const userTexts = async (wanted = 'user') => {
    const { sessions } = await runtime.store.listSessions({ appName: 'lango', limit: 100 })
    const pages = await Promise.all(sessions.map(({ key }) => runtime.store.readMessages(key)))
    return pages.flat().flatMap(({ role, content }) => (role === wanted ? [content] : []))
  }
  return { ...server, runtime, provider, charges: () => charges, userTexts }
}

/** A promise and what fulfils it. */
export function signal(): { given: Promise<void>; give: () => void } {
  let give = () => {}
  const given = new Promise<void>(resolve => {
    give = resolve
  })
  return { given, give }
}
