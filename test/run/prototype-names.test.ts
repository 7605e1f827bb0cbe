// Names that every plain object inherits are ordinary names of tools, arguments, agents, models, users and sessions.
import { FunctionTool, LlmAgent } from '@google/adk'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { PROFILES } from '../../src/provider/repair/profile.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool, type Tool } from '../../src/tool.js'
import { STRICT_TARGETS } from '../providers/strict-profiles.js'
import { PROTOTYPE_NAMES, withKey } from '../support/prototype-names.js'
import { saveTool, searchTool } from '../support/tools.js'

const open: Runtime[] = []
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

async function start(script: Script, options: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: new ScriptedProvider(script, { id: 'play' }) },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools: [searchTool, saveTool] } }),
    ...options,
  })
  open.push(runtime)
  return runtime
}

async function resultsOf(runtime: Runtime, text = 'go', sessionId = 's') {
  const results: Extract<RunEvent, { type: 'tool-result' }>[] = []
  let finish: RunEvent | undefined
  for await (const event of runtime.run({ sessionId, text })) {
    if (event.type === 'tool-result') results.push(event)
    finish = event
  }
  expect(finish).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'done' })
  return results
}

const call = (...calls: { name: string; args?: Record<string, unknown>; id?: string }[]) => [
  { toolCalls: calls },
  { text: 'done' },
]

const echo = (name: string, properties: Record<string, unknown> = {}): Tool =>
  defineTool({
    name,
    description: 'Echoes.',
    parameters: { type: 'object', properties },
    execute: args => ({ keys: Object.keys(args), args }),
  })

describe.each(PROTOTYPE_NAMES)('%s', name => {
  test('is an unknown tool, alone and together with known ones', async () => {
    const results = await resultsOf(await start(call({ name })))
    expect(results).toMatchObject([
      { name, isError: true, result: { error: expect.stringContaining(`Tool "${name}" does not exist.`) } },
    ])
    const batch = call({ name }, { name: 'search', args: { query: 'x' } }, { name })
    const mixed = await resultsOf(await start(batch), 'go', 'mixed')
    expect(mixed.map(result => [result.name, result.isError])).toEqual([
      [name, true],
      ['search', false],
      [name, true],
    ])
  })

  test.each(['openai', 'anthropic', 'gemini'] as const)('is an unknown tool of %s', async vendor => {
    const profile = { openai: 'openai-responses', anthropic: 'anthropic-4.6', gemini: 'gemini-3' } as const
    const strict = await startStrictProvider({
      profile: profile[vendor],
      script: [{ toolCalls: [{ name, args: withKey(name, 1) }] }, { text: 'done' }],
    })
    onTestFinished(() => strict.close())
    const { options, model } = STRICT_TARGETS[profile[vendor]]
    const providers = { play: { ...options, baseUrl: strict.baseUrl, apiKey: 'key' } }
    const runtime = await start([], { providers, agent: { model: `play/${model}`, tools: [searchTool] } })
    expect(await resultsOf(runtime)).toMatchObject([{ name, isError: true }])
  })

  test('is the name of a tool of ours', async () => {
    if (name === '__proto__') {
      expect(() => echo(name)).toThrow(expect.objectContaining({ code: 'invalid-config' }))
      return
    }
    const tools = [searchTool, echo(name)]
    const runtime = await start(call({ name }, { name: 'search' }), { agent: { model: 'play/m', tools } })
    expect((await resultsOf(runtime)).map(result => [result.name, result.isError])).toEqual([
      [name, false],
      ['search', false],
    ])
  })

  test('is the name of a tool of ADK’s', async () => {
    const tool = new FunctionTool({
      name,
      description: 'Answers.',
      parameters: z.object({}),
      execute: () => ({ answer: 42 }),
    })
    const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [tool] })
    const results = await resultsOf(await start(call({ name }), { rootAgent }))
    expect(results).toMatchObject([{ name, isError: false, result: { answer: 42 } }])
  })

  test('is the key of an argument', async () => {
    const agent = { model: 'play/m', tools: [echo('echo'), echo('typed', withKey(name, { type: 'string' }))] }
    const script = call(
      { name: 'echo', args: withKey(name, { [name]: 'x' }) },
      { name: 'typed', args: withKey(name, 'x') },
      { name: 'typed', args: {} },
    )
    const [free, typed, absent] = await resultsOf(await start(script, { agent }))
    // The only name that schemas cannot hold is refused in words, not dropped.
    if (name === '__proto__') expect(free?.result).toEqual({ error: expect.stringContaining('__proto__') })
    else expect(free?.result).toMatchObject({ keys: [name] })
    expect(typed?.result).toMatchObject(
      name === '__proto__' ? { error: expect.any(String) } : { keys: [name], args: { [name]: 'x' } },
    )
    expect(absent?.result).toMatchObject({ keys: [], args: {} })
  })

  test('is the id of a call', async () => {
    const results = await resultsOf(
      await start(call({ name: 'search', id: name }, { name: 'search', id: 'b' })),
    )
    expect(results.map(result => [result.id, result.isError])).toEqual([
      [name, false],
      ['b', false],
    ])
  })

  test('is a key of the state, for a tool and in every scope', async () => {
    const keys = [name, `user:${name}`, `app:${name}`, `temp:${name}`]
    const tool = (toolName: string, isEarly: boolean) =>
      defineTool({
        name: toolName,
        description: 'Reads and writes the state.',
        parameters: { type: 'object', properties: {} },
        effect: isEarly ? 'read' : 'once',
        execute: (_args, { state }) => {
          const before = keys.map(key => state.get(key) === undefined)
          const written = keys.map(key => {
            try {
              state.set(key, { by: toolName })
              return state.get(key)
            } catch (error) {
              return String(error)
            }
          })
          return { before, written }
        },
      })
    const agent = { model: 'play/m', tools: [tool('once', false), tool('early', true)] }
    const runtime = await start(call({ name: 'once' }, { name: 'early' }), { agent })
    const [first] = (await resultsOf(runtime)).map(({ result }) => result)
    const { before, written } = first as { before: boolean[]; written: unknown[] }
    expect(before).toEqual([true, true, true, true])
    expect(written.slice(1)).toEqual([{ by: 'once' }, { by: 'once' }, { by: 'once' }])
    const key = { appName: 'lango', userId: 'user', sessionId: 's' }
    const state = (await runtime.store.loadSession(key))?.state ?? {}
    const stored = keys.slice(0, 3).filter(each => Object.hasOwn(state, each))
    if (name !== '__proto__') {
      expect(written[0]).toEqual({ by: 'once' })
      expect(stored).toEqual(keys.slice(0, 3))
    } else {
      expect(written[0]).toContain('__proto__')
      expect(stored).toEqual(keys.slice(1, 3))
    }
  })

  test('is a key of the state that a caller sets', async () => {
    const runtime = await start([{ text: 'one' }, { text: 'two' }])
    for (const text of ['a', 'b']) {
      await runtime.runAndCollect({ sessionId: 's', text, stateDelta: withKey(name, text) })
    }
    const session = await runtime.store.loadSession({ appName: 'lango', userId: 'user', sessionId: 's' })
    expect(Object.entries(session?.state ?? {})).toEqual([[name, 'b']])
  })

  test('is an app, a user and a session', async () => {
    const runtime = await start(() => ({ text: 'done' }), { app: name })
    await runtime.runAndCollect({ userId: name, sessionId: name, text: 'x' })
    await runtime.runAndCollect({ userId: name, sessionId: name, text: 'y' })
    const key = { appName: name, userId: name, sessionId: name }
    expect(await runtime.store.loadSession(key)).toMatchObject({ key, totalMessages: 4 })
    expect(await runtime.lint(key)).toMatchObject({ key, messages: 4 })
  })

  test('is an agent that is handed over to, and one that does not exist', async () => {
    const transfer = { toolCalls: [{ name: 'transfer_to_agent', args: { agentName: name } }] }
    const agent = { name: 'root', model: 'play/m', subAgents: [{ name, description: 'Helps.' }] }
    const runtime = await start([transfer, { text: 'done' }], { agent })
    const { text, finishReason } = await runtime.runAndCollect({ sessionId: 's', text: 'x' })
    expect({ text, finishReason }).toEqual({ text: 'done', finishReason: 'stop' })
    const other = await start(() => transfer, {
      agent: { name: 'root', model: 'play/m', subAgents: [{ name: 'helper', description: 'Helps.' }] },
    })
    await expect(other.runAndCollect({ sessionId: 's', text: 'x' })).rejects.toMatchObject({
      code: 'agent-not-found',
      details: { name },
    })
  })

  test('is no provider, no model with settings, no profile and no option', async () => {
    const agent = { model: `${name}/m` }
    await expect(start([], { agent })).rejects.toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining(`${name}/m`),
    })
    await expect(start([], withKey(name, 1) as Partial<RuntimeOptions>)).rejects.toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining(`\`${name}\``),
    })
    const runtime = await start([], {
      providers: { demo: { type: 'demo' } },
      agent: { model: `demo/${name}` },
    })
    expect((await runtime.runAndCollect({ sessionId: 's', text: 'hi' })).finishReason).toBe('stop')
    const key = { appName: 'lango', userId: 'user', sessionId: 's' }
    await expect(runtime.lint(key, { profiles: [name] })).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining(Object.keys(PROFILES)[0] ?? ''),
    })
  })

  test('is the name of a provider', async () => {
    const providers = withKey(name, new ScriptedProvider([{ text: 'done' }], { id: name }))
    const starting = start([], { providers, agent: { model: `${name}/${name}` } })
    if (name === '__proto__') {
      await expect(starting).rejects.toMatchObject({ code: 'invalid-config' })
      return
    }
    const runtime = await starting
    expect((await runtime.runAndCollect({ sessionId: 's', text: 'x' })).text).toBe('done')
  })
})

test('nothing of it reaches the prototype of all objects', () => {
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(PROTOTYPE_NAMES)
  expect(Reflect.ownKeys({})).toEqual([])
})
