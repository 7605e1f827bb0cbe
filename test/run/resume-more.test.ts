// Runs with state, callbacks, plugins, nested agents and limits, cut off after each of their writes and continued.
import {
  AgentTool,
  type BaseAgent,
  BaseAgent as BaseAgentClass,
  BaseLlm,
  BasePlugin,
  createEvent,
  createEventActions,
  type Event,
  FunctionTool,
  InMemoryArtifactService,
  type InvocationContext,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  LongRunningFunctionTool,
  LoopAgent,
  ParallelAgent,
  SequentialAgent,
} from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { AgentError } from '../../src/errors.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { runScope } from '../../src/run/run-scope.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { StoredMessage } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { LONG } from '../support/tiers.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const RUN = '00000000-0000-4000-8000-000000000001'

/** What tools have done and what models were asked, over all attempts. */
interface World {
  effects: string[]
  asked: string[]
  /** What lies outside the process and is there for every attempt. */
  artifacts: InMemoryArtifactService
}

interface Scenario {
  input?: object
  options?(world: World): Partial<RuntimeOptions>
  agent(world: World): BaseAgent
  script(request: GenerateRequest): ScriptStep
  /** Prepares the session. */
  before?(runtime: Runtime): Promise<void>
  finishReason?: string
  /** Branches see each other's events in either order. */
  isParallel?: boolean
  /** Its tools may be executed again. */
  mayRepeat?: boolean
}

function results(request: GenerateRequest): string[] {
  return request.messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool-result' ? [part.name] : [])),
  )
}

function systemOf(request: GenerateRequest): string {
  const parts = request.messages.find(({ role }) => role === 'system')?.parts ?? []
  return parts.map(part => (part.type === 'text' ? part.text : '')).join(' ')
}

function agentOf(request: GenerateRequest): string {
  return /internal name is "(\w+)"/.exec(systemOf(request))?.[1] ?? ''
}

/** Ids that are new in each run are shown as one. */
function plain(text: string): string {
  return text.replace(/artifact_e-[0-9a-f-]{36}/g, 'artifact_e')
}

function newWorld(): World {
  return { effects: [], asked: [], artifacts: new InMemoryArtifactService() }
}

const call = (...names: string[]): ScriptStep => ({
  text: `I call ${names.join(' and ')}.`,
  toolCalls: names.map((name, index) => ({ name, id: `${name}-${index}`, args: {} })),
  usage: { inputTokens: 10, outputTokens: 2 },
})
const say = (text: string): ScriptStep => ({ text, usage: { inputTokens: 10, outputTokens: 3 } })

type Execute = Parameters<typeof defineTool>[0]['execute']

function tool(world: World, name: string, execute: Execute = () => ({ done: name }), more: object = {}) {
  return new ToolAdapter(
    defineTool({
      name,
      description: name,
      parameters: z.object({}),
      effect: 'once',
      ...more,
      execute: (args, context) => {
        world.effects.push(name)
        return execute(args, context)
      },
    }),
  )
}

function adkTool(
  world: World,
  name: string,
  execute: (context: NonNullable<Parameters<FunctionTool['runAsync']>[0]>['toolContext']) => unknown,
  more: object = {},
) {
  return new FunctionTool({
    name,
    description: name,
    parameters: z.object({}),
    ...more,
    execute: async (_args, context) => {
      world.effects.push(name)
      return context && execute(context)
    },
  })
}

const agent = (name: string, more: object = {}) =>
  new LlmAgent({ name, model: 'play/m', instruction: name, ...more })

class RenamingPlugin extends BasePlugin {
  override async onEventCallback({ event }: { event: Event }): Promise<Event | undefined> {
    if (!event.partial) event.id = `own-${crypto.randomUUID()}`
    return undefined
  }
}

/** Yields what it is given, and calls no model. */
class CodeAgent extends BaseAgentClass {
  readonly #work: (context: InvocationContext) => Partial<Event>[]

  constructor(name: string, work: (context: InvocationContext) => Partial<Event>[]) {
    super({ name })
    this.#work = work
  }

  protected async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void, void> {
    for (const event of this.#work(context)) yield createEvent({ author: this.name, ...event })
  }

  // biome-ignore lint/correctness/useYield: ADK requires it.
  protected async *runLiveImpl(): AsyncGenerator<Event, void, void> {
    throw new AgentError('internal', 'Not live.')
  }
}

/** Gives several complete answers to each request: words in pieces, a call, then more words, an empty response at last. */
class SeveralAnswers extends BaseLlm {
  readonly #world: World
  readonly #calls: readonly string[]

  constructor(world: World, ...calls: string[]) {
    super({ model: 'several' })
    this.#world = world
    this.#calls = calls
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const said = request.contents.flatMap(({ parts = [] }) => parts)
    this.#world.asked.push(
      JSON.stringify(
        said.map(({ text, functionCall, functionResponse }) => [
          text,
          functionCall?.name,
          functionResponse?.name,
        ]),
      ),
    )
    const done = said.filter(({ functionResponse }) => functionResponse).length
    const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 12 }
    const text = (words: string, more: object = {}) => ({
      content: { role: 'model', parts: [{ text: words }] },
      ...more,
    })
    yield text('First ', { partial: true })
    yield text('things.', { partial: true })
    yield text('First things.', { usageMetadata })
    const name = this.#calls[done]
    if (name !== undefined)
      yield {
        content: {
          role: 'model',
          parts: [
            {
              functionCall: { id: `${name}-${done}`, name, args: name === 'inner' ? { request: 'Go.' } : {} },
            },
          ],
        },
        usageMetadata,
      }
    yield text(`Then ${done}.`, { partial: true })
    yield text(`Then ${done}.`, { usageMetadata })
    yield {}
  }

  override connect(): Promise<never> {
    return Promise.reject(new TypeError('not a live model'))
  }
}

interface ModelCallback {
  context: { state: Map<string, unknown> }
  response: LlmResponse
}

const state = (stateDelta: Record<string, unknown>, more: object = {}): Partial<Event> => ({
  actions: createEventActions({ stateDelta, ...more }),
})

const inTurn =
  (...names: string[]) =>
  (request: GenerateRequest): ScriptStep => {
    const next = names[results(request).length]
    return next === undefined ? say(`Done: ${/sees <(.*?)>/.exec(systemOf(request))?.[1] ?? ''}`) : call(next)
  }

const scenarios: Record<string, Scenario> = {
  'a model with several answers in one call': {
    agent: world =>
      agent('root', {
        model: new SeveralAnswers(world, 'pay', 'send'),
        tools: [tool(world, 'pay'), tool(world, 'send')],
        afterModelCallback: ({ context, response }: ModelCallback) => {
          if (!response.partial) context.state.set('answers', 1 + Number(context.state.get('answers') ?? 0))
          return undefined
        },
      }),
    script: () => say('Nobody asks this one.'),
  },
  'a model with several answers inside a tool': {
    agent: world => {
      const inner = agent('inner', { model: new SeveralAnswers(world, 'pay'), tools: [tool(world, 'pay')] })
      return agent('root', {
        model: new SeveralAnswers(world, 'inner'),
        tools: [new AgentTool({ agent: inner })],
      })
    },
    script: () => say('Nobody asks this one.'),
  },
  'temporary, app and user state': {
    agent: world =>
      agent('root', {
        instruction: 'sees <{temp:a?} {temp:b?} {app:c?} {user:d?} {count?}>',
        tools: [
          adkTool(world, 'first', context => {
            context.state.set('temp:a', 'A')
            context.state.set('app:c', 'C')
            context.state.set('count', 1 + Number(context.state.get('count') ?? 0))
            return { ok: true }
          }),
          tool(world, 'second', (_args, context) => {
            context.state.set('temp:b', `${context.state.get('temp:a')}B`)
            context.state.set('user:d', 'D')
            context.state.set('count', 1 + Number(context.state.get('count') ?? 0))
            return { read: context.state.get('temp:a') }
          }),
          tool(world, 'third', (_args, context) => ({ read: context.state.get('temp:b') })),
        ],
      }),
    script: inTurn('first', 'second', 'third'),
  },
  'a plugin that edits requests and events': {
    agent: world =>
      agent('root', { instruction: 'sees <x>', tools: [tool(world, 'pay'), tool(world, 'send')] }),
    options: () => ({
      adk: {
        plugins: [
          new (class extends BasePlugin {
            override async beforeModelCallback({
              llmRequest,
            }: Parameters<BasePlugin['beforeModelCallback']>[0]) {
              llmRequest.config ??= {}
              llmRequest.config.systemInstruction = `${llmRequest.config.systemInstruction} edited`
              return undefined
            }
            override async onEventCallback({ event }: { event: Event }) {
              const parts = event.content?.parts?.map(part =>
                part.text ? { ...part, text: `${part.text}!` } : part,
              )
              return parts ? { ...event, content: { ...event.content, parts } } : undefined
            }
          })('editor'),
        ],
      },
    }),
    script: inTurn('pay', 'send'),
  },
  'a plugin that answers a tool': {
    agent: world => agent('root', { tools: [tool(world, 'pay'), tool(world, 'send')] }),
    options: () => ({
      adk: {
        plugins: [
          new (class extends BasePlugin {
            override async beforeToolCallback({ tool: { name } }: { tool: { name: string } }) {
              return name === 'pay' ? { answered: 'by the plugin' } : undefined
            }
            override async afterToolCallback({ result }: { result: Record<string, unknown> }) {
              return { ...result, seen: Number(result.seen ?? 0) + 1 }
            }
          })('answerer'),
        ],
      },
    }),
    script: inTurn('pay', 'send', 'pay'),
  },
  'callbacks that return content and change state': {
    agent: world =>
      new SequentialAgent({
        name: 'root',
        subAgents: [
          agent('one', {
            tools: [tool(world, 'pay')],
            beforeAgentCallback: (context: { state: Map<string, unknown> }) => {
              context.state.set('begun', 1 + Number(context.state.get('begun') ?? 0))
              return undefined
            },
            beforeModelCallback: ({ context }: { context: { state: Map<string, unknown> } }) => {
              context.state.set('asks', 1 + Number(context.state.get('asks') ?? 0))
              return undefined
            },
            afterModelCallback: ({ context }: { context: { state: Map<string, unknown> } }) => {
              context.state.set('answers', 1 + Number(context.state.get('answers') ?? 0))
              return undefined
            },
            afterAgentCallback: () => ({ role: 'model', parts: [{ text: 'One more thing.' }] }),
          }),
          agent('two', { beforeAgentCallback: () => ({ role: 'model', parts: [{ text: 'Skipped.' }] }) }),
          agent('three', {
            beforeModelCallback: () => ({
              content: { role: 'model', parts: [{ text: 'From the callback.' }] },
            }),
          }),
          agent('four', { tools: [tool(world, 'send')] }),
        ],
      }),
    script: request => {
      const name = { one: 'pay', four: 'send' }[agentOf(request)] ?? ''
      return results(request).includes(name) ? say('Done.') : call(name)
    },
  },
  'an output schema with tools and an output key': {
    agent: world =>
      new SequentialAgent({
        name: 'root',
        subAgents: [
          agent('one', {
            instruction: 'internal name is "one"',
            tools: [tool(world, 'pay')],
            outputSchema: z.object({ sum: z.number() }),
            outputKey: 'out',
          }),
          agent('two', { instruction: 'sees <{out}>', tools: [tool(world, 'send')] }),
        ],
      }),
    script: request => {
      const done = results(request)
      if (agentOf(request) === 'one')
        return done.includes('pay')
          ? request.tools?.some(({ name }) => name === 'set_model_response')
            ? { toolCalls: [{ name: 'set_model_response', id: 'set', args: { sum: 5 } }], usage: {} }
            : say('{"sum":5}')
          : call('pay')
      return done.includes('send') ? say('Sent.') : call('send')
    },
  },
  'tools that throw': {
    agent: world => {
      const fail = () => {
        throw new AgentError('internal', 'It is broken.')
      }
      return agent('root', {
        tools: [
          adkTool(world, 'broken', fail),
          tool(world, 'own', fail),
          tool(world, 'pay'),
          adkTool(world, 'log', () => ({})),
        ],
      })
    },
    script: request => {
      const done = results(request)
      if (done.length === 0) return call('broken')
      if (done.length === 1) return call('own')
      return done.length === 2 ? call('own', 'pay', 'broken', 'log') : say('All done.')
    },
  },
  'one agent twice in a message, nested two deep': {
    agent: world => {
      const deep = agent('deep', { tools: [tool(world, 'pay')] })
      const inner = agent('inner', { tools: [new AgentTool({ agent: deep }), tool(world, 'send')] })
      return agent('root', { tools: [new AgentTool({ agent: inner }), tool(world, 'log')] })
    },
    script: request => {
      const asked = request.messages.findLastIndex(({ role }) => role === 'user')
      const done = results({ ...request, messages: request.messages.slice(asked) })
      const ask = (name: string, ...ids: string[]) => ({
        toolCalls: ids.map(id => ({ name, id, args: { request: `Do ${id}.` } })),
        usage: { inputTokens: 1, outputTokens: 1 },
      })
      const name = agentOf(request)
      if (name === 'deep') return done.includes('pay') ? say('Deep.') : call('pay')
      if (name === 'inner') {
        if (!done.includes('deep')) return ask('deep', 'd')
        return done.includes('send') ? say('Inner.') : call('send')
      }
      if (!done.includes('inner')) return ask('inner', 'i1', 'i2')
      return done.includes('log') ? say('Root.') : call('log')
    },
  },
  'agents inside tools in parallel branches': {
    isParallel: true,
    agent: world => {
      const side = (name: string) => {
        const inner = agent(`in_${name}`, { tools: [tool(world, `pay_${name}`)] })
        return agent(name, { tools: [new AgentTool({ agent: inner })], outputKey: name })
      }
      return new SequentialAgent({
        name: 'root',
        subAgents: [
          new ParallelAgent({ name: 'both', subAgents: [side('left'), side('right')] }),
          agent('end', { instruction: 'end {left} {right}', tools: [tool(world, 'log')] }),
        ],
      })
    },
    script: request => {
      const name = agentOf(request)
      const done = results(request)
      if (name === 'end') return done.includes('log') ? say('Done.') : call('log')
      if (name.startsWith('in_')) {
        const pay = `pay_${name.slice(3)}`
        return done.includes(pay) ? say(`${name} paid`) : call(pay)
      }
      const inner = `in_${name}`
      if (done.includes(inner)) return say(`${name} done`)
      return { toolCalls: [{ name: inner, id: 'i', args: { request: 'Pay.' } }], usage: { inputTokens: 1 } }
    },
  },
  'a long-running tool in a batch, with a first result': {
    agent: world =>
      agent('root', {
        tools: [
          tool(world, 'pay'),
          new LongRunningFunctionTool({
            name: 'later',
            description: 'later',
            parameters: z.object({}),
            execute: async () => {
              world.effects.push('later')
              return { ticket: 7 }
            },
          }),
        ],
      }),
    script: request => (results(request).length === 0 ? call('pay', 'later') : say('Pending.')),
  },
  'a transfer there and back': {
    agent: world =>
      agent('root', {
        tools: [tool(world, 'log')],
        subAgents: [agent('helper', { tools: [tool(world, 'pay')] })],
      }),
    script: request => {
      const text = JSON.stringify(request.messages)
      const to = (agentName: string): ScriptStep => ({
        toolCalls: [{ name: 'transfer_to_agent', id: `to-${agentName}`, args: { agentName } }],
        usage: { inputTokens: 1, outputTokens: 1 },
      })
      if (agentOf(request) === 'helper') return results(request).includes('pay') ? to('root') : call('pay')
      if (!text.includes('pay')) return to('helper')
      return results(request).includes('log') ? say('Back.') : call('log')
    },
  },
  'artifacts saved by a tool': {
    options: ({ artifacts }) => ({ adk: { artifactService: artifacts } }),
    agent: world =>
      agent('root', {
        tools: [
          adkTool(world, 'save', async context => ({
            version: await context.saveArtifact('a.txt', { text: 'A' }),
          })),
          tool(world, 'pay'),
        ],
      }),
    script: inTurn('save', 'pay', 'save'),
  },
  'a file in the message that is kept as an artifact': {
    input: { parts: [{ inlineData: { mimeType: 'text/plain', data: 'SGVsbG8=' } }] },
    options: ({ artifacts }) => ({
      adk: { artifactService: artifacts, runConfig: { saveInputBlobsAsArtifacts: true } },
    }),
    agent: world => agent('root', { tools: [tool(world, 'pay')] }),
    script: inTurn('pay'),
  },
  'a turn limit': {
    finishReason: 'turn-limit',
    options: world => ({
      rootAgent: undefined,
      agent: { name: 'root', model: 'play/m', tools: [tool(world, 'pay').tool], maxTurns: 3 },
    }),
    agent: () => agent('root'),
    script: request => (results(request).length >= 3 ? say('That is all.') : call('pay')),
  },
  'an unknown agent and its correction': {
    agent: world =>
      agent('root', { tools: [tool(world, 'pay'), tool(world, 'log')], subAgents: [agent('helper')] }),
    script: request => {
      const done = results(request)
      const text = JSON.stringify(request.messages)
      if (!done.includes('pay')) return call('pay')
      if (!text.includes('nobody'))
        return {
          toolCalls: [{ name: 'transfer_to_agent', id: 't', args: { agentName: 'nobody' } }],
          usage: {},
        }
      return done.includes('log') ? say('Corrected.') : call('log')
    },
  },
  'answers in pieces with the same text': {
    agent: world => agent('root', { tools: [tool(world, 'pay'), tool(world, 'log')] }),
    script: request => {
      const next = ['pay', 'log'][results(request).length]
      const deltas = ['Wor', 'king', '.']
      if (next === undefined) return { deltas, usage: { inputTokens: 3, outputTokens: 1 } }
      return {
        deltas,
        toolCalls: [{ name: next, id: 'same', args: {} }],
        usage: { inputTokens: 3, outputTokens: 1 },
      }
    },
  },
  'agents of code that change the state or only escalate': {
    agent: world =>
      new SequentialAgent({
        name: 'root',
        subAgents: [
          new LoopAgent({
            name: 'loop',
            maxIterations: 4,
            subAgents: [
              new CodeAgent('counter', ({ session }) => [
                state({ rounds: 1 + Number(session.state.rounds ?? 0) }),
              ]),
              agent('worker', { tools: [tool(world, 'pay')], instruction: 'sees <{rounds}>' }),
              new CodeAgent('checker', ({ session }) => [
                state({}, { escalate: session.state.rounds === 2 }),
              ]),
              new CodeAgent('silent', () => [{}]),
            ],
          }),
          new CodeAgent('speaker', () => [{ content: { role: 'model', parts: [{ text: 'Spoken.' }] } }, {}]),
          agent('end', { tools: [tool(world, 'log')] }),
        ],
      }),
    script: request => {
      if (agentOf(request) === 'end') return results(request).includes('log') ? say('End.') : call('log')
      const text = JSON.stringify(request.messages)
      const rounds = Number(/sees <(\d)/.exec(systemOf(request))?.[1])
      return results(request).filter(name => name === 'pay').length < rounds &&
        !text.includes(`Round ${rounds}`)
        ? call('pay')
        : say(`Round ${rounds}`)
    },
  },
  'calls of tools that do not exist, also inside a tool': {
    agent: world => {
      const inner = agent('inner', { tools: [tool(world, 'pay')] })
      return agent('root', { tools: [new AgentTool({ agent: inner }), tool(world, 'log')] })
    },
    script: request => {
      const done = results(request)
      if (!done.includes('none')) return call('none')
      if (agentOf(request) === 'inner') return done.includes('pay') ? say('Inner.') : call('pay')
      if (!done.includes('inner'))
        return {
          toolCalls: [{ name: 'inner', id: 'i', args: { request: 'Pay.' } }],
          usage: { inputTokens: 1 },
        }
      return done.includes('log') ? say('Done.') : call('log')
    },
  },
  'a plugin that gives events ids of its own': {
    options: () => ({ adk: { plugins: [new RenamingPlugin('renaming')] } }),
    agent: world => agent('root', { tools: [tool(world, 'pay'), tool(world, 'log')] }),
    script: inTurn('pay', 'log'),
  },
  'a failure of the provider': {
    finishReason: 'error',
    agent: world => agent('root', { tools: [tool(world, 'pay')] }),
    script: request =>
      results(request).length === 0
        ? call('pay')
        : { error: new AgentError('provider-rejected', 'It is down.') },
  },
  'a parallel batch of tools that may be repeated': {
    mayRepeat: true,
    agent: world => {
      const again = { effect: 'idempotent', onUnknown: 'retry' }
      const set = (name: string) =>
        tool(
          world,
          name,
          (_args, context) => {
            context.state.set(`temp:${name}`, 1)
            context.state.set(name, 1)
            if (name === 'three') throw new AgentError('internal', 'Three is broken.')
            return { name }
          },
          again,
        )
      return agent('root', {
        instruction: 'sees <{temp:one?} {temp:two?} {temp:three?}>',
        tools: [set('one'), set('two'), set('three')],
      })
    },
    script: request => (results(request).length === 0 ? call('one', 'two', 'three') : inTurn()(request)),
  },
  'a silent answer after the end of a loop': {
    agent: world =>
      new SequentialAgent({
        name: 'root',
        subAgents: [
          new LoopAgent({
            name: 'loop',
            maxIterations: 3,
            subAgents: [
              agent('writer', {
                tools: [
                  adkTool(world, 'exit', context => {
                    context.actions.escalate = true
                    return {}
                  }),
                ],
              }),
            ],
          }),
          agent('end', { tools: [tool(world, 'log')] }),
        ],
      }),
    script: request => {
      const done = results(request)
      if (agentOf(request) === 'end') return done.includes('log') ? say('End.') : call('log')
      return done.includes('exit') ? { usage: { inputTokens: 1, outputTokens: 0 } } : call('exit')
    },
  },
  'a long session that the budget cuts': {
    options: () => ({ history: { maxMessageTokenBudget: 2000 } }),
    before: async runtime => {
      for (let turn = 0; turn < 6; turn++)
        await runtime.runAndCollect({ sessionId: 's', text: `Talk ${turn}: ${'word '.repeat(300)}` })
    },
    agent: world => agent('root', { tools: [tool(world, 'pay'), tool(world, 'log')] }),
    script: request => {
      const last = request.messages.findLastIndex(({ role }) => role === 'user')
      const text = JSON.stringify(request.messages[last])
      if (text.includes('Talk')) return say('I see.')
      return inTurn('pay', 'log')({ ...request, messages: request.messages.slice(last) })
    },
  },
}

async function attempt(scenario: Scenario, store: SessionStore, world: World): Promise<Runtime> {
  const provider = new ScriptedProvider(
    request => {
      const step = scenario.script(request)
      world.asked.push(plain(JSON.stringify(request.messages)))
      return step
    },
    { id: 'play' },
  )
  return createRuntime({
    store,
    providers: { play: provider },
    rootAgent: scenario.agent(world),
    runs: { maxAttempts: 100 },
    ...scenario.options?.(world),
  } as RuntimeOptions)
}

/** Messages without ids and times; parallel branches in one order. */
function shown(messages: readonly StoredMessage[]): object[] {
  const rows = messages.map(({ role, author, branch, content, toolCalls, extra }) => ({
    role,
    author,
    branch: branch ?? '',
    content: plain(content),
    calls: toolCalls?.map(({ id, name, input, output }) => ({ id, name, input, output })),
    actions: extra?.actions,
  }))
  const branches = [...new Set(rows.map(({ branch }) => branch))].sort()
  return branches.flatMap(branch => rows.filter(each => each.branch === branch))
}

/** In parallel branches the state that a nested agent begins with depends on which branch is ahead. */
async function historyOf(store: SessionStore, isParallel = false): Promise<object[]> {
  const all: object[] = []
  for (const name of ['', '/inner', '/inner/deep', '/deep', '/in_left', '/in_right']) {
    const key = { ...KEY, appName: `lango${name}` }
    if (!(await store.describeSession(key))) continue
    const messages = await store.readMessages(key)
    const state = isParallel && name !== '' ? 'any' : (await store.loadSession(key))?.state
    all.push({ name, state }, ...shown(messages))
  }
  return all
}

async function finished(runtime: Runtime, runId = RUN): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) events.push(event)
  return events
}

/**
 * What clients are told. The usage of an agent inside a tool may be stored with the answer of another one, and counts twice
 * when its own answer was lost and asked for again: how often is in `nested-usage`.
 */
function reported(events: readonly RunEvent[], isParallel = false): string[] {
  const isNested = events.some(event => event.type === 'usage' && event.author === '')
  const anyUsage = isParallel || isNested
  const kinds = [
    'tool-call',
    'tool-result',
    'agent-transfer',
    'turn-warning',
    'wrap-up',
    'usage',
    'run-finish',
  ]
  return events
    .filter(event => kinds.includes(event.type) && !(anyUsage && event.type === 'usage'))
    .map(event => {
      const { seq, durationMs, step, ...rest } = event as RunEvent & { durationMs?: number; step?: number }
      return JSON.stringify(anyUsage ? { ...rest, usage: undefined } : rest)
    })
    .sort()
}

/** The text that a client shows: a restart takes back what its author has begun. */
function textOf(events: readonly RunEvent[]): string {
  const texts = new Map<string, string[]>()
  const open = new Map<string, number>()
  for (const event of events) {
    if (event.type === 'text-delta') {
      const own = texts.get(event.author) ?? []
      own.push(event.text)
      texts.set(event.author, own)
      open.set(event.author, (open.get(event.author) ?? 0) + 1)
    } else if (event.type === 'step-restart') {
      const author = (event as { author?: string }).author ?? ''
      texts.get(author)?.splice(-(open.get(author) ?? 0) || Infinity)
      open.delete(author)
    } else if (event.type === 'usage' || event.type === 'tool-call' || event.type === 'tool-result')
      open.delete(event.author)
  }
  return [...texts]
    .map(([author, own]) => `${author}: ${own.join('')}`)
    .sort()
    .join('\n')
}

async function prepare(scenario: Scenario, store: SessionStore, world: World): Promise<void> {
  if (!scenario.before) return
  const runtime = await attempt(scenario, store, world)
  await scenario.before(runtime)
  await runtime.close()
  world.asked.length = 0
}

function start(runtime: Runtime, scenario: Scenario) {
  return runtime.start({ sessionId: 's', runId: RUN, text: 'Go.', ...scenario.input })
}

/** The run without an interruption. */
async function whole(scenario: Scenario) {
  const store = await openStore('memory:')
  const world = newWorld()
  await prepare(scenario, store, world)
  const watched = crashable(store)
  const runtime = await attempt(scenario, watched.store, world)
  await start(runtime, scenario)
  const events = await finished(runtime)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: scenario.finishReason ?? 'stop' })
  await runtime.close()
  return { history: await historyOf(store, scenario.isParallel), events, world, writes: watched.writes }
}

/** Resolves when the run has ended in the store. */
async function finishedIn(store: SessionStore): Promise<void> {
  await eventually(async () => (await store.runs.findRun(RUN))?.finished).toBe(true)
}

function errorsOf(events: readonly RunEvent[]): unknown[] {
  return events.flatMap(event =>
    event.type === 'error' ? [[event.error.code, event.error.message, event.error.retryable]] : [],
  )
}

const times = ({ effects }: World, name: string) => effects.filter(each => each === name).length

test.each(Object.entries(scenarios))('%s: the run is continued after some of its writes', (_name, scenario) =>
  expectContinued(scenario, 4),
)

test.each(Object.entries(scenarios))(
  '%s: the run is continued after most of its writes',
  LONG,
  (_name, scenario) => expectContinued(scenario, 12),
)

async function expectContinued(scenario: Scenario, mostCuts: number): Promise<void> {
  const reference = await whole(scenario)
  expect(reference.writes).toBeGreaterThan(2)
  // Long runs repeat themselves: not each of their writes is needed.
  const stride = Math.ceil(reference.writes / mostCuts)
  let compared = 0
  for (let endsAfter = 1; endsAfter < reference.writes; endsAfter += stride) {
    const where = `cut after write ${endsAfter}`
    const store = await openStore('memory:')
    const world = newWorld()
    await prepare(scenario, store, world)
    const cut = crashable(store, { endsAfter })
    void start(await attempt(scenario, cut.store, world), scenario).catch(() => {})
    await Promise.race([cut.over, finishedIn(store)])
    await cut.crash()
    if ((await store.runs.findRun(RUN))?.finished) continue
    const runtime = await attempt(scenario, store, world)
    await runtime.ready()
    const events = await finished(runtime)
    await runtime.close()
    expect(gapsIn(events)).toEqual([])
    for (const name of scenario.mayRepeat ? [] : new Set(world.effects))
      expect(times(world, name), `${where}: ${name}`).toBeLessThanOrEqual(times(reference.world, name))
    expect(errorsOf(events), where).toEqual(errorsOf(reference.events))
    if (events.some(({ type }) => type === 'tool-unknown')) continue
    if (!scenario.mayRepeat)
      expect([...world.effects].sort(), where).toEqual([...reference.world.effects].sort())
    expect(await historyOf(store, scenario.isParallel), where).toEqual(reference.history)
    expect(textOf(events), where).toEqual(textOf(reference.events))
    compared += 1
    expect(reported(events, scenario.isParallel), where).toEqual(
      reported(reference.events, scenario.isParallel),
    )
    expect(world.asked.length, where).toBeLessThanOrEqual(reference.world.asked.length + 2)
    for (const request of scenario.isParallel ? [] : world.asked)
      expect(reference.world.asked, where).toContain(request)
  }
  expect(compared, 'runs that were cut off, continued and compared').toBeGreaterThan(0)
}

/** The inner agent and the root agent use one id for their calls; both need approval. */
function askingAgents(world: World): BaseAgent {
  const asks = (name: string) => {
    const { tool: asking } = tool(world, name, undefined, { needsApproval: true })
    return new ToolAdapter(asking, {
      approve: ({ args, context }) =>
        runScope.getStore()?.approve({ callId: context.callId, tool: name, args }, context.signal) ?? 'no',
    })
  }
  const inner = agent('inner', { tools: [asks('pay')] })
  return agent('root', { tools: [new AgentTool({ agent: inner }), asks('send')] })
}

const asking: Scenario = {
  agent: askingAgents,
  script: request => {
    const done = results(request)
    const next = (name: string): ScriptStep => ({ toolCalls: [{ name, id: 'c1', args: {} }], usage: {} })
    if (agentOf(request) === 'inner') return done.includes('pay') ? say('Paid.') : next('pay')
    if (!done.includes('inner'))
      return { toolCalls: [{ name: 'inner', id: 'i', args: { request: 'Pay.' } }], usage: {} }
    return done.includes('send') ? say('Sent.') : next('send')
  },
}

/** Answers each request for approval, until the run has ended. */
async function approveAll(runtime: Runtime, answer: 'once' | 'always' = 'once'): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) {
    events.push(event)
    // A request that is answered already is refused.
    if (event.type === 'approval-request') await runtime.answer(RUN, event.id, answer).catch(() => {})
  }
  return events
}

test.each(['once', 'always'] as const)(
  'every call asks for itself (%s), whatever was cut off',
  async answer => {
    const count = (events: readonly RunEvent[], type: string) =>
      events.filter(each => each.type === type).length
    let isDone = false
    for (let endsAfter = 2; !isDone; endsAfter++) {
      const where = `cut after write ${endsAfter}`
      const store = await openStore('memory:')
      const world = newWorld()
      const cut = crashable(store, { endsAfter })
      const first = await attempt(asking, cut.store, world)
      await Promise.race([cut.over, start(first, asking)])
      void approveAll(first, answer).catch(() => {})
      await Promise.race([cut.over, finishedIn(store)])
      await cut.crash()
      isDone = (await store.runs.findRun(RUN))?.finished ?? false
      const runtime = await attempt(asking, store, world)
      await runtime.ready()
      const events = await approveAll(runtime, answer)
      await runtime.close()
      expect(events.at(-1), where).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
      expect(count(events, 'approval-request'), where).toBe(2)
      expect(count(events, 'approval-answer'), where).toBe(2)
      if (count(events, 'tool-unknown') === 0) expect(world.effects, where).toEqual(['pay', 'send'])
    }
  },
)

test('a confirmation of ADK is answered by the next message, and both runs are cut off', async () => {
  const scenario: Scenario = {
    agent: world =>
      agent('root', {
        tools: [adkTool(world, 'pay', () => ({ paid: true }), { requireConfirmation: true })],
      }),
    script: request =>
      JSON.stringify(request.messages).includes('"paid":true') ? say('Paid.') : call('pay'),
  }
  const second = '00000000-0000-4000-8000-000000000002'
  let isDone = false
  for (let endsAfter = 2; !isDone; endsAfter++) {
    const where = `cut after write ${endsAfter}`
    const store = await openStore('memory:')
    const world = newWorld()
    const run = async (runId: string, input: object) => {
      const cut = crashable(store, { endsAfter })
      const begun = await attempt(scenario, cut.store, world)
      void begun.start({ sessionId: 's', runId, ...input }).catch(() => {})
      const isOver = async () =>
        ['finished', 'waiting'].includes((await store.runs.findRun(runId))?.state ?? '')
      await Promise.race([cut.over, eventually(isOver).toBe(true)])
      await cut.crash()
      const isFinished = await isOver()
      const runtime = await attempt(scenario, store, world)
      await runtime.ready()
      const events: RunEvent[] = []
      for await (const event of runtime.follow(runId, { untilWaiting: true })) events.push(event)
      await runtime.close()
      return { events, isFinished }
    }
    const asked = await run(RUN, { text: 'Pay.' })
    expect(await store.runs.findRun(RUN), where).toMatchObject({ state: 'waiting' })
    const calls = (await store.readMessages(KEY)).flatMap(({ toolCalls }) => toolCalls ?? [])
    const requests = calls.filter(
      ({ name, kind }) => name === 'adk_request_confirmation' && kind !== 'response',
    )
    expect(requests, where).toHaveLength(1)
    const response = {
      id: requests[0]?.id ?? '',
      name: 'adk_request_confirmation',
      response: { confirmed: true },
    }
    const answered = await run(second, { parts: [{ functionResponse: response }] })
    expect(errorsOf(answered.events), where).toEqual([])
    isDone = asked.isFinished && answered.isFinished
    expect(times(world, 'pay'), where).toBeLessThanOrEqual(1)
    if (answered.events.some(({ type }) => type === 'tool-unknown')) continue
    expect(times(world, 'pay'), where).toBe(1)
    expect(answered.events.at(-1), where).toMatchObject({ type: 'run-finish', lastText: 'Paid.' })
  }
})
