/**
 * Sessions for law 4: an agent with tools and a sub-agent talks to a model that thinks, calls tools in parallel, repeats
 * itself, hands over, names agents that do not exist and fails; between the turns the process restarts, the instruction
 * and the tools change, the model is switched, the session is forked, foreign and broken messages arrive, and runs are
 * cut off and resumed. Everything follows from one seed.
 */
import { LlmAgent } from '@google/adk'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { AgentError } from '../../src/errors.js'
import type { GenerateRequest, ModelInfo } from '../../src/provider/provider.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'
import { brokenPairs, type JudgedPair, pairsOf, type SentRecord } from '../support/steady.js'
import { modelOf, WireProvider } from '../support/wire-provider.js'
import { type Choose, seededChooser } from './repair-generator.js'

export interface SteadyReport {
  /** Pairs of consecutive requests of one session, model, agent and branch. */
  pairs: number
  /** Runs that were cut off and continued. */
  resumed: number
  /** How many of the pairs are breaks, by reason. */
  breaks: Record<string, number>
  broken: JudgedPair[]
}

/** Plays one session and judges its requests. */
export async function playSession(profile: ProfileName, seed: number): Promise<SteadyReport> {
  const play = new Play(profile, seededChooser(seed))
  try {
    await play.run()
    return await play.judge()
  } finally {
    await play.close()
  }
}

const APP = 'lango'
const USER = 'user'
/** A run that takes longer is stuck: it fails the test by its turn, not by a clock. */
const MOST_TURNS = 14

class Play {
  readonly #choose: Choose
  readonly #profile: ProfileName
  readonly #store = openStore('memory:')
  readonly #sessions = ['s1']
  readonly #budget: number | 'off'
  #words = 0
  #resumed = 0
  #runtime: Runtime | undefined
  #instruction = 0
  #tools = 2
  #model: string | undefined
  #lastCall: Record<string, unknown> = { at: 'first' }

  constructor(profile: ProfileName, choose: Choose) {
    this.#profile = profile
    this.#choose = choose
    this.#budget = ([600, 1500, 4000, 'off'] as const)[choose(4)] ?? 'off'
  }

  async run(): Promise<void> {
    await this.#restart()
    const turns = 4 + this.#choose(MOST_TURNS)
    for (let turn = 0; turn < turns; turn++) {
      await this.#change()
      if (this.#choose(8) === 0) await this.#cutOff()
      else await this.#say()
    }
  }

  async judge(): Promise<SteadyReport> {
    const report: SteadyReport = { pairs: 0, resumed: this.#resumed, breaks: {}, broken: [] }
    const store = await this.#store
    for (const sessionId of this.#sessions) {
      const requests = await requestsOf(store, sessionId)
      const pairs = pairsOf(requests)
      report.pairs += pairs.length
      report.broken.push(...brokenPairs(requests))
      for (const reason of pairs.flatMap(pair => pair.breaks))
        report.breaks[reason] = (report.breaks[reason] ?? 0) + 1
    }
    return report
  }

  async close(): Promise<void> {
    await this.#runtime?.close()
    await (await this.#store).close()
  }

  get #sessionId(): string {
    return this.#sessions.at(-1) ?? 's1'
  }

  async #say(): Promise<void> {
    const input = {
      sessionId: this.#sessionId,
      text: this.#text(),
      ...(this.#model ? { model: this.#model } : {}),
    }
    // A run may end in an error of the model: the next one continues.
    for await (const _event of (this.#runtime as Runtime).run(input));
  }

  /** What happens between two turns. */
  async #change(): Promise<void> {
    switch (this.#choose(16)) {
      case 0:
      case 1:
        return this.#restart()
      case 2:
        this.#instruction += 1
        return this.#restart()
      case 3:
        this.#tools = 1 + this.#choose(3)
        return this.#restart()
      case 4:
        this.#model = this.#model ? undefined : `other/${modelOf('openai-chat')}`
        return
      case 5: {
        const store = await this.#store
        const key = { appName: APP, userId: USER, sessionId: this.#sessionId }
        if (!(await store.describeSession(key))) return
        const forked = `s${this.#sessions.length + 1}`
        await store.forkSession(key, forked)
        this.#sessions.push(forked)
        return
      }
      case 6:
      case 7:
        return this.#arrive()
      default:
        return
    }
  }

  /** A message from elsewhere, often a broken one. */
  async #arrive(): Promise<void> {
    const store = await this.#store
    const key = { appName: APP, userId: USER, sessionId: this.#sessionId }
    if (!(await store.describeSession(key))) return
    const id = `foreign-${this.#words}`
    const timestamp = Date.now()
    const call = { id, name: 'look', input: '{}', kind: 'call' as const }
    const shapes: Message[][] = [
      [{ role: 'assistant', author: 'root', content: this.#text(), timestamp }],
      [{ role: 'user', author: 'user', content: this.#text(), timestamp }],
      [{ role: 'assistant', author: 'root', content: '', toolCalls: [call], timestamp }],
      [
        {
          role: 'tool',
          author: 'root',
          content: '',
          toolCalls: [{ id, name: 'look', output: '"x"', kind: 'response' }],
          timestamp,
        },
      ],
      [
        { role: 'assistant', author: 'root', content: '', toolCalls: [call], timestamp },
        { role: 'user', author: 'user', content: this.#text(), timestamp },
        {
          role: 'tool',
          author: 'root',
          content: '',
          toolCalls: [{ id, name: 'look', output: '"x"', kind: 'response' }],
          timestamp,
        },
      ],
      [{ role: 'system', author: 'user', content: this.#text(), timestamp }],
    ]
    for (const message of shapes[this.#choose(shapes.length)] ?? []) await store.appendMessage(key, message)
  }

  /** A run whose process ends after one of its writes; another one resumes it. */
  async #cutOff(): Promise<void> {
    const store = await this.#store
    const process = crashable(store, { endsAfter: 1 + this.#choose(8) })
    const runtime = await this.#runtimeOn(process.store)
    const { runId } = await Promise.race([
      runtime.start({ sessionId: this.#sessionId, text: this.#text() }),
      process.over.then(() => ({ runId: undefined })),
    ])
    if (runId === undefined) return void runtime.close()
    const follow = async () => {
      for await (const _event of runtime.follow(runId));
    }
    await Promise.race([follow(), process.over])
    await process.crash()
    // Its timers end here; what waits for its store waits for ever, and is collected with it.
    void runtime.close()
    const own = this.#runtime as Runtime
    await own.resume(runId).catch(() => {})
    for await (const { type } of own.follow(runId)) if (type === 'run-resumed') this.#resumed += 1
  }

  async #restart(): Promise<void> {
    await this.#runtime?.close()
    this.#runtime = await this.#runtimeOn(await this.#store)
  }

  #runtimeOn(store: SessionStore): Promise<Runtime> {
    const model = `main/${modelOf(this.#profile)}`
    const instruction = `Be helpful. Version ${this.#instruction}. Seen: {seen?}`
    const tools = ['look', 'list', 'note'].slice(0, this.#tools).map(name => this.#tool(name))
    const clerk = new LlmAgent({
      name: 'clerk',
      description: 'Writes.',
      model,
      instruction,
      tools: [this.#tool('look')],
    })
    const rootAgent = new LlmAgent({ name: 'root', model, instruction, tools, subAgents: [clerk] })
    const script = (request: GenerateRequest, info: ModelInfo) => this.#answer(request, info)
    return createRuntime({
      store,
      providers: {
        main: new WireProvider(this.#profile, script),
        other: new WireProvider('openai-chat', script),
      },
      rootAgent,
      history: { maxMessageTokenBudget: this.#budget },
    })
  }

  #tool(name: string): ToolAdapter {
    return new ToolAdapter(
      defineTool({
        name,
        description: name,
        parameters: { type: 'object', properties: { at: { type: 'string' } } },
        effect: 'read',
        execute: (_args, { state }) => {
          // A template of the instruction changes in the middle of a run.
          if (this.#choose(12) === 0) state.set('seen', this.#words)
          return { output: this.#text(1 + this.#choose(this.#choose(6) === 0 ? 400 : 30)) }
        },
      }),
    )
  }

  /** What the model says. */
  #answer({ options, tools = [] }: GenerateRequest, info: ModelInfo): StreamEvent[] {
    const events = this.#choose(2) === 0 ? [this.#thought(info)] : []
    const kind = options?.toolChoice === 'none' ? 0 : this.#choose(20)
    const done = (finishReason: 'stop' | 'tool-calls'): StreamEvent[] => [
      { type: 'usage', usage: { inputTokens: 900 + this.#choose(200), outputTokens: 10, totalTokens: 1000 } },
      { type: 'done', finishReason },
    ]
    if (kind === 18) return [{ type: 'error', error: new AgentError('provider-rejected', 'No.') }]
    if (kind === 19) return done('stop')
    if (kind < 9 || tools.length === 0)
      return [...events, { type: 'text-delta', text: this.#text(1 + this.#choose(40)) }, ...done('stop')]
    if (kind === 17 && tools.some(tool => tool.name === 'transfer_to_agent')) {
      const agentName = ['clerk', 'root', 'ghost'][this.#choose(3)] ?? 'clerk'
      return [...events, this.#call('transfer_to_agent', { agentName }, info), ...done('tool-calls')]
    }
    if (this.#choose(3) === 0) this.#lastCall = { at: this.#text() }
    const calls = Array.from({ length: 1 + this.#choose(3) }, () => this.#call('look', this.#lastCall, info))
    return [...events, ...calls, ...done('tool-calls')]
  }

  #thought(info: ModelInfo): StreamEvent {
    return {
      type: 'reasoning-delta',
      text: this.#text(),
      signature: Buffer.from(`signature ${this.#words}`).toString('base64'),
      origin: { vendor: vendorOf(info), model: info.id },
    }
  }

  #call(name: string, args: Record<string, unknown>, info: ModelInfo): StreamEvent {
    this.#words += 1
    const signed =
      vendorOf(info) === 'gemini' ? { signature: Buffer.from(`call ${this.#words}`).toString('base64') } : {}
    return {
      type: 'tool-call',
      id: `call${String(this.#words).padStart(5, '0')}`,
      name,
      args,
      ...signed,
      origin: { vendor: vendorOf(info), model: info.id },
    }
  }

  #text(words = 6): string {
    this.#words += 1
    return `word${this.#words} ${'and so on '.repeat(words)}`.trim()
  }
}

function vendorOf(info: ModelInfo): string {
  return PROFILES[info.profile as ProfileName].vendor
}

async function requestsOf(store: SessionStore, sessionId: string): Promise<SentRecord[]> {
  const key = { appName: APP, userId: USER, sessionId }
  const all: SentRecord[] = []
  for (const { runId } of (await store.runs.listRuns(key, { limit: 1000 })).toReversed())
    for (const { record } of await store.runs.readRequests(runId)) all.push(record as unknown as SentRecord)
  return all
}
