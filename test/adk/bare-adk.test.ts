// The same agents in bare ADK and in Lango, on the same script: as many model and tool calls, in the same order.
import {
  BaseAgent,
  BaseLlm,
  createEvent,
  type Event,
  ExitLoopTool,
  FunctionTool,
  InMemorySessionService,
  type InvocationContext,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  LoopAgent,
  Runner,
  SequentialAgent,
} from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'

/** One run: what its models and tools did, in order. */
class Journal {
  readonly lines: string[] = []
  readonly #said = new Map<string, number>()

  /** The next answer of an agent by its own script; the last one is repeated. */
  answer(agent: string, script: readonly ScriptStep[]): ScriptStep {
    const count = this.#said.get(agent) ?? 0
    this.#said.set(agent, count + 1)
    this.lines.push(`model of ${agent}`)
    return script[Math.min(count, script.length - 1)] ?? {}
  }
}

type Scripts = Readonly<Record<string, readonly ScriptStep[]>>

/** A model of ADK's own kind, without any part of Lango. */
class BareModel extends BaseLlm {
  readonly #answer: (request: LlmRequest) => ScriptStep

  constructor(answer: (request: LlmRequest) => ScriptStep) {
    super({ model: 'bare' })
    this.#answer = answer
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const { text, toolCalls = [] } = this.#answer(request)
    const parts = [
      ...(text ? [{ text }] : []),
      ...toolCalls.map(({ name, args = {} }) => ({ functionCall: { name, args } })),
    ]
    yield {
      ...(parts.length > 0 ? { content: { role: 'model', parts } } : {}),
      partial: false,
      turnComplete: true,
      finishReason: 'STOP' as never,
    }
  }

  override connect(): never {
    throw new Error('not live')
  }
}

/** An agent without a model that does one thing and says nothing. */
class SilentAgent extends BaseAgent {
  readonly #actions: Partial<Event['actions']>
  readonly #journal: Journal

  constructor(name: string, journal: Journal, actions: Partial<Event['actions']>) {
    super({ name })
    this.#journal = journal
    this.#actions = actions
  }

  protected override async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void, void> {
    this.#journal.lines.push(`agent ${this.name}`)
    const event = createEvent({ author: this.name, invocationId: context.invocationId })
    Object.assign(event.actions, this.#actions)
    yield event
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

interface Kit {
  journal: Journal
  /** An agent whose instruction names it, so that the script can tell whose request it is. */
  agent(name: string, options?: Partial<ConstructorParameters<typeof LlmAgent>[0]>): LlmAgent
  tool(name: string, act?: (context: ToolContextOfAdk) => void): FunctionTool
}

type ToolContextOfAdk = NonNullable<Parameters<ConstructorParameters<typeof FunctionTool>[0]['execute']>[1]>

interface Pattern {
  build(kit: Kit): BaseAgent
  scripts: Scripts
  text: string
}

const calls = (name: string, text?: string): ScriptStep => ({
  ...(text === undefined ? {} : { text }),
  toolCalls: [{ name }],
})

const PATTERNS: Readonly<Record<string, Pattern>> = {
  'a loop that a tool leaves with escalate, after which the model says nothing': {
    build: ({ agent, tool }) => {
      const leave = tool('leave', ({ actions }) => {
        actions.escalate = true
      })
      const checker = agent('checker', { tools: [leave] })
      return new LoopAgent({ name: 'loop', subAgents: [agent('writer'), checker], maxIterations: 4 })
    },
    scripts: { writer: [{ text: 'A draft.' }], checker: [{ text: 'Again.' }, calls('leave'), {}] },
    text: 'A draft.\n\nA draft.',
  },
  'a loop that ADK’s own tool leaves': {
    build: ({ agent }) =>
      new LoopAgent({
        name: 'loop',
        subAgents: [agent('writer'), agent('checker', { tools: [new ExitLoopTool()] })],
        maxIterations: 4,
      }),
    scripts: { writer: [{ text: 'A draft.' }], checker: [calls('exit_loop')] },
    text: 'A draft.',
  },
  'a checker without a model that ends the loop and says nothing': {
    build: ({ agent, tool, journal }) =>
      new LoopAgent({
        name: 'loop',
        subAgents: [
          agent('writer', { tools: [tool('look')] }),
          new SilentAgent('checker', journal, { escalate: true }),
        ],
        maxIterations: 3,
      }),
    scripts: { writer: [calls('look', 'Let me look.'), { text: 'Done.' }] },
    text: 'Let me look.\n\nDone.',
  },
  'a writer and a critic': {
    build: ({ agent, tool }) =>
      new LoopAgent({
        name: 'loop',
        subAgents: [
          agent('writer', { tools: [tool('note')], outputKey: 'draft' }),
          agent('critic', { outputKey: 'critique' }),
        ],
        maxIterations: 2,
      }),
    scripts: {
      writer: [calls('note'), { text: 'One.' }, { text: 'Two.' }],
      critic: [{ text: 'Longer.' }, { text: 'Fine.' }],
    },
    text: 'Longer.\n\nFine.',
  },
  'a tool that skips the summary': {
    build: ({ agent, tool }) => {
      const send = tool('send', ({ actions }) => {
        actions.skipSummarization = true
      })
      return agent('root', { tools: [send] })
    },
    scripts: { root: [calls('send')] },
    text: '',
  },
  'an output schema, which a tool fills in': {
    build: ({ agent, tool }) =>
      agent('root', { tools: [tool('look')], outputSchema: z.object({ answer: z.string() }) }),
    scripts: {
      root: [calls('look'), { toolCalls: [{ name: 'set_model_response', args: { answer: 'yes' } }] }],
    },
    text: '{"answer":"yes"}',
  },
  'a tool that ends the invocation': {
    build: ({ agent, tool }) => {
      const stop = tool('stop', ({ invocationContext }) => {
        invocationContext.endInvocation = true
      })
      return agent('root', { tools: [stop] })
    },
    scripts: { root: [calls('stop'), {}] },
    text: '',
  },
  'a last author that stores state and says nothing': {
    build: ({ agent, tool, journal }) =>
      new SequentialAgent({
        name: 'line',
        subAgents: [
          agent('writer', { tools: [tool('look')] }),
          new SilentAgent('keeper', journal, { stateDelta: { kept: true } }),
        ],
      }),
    scripts: { writer: [calls('look'), { text: 'Kept.' }] },
    text: 'Kept.',
  },
  'an answer that a callback empties': {
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [tool('look')],
        afterModelCallback: async ({ response }) =>
          response.content?.parts?.some(({ text }) => text === 'secret')
            ? { ...response, content: { role: 'model', parts: [] } }
            : undefined,
      }),
    scripts: { root: [calls('look'), { text: 'secret' }] },
    text: '',
  },
}

function kitOf(journal: Journal, model: BaseLlm | string): Kit {
  return {
    journal,
    agent: (name, options) =>
      new LlmAgent({ name, model, instruction: `You are <${name}>.`, ...options } as never),
    tool: (name, act) =>
      new FunctionTool({
        name,
        description: name,
        parameters: z.object({}),
        execute: (_args, context) => {
          journal.lines.push(`tool ${name}`)
          if (context) act?.(context)
          return { done: true }
        },
      }),
  }
}

function agentIn(words: string): string {
  return /You are <(\w+)>/.exec(words)?.[1] ?? ''
}

async function inBareAdk({ build, scripts }: Pattern): Promise<string[]> {
  const journal = new Journal()
  const model = new BareModel(request => {
    const name = agentIn(JSON.stringify(request.config?.systemInstruction))
    return journal.answer(name, scripts[name] ?? [])
  })
  const sessionService = new InMemorySessionService()
  const identity = { appName: 'app', userId: 'user', sessionId: 's' }
  await sessionService.createSession(identity)
  const runner = new Runner({ appName: 'app', agent: build(kitOf(journal, model)), sessionService })
  const newMessage = { role: 'user', parts: [{ text: 'go' }] }
  for await (const _event of runner.runAsync({ userId: 'user', sessionId: 's', newMessage })) {
    // To its end.
  }
  return journal.lines
}

async function inLango({ build, scripts }: Pattern) {
  const journal = new Journal()
  const provider = new ScriptedProvider(
    (request: GenerateRequest) => {
      const system = request.messages.find(({ role }) => role === 'system')
      const name = agentIn(JSON.stringify(system))
      return journal.answer(name, scripts[name] ?? [])
    },
    { id: 'play' },
  )
  const rootAgent = build(kitOf(journal, 'play/m'))
  const runtime = await createRuntime({ store: 'memory:', providers: { play: provider }, rootAgent })
  try {
    const { text, lastText } = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
    return { lines: journal.lines, text, lastText }
  } finally {
    await runtime.close()
  }
}

test.each(Object.entries(PATTERNS))('%s: as many calls as in bare ADK', async (_name, pattern) => {
  const bare = await inBareAdk(pattern)
  expect(bare.filter(line => line.startsWith('model')).length).toBeGreaterThan(0)
  const lastText = pattern.text.split('\n\n').at(-1)
  expect(await inLango(pattern)).toEqual({ lines: bare, text: pattern.text, lastText })
})
