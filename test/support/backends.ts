// Two ways to play a script through the real runtime: a provider in the process, and a strict server over HTTP.
import { AgentError } from '../../src/errors.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'

/** What both understand. */
export interface PlayStep {
  text?: string
  deltas?: readonly string[]
  toolCalls?: readonly { name: string; args?: Record<string, unknown> }[]
  /** The provider refuses the key instead of answering. */
  refused?: true
}

export type Play = readonly PlayStep[] | ((index: number) => PlayStep)

export interface Stage {
  runtime: Runtime
  /** How many model calls were made. */
  calls(): number
  /** The bodies or requests that the model was sent, as JSON text. */
  sent(): string[]
  close(): Promise<void>
}

export interface Backend {
  name: string
  /** The model reference to use in agents. */
  model: string
  start(play: Play, options: (model: string) => Partial<RuntimeOptions>): Promise<Stage>
}

const step = (play: Play, index: number): PlayStep =>
  typeof play === 'function' ? play(index) : (play[index] ?? { text: `(no step ${index})` })

const scripted: Backend = {
  name: 'scripted provider',
  model: 'play/model',
  async start(play, options) {
    const refusal = new AgentError('provider-auth', 'The key was refused.')
    const provider = new ScriptedProvider(
      (_request, index) => (step(play, index).refused ? { error: refusal } : step(play, index)),
      { id: 'play' },
    )
    const runtime = await createRuntime({
      store: 'memory:',
      providers: { play: provider },
      ...options(this.model),
    })
    return {
      runtime,
      calls: () => provider.requests.length,
      sent: () => provider.requests.map(request => JSON.stringify(request)),
      close: () => runtime.close(),
    }
  },
}

function strict(profile: 'openai-chat' | 'gemini-3' | 'anthropic-4.6', provider: ProviderOptions): Backend {
  const model = {
    'openai-chat': 'play/gpt-4.1',
    'gemini-3': 'play/gemini-3-pro',
    'anthropic-4.6': 'play/claude-sonnet-4-6',
  }[profile]
  return {
    name: `strict ${profile} server`,
    model,
    async start(play, options) {
      const refused = Array.isArray(play)
        ? play.flatMap((entry: PlayStep, at) => (entry.refused ? [at] : []))
        : []
      const server = await startStrictProvider({
        profile,
        script: (_request: unknown, index: number) => step(play, index),
        faults: refused.map(at => ({ at, kind: 'auth' as const })),
      })
      const runtime = await createRuntime({
        store: 'memory:',
        providers: { play: { ...provider, apiKey: 'test-key', baseUrl: server.baseUrl } },
        ...options(this.model),
      })
      return {
        runtime,
        calls: () => server.requests.length,
        sent: () => server.requests.map(request => JSON.stringify(request)),
        close: async () => {
          await runtime.close()
          await server.close()
          if (server.violations.length > 0) throw new Error(`refused: ${JSON.stringify(server.violations)}`)
        },
      }
    },
  }
}

export const BACKENDS: readonly Backend[] = [
  scripted,
  strict('openai-chat', { type: 'openai', api: 'chat' }),
  strict('gemini-3', { type: 'gemini' }),
  strict('anthropic-4.6', { type: 'anthropic' }),
]
