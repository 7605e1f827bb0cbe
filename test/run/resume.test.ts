// A run is cut off after each of its writes and continued by another runtime: its history is that of an uninterrupted run.
import {
  AgentTool,
  BaseAgent,
  type Context,
  createEvent,
  type Event,
  FunctionTool,
  type InvocationContext,
  LlmAgent,
  LoopAgent,
  ParallelAgent,
  SequentialAgent,
} from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { AgentError } from '../../src/errors.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { isReplay } from '../../src/run/run-scope.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { StoredMessage } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { type CrashableStore, crashable } from '../support/crashable-store.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { faultyStore } from '../support/faulty-store.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const RUN = '00000000-0000-4000-8000-000000000001'

/** Agents of one attempt, and what their tools have done over all attempts. */
interface World {
  effects: string[]
  asked: string[]
}

interface Scenario {
  /** Its agents speak at the same time: whose answer is the last one is a matter of time. */
  isParallel?: boolean
  input?: { stateDelta: Record<string, unknown> }
  agent(world: World): LlmAgent | SequentialAgent | LoopAgent | ParallelAgent
  script(request: GenerateRequest): ScriptStep
}

/** How many results of tools a request holds. */
function results(request: GenerateRequest): string[] {
  return request.messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool-result' ? [part.name] : [])),
  )
}

/** The agent that asks: ADK names it in the system instruction. */
function agentOf(request: GenerateRequest): string {
  const parts = request.messages.find(({ role }) => role === 'system')?.parts ?? []
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join(' ')
  return /internal name is "(\w+)"/.exec(text)?.[1] ?? ''
}

function once(world: World, name: string) {
  return new ToolAdapter(
    defineTool({
      name,
      description: name,
      parameters: z.object({}),
      effect: 'once',
      execute: (_args, { state }) => {
        world.effects.push(name)
        state.set(`did_${name}`, true)
        return { done: `${name} ${world.effects.filter(each => each === name).length}` }
      },
    }),
  )
}

const call = (...names: string[]): ScriptStep => ({
  text: `I call ${names.join(' and ')}.`,
  toolCalls: names.map((name, index) => ({ name, id: `${name}-${index}`, args: {} })),
  usage: { inputTokens: 10, outputTokens: 2 },
})
const say = (text: string): ScriptStep => ({ text, usage: { inputTokens: 10, outputTokens: 3 } })

const oneAgent: Scenario = {
  input: { stateDelta: { given: 1 } },
  agent: world =>
    new LlmAgent({
      name: 'root',
      model: 'play/m',
      instruction: 'root {did_pay?}',
      tools: [once(world, 'pay'), once(world, 'send'), once(world, 'log')],
    }),
  script: request => {
    const done = results(request)
    if (done.length === 0) return call('pay')
    if (done.length === 1) return call('send', 'log')
    return say('All is done.')
  },
}

const transfer: Scenario = {
  agent: world => {
    const helper = new LlmAgent({
      name: 'helper',
      model: 'play/m',
      instruction: 'helper',
      tools: [once(world, 'pay')],
    })
    return new LlmAgent({ name: 'root', model: 'play/m', instruction: 'root', subAgents: [helper] })
  },
  script: request => {
    if (agentOf(request) === 'helper')
      return results(request).includes('pay') ? say('Paid by the helper.') : call('pay')
    return {
      toolCalls: [{ name: 'transfer_to_agent', id: 't', args: { agentName: 'helper' } }],
      usage: { inputTokens: 1, outputTokens: 1 },
    }
  },
}

const nested: Scenario = {
  agent: world => {
    const inner = new LlmAgent({
      name: 'inner',
      model: 'play/m',
      instruction: 'inner',
      tools: [once(world, 'pay')],
    })
    const adk = new FunctionTool({
      name: 'stamp',
      description: 'stamp',
      parameters: z.object({}),
      execute: async (_args, context) => {
        world.effects.push('stamp')
        context?.state.set('stamped', true)
        return { stamped: true }
      },
    })
    return new LlmAgent({
      name: 'root',
      model: 'play/m',
      instruction: 'root',
      tools: [new AgentTool({ agent: inner }), adk],
    })
  },
  script: request => {
    const done = results(request)
    if (agentOf(request) === 'inner') return done.includes('pay') ? say('Inner has paid.') : call('pay')
    if (!done.includes('inner'))
      return { toolCalls: [{ name: 'inner', id: 'i', args: { request: 'Pay.' } }], usage: { inputTokens: 1 } }
    return done.includes('stamp') ? say('Stamped.') : call('stamp')
  },
}

const workflow: Scenario = {
  agent: world => {
    const worker = (name: string) =>
      new LlmAgent({
        name,
        model: 'play/m',
        instruction: `worker ${name}`,
        outputKey: `${name}_out`,
        tools: [once(world, `tool_${name}`)],
      })
    const both = new ParallelAgent({ name: 'both', subAgents: [worker('left'), worker('right')] })
    const merger = new LlmAgent({
      name: 'merger',
      model: 'play/m',
      instruction: 'merger {left_out} {right_out}',
    })
    return new SequentialAgent({ name: 'root', subAgents: [both, merger] })
  },
  script: request => {
    const name = agentOf(request)
    if (name === 'merger') return say('Merged.')
    return results(request).includes(`tool_${name}`) ? say(`${name} is done`) : call(`tool_${name}`)
  },
}

const loop: Scenario = {
  agent: world => {
    const exit = new FunctionTool({
      name: 'exit',
      description: 'exit',
      parameters: z.object({}),
      execute: async (_args, context) => {
        world.effects.push('exit')
        if (context) context.actions.escalate = true
        return {}
      },
    })
    const writer = new LlmAgent({
      name: 'writer',
      model: 'play/m',
      instruction: 'writer',
      tools: [once(world, 'write')],
    })
    const critic = new LlmAgent({ name: 'critic', model: 'play/m', instruction: 'critic', tools: [exit] })
    return new LoopAgent({ name: 'root', subAgents: [writer, critic], maxIterations: 3 })
  },
  script: request => {
    const text = JSON.stringify(request.messages)
    const drafts = new Set(text.match(/Draft \d/g) ?? []).size
    const written = new Set(text.match(/write \d/g) ?? []).size
    if (agentOf(request) === 'writer') return written > drafts ? say(`Draft ${drafts + 1}`) : call('write')
    if (results(request).includes('exit')) return say('Good.')
    return drafts < 2 ? say('Again.') : call('exit')
  },
}

/** An agent of the user's own: its events have no branch, unless it sets one. */
class Steps extends BaseAgent {
  readonly #hasBranch: boolean

  constructor(name: string, hasBranch: boolean) {
    super({ name })
    this.#hasBranch = hasBranch
  }

  protected override async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void, void> {
    for (const step of [1, 2, 3]) {
      await new Promise(resolve => setTimeout(resolve, 1))
      const { invocationId, branch } = context
      const content = { role: 'model', parts: [{ text: `${this.name} ${step}` }] }
      const place = this.#hasBranch && branch !== undefined ? { branch } : {}
      yield createEvent({ invocationId, author: this.name, content, ...place })
    }
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

const ownAgents: Scenario = {
  isParallel: true,
  agent: world => {
    const left = new LlmAgent({
      name: 'left',
      model: 'play/m',
      instruction: 'left',
      tools: [once(world, 'tool_left')],
    })
    const subAgents = [left, new Steps('plain', false), new Steps('placed', true)]
    return new ParallelAgent({ name: 'root', subAgents })
  },
  script: request => (results(request).includes('tool_left') ? say('left is done') : call('tool_left')),
}

async function attempt(
  scenario: Scenario,
  store: SessionStore,
  world: World,
  maxAttempts = 100,
): Promise<Runtime> {
  const provider = new ScriptedProvider(
    request => {
      const step = scenario.script(request)
      world.asked.push(JSON.stringify(step))
      return step
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    rootAgent: scenario.agent(world),
    runs: { maxAttempts },
  })
  return runtime
}

/** Messages without ids and times; parallel branches in one order. */
function shown(messages: readonly StoredMessage[]): object[] {
  const plain = messages.map(({ role, author, branch, content, toolCalls, extra }) => ({
    role,
    author,
    branch: branch ?? '',
    content,
    calls: toolCalls?.map(({ id, name, input, output }) => ({ id, name, input, output })),
    actions: extra?.actions,
  }))
  // An agent of the user's own may be on a branch that its events do not name.
  const laneOf = ({ branch, author }: (typeof plain)[number]) =>
    `${branch} ${author === 'plain' ? author : ''}`
  const lanes = [...new Set(plain.map(laneOf))].sort()
  return lanes.flatMap(lane => plain.filter(each => laneOf(each) === lane))
}

async function historyOf(store: SessionStore): Promise<object[]> {
  const nestedKey = { ...KEY, appName: 'lango/inner' }
  const own = await store.readMessages(KEY)
  const inner = (await store.describeSession(nestedKey)) ? await store.readMessages(nestedKey) : []
  const session = await store.loadSession(KEY)
  return [...shown(own), ...shown(inner), { state: session?.state }]
}

async function finished(runtime: Runtime): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) events.push(event)
  return events
}

function checkEvents(events: readonly RunEvent[]): void {
  expect(gapsIn(events)).toEqual([])
  expect(events.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
}

function reported(events: readonly RunEvent[], { isParallel = false }: Scenario): string[] {
  const kinds = ['tool-call', 'tool-result', 'agent-transfer', 'run-finish']
  return events
    .filter(({ type }) => kinds.includes(type))
    .map(event => {
      const { seq, durationMs, usage, ...rest } = event as RunEvent & { durationMs?: number; usage?: object }
      return JSON.stringify(
        isParallel && rest.type === 'run-finish' ? { ...rest, text: '', lastText: '' } : rest,
      )
    })
    .sort()
}

/** The run without an interruption. */
async function whole(scenario: Scenario) {
  const store = await openStore('memory:')
  const world: World = { effects: [], asked: [] }
  const watched = crashable(store)
  const runtime = await attempt(scenario, watched.store, world)
  await runtime.start({ sessionId: 's', runId: RUN, text: 'Go.', ...scenario.input })
  const events = await finished(runtime)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  await runtime.close()
  return { history: await historyOf(store), events, world, writes: watched.writes }
}

/** Runs until the process ends after that write. */
async function cut(
  scenario: Scenario,
  store: SessionStore,
  world: World,
  endsAfter: number,
): Promise<CrashableStore> {
  const process = crashable(store, { endsAfter })
  const runtime = await attempt(scenario, process.store, world)
  const over = process.over
  void runtime.start({ sessionId: 's', runId: RUN, text: 'Go.', ...scenario.input }).catch(() => {})
  // Events are also stored by time, so the number of writes differs.
  await Promise.race([over, finishedIn(store)])
  await process.crash()
  return process
}

/** Continues what a process has left, and returns all events of the run. */
async function continued(scenario: Scenario, store: SessionStore, world: World): Promise<RunEvent[]> {
  const runtime = await attempt(scenario, store, world)
  await runtime.ready()
  const events = await finished(runtime)
  await runtime.close()
  checkEvents(events)
  return events
}

describe.each(Object.entries({ oneAgent, transfer, nested, workflow, loop, ownAgents }))(
  '%s',
  (name, scenario) => {
    test(`a run of ${name} is continued after each of its writes as if nothing had happened`, async () => {
      const reference = await whole(scenario)
      expect(reference.writes).toBeGreaterThan(4)
      for (let endsAfter = 1; endsAfter < reference.writes; endsAfter++) {
        const where = `cut after write ${endsAfter}`
        const store = await openStore('memory:')
        const world: World = { effects: [], asked: [] }
        await cut(scenario, store, world, endsAfter)
        if ((await store.runs.findRun(RUN))?.finished) continue
        const events = await continued(scenario, store, world)
        expect(
          events.map(({ type }) => type),
          where,
        ).toContain('run-resumed')
        // A call that was cut off between its beginning and its end is not executed again: its outcome is unknown.
        const unknown = events.filter(({ type }) => type === 'tool-unknown')
        // A loop whose exit is unknown goes round once more.
        for (const name of scenario === loop && unknown.length > 0 ? [] : new Set(world.effects))
          expect(times(world, name), where).toBeLessThanOrEqual(times(reference.world, name))
        if (unknown.length > 0) continue
        expect([...world.effects].sort(), where).toEqual([...reference.world.effects].sort())
        expect(await historyOf(store), where).toEqual(reference.history)
        expect(reported(events, scenario), where).toEqual(reported(reference.events, scenario))
        // Only the answer that was under way is asked for again.
        expect(world.asked.length, where).toBeLessThanOrEqual(reference.world.asked.length + 2)
      }
    })

    test(`a run of ${name} is continued after two cuts`, async () => {
      const reference = await whole(scenario)
      for (let first = 2; first < reference.writes - 1; first += 3) {
        const store = await openStore('memory:')
        const world: World = { effects: [], asked: [] }
        await cut(scenario, store, world, first)
        const second = crashable(store, { endsAfter: 3 })
        const runtime = await attempt(scenario, second.store, world)
        void runtime.ready().catch(() => {})
        await Promise.race([second.over, finishedIn(store)])
        await second.crash()
        const events = await continued(scenario, store, world)
        if (events.some(({ type }) => type === 'tool-unknown')) continue
        expect([...world.effects].sort()).toEqual([...reference.world.effects].sort())
        expect(await historyOf(store)).toEqual(reference.history)
      }
    })
  },
)

function times({ effects }: World, name: string): number {
  return effects.filter(each => each === name).length
}

/** Resolves when the run has ended in the store. */
async function finishedIn(store: SessionStore): Promise<void> {
  await eventually(async () => (await store.runs.findRun(RUN))?.finished).toBe(true)
}

test('isReplay tells callbacks that they are called again', async () => {
  const seen: [string, boolean][] = []
  const scenario: Scenario = {
    script: oneAgent.script,
    agent: world =>
      new LlmAgent({
        name: 'root',
        model: 'play/m',
        tools: [once(world, 'pay'), once(world, 'send'), once(world, 'log')],
        beforeAgentCallback: context => {
          seen.push(['agent', isReplay(context)])
          return undefined
        },
        beforeToolCallback: ({ tool, context }) => {
          seen.push([tool.name, isReplay(context)])
          return undefined
        },
      }),
  }
  const store = await openStore('memory:')
  const world: World = { effects: [], asked: [] }
  const reference = await whole(scenario)
  seen.length = 0
  await cut(scenario, store, world, reference.writes - 3)
  const before = seen.length
  await continued(scenario, store, world)
  expect(seen.slice(0, before).every(([, isAgain]) => !isAgain)).toBe(true)
  expect(seen.slice(before)).toContainEqual(['agent', true])
  expect(seen.slice(before)).toContainEqual(['pay', true])
})

test('callbacks and tools of a resumed run have saved each version of an artifact once', async () => {
  const scenario: Scenario = {
    script: oneAgent.script,
    agent: world => {
      const save = async (context: Context, name: string, text: string) => {
        await context.saveArtifact(name, { text })
        return undefined
      }
      const log = new FunctionTool({
        name: 'log',
        description: 'log',
        execute: async (_args, context) => {
          world.effects.push('log')
          if (context) await context.saveArtifact('notes', { text: 'by a tool' })
        },
      })
      return new LlmAgent({
        name: 'root',
        model: 'play/m',
        tools: [once(world, 'pay'), once(world, 'send'), log],
        beforeAgentCallback: context => save(context, 'user:seen', 'once'),
        beforeModelCallback: ({ context }) => save(context, 'notes', 'by a callback'),
        afterToolCallback: ({ tool, context }) => save(context, tool.name, 'x'),
      })
    },
  }
  const saved = async (store: SessionStore) => {
    const names = ['user:seen', 'notes', 'pay', 'send', 'log']
    const counts = names.map(async name => (await store.artifacts.versions({ ...KEY, name })).length)
    return Promise.all(counts)
  }
  const reference = await whole(scenario)
  for (let endsAfter = 1; endsAfter < reference.writes; endsAfter++) {
    const store = await openStore('memory:')
    const world: World = { effects: [], asked: [] }
    await cut(scenario, store, world, endsAfter)
    if ((await store.runs.findRun(RUN))?.finished) continue
    const events = await continued(scenario, store, world)
    if (events.some(({ type }) => type === 'tool-unknown')) continue
    expect(await saved(store), `cut after write ${endsAfter}`).toEqual([1, 4, 1, 1, 1])
  }
})

test('a tool that reads requests is given the same contents when the run is resumed', async () => {
  let read: string[][] = []
  const scenario: Scenario = {
    ...oneAgent,
    agent: world => {
      const agent = oneAgent.agent(world) as LlmAgent
      const reader = new FunctionTool({
        name: 'reader',
        description: 'Reads requests',
        execute: () => 'read',
      })
      reader.processLlmRequest = async ({ llmRequest }) => {
        const parts = llmRequest.contents.flatMap(content => content.parts ?? [])
        read.push(parts.map(part => JSON.stringify(part)))
      }
      agent.tools.push(reader)
      return agent
    },
  }
  let mostReplayed = 0
  for (let writes = 2; writes < 10; writes++) {
    const store = await openStore('memory:')
    const world: World = { effects: [], asked: [] }
    await cut(scenario, store, world, writes)
    const before = read
    read = []
    if ((await store.runs.findRun(RUN))?.finished) continue
    await continued(scenario, store, world)
    expect(read.slice(0, before.length)).toEqual(before)
    mostReplayed = Math.max(mostReplayed, before.length)
    read = []
  }
  expect(mostReplayed).toBeGreaterThan(1)
})

test('agents that behave differently end the run as interrupted, and the reason names the difference', async () => {
  const store = await openStore('memory:')
  const world: World = { effects: [], asked: [] }
  await cut(oneAgent, store, world, 5)
  const other: Scenario = {
    ...oneAgent,
    agent: ({ effects }) =>
      new LlmAgent({ name: 'other', model: 'play/m', tools: [once({ effects, asked: [] }, 'pay')] }),
  }
  const events = await continued(other, store, world)
  expect(events.at(-2)).toMatchObject({ type: 'error', error: { code: 'run-interrupted' } })
  expect(JSON.stringify(events.at(-2))).toMatch(/agent \\"other\\" calls the model, where the record has/)
  expect(world.effects).toEqual(['pay'])
})

test('a run that ends its process each time is given up after maxAttempts', async () => {
  const store = await openStore('memory:')
  const world: World = { effects: [], asked: [] }
  await cut(oneAgent, store, world, 1)
  for (let attempts = 0; attempts < 2; attempts++) {
    const process = crashable(store, { endsAfter: 1 })
    const runtime = await attempt(oneAgent, process.store, world, 3)
    void runtime.ready().catch(() => {})
    await process.over
  }
  const runtime = await attempt(oneAgent, store, world, 3)
  await runtime.ready()
  const events = await finished(runtime)
  await runtime.close()
  expect(events.at(-2)).toMatchObject({ type: 'error', error: { code: 'run-interrupted' } })
  expect(JSON.stringify(events.at(-2))).toContain('3 times')
})

test('a run whose session another process holds for a moment is not ended', async () => {
  const store = await openStore('memory:')
  const world: World = { effects: [], asked: [] }
  await cut(oneAgent, store, world, 2)
  let refusals = 1
  const busy = new AgentError('session-busy', 'Another process looks after the session.')
  const contended = faultyStore(store, {
    acquireLease: (acquireLease, ...args) => (refusals-- > 0 ? Promise.reject(busy) : acquireLease(...args)),
  })
  const runtime = await attempt(oneAgent, contended, world)
  await runtime.resume(RUN)
  expect(await store.runs.findRun(RUN)).toMatchObject({ finished: false })
  await runtime.resume(RUN)
  expect((await finished(runtime)).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  await runtime.close()
})
