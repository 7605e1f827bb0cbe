// The last answer of a run is stored with the end of the run, in one write, wherever nothing can come between them.
import { join } from 'node:path'
import {
  BaseLlm,
  BasePlugin,
  BaseToolset,
  FunctionTool,
  LlmAgent,
  type LlmResponse,
  LongRunningFunctionTool,
} from '@google/adk'
import { Outcome } from '@google/genai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defined } from '../../src/base/defined.js'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { RunStep } from '../../src/session/run-store.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { gapsIn } from '../support/event-numbers.js'
import { faultyStore } from '../support/faulty-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const USED = { inputTokens: 200, outputTokens: 20, totalTokens: 220 }
const ANSWER = 'It is in the drawer.'

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object' },
  effect: 'read',
  execute: () => ({ found: 'a key' }),
})

interface Faults {
  /** A step that is not stored. */
  refuses?: (step: RunStep) => boolean
  /** A step that is stored, and whose acknowledgement is lost. */
  forgets?: (step: RunStep) => boolean
  /** How long a step takes. */
  stepMs?: number
}

/** A store that keeps the steps that it saved, and fails with those that a test chooses. */
function recording(store: SessionStore, { refuses = () => false, forgets = () => false, stepMs }: Faults) {
  const steps: RunStep[] = []
  const faulty = faultyStore(store, {
    runs: {
      saveStep: async (saveStep, step) => {
        if (stepMs !== undefined) await new Promise(resolve => setTimeout(resolve, stepMs))
        if (refuses(step)) throw new AgentError('store-unavailable', 'The disk is full.')
        steps.push(step)
        const saved = await saveStep(step)
        if (forgets(step)) throw new AgentError('lease-lost', 'The lease is gone.')
        return saved
      },
    },
  })
  return { store: faulty, steps }
}

interface Scene extends Partial<RuntimeOptions>, Faults {
  script?: ScriptStep[]
  url?: string
}

async function open(scene: Scene) {
  const {
    script = [{ text: ANSWER, usage: USED }],
    url = 'memory:',
    refuses,
    forgets,
    stepMs,
    ...options
  } = scene
  const opened = await openStore(url)
  onTestFinished(() => opened.close())
  const { store, steps } = recording(opened, defined({ refuses, forgets, stepMs }))
  const seen: RunEvent[] = []
  const runtime = await createRuntime({
    ...{ store, providers: { play: new ScriptedProvider(script, { id: 'play' }) } },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools: [look] } }),
    ...options,
  } as RuntimeOptions)
  onTestFinished(() => runtime.close())
  runtime.observe(event => seen.push(event))
  const contents = async () => (await opened.loadSession(KEY))?.messages.map(({ content }) => content) ?? []
  const play = async (text = 'Where is the key?', more: object = {}): Promise<RunEvent[]> => {
    const events: RunEvent[] = []
    for await (const event of runtime.run({ ...KEY, text, ...more })) events.push(event)
    return events
  }
  return { runtime, store: opened, steps, seen, contents, play }
}

/** What a step of the run stores, in a word each. */
function stepKinds(steps: readonly RunStep[]): string[] {
  return steps.map(({ message, release }) =>
    [...(message ? [message.role] : []), ...(release ? ['end'] : [])].join('+'),
  )
}

test('the last answer and the end of the run are one write', async () => {
  const script = [{ toolCalls: [{ id: 'c1', name: 'look', args: {} }] }, { text: ANSWER }]
  const { steps, play, contents } = await open({ script })
  const events = await play()
  expect(stepKinds(steps)).toEqual(['assistant', 'tool', 'assistant+end'])
  expect(steps.at(-1)).not.toHaveProperty('journal')
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: ANSWER })
  expect(gapsIn(events)).toEqual([])
  expect((await contents()).at(-1)).toBe(ANSWER)
})

describe('code that runs after the last answer', () => {
  test('a callback after the agent finds the last answer stored', async () => {
    const found: string[][] = []
    const scene = await open({
      rootAgent: new LlmAgent({
        name: 'root',
        model: 'play/m',
        afterAgentCallback: async () => {
          found.push(await scene.contents())
          return undefined
        },
      }),
    })
    await scene.play()
    expect(found).toEqual([['Where is the key?', ANSWER]])
    expect(stepKinds(scene.steps)).toEqual(['assistant', 'end'])
  })

  test('a plugin finds the last answer stored', async () => {
    const found: string[][] = []
    class Notes extends BasePlugin {
      override async afterRunCallback(): Promise<void> {
        found.push(await scene.contents())
      }
    }
    const scene = await open({ adk: { plugins: [new Notes('notes')] } })
    await scene.play()
    expect(found).toEqual([['Where is the key?', ANSWER]])
  })

  test.each(['runAsyncImpl', 'callLlmAsync'])(
    'an agent that overrides %s finds the last answer stored',
    async method => {
      const found: string[][] = []
      class Careful extends LlmAgent {}
      const inherited: (...args: unknown[]) => AsyncGenerator = Reflect.get(LlmAgent.prototype, method)
      Object.defineProperty(Careful.prototype, method, {
        async *value(...args: unknown[]) {
          yield* inherited.apply(this, args)
          found.push(await scene.contents())
        },
      })
      const scene = await open({ rootAgent: new Careful({ name: 'root', model: 'play/m' }) })
      await scene.play()
      expect(found).toEqual([['Where is the key?', ANSWER]])
    },
  )

  test('an agent that handed over and back finds the last answer stored', async () => {
    const found: (string | undefined)[] = []
    const transfer = (id: string, agentName: string) => ({
      toolCalls: [{ id, name: 'transfer_to_agent', args: { agentName } }],
    })
    const sub = new LlmAgent({
      name: 'sub',
      model: 'play/m',
      afterAgentCallback: async () => {
        found.push((await scene.contents()).at(-1))
        return undefined
      },
    })
    const scene = await open({
      script: [transfer('c1', 'sub'), transfer('c2', 'root'), { text: ANSWER }],
      rootAgent: new LlmAgent({ name: 'root', model: 'play/m', subAgents: [sub] }),
    })
    expect((await scene.play()).at(-1)).toMatchObject({ finishReason: 'stop', text: ANSWER })
    expect(found.at(-1)).toBe(ANSWER)
  })

  test('followers have the last answer while a toolset is slow to close', async () => {
    let close = () => {}
    const closed = new Promise<void>(resolve => {
      close = resolve
    })
    class Slow extends BaseToolset {
      override getTools() {
        return Promise.resolve([])
      }
      override close() {
        return closed
      }
    }
    const scene = await open({
      rootAgent: new LlmAgent({ name: 'root', model: 'play/m', tools: [new Slow([])] }),
    })
    const types: string[] = []
    for await (const event of scene.runtime.run({ ...KEY, text: 'Where is the key?' })) {
      types.push(event.type)
      if (event.type !== 'usage') continue
      expect(await scene.contents()).toEqual(['Where is the key?', ANSWER])
      close()
    }
    expect(types.at(-1)).toBe('run-finish')
    expect(stepKinds(scene.steps)).toEqual(['assistant', 'end'])
  })

  test('an answer that is no JSON is stored before its correction is asked for', async () => {
    const script = [{ text: 'no' }, { text: '{"place":"drawer"}' }]
    const scene = await open({ script })
    const outputSchema = { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] }
    const events = await scene.play('Where is the key?', { outputSchema })
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', output: { place: 'drawer' } })
    expect(stepKinds(scene.steps)).toEqual(['assistant', 'user', 'assistant', 'end'])
  })
})

test('a run that is aborted in any step of its end has the same events in the store as for its reader', async () => {
  const seen = new Set<string>()
  // Each in one more step of the same turn of the event loop.
  for (let steps = 0; steps < 60; steps += 1) {
    const scene = await open({})
    const abort = new AbortController()
    scene.runtime.observe(({ type }) => {
      if (type === 'usage') void after(steps, () => abort.abort())
    })
    const events = await scene.play('Where is the key?', { signal: abort.signal })
    const last = events.at(-1)
    const stored = (await scene.contents()).map(content => (content.startsWith('[') ? 'mark' : content))
    const reason = last?.type === 'run-finish' ? last.finishReason : 'none'
    seen.add(`${reason}: ${stored.join(', ')}`)
    const recorded = await scene.store.runs.readEvents(last?.runId ?? '')
    expect(recorded).toMatchObject(JSON.parse(JSON.stringify(events)))
  }
  expect([...seen].sort()).toEqual([
    'aborted: Where is the key?, It is in the drawer., mark',
    'aborted: Where is the key?, mark',
    'stop: Where is the key?, It is in the drawer.',
  ])
})

async function after(steps: number, work: () => void): Promise<void> {
  for (let step = 0; step < steps; step += 1) await undefined
  work()
}

/** The provider reports a change of its own in the moment in which the answer ends. */
const WITH_RECEIPTS: ScriptStep = {
  events: [
    { type: 'text-delta', text: ANSWER },
    {
      type: 'receipts',
      repairs: [{ step: 'provider', kind: 'drop-block', at: 0, detail: 'A block was dropped.' }],
    },
    { type: 'usage', usage: USED },
    { type: 'done', finishReason: 'stop' },
  ],
}

test('events that another write has brought forward are emitted when they are stored', async () => {
  const scene = await open({ script: [WITH_RECEIPTS], stepMs: 20 })
  const types: string[] = []
  for await (const { type } of scene.runtime.run({ ...KEY, text: 'Where is the key?' })) {
    types.push(type)
    if (type === 'usage') expect(await scene.contents()).toEqual(['Where is the key?', ANSWER])
  }
  expect(types).toContain('repair')
  expect(types.slice(-2)).toEqual(['usage', 'run-finish'])
})

test('two answers in the same moment are both stored', async () => {
  let asked = 0
  class Eager extends BaseLlm {
    constructor() {
      super({ model: 'eager' })
    }
    override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
      asked += 1
      const result = { codeExecutionResult: { outcome: Outcome.OUTCOME_OK, output: '4' } }
      const parts = asked === 1 ? [{ text: 'Two and two.' }, result] : [{ text: 'Four.' }]
      yield { content: { role: 'model', parts } }
    }
    override connect(): Promise<never> {
      return Promise.reject(new TypeError('not a live model'))
    }
  }
  const scene = await open({ rootAgent: new LlmAgent({ name: 'root', model: new Eager() }) })
  expect((await scene.play()).at(-1)).toMatchObject({ finishReason: 'stop' })
  const stored = await scene.contents()
  expect(stored).toHaveLength(3)
  expect(stored.at(-1)).toBe('Four.')
})

describe('a run that waits between two rounds', () => {
  const calls = (name: string) => ({
    toolCalls: [
      { id: 'c1', name, args: {} },
      { id: 'c2', name: 'glance', args: {} },
    ],
  })
  const glance = new FunctionTool({ name: 'glance', description: 'Looks.', execute: () => ({ seen: 1 }) })
  const ask = new LongRunningFunctionTool({ name: 'ask', description: 'Asks.', execute: () => undefined })
  const pay = new FunctionTool({
    ...{ name: 'pay', description: 'Pays.', requireConfirmation: true },
    execute: () => ({ paid: 1 }),
  })

  test.each(['ask', 'pay'])(
    'a run that waits after a call of %s has emitted all events that it has stored',
    async name => {
      const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [ask, pay, glance] })
      const script = [calls(name), { text: ANSWER, usage: USED }]
      const scene = await open({ rootAgent, script })
      const events = await scene.play()
      const last = events.at(-1)
      expect(last).toMatchObject({ type: 'run-finish', finishReason: 'waiting' })
      const stored = await scene.store.runs.readEvents(last?.runId ?? '')
      expect(stored.at(-1)?.type).toBe(name === 'ask' ? 'usage' : 'tool-result')
      expect(stored).toMatchObject(JSON.parse(JSON.stringify(events.slice(0, -1))))
      expect(stored).toHaveLength(events.length - 1)
    },
  )

  test('a run that would wait fails when its answer cannot be stored', async () => {
    const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [ask, glance] })
    const scene = await open({
      ...{ rootAgent, script: [calls('ask'), { text: ANSWER, usage: USED }] },
      refuses: ({ message }) => message?.content === ANSWER,
    })
    expect((await scene.play()).slice(-2)).toMatchObject([
      { type: 'error', error: { code: 'store-unavailable' } },
      { type: 'run-finish', finishReason: 'error' },
    ])
  })
})

describe('an answer that cannot be stored', () => {
  test('an answer that cannot be stored fails the run, which ends once', async () => {
    let refusals = 0
    const refuses = ({ message }: RunStep) => {
      if (message === undefined || refusals > 0) return false
      refusals += 1
      return true
    }
    const { play, seen, store, contents } = await open({
      script: [{ text: ANSWER }, { text: 'Still there.' }],
      refuses,
    })
    const events = await play()
    const ends = [
      { type: 'error', error: { code: 'store-unavailable' } },
      { type: 'run-finish', finishReason: 'error' },
    ]
    expect(events.slice(-2)).toMatchObject(ends)
    expect(gapsIn(events)).toEqual([])
    expect(seen.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
    expect(await contents()).toEqual(['Where is the key?'])
    const runId = events[0]?.runId ?? ''
    expect((await store.runs.findRun(runId))?.finished).toBe(true)
    expect((await store.runs.readEvents(runId)).slice(-2)).toMatchObject(ends)
    expect((await play('And now?')).at(-1)).toMatchObject({ finishReason: 'stop', text: 'Still there.' })
    expect((await contents()).at(-1)).toBe('Still there.')
  })

  test.each([0, 20])(
    'an answer that cannot be stored after %i ms fails the run also when another write has brought it forward',
    async stepMs => {
      const refuses = ({ message }: RunStep) => message !== undefined
      const scene = await open({ script: [WITH_RECEIPTS], refuses, stepMs })
      const events = await scene.play()
      expect(events.slice(-2)).toMatchObject([
        { type: 'error', error: { code: 'store-unavailable' } },
        { type: 'run-finish', finishReason: 'error' },
      ])
      expect(await scene.contents()).toEqual(['Where is the key?'])
    },
  )

  test('an answer that cannot be stored fails the run also when it is aborted meanwhile', async () => {
    const abort = new AbortController()
    const refuses = ({ message }: RunStep) => {
      if (message) abort.abort()
      return message !== undefined
    }
    const scene = await open({ refuses, stepMs: 5 })
    const events = await scene.play('Where is the key?', { signal: abort.signal })
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'error' })
    expect(await scene.contents()).toEqual(['Where is the key?'])
  })

  test.each(['memory:', 'sqlite:'])(
    'an answer whose acknowledgement was lost is stored on %s',
    async kind => {
      const url = kind === 'sqlite:' ? `sqlite:${join(await temporaryFolder(), 'runs.db')}` : kind
      const text = `${ANSWER} `.repeat(10_000)
      const forgets = ({ release }: RunStep) => release === true
      const { play, seen, contents } = await open({ url, script: [{ text, usage: USED }], forgets })
      const events = await play()
      expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text })
      expect(seen.filter(({ type }) => type === 'run-finish')).toHaveLength(1)
      expect(await contents()).toEqual(['Where is the key?', text])
    },
  )
})
