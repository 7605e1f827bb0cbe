// Workflows where agents usually are: under the server and its page, at the limits of a run, in transcripts.
import { LlmAgent, LogLevel, type NodeContext, node, setLogLevel, Workflow } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { fromMessages } from '../../src/transcript/from-messages.js'

setLogLevel(LogLevel.ERROR)

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

function research() {
  const provider = new ScriptedProvider((_request, index) => ({ text: `Answer ${index}.` }), { id: 'play' })
  const save = node(
    async (context: NodeContext, text: string) => {
      await context.invocationContext.artifactService?.saveArtifact({
        ...KEY,
        filename: 'notes',
        artifact: { text },
      })
      return { topic: text }
    },
    { name: 'save' },
  )
  const agent = (name: string) => new LlmAgent({ name, model: 'play/m', instruction: name })
  const rootAgent = new Workflow({ name: 'flow', edges: [['START', save, agent('first'), agent('second')]] })
  return { provider, rootAgent }
}

test('a workflow and its artifacts work under the server', async () => {
  const { provider, rootAgent } = research()
  const runtime = await createRuntime({ store: 'memory:', providers: { play: provider }, rootAgent })
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    version: '0.0.0-test',
    graceMs: 0,
    logger: silentLogger,
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  const client = createClient({ baseUrl: server.url })
  const events = []
  const { runId } = await client.start('s', { text: 'tides' })
  for await (const event of client.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'Answer 1.' })
  expect((await runtime.store.artifacts?.load({ ...KEY, name: 'notes' }))?.body).toBe('tides')
})

test('what a workflow hands to its agents is not shown as text of the user', async () => {
  const { provider, rootAgent } = research()
  const runtime = await createRuntime({ store: 'memory:', providers: { play: provider }, rootAgent })
  onTestFinished(() => runtime.close())
  for (const text of ['tides', 'winds']) await runtime.runAndCollect({ sessionId: 's', text })
  const stored = await runtime.store.readMessages(KEY)
  expect(stored.filter(({ role }) => role === 'user').length).toBeGreaterThan(4)
  const messages = await runtime.messages(KEY, {})
  const said = messages.filter(({ role, synthetic }) => role === 'user' && !synthetic)
  expect(said.map(({ parts: [part] }) => part)).toMatchObject([{ text: 'tides' }, { text: 'winds' }])
  const users = fromMessages(messages).filter(({ kind }) => kind === 'user')
  expect(users).toHaveLength(2)
})

test('a workflow whose agents use up the turns ends with the limit, and says so', async () => {
  const provider = new ScriptedProvider(
    ({ options }, index) =>
      options?.toolChoice === 'none'
        ? { text: 'That is all.' }
        : { toolCalls: [{ name: 'transfer_to_nobody', id: `c${index}`, args: { index } }] },
    { id: 'play' },
  )
  const rootAgent = new Workflow({
    name: 'flow',
    edges: [
      ['START', new LlmAgent({ name: 'busy', model: 'play/m' }), node(() => 'After it.', { name: 'after' })],
    ],
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    rootAgent,
    limits: { maxTurns: 3, loop: false },
  })
  onTestFinished(() => runtime.close())
  const { finishReason, text, turns } = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect({ finishReason, turns }).toEqual({ finishReason: 'turn-limit', turns: 3 })
  // The agent has its last turn; functions after it still run.
  expect(text).toBe('After it.')
  const said = (await runtime.store.readMessages(KEY)).map(({ content }) => content)
  expect(said.join('\n')).toMatch(/That is all\.|turn/)
})
