// Names that every plain object inherits are ordinary names of tools, arguments, agents, models, users and sessions.
import { FunctionTool, LlmAgent } from '@google/adk'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { PROFILES } from '../../src/provider/repair/profile.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool, type Tool } from '../../src/tool.js'
import { STRICT_TARGETS } from '../providers/strict-profiles.js'
import { failuresByName, PROTOTYPE_NAMES, withKey } from '../support/prototype-names.js'
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

interface Call {
  name: string
  args?: Record<string, unknown>
  id?: string
}

/** Makes the calls that belong to the text of the last user message, then says `done`. */
function calling(callsFor: (text: string) => Call[]): Script {
  return ({ messages }): ScriptStep => {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const [part] = messages[at]?.parts ?? []
    if (at < messages.length - 1) return { text: 'done' }
    return { toolCalls: callsFor(part?.type === 'text' ? part.text : expect.unreachable('no text')) }
  }
}

const echo = (name: string, properties: Record<string, unknown> = {}): Tool =>
  defineTool({
    name,
    description: 'Echoes.',
    parameters: { type: 'object', properties },
    execute: args => ({ keys: Object.keys(args), args }),
  })

/** Names that a tool may have. */
const LEGAL_NAMES = PROTOTYPE_NAMES.filter(name => name !== '__proto__')

test('an inherited name is an unknown tool, alone and together with known ones', async () => {
  const alone = await start(calling(name => [{ name }]))
  const mixed = await start(calling(name => [{ name }, { name: 'search', args: { query: 'x' } }, { name }]))
  const check = async (name: string) => {
    expect(await resultsOf(alone, name, `alone ${name}`)).toMatchObject([
      { name, isError: true, result: { error: expect.stringContaining(`Tool "${name}" does not exist.`) } },
    ])
    const results = await resultsOf(mixed, name, `mixed ${name}`)
    expect(results.map(result => [result.name, result.isError])).toEqual([
      [name, true],
      ['search', false],
      [name, true],
    ])
  }
  expect(await failuresByName(check)).toEqual([])
})

test.each([
  ['openai', 'openai-responses'],
  ['anthropic', 'anthropic-4.6'],
  ['gemini', 'gemini-3'],
] as const)('an inherited name is an unknown tool of %s', async (_vendor, profile) => {
  const strict = await startStrictProvider({
    profile,
    script: ({ messages }) => {
      const last = messages.at(-1)
      if (last?.toolResults.length) return { text: 'done' }
      const name = last?.text ?? ''
      return { toolCalls: [{ name, args: withKey(name, 1) }] }
    },
  })
  onTestFinished(() => strict.close())
  const { options, model } = STRICT_TARGETS[profile]
  const providers = { play: { ...options, baseUrl: strict.baseUrl, apiKey: 'key' } }
  const runtime = await start([], { providers, agent: { model: `play/${model}`, tools: [searchTool] } })
  const check = async (name: string) =>
    expect(await resultsOf(runtime, name, name)).toMatchObject([{ name, isError: true }])
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is the name of a tool of ours; __proto__ is refused', async () => {
  const agent = { model: 'play/m', tools: [searchTool, ...LEGAL_NAMES.map(name => echo(name))] }
  const runtime = await start(
    calling(name => [{ name }, { name: 'search' }]),
    { agent },
  )
  const check = async (name: string) => {
    if (name === '__proto__') {
      expect(() => echo(name)).toThrow(expect.objectContaining({ code: 'invalid-config' }))
      return
    }
    expect((await resultsOf(runtime, name, name)).map(result => [result.name, result.isError])).toEqual([
      [name, false],
      ['search', false],
    ])
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is the name of a tool of ADK’s', async () => {
  const tools = PROTOTYPE_NAMES.map(
    name =>
      new FunctionTool({
        name,
        description: 'Answers.',
        parameters: z.object({}),
        execute: () => ({ answer: name }),
      }),
  )
  const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools })
  const runtime = await start(
    calling(name => [{ name }]),
    { rootAgent },
  )
  const check = async (name: string) =>
    expect(await resultsOf(runtime, name, name)).toMatchObject([
      { name, isError: false, result: { answer: name } },
    ])
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is the key of an argument', async () => {
  const typedName = (name: string) => `typed_${PROTOTYPE_NAMES.indexOf(name)}`
  const typedTools = PROTOTYPE_NAMES.map(name => echo(typedName(name), withKey(name, { type: 'string' })))
  const agent = { model: 'play/m', tools: [echo('echo'), ...typedTools] }
  const script = calling(name => [
    { name: 'echo', args: withKey(name, { [name]: 'x' }) },
    { name: typedName(name), args: withKey(name, 'x') },
    { name: typedName(name), args: {} },
  ])
  const runtime = await start(script, { agent })
  const check = async (name: string) => {
    const [free, typed, absent] = await resultsOf(runtime, name, name)
    // The only name that schemas cannot hold is refused in words, not dropped.
    if (name === '__proto__') expect(free?.result).toEqual({ error: expect.stringContaining('__proto__') })
    else expect(free?.result).toMatchObject({ keys: [name] })
    expect(typed?.result).toMatchObject(
      name === '__proto__' ? { error: expect.any(String) } : { keys: [name], args: { [name]: 'x' } },
    )
    expect(absent?.result).toMatchObject({ keys: [], args: {} })
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is the id of a call', async () => {
  const runtime = await start(
    calling(id => [
      { name: 'search', id },
      { name: 'search', id: 'b' },
    ]),
  )
  const check = async (name: string) => {
    const results = await resultsOf(runtime, name, name)
    expect(results.map(result => [result.id, result.isError])).toEqual([
      [name, false],
      ['b', false],
    ])
  }
  expect(await failuresByName(check)).toEqual([])
})

const scopesOf = (name: string) => [name, `user:${name}`, `app:${name}`, `temp:${name}`]

test('an inherited name is a key of the state, for a tool and in every scope', async () => {
  const tool = (toolName: string, isEarly: boolean) =>
    defineTool({
      name: toolName,
      description: 'Reads and writes the state.',
      parameters: { type: 'object', properties: { name: { type: 'string' } } },
      effect: isEarly ? 'read' : 'once',
      execute: ({ name }: { name: string }, { state }) => {
        const keys = scopesOf(name)
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
  const script = calling(name => [
    { name: 'once', args: { name } },
    { name: 'early', args: { name } },
  ])
  const runtime = await start(script, { agent })
  const check = async (name: string) => {
    const keys = scopesOf(name)
    const [first] = (await resultsOf(runtime, name, name)).map(({ result }) => result)
    const { before, written } = first as { before: boolean[]; written: unknown[] }
    expect(before).toEqual([true, true, true, true])
    expect(written.slice(1)).toEqual([{ by: 'once' }, { by: 'once' }, { by: 'once' }])
    const key = { appName: 'lango', userId: 'user', sessionId: name }
    const state = (await runtime.store.loadSession(key))?.state ?? {}
    const stored = keys.slice(0, 3).filter(each => Object.hasOwn(state, each))
    if (name !== '__proto__') {
      expect(written[0]).toEqual({ by: 'once' })
      expect(stored).toEqual(keys.slice(0, 3))
    } else {
      expect(written[0]).toContain('__proto__')
      expect(stored).toEqual(keys.slice(1, 3))
    }
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is a key of the state that a caller sets', async () => {
  const runtime = await start(() => ({ text: 'done' }))
  const check = async (name: string) => {
    for (const text of ['a', 'b']) {
      await runtime.runAndCollect({ sessionId: name, text, stateDelta: withKey(name, text) })
    }
    const session = await runtime.store.loadSession({ appName: 'lango', userId: 'user', sessionId: name })
    expect(Object.entries(session?.state ?? {})).toEqual([[name, 'b']])
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is an app, a user and a session', async () => {
  const check = async (name: string) => {
    const runtime = await start(() => ({ text: 'done' }), { app: name })
    await runtime.runAndCollect({ userId: name, sessionId: name, text: 'x' })
    await runtime.runAndCollect({ userId: name, sessionId: name, text: 'y' })
    const key = { appName: name, userId: name, sessionId: name }
    expect(await runtime.store.loadSession(key)).toMatchObject({ key, totalMessages: 4 })
    expect(await runtime.lint(key)).toMatchObject({ key, messages: 4 })
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is an agent that a run is transferred to, and one that does not exist', async () => {
  const check = async (name: string) => {
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
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is no provider, no model with settings, no profile and no option', async () => {
  const check = async (name: string) => {
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
  }
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is the name of a provider; __proto__ is refused', async () => {
  const check = async (name: string) => {
    const providers = withKey(name, new ScriptedProvider([{ text: 'done' }], { id: name }))
    const starting = start([], { providers, agent: { model: `${name}/${name}` } })
    if (name === '__proto__') {
      await expect(starting).rejects.toMatchObject({ code: 'invalid-config' })
      return
    }
    const runtime = await starting
    expect((await runtime.runAndCollect({ sessionId: 's', text: 'x' })).text).toBe('done')
  }
  expect(await failuresByName(check)).toEqual([])
})

test('no inherited name reaches the prototype of all objects', () => {
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(PROTOTYPE_NAMES)
  expect(Reflect.ownKeys({})).toEqual([])
})
