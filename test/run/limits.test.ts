// Limits of a run: turns, transfers and repetitions, for agents as data and for agents of ADK.
import { AgentTool, FunctionTool, LlmAgent, LoopAgent, ParallelAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { longUnless } from '../support/tiers.js'

const call = (name: string, args = {}) => ({ toolCalls: [{ name, args }] })

/** A tool of ADK's that returns what the list says, the last item again and again. */
function tool(name: string, results: readonly unknown[]) {
  let count = 0
  const made = new FunctionTool({
    name,
    description: name,
    parameters: z.object({}),
    execute: () => ({ progress: results[Math.min(count++, results.length - 1)] }),
  })
  return { made, calls: () => count }
}

async function play(script: Script, options: Omit<RuntimeOptions, 'providers' | 'store'>) {
  const provider = new ScriptedProvider(script, { id: 'play' })
  const runtime = await createRuntime({ ...options, store: 'memory:', providers: { play: provider } })
  try {
    const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
    return { ...result, requests: provider.requests.map(request => JSON.stringify(request)) }
  } finally {
    await runtime.close()
  }
}

const agentWith = (made: FunctionTool) =>
  new LlmAgent({ name: 'root', model: 'play/m', instruction: 'Work.', tools: [made] })

test('polling a job until it is at 100 percent is not a loop', async () => {
  const job = tool('job_status', [10, 25, 40, 55, 70, 85, 100])
  const { text, finishReason, requests } = await play(
    (_request, index) => (index < 7 ? call('job_status') : { text: 'Done.' }),
    { rootAgent: agentWith(job.made) },
  )
  expect([text, finishReason, job.calls()]).toEqual(['Done.', 'stop', 7])
  expect(requests.some(request => request.includes('[System'))).toBe(false)
})

test('a job that does not move is a loop, and the model reads what happened', async () => {
  const job = tool('job_status', [10])
  const { text, finishReason, requests } = await play(
    (request, index) => (index < 5 ? call('job_status') : { text: `Last of ${request.tools?.length ?? 0}.` }),
    { rootAgent: agentWith(job.made) },
  )
  expect([text, finishReason, job.calls()]).toEqual(['Last of 1.', 'loop', 5])
  const notices = requests.map(request => [...request.matchAll(/\[System: ([^\]]*)/g)].at(-1)?.[1] ?? '')
  expect(notices.slice(0, 3)).toEqual(['', '', ''])
  expect(notices[3]).toContain('job_status({}) was called 3 times in a row with the same arguments')
  expect(notices[3]).toContain('returned the same result each time')
  expect(notices[5]).toContain('This is your last turn')
  expect(notices[5]).toContain('job_status({}) was called 5 times in a row')
})

test('iterations of a loop agent that call the same tool with the same result are not a repetition', async () => {
  const check = tool('check', ['bad'])
  const critic = new LlmAgent({
    name: 'critic',
    model: 'play/m',
    instruction: 'Check.',
    tools: [check.made],
  })
  const rootAgent = new LoopAgent({ name: 'loop', subAgents: [critic], maxIterations: 8 })
  const { finishReason, requests } = await play(
    (_request, index) => (index % 2 === 0 ? call('check') : { text: 'Not yet.' }),
    { rootAgent },
  )
  expect([finishReason, check.calls(), requests.length]).toEqual(['stop', 8, 16])
  expect(requests.some(request => request.includes('[System'))).toBe(false)
})

test.each([
  ['false', { loop: false, maxTurns: 9 }, 9, 'turn-limit'],
  ['another number', { loop: { warnAfter: 4, stopAfter: 7 } }, 7, 'loop'],
] as const)('the loop limit can be set to %s', async (_name, limits, times, reason) => {
  const job = tool('job_status', [10])
  const { finishReason } = await play(
    (_request, index) => (index < times ? call('job_status') : { text: 'End.' }),
    { rootAgent: agentWith(job.made), limits },
  )
  expect([finishReason, job.calls()]).toEqual([reason, times])
})

test.each([
  ['an ADK agent', { limits: { maxTurns: 3 } }],
  ['an agent as data', { limits: { maxTurns: 3 } }],
  ['an agent as data with a limit of its own', { limits: { maxTurns: 3 }, own: 9 }],
  ['an agent as data, in the old place', { own: 3 }],
])('the turns of %s are limited', async (name, { limits, own }: { limits?: object; own?: number }) => {
  const job = tool('job_status', [1, 2, 3, 4, 5, 6])
  const agent = { model: 'play/m', tools: [job.made], ...(own === undefined ? {} : { maxTurns: own }) }
  const { finishReason, turns } = await play(
    (_request, index) => (index < 3 ? call('job_status') : { text: 'End.' }),
    {
      ...(name === 'an ADK agent' ? { rootAgent: agentWith(job.made) } : { agent }),
      ...(limits ? { limits } : {}),
    },
  )
  expect([finishReason, turns]).toEqual(['turn-limit', 3])
})

test('the transfers of an ADK agent are limited', async () => {
  const child = new LlmAgent({ name: 'child', model: 'play/m', description: 'Helps.' })
  const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', subAgents: [child] })
  let asked = 0
  const { finishReason, delegations } = await play(
    () =>
      asked++ < 4
        ? call('transfer_to_agent', { agentName: asked % 2 === 1 ? 'child' : 'root' })
        : { text: 'End.' },
    { rootAgent, limits: { maxDelegations: 4 } },
  )
  expect([finishReason, delegations]).toEqual(['turn-limit', 4])
})

test.each([
  [{ loop: { warnAfter: 5, stopAfter: 5 } }, '`limits.loop.warnAfter` is 5, but must be less than'],
  [{ loop: { stopAfter: 1 } }, '`limits.loop.stopAfter` is 1, but must be a whole number of at least 2'],
  [{ loop: true }, '`limits.loop` is true, but must be false, or an object'],
  [{ maxTurn: 3 }, 'Did you mean `limits.maxTurns`?'],
])('the limits %j are refused', async (limits, message) => {
  const options = { store: 'memory:', agent: { model: 'demo/demo' }, limits } as RuntimeOptions
  await expect(createRuntime(options)).rejects.toThrow(message)
})

function counting() {
  const seen: number[] = []
  const count = defineTool({
    name: 'count',
    description: 'Counts.',
    parameters: { type: 'object', properties: { n: { type: 'number' } } },
    effect: 'read',
    execute: ({ n }: { n: number }) => {
      seen.push(n)
      return { n }
    },
  })
  return { count, seen }
}

const counts = (length: number) => ({
  toolCalls: Array.from({ length }, (_, n) => ({ id: `c${n}`, name: 'count', args: { n } })),
})

async function playCalls(length: number, limits?: RuntimeOptions['limits']) {
  const { count, seen } = counting()
  const provider = new ScriptedProvider([counts(length), { text: 'Done.' }], { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [count] },
    ...(limits ? { limits } : {}),
  })
  onTestFinished(() => runtime.close())
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) events.push(event)
  const messages = await runtime.store.readMessages({ appName: 'lango', userId: 'user', sessionId: 's' })
  return { seen, provider, events, messages }
}

test.each([
  [undefined, 128],
  [{ maxCallsPerAnswer: 3 }, 3],
])(
  'calls beyond maxCallsPerAnswer (%j) are neither stored nor run, and the model reads how many',
  async (limits, most) => {
    const { seen, provider, events, messages } = await playCalls(most + 5, limits)
    expect(seen).toHaveLength(most)
    expect(messages.map(({ toolCalls }) => toolCalls?.length ?? 0)).toEqual([0, most, most, 0, 0])
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'Done.' })
    expect(events.filter(({ type }) => type === 'tool-call')).toHaveLength(most)
    const receipts = events.flatMap(event => (event.type === 'repair' ? event.repairs : []))
    expect(receipts).toMatchObject([
      {
        step: 'limit-answer',
        kind: 'drop-calls',
        detail: `5 tool calls were left out: one answer may have ${most} at most.`,
      },
    ])
    expect(JSON.stringify(provider.requests[1])).toContain(
      `5 of the ${most + 5} tool calls of your last answer were left out and not run`,
    )
  },
)

for (const { length, least } of [
  { length: 500, least: 5 },
  { length: 5000, least: 20 },
]) {
  test(`an answer of ${length} calls is run with the limit raised, and timers fire meanwhile`, {
    ...longUnless(length === 500),
    timeout: 300_000,
  }, async () => {
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 1)
    onTestFinished(() => clearInterval(timer))
    const { seen, events } = await playCalls(length, { maxCallsPerAnswer: length })
    expect(seen).toHaveLength(length)
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(ticks).toBeGreaterThan(least)
  })
}

test('the notice about calls that were left out reaches the agent that made them, not one that runs next to it', async () => {
  let ask = () => {}
  const asked = new Promise<void>(resolve => {
    ask = resolve
  })
  const tool = (name: string, execute: () => Promise<unknown>) =>
    new FunctionTool({ name, description: name, parameters: z.object({ n: z.number() }), execute })
  const calls = (name: string, length: number) => ({
    toolCalls: Array.from({ length }, (_, n) => ({ id: `${name}${n}`, name, args: { n } })),
  })
  const first = new ScriptedProvider([calls('wait', 4), { text: 'Done.' }], { id: 'first' })
  // Asked again while the first agent still waits for its tools.
  const second = new ScriptedProvider(
    (_request, index) => {
      if (index < 3) return { toolCalls: [{ name: 'look', args: { n: index } }] }
      ask()
      return { text: 'Done.' }
    },
    { id: 'second' },
  )
  const agents = [
    new LlmAgent({ name: 'a', model: 'first/m', tools: [tool('wait', () => asked.then(() => 'ok'))] }),
    new LlmAgent({ name: 'b', model: 'second/m', tools: [tool('look', async () => 'ok')] }),
  ]
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { first, second },
    limits: { maxCallsPerAnswer: 2 },
    rootAgent: new ParallelAgent({ name: 'both', subAgents: agents }),
  })
  onTestFinished(() => runtime.close())
  await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(JSON.stringify(second.requests)).not.toContain('were left out')
  expect(JSON.stringify(first.requests[1])).toContain(
    '2 of the 4 tool calls of your last answer were left out',
  )
})

test('an agent inside a tool reads how many of its calls were left out', async () => {
  const { count, seen } = counting()
  const inner = new ScriptedProvider([counts(5), { text: 'Inner.' }], { id: 'inner' })
  const outer = new ScriptedProvider([call('helper', { request: 'go' }), { text: 'Done.' }], { id: 'outer' })
  const helper = new LlmAgent({ name: 'helper', model: 'inner/m', tools: [new ToolAdapter(count)] })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { inner, outer },
    limits: { maxCallsPerAnswer: 2 },
    rootAgent: new LlmAgent({ name: 'root', model: 'outer/m', tools: [new AgentTool({ agent: helper })] }),
  })
  onTestFinished(() => runtime.close())
  await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(seen).toHaveLength(2)
  expect(JSON.stringify(inner.requests[1])).toContain(
    '3 of the 5 tool calls of your last answer were left out',
  )
  expect(JSON.stringify(outer.requests)).not.toContain('were left out')
})
