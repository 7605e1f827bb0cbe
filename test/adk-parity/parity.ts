// One agent on one script, run three ways: bare ADK, Lango's runtime, and ADK's runner with Lango's adapters. What each
// way sent to a strict Gemini server, called, stored and said is recorded, so that `compare.ts` can hold the ways equal.
import {
  type BaseAgent,
  type BaseArtifactService,
  type BaseLlm,
  type BaseMemoryService,
  type BasePlugin,
  type Event,
  FunctionTool,
  Gemini,
  InMemorySessionService,
  LlmAgent,
  type LlmAgentConfig,
  type RunConfig,
  Runner,
} from '@google/adk'
import type { Part } from '@google/genai'
import { z } from 'zod'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { AgentError } from '../../src/errors.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { RequestSummary, ScriptStep } from '../../src/testing/strict/script.js'

const MODEL = 'gemini-2.5-flash'

export type Scripts = Readonly<Record<string, readonly ScriptStep[]>>

type ToolContext = NonNullable<Parameters<ConstructorParameters<typeof FunctionTool>[0]['execute']>[1]>

/** What an agent is built with. Its models go to the server of the way that it is run in. */
export interface Kit {
  /** Lines that callbacks and tools leave, in order. */
  readonly journal: string[]
  /** A model as an agent names it. */
  readonly model: string | BaseLlm
  /** A model as an object, for parts of ADK that take no name. */
  llm(name?: string): BaseLlm
  agent(name: string, options?: Partial<LlmAgentConfig>): LlmAgent
  /** A tool that takes `{ text?: string }` and leaves a line. */
  tool(
    name: string,
    act?: (context: ToolContext, args: { text?: string | undefined }) => unknown,
  ): FunctionTool
}

/** What a run is given besides its agent. */
export interface Services {
  plugins?: BasePlugin[]
  artifactService?: BaseArtifactService
  memoryService?: BaseMemoryService
  runConfig?: Partial<RunConfig>
}

/** A message of the user: its text, its parts, or parts that answer what was stored so far. */
export type Turn = string | readonly Part[] | ((events: readonly Event[]) => readonly Part[])

export interface ParityCase {
  /** The row of the table in the documentation that it belongs to. */
  feature: string
  build(kit: Kit): BaseAgent | ({ agent: BaseAgent } & Services)
  /** What the model of each agent answers, in order; afterwards it says `Done.` */
  scripts: Scripts
  /** Default: `go`, once. */
  turns?: readonly Turn[]
  stateDelta?: Record<string, unknown>
  /** Parallel work ends in any order: lists are compared as sets. */
  isUnordered?: boolean
  /** ADK compares times here, so that what is stored and sent depends on milliseconds: calls and text are compared. */
  isTimed?: boolean
}

export type Way = 'bare' | 'runtime' | 'adapters'

/** What one way did. */
export interface Observation {
  bodies: Record<string, unknown>[]
  modelCalls: string[]
  journal: string[]
  events: Event[]
  state: Record<string, unknown>
  /** Of the last turn. */
  text: string
  errors: string[]
  /** Requests that the server refused. */
  violations: string[]
  /** Requests of another way's model that reached the bare server. */
  strays: number
}

/** A strict server whose script is that of the case that runs now. */
class Server {
  modelCalls: string[] = []
  #scripts: Scripts = {}
  #said = new Map<string, number>()
  #from = { requests: 0, violations: 0 }
  readonly #started: Promise<StrictProvider>
  #server: StrictProvider | undefined

  constructor() {
    this.#started = startStrictProvider({ profile: 'gemini-2', script: request => this.#answer(request) })
  }

  async baseUrl(): Promise<string> {
    this.#server = await this.#started
    return this.#server.baseUrl
  }

  play(scripts: Scripts): void {
    this.#scripts = scripts
    this.#said = new Map()
    this.modelCalls = []
    this.#from = {
      requests: this.#server?.requests.length ?? 0,
      violations: this.#server?.violations.length ?? 0,
    }
  }

  get bodies(): Record<string, unknown>[] {
    const received = this.#server?.requests.slice(this.#from.requests) ?? []
    return received.map(({ body }) => body as Record<string, unknown>)
  }

  get violations(): string[] {
    return (this.#server?.violations.slice(this.#from.violations) ?? []).map(({ code }) => code)
  }

  async close(): Promise<void> {
    await (await this.#started).close()
  }

  #answer(request: RequestSummary): ScriptStep {
    const agent = /Your internal name is "(\w+)"/.exec(request.system)?.[1] ?? 'nobody'
    this.modelCalls.push(agent)
    const count = this.#said.get(agent) ?? 0
    this.#said.set(agent, count + 1)
    return this.#scripts[agent]?.[count] ?? { text: 'Done.' }
  }
}

/** The three ways, each with a server that all cases share. */
export class Ways {
  readonly #servers = { bare: new Server(), runtime: new Server(), adapters: new Server() }

  async observe(way: Way, given: ParityCase): Promise<Observation> {
    const server = this.#servers[way]
    // ADK's own Gemini takes its address from the environment alone.
    process.env.GOOGLE_GEMINI_BASE_URL = await this.#servers.bare.baseUrl()
    process.env.GEMINI_API_KEY = 'key'
    const baseUrl = await server.baseUrl()
    this.#servers.bare.play(given.scripts)
    server.play(given.scripts)
    const kit = kitFor(way, baseUrl)
    const seen = await RUN[way](given, kit, baseUrl)
    const strays = way === 'bare' ? undefined : this.#servers.bare
    return {
      ...seen,
      bodies: [...server.bodies, ...(strays?.bodies ?? [])],
      modelCalls: [...server.modelCalls, ...(strays?.modelCalls ?? [])],
      journal: [...kit.journal],
      violations: server.violations,
      strays: strays?.bodies.length ?? 0,
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#servers).map(server => server.close()))
    delete process.env.GOOGLE_GEMINI_BASE_URL
    delete process.env.GEMINI_API_KEY
  }
}

function kitFor(way: Way, baseUrl: string): Kit {
  const journal: string[] = []
  const adapted = (model: string) =>
    new ModelAdapter({ provider: createProvider({ type: 'gemini', apiKey: 'key', baseUrl }), model })
  const llm = (name = MODEL) =>
    way === 'adapters' ? adapted(name) : new Gemini({ model: name, apiKey: 'key' })
  const model = way === 'adapters' ? adapted(MODEL) : MODEL
  return {
    journal,
    model,
    llm,
    agent: (name, options) => new LlmAgent({ name, model, instruction: `Be ${name}.`, ...options }),
    tool: (name, act) =>
      new FunctionTool({
        name,
        description: `Does ${name}.`,
        parameters: z.object({ text: z.string().optional() }),
        execute: async (args, context) => {
          journal.push(`tool ${name} ${JSON.stringify(args)}`)
          const result = context ? await act?.(context, args) : undefined
          return result === undefined ? { done: name } : result
        },
      }),
  }
}

type Seen = Pick<Observation, 'events' | 'state' | 'text' | 'errors'>

const RUN: Readonly<Record<Way, (given: ParityCase, kit: Kit, baseUrl: string) => Promise<Seen>>> = {
  bare: (given, kit) => runWithAdk(given, kit, new InMemorySessionService()),
  adapters: async (given, kit) => {
    const store = await openStore('memory:')
    const sessions = new SessionServiceAdapter(store)
    const seen = await runWithAdk(given, kit, sessions)
    await store.close()
    return seen
  },
  runtime: runWithLango,
}

const KEY = { appName: 'app', userId: 'ann', sessionId: 's' } as const

async function runWithAdk(
  given: ParityCase,
  kit: Kit,
  sessionService: InMemorySessionService | SessionServiceAdapter,
): Promise<Seen> {
  const { agent, runConfig, ...services } = partsOf(given, kit)
  await sessionService.createSession({ ...KEY })
  const runner = new Runner({ appName: 'app', agent, sessionService, ...services })
  const errors: string[] = []
  let said: Event[] = []
  for (const turn of given.turns ?? ['go']) {
    const session = await sessionService.getSession({ ...KEY })
    const newMessage = { role: 'user', parts: [...partsOfTurn(turn, session?.events ?? [])] }
    said = []
    try {
      const run = runner.runAsync({
        userId: 'ann',
        sessionId: 's',
        newMessage,
        ...(runConfig ? { runConfig } : {}),
        ...(given.stateDelta ? { stateDelta: given.stateDelta } : {}),
      })
      for await (const event of run) {
        if (!event.partial) said.push(event)
        if (event.errorCode) errors.push(event.errorMessage ?? event.errorCode)
      }
    } catch (error) {
      errors.push(error instanceof Error ? error.message : String(error))
    }
  }
  const session = await sessionService.getSession({ ...KEY })
  return { events: session?.events ?? [], state: { ...session?.state }, text: collectedText(said), errors }
}

async function runWithLango(given: ParityCase, kit: Kit, baseUrl: string): Promise<Seen> {
  const { agent: rootAgent, ...adk } = partsOf(given, kit)
  const runtime = await createRuntime({
    app: 'app',
    store: 'memory:',
    providers: { gemini: { type: 'gemini', apiKey: 'key', baseUrl } },
    rootAgent,
    adk,
  })
  const errors: string[] = []
  let text = ''
  for (const turn of given.turns ?? ['go']) {
    const parts = partsOfTurn(turn, await eventsOf(runtime))
    const { stateDelta } = given
    try {
      const input = { userId: 'ann', sessionId: 's', parts, ...(stateDelta ? { stateDelta } : {}) }
      text = (await runtime.runAndCollect(input)).text
    } catch (error) {
      text = ''
      errors.push(error instanceof AgentError ? error.message : String(error))
    }
  }
  const session = await runtime.store.loadSession(KEY)
  const events = await eventsOf(runtime)
  await runtime.close()
  return { events, state: { ...session?.state }, text, errors }
}

async function eventsOf(runtime: Awaited<ReturnType<typeof createRuntime>>): Promise<Event[]> {
  return (await runtime.store.describeSession(KEY)) ? runtime.events(KEY) : []
}

function partsOf(given: ParityCase, kit: Kit): { agent: BaseAgent } & Services {
  const built = given.build(kit)
  return 'agent' in built ? built : { agent: built }
}

function partsOfTurn(turn: Turn, events: readonly Event[]): readonly Part[] {
  if (typeof turn === 'string') return [{ text: turn }]
  return typeof turn === 'function' ? turn(events) : turn
}

/** What the last author who spoke said in a run: each event a paragraph, without thoughts. */
function collectedText(events: readonly Event[]): string {
  const spoken = events.flatMap(({ author, content }) => {
    const texts = (content?.parts ?? []).flatMap(part => (part.text && !part.thought ? [part.text] : []))
    return author !== 'user' && texts.length > 0 ? [{ author, text: texts.join('') }] : []
  })
  const last = spoken.at(-1)?.author
  return spoken
    .filter(({ author }) => author === last)
    .map(({ text }) => text)
    .join('\n\n')
}

/** An answer that calls one tool. */
export function calls(name: string, args: Record<string, unknown> = {}): ScriptStep {
  return { toolCalls: [{ name, args }] }
}
