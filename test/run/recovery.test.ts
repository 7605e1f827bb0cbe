import {
  AgentTool,
  BaseAgent,
  type Event,
  FunctionTool,
  LlmAgent,
  type LlmAgentConfig,
  node,
  type RunnableNode,
  SequentialAgent,
  Workflow,
} from '@google/adk'
import { afterEach, describe, expect, test } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { AgentError } from '../../src/errors.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { longUnless } from '../support/tiers.js'
import { searchTool } from '../support/tools.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const call = (name: string, args: Record<string, unknown> = {}) => ({ toolCalls: [{ name, args }] })

let runtime: Runtime
let provider: ScriptedProvider

afterEach(() => runtime.close())

async function start(script: Script, options: Partial<RuntimeOptions> = {}): Promise<void> {
  provider = new ScriptedProvider(script, { id: 'play' })
  runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools: [searchTool] } }),
    ...options,
  })
}

async function events(text = 'go'): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text })) all.push(event)
  return all
}

async function expectSound(): Promise<void> {
  const history = messagesToProvider(await runtime.store.readMessages(KEY))
  for (const profile of Object.keys(PROFILES)) {
    expect(
      lintHistory(history, profile).filter(finding => finding.severity === 'breaks'),
      profile,
    ).toEqual([])
  }
}

test('a call to a tool that does not exist gets the list of tools, and a good call of the same step keeps its result', async () => {
  await start([
    { toolCalls: [{ name: 'search', args: { query: 'a' } }, { name: 'ghost' }] },
    { text: 'I see.' },
  ])
  const results = (await events()).filter(event => event.type === 'tool-result')
  expect(results).toMatchObject([
    { name: 'search', result: { found: 'a' }, isError: false },
    {
      name: 'ghost',
      result: { error: 'Tool "ghost" does not exist. Available tools: search.' },
      isError: true,
    },
  ])
  await expectSound()
})

test('a model that calls an unknown tool without end is stopped by the loop guard with an answer', async () => {
  await start(() => call('ghost'))
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(result).toMatchObject({ finishReason: 'loop', turns: 5 })
  expect(result.text).not.toBe('')
  expect(provider.requests).toHaveLength(6)
  await expectSound()
})

test('a model is warned after the third equal call, and the warning stays in the history', async () => {
  await start(() => call('search', { query: 'a' }))
  await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  const warned = provider.requests.map(request =>
    JSON.stringify(request.messages).includes('3 times in a row'),
  )
  expect(warned).toEqual([false, false, false, true, true, true])
  const stored = JSON.stringify(await runtime.store.readMessages(KEY))
  expect(stored.split('3 times in a row')).toHaveLength(2)
})

test('a call that cannot be read: the model is asked once more and nothing of it is stored', async () => {
  await start([{ finishReason: 'malformed-call' }, { text: 'better' }])
  expect((await runtime.runAndCollect({ sessionId: 's', text: 'go' })).text).toBe('better')
  expect(await runtime.store.readMessages(KEY)).toHaveLength(2)
})

test('arguments nested 100,000 deep: the model is asked once more and nothing of it is stored', async () => {
  const deep = JSON.parse(`{"query":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  await start([call('search', deep), { text: 'better' }])
  expect((await runtime.runAndCollect({ sessionId: 's', text: 'go' })).text).toBe('better')
  expect(await runtime.store.readMessages(KEY)).toHaveLength(2)
})

test('an empty answer after tools is resampled, and nothing else is stored', async () => {
  const usage = { inputTokens: 5, outputTokens: 1 }
  await start([call('search', { query: 'a' }), { usage }, { text: 'Here.', usage }])
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(result).toMatchObject({ text: 'Here.', usage: { inputTokens: 10, outputTokens: 2 } })
  const roles = (await runtime.store.readMessages(KEY)).map(({ role }) => role)
  expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant'])
})

test('a model that stays silent: the run ends with an empty text, and no tool runs twice', async () => {
  await start((_request, index) => (index === 0 ? call('search') : {}))
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(result).toMatchObject({ text: '', lastText: '', finishReason: 'stop', turns: 1 })
  expect(provider.requests).toHaveLength(3)
})

test('text before calls is in the text of the run and not in its last text', async () => {
  await start([{ text: 'Let me look.', ...call('search', { query: 'a' }) }, { text: 'Here.' }])
  const all = await events()
  expect(all.at(-1)).toMatchObject({ text: 'Let me look.\n\nHere.', lastText: 'Here.' })
})

test('a provider that fails after some words: its error is reported, the words are not stored, the next turn works', async () => {
  const failure = new AgentError('provider-overloaded', 'Overloaded', { retryable: true })
  await start([{ text: 'Half a ', error: failure }, { text: 'whole' }])
  const all = await events()
  expect(all.slice(-2)).toMatchObject([
    { type: 'error', error: failure },
    { type: 'run-finish', finishReason: 'error', text: '' },
  ])
  expect(JSON.stringify(await runtime.store.readMessages(KEY))).not.toContain('Half a ')
  expect((await runtime.runAndCollect({ sessionId: 's', text: 'again' })).text).toBe('whole')
})

describe('parallel calls', () => {
  /** A tool that is done only when so many of its kind run at once. */
  function meetingTool(size: number, effect: 'read' | 'once') {
    let present = 0
    let meet = () => {}
    const met = new Promise<void>(resolve => {
      meet = resolve
    })
    return defineTool({
      name: 'meet',
      description: 'Waits for the others.',
      parameters: { type: 'object', properties: { who: { type: 'string' } } },
      effect,
      // Those that wait in vain time out; those that meet may be late on a busy machine.
      timeoutMs: effect === 'once' ? 300 : 60_000,
      async execute({ who }, context) {
        present += 1
        context.state.set(`met-${who}`, present)
        if (present === size) meet()
        await met
        return { who }
      },
    })
  }
  const three = { toolCalls: ['a', 'b', 'c'].map(who => ({ name: 'meet', args: { who } })) }

  test('parallel calls of read tools run at once, in order, and their state is saved', async () => {
    await start([three, { text: 'done' }], {
      agent: { name: 'root', model: 'play/m', tools: [meetingTool(3, 'read')] },
    })
    const results = (await events()).filter(event => event.type === 'tool-result')
    expect(results.map(event => event.type === 'tool-result' && event.result)).toEqual([
      { who: 'a' },
      { who: 'b' },
      { who: 'c' },
    ])
    const session = await runtime.store.loadSession(KEY)
    expect(session?.state).toEqual({ 'met-a': 1, 'met-b': 2, 'met-c': 3 })
  })

  test('parallel calls of tools that must not be repeated run one after another', async () => {
    await start([three, { text: 'done' }], {
      agent: { name: 'root', model: 'play/m', tools: [meetingTool(3, 'once')] },
    })
    const results = (await events()).filter(event => event.type === 'tool-result')
    expect(results.map(event => event.type === 'tool-result' && event.isError)).toEqual([true, true, false])
  })
})

describe('an agent inside a tool', () => {
  function nested(): LlmAgent {
    const inner = new LlmAgent({ name: 'inner', model: 'play/inner', description: 'Works.', tools: [] })
    return new LlmAgent({ name: 'root', model: 'play/outer', tools: [new AgentTool({ agent: inner })] })
  }

  test('an agent inside a tool spends the turns of the run, and the run ends with an answer', async () => {
    // The inner agent calls ghosts without end; its turns count against the outer limit of 25.
    await start(
      (request, index) =>
        request.model === 'outer' ? call('inner', { request: `task ${index}` }) : call('ghost', { index }),
      { rootAgent: nested() },
    )
    const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
    expect(result).toMatchObject({ finishReason: 'turn-limit', turns: 25 })
    expect(result.text).not.toBe('')
    expect(provider.requests.length).toBeLessThan(30)
    await expectSound()
  })

  test('an agent inside a tool has a session of its own that is hidden in lists and deleted with its parent', async () => {
    await start(
      (request, index) =>
        request.model === 'inner'
          ? { text: 'inner answer' }
          : index === 0
            ? call('inner', { request: 'task' })
            : { text: 'done' },
      { rootAgent: nested() },
    )
    await runtime.runAndCollect({ sessionId: 's', text: 'go' })
    const listed = await runtime.store.listSessions({ appName: 'lango' })
    expect(listed.sessions.map(session => session.key.sessionId)).toEqual(['s'])
    expect((await runtime.store.listSessions({ appName: 'inner' })).sessions).toEqual([])
    const inner = { ...KEY, appName: 'lango/inner' }
    expect(await runtime.store.loadSession(inner)).toMatchObject({ totalMessages: 2 })
    await runtime.store.deleteSession(KEY)
    expect(await runtime.store.loadSession(inner)).toBeUndefined()
  })
})

for (const { calls, budget } of [
  { calls: 12, budget: 2000 },
  { calls: 250, budget: 8000 },
]) {
  test(`a run of ${calls} tool calls stays within its budget, and the question stays in every request`, {
    ...longUnless(calls === 12),
    timeout: 300_000,
  }, async () => {
    const pageTool = defineTool({
      name: 'read_page',
      description: 'Returns a page.',
      parameters: { type: 'object', properties: { page: { type: 'number' } } },
      effect: 'read',
      execute: ({ page }) => ({ page, text: 'lorem ipsum '.repeat(200) }),
    })
    const question = `Read all ${calls} pages.`
    const sizes: number[] = []
    let questions = 0
    await start(
      (request, index) => {
        const json = JSON.stringify(request.messages)
        sizes.push(json.length)
        if (json.includes(question)) questions += 1
        return index < calls ? call('read_page', { page: index }) : { text: 'All read.' }
      },
      {
        agent: { name: 'root', model: 'play/m', tools: [pageTool], maxTurns: calls + 50 },
        history: { maxMessageTokenBudget: budget },
      },
    )
    const result = await runtime.runAndCollect({ sessionId: 's', text: question })
    expect(result).toMatchObject({ text: 'All read.', finishReason: 'stop', turns: calls })
    expect(sizes).toHaveLength(calls + 1)
    expect(questions).toBe(calls + 1)
    // A token is four bytes; JSON's frame adds to what is counted.
    expect(Math.max(...sizes)).toBeLessThan(budget * 7.5)
    expect(result.cuts.length).toBeGreaterThan(0)
    expect((await runtime.store.loadSession(KEY))?.totalMessages).toBe(2 * calls + 2)
  })
}

/** An error of the agent's own code. */
function broken(): never {
  throw new RangeError('It is broken.')
}

class BrokenAgent extends BaseAgent {
  // biome-ignore lint/correctness/useYield: it fails before its first event
  protected override async *runAsyncImpl(): AsyncGenerator<Event, void, void> {
    broken()
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

const look = new FunctionTool({ name: 'look', description: 'Looks.', execute: () => 'seen' })
const own = (more: Partial<LlmAgentConfig>) =>
  new LlmAgent({ name: 'root', model: 'play/m', tools: [look], ...more })

test.each<[string, RunnableNode, object]>([
  ['a callback of an agent', own({ beforeAgentCallback: broken }), { agent: 'root' }],
  ['a callback of a model', own({ afterModelCallback: broken }), { agent: 'root' }],
  ['a callback before a tool', own({ beforeToolCallback: broken }), { tool: 'look' }],
  ['callbacks after a tool', own({ afterToolCallback: [() => undefined, broken] }), { tool: 'look' }],
  ['an agent of another class', new BrokenAgent({ name: 'custom' }), { agent: 'custom' }],
  [
    'an agent below another',
    new SequentialAgent({ name: 'line', subAgents: [new BrokenAgent({ name: 'custom' })] }),
    { agent: 'custom' },
  ],
  [
    'a node of a workflow',
    new Workflow({ name: 'flow', edges: [['START', node(broken, { name: 'charge' })]] }),
    { node: 'charge' },
  ],
  [
    'an agent in a workflow',
    new Workflow({ name: 'flow', edges: [['START', new BrokenAgent({ name: 'custom' })]] }),
    { agent: 'custom' },
  ],
])('an error in %s ends the run as agent-failed and names it', async (_name, rootAgent, details) => {
  await start([call('look'), { text: 'Done.' }], { rootAgent })
  await expect(runtime.runAndCollect({ text: 'go' })).rejects.toMatchObject({
    code: 'agent-failed',
    message: expect.stringContaining('It is broken.'),
    details,
    retryable: false,
  })
})
