// A model that an agent names is Lango's wherever the agent is held: its requests are repaired, counted and limited.
import {
  AgentTool,
  BaseAgent,
  BaseLlm,
  type BaseTool,
  BaseToolset,
  type Event,
  Gemini,
  type InvocationContext,
  LLMRegistry,
  LlmAgent,
  type LlmResponse,
  NodeTool,
  Workflow,
} from '@google/adk'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'

const MODEL = 'gemini-2.5-flash'

const helper = (name = 'helper') =>
  new LlmAgent({ name, model: MODEL, description: 'Helps.', instruction: `You are <${name}>.` })

/** Holds an agent in a field and runs it; ADK's tree does not know of it. */
class Holder extends BaseAgent {
  readonly #held: BaseAgent

  constructor(held: BaseAgent) {
    super({ name: 'holder' })
    this.#held = held
  }

  protected override async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void, void> {
    yield* this.#held.runAsync(context)
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

class Tools extends BaseToolset {
  constructor() {
    super([])
  }

  override async getTools(): Promise<BaseTool[]> {
    return [new AgentTool({ agent: helper() })]
  }

  override async close(): Promise<void> {}
}

const asking = (more: object) =>
  new LlmAgent({ name: 'root', model: MODEL, instruction: 'You are <root>.', ...more })

const PLACES: Record<
  string,
  () => { rootAgent: BaseAgent; call?: { name: string; args: Record<string, unknown> } }
> = {
  'an agent tool inside a toolset': () => ({
    rootAgent: asking({ tools: [new Tools()] }),
    call: { name: 'helper', args: { request: 'go' } },
  }),
  'a workflow as a tool': () => {
    const inputSchema = z.object({ request: z.string() })
    const flow = new Workflow({
      name: 'flow',
      description: 'Flows.',
      inputSchema,
      edges: [['START', helper()]],
    })
    return {
      rootAgent: asking({ tools: [new NodeTool(flow)] }),
      call: { name: 'flow', args: { request: 'go' } },
    }
  },
  'a field of a custom agent': () => ({ rootAgent: new Holder(helper()) }),
  'a field of a custom agent, as a clone': () => ({ rootAgent: new Holder(helper().clone()) }),
  'sub-agents that a callback adds during the run': () => {
    const root = asking({
      beforeAgentCallback: () => {
        if (root.subAgents.length === 0) {
          const added = helper()
          added.parentAgent = root
          root.subAgents.push(added)
        }
        return undefined
      },
    })
    return { rootAgent: root, call: { name: 'transfer_to_agent', args: { agentName: 'helper' } } }
  },
}

test.each(Object.entries(PLACES))('a model is resolved for %s', async (_name, build) => {
  const { rootAgent, call } = build()
  const server = await startStrictProvider({
    profile: 'gemini-2',
    script: (_request, index) => (call && index === 0 ? { toolCalls: [call] } : { text: 'Fine.' }),
  })
  onTestFinished(() => server.close())
  const providers = { gemini: { type: 'gemini' as const, apiKey: 'k', baseUrl: server.baseUrl } }
  const runtime = await createRuntime({ store: 'memory:', providers, rootAgent })
  onTestFinished(() => runtime.close())
  const { usage } = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  const asked = server.requests.filter(request => JSON.stringify(request).includes('<helper>'))
  expect(asked.length).toBeGreaterThan(0)
  expect(server.violations).toEqual([])
  // Requests that ADK's own model would send are neither inspected nor counted.
  const runs = await runtime.listRuns({ appName: 'lango', userId: 'user', sessionId: 's' })
  const inspection = await runtime.inspect(runs[0]?.runId ?? '')
  expect(inspection?.steps).toHaveLength(server.requests.length)
  expect(usage.inputTokens).toBeGreaterThan(0)
})

class OwnModel extends BaseLlm {
  static override readonly supportedModels = [/own-.*/]

  override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    yield {
      content: { role: 'model', parts: [{ text: 'From a model class of one’s own.' }] },
      turnComplete: true,
    }
  }

  override connect(): never {
    throw new Error('not live')
  }
}

test('a name that only ADK’s registry knows stays ADK’s, and the log says so', async () => {
  LLMRegistry.register(OwnModel as never)
  const warnings: string[] = []
  const note = (message: string) => void warnings.push(message)
  const logger = { debug: () => {}, info: () => {}, warn: note, error: note }
  const rootAgent = new LlmAgent({ name: 'root', model: 'own-model' })
  const runtime = await createRuntime({ store: 'memory:', rootAgent, logger })
  onTestFinished(() => runtime.close())
  expect((await runtime.runAndCollect({ text: 'go' })).text).toBe('From a model class of one’s own.')
  expect(warnings.filter(text => text.includes('ADK'))).toHaveLength(1)
})

test('outside of runs ADK’s registry is as it was', async () => {
  const runtime = await createRuntime({ store: 'memory:', rootAgent: helper() })
  onTestFinished(() => runtime.close())
  await runtime.ready()
  vi.stubEnv('GEMINI_API_KEY', 'k')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(helper().canonicalModel).toBeInstanceOf(Gemini)
})
