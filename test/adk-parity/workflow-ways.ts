// One workflow on one script, run by bare ADK, by Lango's runtime, and by ADK's runner with Lango's adapters.
import {
  BaseLlm,
  type BaseLlmConnection,
  type BaseSessionService,
  type Event,
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  node,
  Runner,
} from '@google/adk'
import type { Content, Part } from '@google/genai'
import { z } from 'zod'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { interceptStore } from '../support/faulty-store.js'
import type { Kit, Step, WorkflowCase } from './workflow-cases.js'

/** What one way did. */
export interface Observation {
  /** One line per request: the agent, and what the request held. */
  requests: string[]
  /** One line per execution of a function or a tool. */
  effects: string[]
  events: string[]
  state: Record<string, unknown>
  failures: string[]
}

export const WAYS = ['runtime', 'runtime, slow store', 'adapters', 'adapters, slow store'] as const

export const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

export async function observe(
  way: 'bare' | (typeof WAYS)[number],
  given: WorkflowCase,
): Promise<Observation> {
  if (way === 'bare') return observeBare(given)
  const memory = await openStore('memory:')
  const store = way.includes('slow') ? slow(memory) : memory
  return way.startsWith('runtime') ? observeRuntime(given, store) : observeAdapters(given, store)
}

async function observeBare(given: WorkflowCase): Promise<Observation> {
  const play = new Play(given)
  const sessions = new InMemorySessionService()
  const failures = await runTurns(given, play, new PlayedModel(play), sessions)
  return observed(play, sessions, failures)
}

async function observeAdapters(given: WorkflowCase, store: SessionStore): Promise<Observation> {
  const play = new Play(given)
  const sessions = new SessionServiceAdapter(store, { rootAgentName: 'root' })
  const model = new ModelAdapter({ provider: play.provider, model: 'm' })
  const failures = await runTurns(given, play, model, sessions)
  return observed(play, sessions, failures)
}

async function observeRuntime(given: WorkflowCase, store: SessionStore): Promise<Observation> {
  const play = new Play(given)
  const rootAgent = given.build(play.kit('play/m'))
  const runtime = await createRuntime({ store, providers: { play: play.provider }, rootAgent })
  const failures: string[] = []
  for (const turn of given.turns ?? ['go']) {
    const parts = typeof turn === 'string' ? [{ text: turn }] : turn(await runtime.events(KEY))
    await runtime.runAndCollect({ sessionId: 's', parts }).catch(error => failures.push(messageOf(error)))
  }
  const sessions = new SessionServiceAdapter(store, { rootAgentName: 'root' })
  const seen = await observed(play, sessions, failures)
  await runtime.close()
  return seen
}

async function runTurns(
  given: WorkflowCase,
  play: Play,
  model: BaseLlm,
  sessions: BaseSessionService,
): Promise<string[]> {
  const { appName, userId, sessionId } = KEY
  const runner = new Runner({ appName, agent: given.build(play.kit(model)), sessionService: sessions })
  await sessions.createSession(KEY)
  const failures: string[] = []
  for (const turn of given.turns ?? ['go']) {
    const stored = await sessions.getSession(KEY)
    const parts = typeof turn === 'string' ? [{ text: turn }] : turn(stored?.events ?? [])
    try {
      for await (const event of runner.runAsync({ userId, sessionId, newMessage: { role: 'user', parts } }))
        if (event.errorCode && !failures.length) failures.push(event.errorMessage ?? event.errorCode)
    } catch (error) {
      if (!failures.includes(messageOf(error))) failures.push(messageOf(error))
    }
  }
  return failures
}

async function observed(play: Play, sessions: BaseSessionService, failures: string[]): Promise<Observation> {
  const session = await sessions.getSession(KEY)
  return {
    requests: play.requests,
    effects: play.effects,
    events: viewEvents(session?.events ?? []),
    state: { ...session?.state },
    failures: failures.map(text =>
      text.replace(/^The (run failed inside ADK|(node|agent) "[^"]*" failed): /, ''),
    ),
  }
}

/** The script of a case, and what was done with it. */
export class Play {
  readonly requests: string[]
  readonly effects: string[]
  readonly #given: WorkflowCase
  readonly #said = new Map<string, number>()

  constructor(
    given: WorkflowCase,
    { requests, effects }: Pick<Play, 'requests' | 'effects'> = { requests: [], effects: [] },
  ) {
    this.#given = given
    this.requests = requests
    this.effects = effects
  }

  get provider(): ScriptedProvider {
    return new ScriptedProvider(
      request => {
        const { text, calls = [] } = this.answer(agentOf(systemOf(request)), viewMessages(request))
        const toolCalls = calls.map(({ name, args = {} }, index) => ({ name, args, id: `${name}-${index}` }))
        return {
          ...(text === undefined ? {} : { text }),
          toolCalls,
          usage: { inputTokens: 1, outputTokens: 1 },
        }
      },
      { id: 'play' },
    )
  }

  /** The play of another process, after so many answers of each agent: an answer that was lost is given again. */
  again(said: ReadonlyMap<string, number>): Play {
    const play = new Play(this.#given, this)
    for (const [agent, count] of said) play.#said.set(agent, count)
    return play
  }

  answer(agent: string, request: string): Step {
    const count = this.#said.get(agent) ?? 0
    this.#said.set(agent, count + 1)
    this.requests.push(`${agent}: ${request}`)
    return this.#given.scripts?.[agent]?.[count] ?? { text: `Done by ${agent}.` }
  }

  kit(model: string | BaseLlm): Kit {
    const note = (line: string) => void this.effects.push(line)
    return {
      note,
      agent: (name, options) => new LlmAgent({ name, model, instruction: `Be ${name}.`, ...options }),
      tool: name =>
        new FunctionTool({
          name,
          description: `Does ${name}.`,
          parameters: z.object({ text: z.string().optional() }),
          execute: async (_args, context) => {
            note(`tool ${name}`)
            context?.state.set(`did_${name}`, true)
            return { done: name }
          },
        }),
      fn: (name, act = (_context, input) => input) =>
        node(
          (context, input) => {
            note(`${name} ${JSON.stringify(input)}`)
            return act(context, input)
          },
          { name },
        ),
    }
  }
}

class PlayedModel extends BaseLlm {
  readonly #play: Play

  constructor(play: Play) {
    super({ model: 'played' })
    this.#play = play
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const agent = agentOf(JSON.stringify(request.config?.systemInstruction ?? ''))
    const { text, calls = [] } = this.#play.answer(agent, viewContents(request.contents))
    const parts: Part[] = [
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ name, args = {} }, index) => ({
        functionCall: { name, args, id: `${name}-${index}` },
      })),
    ]
    yield { content: { role: 'model', parts } }
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new TypeError('not a live model'))
  }
}

function agentOf(system: string): string {
  return (/internal name is \\?"(\w+)/.exec(system) ?? /Be (\w+)\./.exec(system))?.[1] ?? 'nobody'
}

function systemOf(request: GenerateRequest): string {
  return JSON.stringify(request.messages.filter(({ role }) => role === 'system'))
}

function viewMessages(request: GenerateRequest): string {
  const parts = request.messages.filter(({ role }) => role !== 'system').flatMap(message => message.parts)
  const items = parts.flatMap(part => {
    if (part.type === 'text') return [part.text]
    if (part.type === 'tool-call') return [`call ${part.name}`]
    return part.type === 'tool-result' ? [`result ${part.name}`] : []
  })
  return items.join(' | ')
}

function viewContents(contents: readonly Content[]): string {
  const items = contents
    .flatMap(({ parts = [] }) => parts)
    .flatMap(({ text, functionCall, functionResponse }) => {
      if (text) return [text]
      if (functionCall) return [`call ${functionCall.name}`]
      return functionResponse ? [`result ${functionResponse.name}`] : []
    })
  return items.join(' | ')
}

/**
 * Events without ids and times, and without those that only change the state, which Lango keeps as state. The texts of
 * the user stand apart: a node's input is one of them, and Lango may join them when it loads a session.
 */
function viewEvents(events: readonly Event[]): string[] {
  const texts = events.flatMap(({ author, content }) =>
    author === 'user' ? (content?.parts ?? []).flatMap(({ text }) => (text ? [`user: ${text}`] : [])) : [],
  )
  const others = events.filter(
    ({ author, content }) => author !== 'user' || content?.parts?.every(({ text }) => !text),
  )
  return [...texts, ...others.flatMap(viewEvent)]
}

function viewEvent(event: Event): string[] {
  const { author, branch, content, output, route, nodeInfo, errorMessage, longRunningToolIds } = event
  const parts = content?.parts?.map(({ text, functionCall, functionResponse }) => {
    if (functionCall) return `call ${functionCall.name} ${JSON.stringify(functionCall.args)}`
    return functionResponse
      ? `result ${functionResponse.name} ${JSON.stringify(functionResponse.response)}`
      : text
  })
  const isWaiting = (longRunningToolIds ?? []).length > 0
  const said = { parts, output, route, errorMessage, ...(isWaiting ? { isWaiting } : {}) }
  if (Object.values(said).every(value => value === undefined)) return []
  return [viewIds(JSON.stringify({ author, branch, path: nodeInfo?.path, ...said }))]
}

/** ADK makes ids for calls that have none. */
function viewIds(text: string): string {
  return text.replaceAll(/adk-[0-9a-f-]{36}|[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
}

/** A store whose writes take a while. */
function slow(store: SessionStore): SessionStore {
  return interceptStore(store, async (name, invoke) => {
    if (SLOW.has(name)) await new Promise(resolve => setTimeout(resolve, SLOW_MS))
    return invoke()
  })
}

const SLOW = new Set(['appendMessage', 'updateState', 'runs.saveStep'])
const SLOW_MS = 20

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
