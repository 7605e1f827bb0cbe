// An ADK `App` in place of an agent: its plugins are called and its settings count, on every way in.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { App, BasePlugin, type InvocationContext, LlmAgent, LongRunningFunctionTool } from '@google/adk'
import type { Content } from '@google/genai'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { lango } from '../cli/lango.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const SECRET = 'sk-live-4242'

class RedactionPlugin extends BasePlugin {
  override async onUserMessageCallback({
    userMessage,
  }: {
    invocationContext: InvocationContext
    userMessage: Content
  }): Promise<Content | undefined> {
    const parts = (userMessage.parts ?? []).map(part =>
      part.text === undefined ? part : { ...part, text: part.text.replaceAll(SECRET, '[redacted]') },
    )
    return { ...userMessage, parts }
  }
}

function appWithRedaction(): App {
  const rootAgent = new LlmAgent({ name: 'clerk', model: 'gemini-2.5-flash', instruction: 'Help.' })
  return new App({ name: 'desk', rootAgent, plugins: [new RedactionPlugin('redaction')] })
}

async function gemini() {
  const server = await startStrictProvider({ profile: 'gemini-2', script: () => ({ text: 'Yes.' }) })
  onTestFinished(() => server.close())
  return { server, providers: { gemini: { type: 'gemini' as const, apiKey: 'k', baseUrl: server.baseUrl } } }
}

test.each([
  ['app', (app: App): RuntimeOptions => ({ app })],
  ['rootAgent', (app: App): RuntimeOptions => ({ rootAgent: app })],
])('a secret that a plugin of the app in `%s` redacts does not reach the model', async (_key, place) => {
  const { server, providers } = await gemini()
  const runtime = await createRuntime({ ...place(appWithRedaction()), store: 'memory:', providers })
  onTestFinished(() => runtime.close())
  const identity = { sessionId: 's', userId: 'ann' }
  await runtime.runAndCollect({ ...identity, text: `My key is ${SECRET}.` })
  await runtime.runAndCollect({ ...identity, text: 'What is my key?' })
  const sent = JSON.stringify(server.requests)
  expect(server.requests).toHaveLength(2)
  expect(sent).toContain('My key is [redacted].')
  expect(sent).not.toContain(SECRET)
  expect(server.violations).toEqual([])
  // Nothing of it stays in the history either.
  const stored = await runtime.store.loadSession({ appName: 'desk', ...identity })
  expect(stored?.messages).toHaveLength(4)
  expect(JSON.stringify(stored)).not.toContain(SECRET)
})

test('a secret that a plugin redacts leaves the title of a message of several lines', async () => {
  const { providers } = await gemini()
  const runtime = await createRuntime({ app: appWithRedaction(), store: 'memory:', providers })
  onTestFinished(() => runtime.close())
  const key = { sessionId: 's', userId: 'ann' }
  await runtime.runAndCollect({ ...key, text: `Hello.\n\n  My key is ${SECRET}.` })
  const stored = await runtime.store.describeSession({ appName: 'desk', ...key })
  expect(stored?.title).toBe('Hello. My key is [redacted].')
})

test('the name of the options wins over the name of the app', async () => {
  const { providers } = await gemini()
  const rootAgent = appWithRedaction()
  const runtime = await createRuntime({ app: 'mine', rootAgent, store: 'memory:', providers })
  onTestFinished(() => runtime.close())
  await runtime.runAndCollect({ sessionId: 's', text: 'Hello' })
  expect((await runtime.info()).app).toBe('mine')
  const key = { userId: 'user', sessionId: 's' }
  expect(await runtime.store.loadSession({ appName: 'mine', ...key })).toBeDefined()
  expect(await runtime.store.loadSession({ appName: 'desk', ...key })).toBeUndefined()
})

/** Which agent a late function response goes to. */
async function answeredBy(options: (rootAgent: LlmAgent) => Partial<RuntimeOptions>): Promise<string> {
  const approve = new LongRunningFunctionTool({
    name: 'approve',
    description: 'Asks a person.',
    parameters: z.object({}),
    execute: () => undefined,
  })
  const child = new LlmAgent({
    name: 'child',
    model: 'play/m',
    description: 'Helps.',
    instruction: 'You are <child>.',
    tools: [approve],
    disallowTransferToParent: true,
  })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'play/m',
    instruction: 'You are <root>.',
    subAgents: [child],
  })
  let answered = ''
  const play = new ScriptedProvider((request, index) => {
    answered = /You are <(\w+)>/.exec(JSON.stringify(request))?.[1] ?? ''
    if (index === 0) return { toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'child' } }] }
    return index === 1 ? { toolCalls: [{ name: 'approve', id: 'call-1' }] } : { text: 'Fine.' }
  })
  const runtime = await createRuntime({ store: 'memory:', providers: { play }, ...options(rootAgent) })
  onTestFinished(() => runtime.close())
  const identity = { sessionId: 's', userId: 'ann' }
  await runtime.runAndCollect({ ...identity, text: 'Begin' })
  const functionResponse = { id: 'call-1', name: 'approve', response: { approved: true } }
  await runtime.runAndCollect({ ...identity, parts: [{ functionResponse }] })
  return answered
}

test.each([
  ['the app', (rootAgent: LlmAgent) => appOf(rootAgent, true), 'child'],
  [
    '`adk`',
    (rootAgent: LlmAgent) => ({ rootAgent, adk: { resumabilityConfig: { isResumable: true } } }),
    'child',
  ],
])('the resumability of %s decides which agent gets a late answer', async (_name, options, expected) => {
  expect(await answeredBy(options)).toBe(expected)
})

test('without resumability a late answer goes to the root agent, which does not know the call, as in bare ADK', async () => {
  const answer = answeredBy(rootAgent => appOf(rootAgent, false))
  await expect(answer).rejects.toThrow('No function call event found')
})

function appOf(rootAgent: LlmAgent, isResumable: boolean): Partial<RuntimeOptions> {
  return { app: new App({ name: 'desk', rootAgent, resumabilityConfig: { isResumable } }) }
}

test.each(['app', 'rootApp'])('`lango run --agent` runs the app that a file exports as `%s`', async name => {
  const { server, providers } = await gemini()
  const cwd = await temporaryFolder()
  const source = `import { App, BasePlugin, LlmAgent } from '@google/adk'
    class Redaction extends BasePlugin {
      async onUserMessageCallback({ userMessage }) {
        return { ...userMessage, parts: [{ text: userMessage.parts[0].text.replaceAll('${SECRET}', '[redacted]') }] }
      }
    }
    export const rootAgent = new LlmAgent({ name: 'clerk', model: 'gemini-2.5-flash' })
    export const ${name} = new App({ name: 'desk', rootAgent, plugins: [new Redaction('redaction')] })`
  await writeFile(join(cwd, 'agent.mjs'), source)
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ providers }))
  const args = ['run', '--agent', 'agent.mjs', '--session', 's', `My key is ${SECRET}.`]
  expect(await lango(args, { cwd })).toMatchObject({ code: 0, stdout: 'Yes.\n' })
  expect(JSON.stringify(server.requests)).toContain('My key is [redacted].')
  expect(JSON.stringify(server.requests)).not.toContain(SECRET)
})

test.each([
  [
    { app: appWithRedaction(), agent: { model: 'demo/demo' } },
    '`app` is an object of class App, but cannot be combined',
  ],
  [{ app: { name: 'x' } }, '`app` is an object, but must be a non-empty text, or an ADK app'],
  [{ rootAgent: {} }, '`rootAgent` is an object, but must be an agent, a workflow or an app of ADK'],
])('refuses %o', async (options, message) => {
  await expect(createRuntime({ store: 'memory:', ...options } as RuntimeOptions)).rejects.toThrow(message)
})
