// Hazards that attacks on the runtime have found, one test each.
import { AgentTool, LlmAgent, ParallelAgent, SequentialAgent } from '@google/adk'
import { afterEach, describe, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { searchTool } from '../support/tools.js'

const open: Runtime[] = []
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const call = (name: string, args: Record<string, unknown> = {}) => ({ toolCalls: [{ name, args }] })

async function start(script: Script, options: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: new ScriptedProvider(script, { id: 'play' }) },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools: [searchTool] } }),
    ...options,
  })
  open.push(runtime)
  return runtime
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

test('a consumer that stops pulling does not keep close from returning', async () => {
  const runtime = await start([{ text: 'hi' }])
  const events = runtime.run({ sessionId: 's', text: 'go' })
  await events.next()
  await runtime.close()
})

test('a consumer that stops pulling does not block the session once it is aborted', async () => {
  const runtime = await start((_request, index) => ({ text: `answer ${index}` }))
  const abort = new AbortController()
  const events = runtime.run({ sessionId: 's', text: 'go', signal: abort.signal })
  await events.next()
  abort.abort()
  expect((await runtime.runAndCollect({ sessionId: 's', text: 'next' })).finishReason).toBe('stop')
  // Whoever comes back still hears how it ended.
  expect((await collect(events)).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
})

test('a signal that is aborted already ends the run as aborted, and stores nothing', async () => {
  const runtime = await start([])
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'go', signal: AbortSignal.abort() })
  expect(result.finishReason).toBe('aborted')
  expect(await runtime.store.loadSession(KEY)).toBeUndefined()
})

test('one agent in two runtimes uses the models of each', async () => {
  const rootAgent = new LlmAgent({ name: 'mine', model: 'play/m' })
  const one = await start(() => ({ text: 'one' }), { rootAgent })
  const two = await start(() => ({ text: 'two' }), { rootAgent })
  expect((await one.runAndCollect({ text: 'x' })).text).toBe('one')
  expect((await two.runAndCollect({ text: 'x' })).text).toBe('two')
  expect((await one.runAndCollect({ text: 'x' })).text).toBe('one')
})

test('a transfer to an agent that does not exist is not tried again', async () => {
  const provider = new ScriptedProvider(() => call('transfer_to_agent', { agentName: 'ghost' }), {
    id: 'play',
  })
  const runtime = await start([], { providers: { play: provider } })
  await expect(runtime.runAndCollect({ sessionId: 's', text: 'x' })).rejects.toMatchObject({
    code: 'agent-not-found',
    details: { name: 'ghost' },
  })
  expect(provider.requests).toHaveLength(1)
})

test('transfers that fail again and again are a loop', async () => {
  const runtime = await start(() => call('transfer_to_agent', { agent_name: 'helper' }), {
    agent: { name: 'root', model: 'play/m', subAgents: [{ name: 'helper', description: 'Helps.' }] },
  })
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'x' })
  expect(result).toMatchObject({ finishReason: 'loop' })
})

const pair = () => {
  const agents = ['a', 'b'].map(name => new LlmAgent({ name, model: `play/${name}`, tools: [] }))
  return new ParallelAgent({ name: 'pair', subAgents: agents })
}

test('parallel agents do not mix their words', async () => {
  const runtime = await start(
    request => ({ deltas: request.model === 'a' ? ['a1 '] : ['b1 ', 'b2 ', 'b3 ', 'b4 '] }),
    { rootAgent: pair() },
  )
  const events = await collect(runtime.run({ sessionId: 's', text: 'go' }))
  const heard = (author: string) =>
    events
      .flatMap(event => (event.type === 'text-delta' && event.author === author ? event.text : []))
      .join('')
  expect([heard('a'), heard('b')]).toEqual(['a1 ', 'b1 b2 b3 b4 '])
  const finish = events.at(-1)
  expect(finish?.type === 'run-finish' && ['a1 ', 'b1 b2 b3 b4 '].includes(finish.text)).toBe(true)
})

test('a run names a model also when its root is not a model’s agent', async () => {
  const other = new ScriptedProvider(() => ({ text: 'other' }), { id: 'other' })
  const play = new ScriptedProvider(() => ({ text: 'play' }), { id: 'play' })
  const rootAgent = new SequentialAgent({
    name: 'steps',
    subAgents: [new LlmAgent({ name: 'only', model: 'play/m' })],
  })
  const runtime = await start([], { rootAgent, providers: { play, other } })
  expect(await runtime.runAndCollect({ text: 'x', model: 'other/z' })).toMatchObject({ text: 'other' })
  expect(await runtime.runAndCollect({ text: 'x' })).toMatchObject({ text: 'play' })
})

describe('agents inside tools', () => {
  const nested = () =>
    new LlmAgent({
      name: 'outer',
      model: 'play/outer',
      tools: [new AgentTool({ agent: new LlmAgent({ name: 'helper', model: 'play/inner' }) })],
    })
  const script: Script = request => {
    if (request.model === 'inner')
      return { text: JSON.stringify(request.messages).includes('secret') ? 'LEAK' : 'ok' }
    const last = request.messages.at(-1)
    const words = JSON.stringify(last)
    return words.includes('tool-result')
      ? { text: words }
      : call('helper', { request: words.includes('bank') ? 'secret' : 'hello' })
  }

  test('agents inside tools of two apps do not share a session', async () => {
    const store = await openStore('memory:')
    const bank = await start(script, { app: 'bank', store, rootAgent: nested() })
    const shop = await start(script, { app: 'shop', store, rootAgent: nested() })
    await bank.runAndCollect({ sessionId: 's1', text: 'I am the bank' })
    expect((await shop.runAndCollect({ sessionId: 's1', text: 'I am a shop' })).text).not.toContain('LEAK')
    await bank.close()
    await shop.close()
    await store.close()
  })

  test('an agent inside a tool that fails returns the reason to its caller', async () => {
    const failure = new AgentError('provider-auth', 'The inner key was refused.')
    const runtime = await start(
      (request, index) => {
        if (request.model === 'inner') return { error: failure }
        return index === 0
          ? call('helper', { request: 'x' })
          : { text: JSON.stringify(request.messages.at(-1)) }
      },
      { rootAgent: nested() },
    )
    expect((await runtime.runAndCollect({ sessionId: 's', text: 'go' })).text).toContain(
      'The inner key was refused.',
    )
  })

  test('an agent inside a tool may not have the name of the app', async () => {
    const runtime = await start(script, { app: 'helper', rootAgent: nested() })
    await expect(runtime.ready()).rejects.toMatchObject({ code: 'invalid-config' })
  })
})

test('what JSON cannot say does not break a run', async () => {
  const circular: Record<string, unknown> = { big: 10n }
  circular.self = circular
  const odd = defineTool({
    name: 'odd',
    description: 'Returns something odd.',
    parameters: { type: 'object', properties: {} },
    execute: () => circular,
  })
  const runtime = await start([call('odd'), { text: 'fine' }], { agent: { model: 'play/m', tools: [odd] } })
  expect((await runtime.runAndCollect({ sessionId: 's', text: 'go' })).text).toBe('fine')
})

describe('options are checked before anything is opened', () => {
  const agent = { model: 'demo/demo' }
  const cycle: { name: string; model: string; subAgents: object[] } = {
    name: 'x',
    model: 'demo/demo',
    subAgents: [],
  }
  cycle.subAgents.push(cycle)
  const tool = { name: 'a', description: '', parameters: {}, execute: () => 1 }
  test.each([
    [
      'an unknown option',
      { agent, stor: 'memory:' },
      /`stor` \("memory:"\) is not a known key\. Did you mean `store`\?/,
    ],
    ['no agent', {}, /An agent is missing/],
    ['an unknown provider', { agent: { model: 'nobody/x' } }, /nobody/],
    ['a circle of agents', { agent: cycle }, /form a circle: x → x/],
    [
      'a nameless sub-agent',
      { agent: { ...agent, subAgents: [{}] } },
      /`agent\.subAgents\[0\]\.name` is missing/,
    ],
    [
      'two agents of one name',
      { agent: { ...agent, name: 'a', subAgents: [{ name: 'a' }] } },
      /`agent\.subAgents\[0\]\.name` is "a", but must be another name/,
    ],
    [
      'two tools of one name',
      { agent: { ...agent, tools: [tool, tool] } },
      /`agent\.tools\[1\]\.name` is "a", but must be another name/,
    ],
    [
      'something that is no tool',
      { agent: { ...agent, tools: [{}] } },
      /`agent\.tools\[0\]\.name` is missing: it must be a name/,
    ],
    [
      'a broken budget',
      { agent, history: { maxMessageTokenBudget: 10.5 } },
      /maxMessageTokenBudget` is 10\.5/,
    ],
    ['an unknown repair mode', { agent, history: { repair: 'x' } }, /history\.repair` is "x"/],
    ['no turns', { agent: { ...agent, maxTurns: 0 } }, /agent\.maxTurns` is 0/],
  ])('createRuntime refuses %s', async (_name, options, message) => {
    const failure = await createRuntime({ store: 'memory:', ...options } as RuntimeOptions).catch(
      error => error,
    )
    expect(failure.message).toMatch(message)
    expect(['invalid-config', 'invalid-argument']).toContain(failure.code)
  })
})
