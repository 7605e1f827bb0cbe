// Workflows where agents usually are: under the server and its page, at the limits of a run, in transcripts.
import { LlmAgent, LogLevel, type NodeContext, node, RequestInput, setLogLevel, Workflow } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createClient } from '../../src/client/create-client.js'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
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
  expect((await runtime.store.artifacts.load({ ...KEY, name: 'notes' }))?.body).toBe('tides')
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

/** An agent with a node as a tool, which asks a person before it refunds. */
async function refundDesk() {
  const refund = node(
    function* (context: NodeContext, { amount }: { amount: number }) {
      const reply = context.resumeInputs.may_refund
      if (reply === undefined) yield new RequestInput({ interruptId: 'may_refund', message: 'Refund?' })
      else yield reply === 'yes' ? `Refunded ${amount}.` : 'Not refunded.'
    },
    {
      name: 'refund',
      description: 'Refunds.',
      inputSchema: z.object({ amount: z.number() }),
      rerunOnResume: true,
    },
  )
  const call = { toolCalls: [{ id: 'c1', name: 'refund', args: { amount: 20 } }] }
  const provider = new ScriptedProvider([call, { text: 'It is done.' }], { id: 'play' })
  const rootAgent = new LlmAgent({ name: 'desk', model: 'play/m', tools: [refund] })
  const runtime = await createRuntime({ store: 'memory:', providers: { play: provider }, rootAgent })
  const server = await serve({
    ...{ runtime, port: 0, host: '127.0.0.1', version: '0.0.0-test', graceMs: 0, logger: silentLogger },
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  return { runtime, client: createClient({ baseUrl: server.url }) }
}

test('runtime, server and page name one question of a node as a tool, and refuse an answer to its call', async () => {
  const { runtime, client } = await refundDesk()
  const { runId, pending } = await runtime.runAndCollect({ sessionId: 's', text: 'Refund 20' })
  expect(pending).toMatchObject([{ id: 'may_refund', name: 'adk_request_input', question: 'result' }])
  expect((await client.run(runId)).waitsFor).toMatchObject([{ callId: 'may_refund', asks: 'result' }])
  let page = newRunTranscript({ runId, afterSeq: 0 })
  for await (const event of runtime.follow(runId, { untilWaiting: true })) page = applyRunEvent(page, event)
  expect(page.questions).toMatchObject([{ callId: 'may_refund' }])
  expect(page.items.filter(({ kind }) => kind === 'tool')).toMatchObject([
    { callId: 'c1', status: 'running' },
  ])
  const details = { waitsFor: [{ callId: 'may_refund', tool: 'adk_request_input', asks: 'result' }] }
  const refused = { code: 'run-not-found', message: expect.stringContaining('"may_refund"'), details }
  await expect(runtime.answer(runId, 'c1', { result: 'yes' })).rejects.toMatchObject(refused)
  await expect(client.approve(runId, 'c1', { result: 'yes' })).rejects.toMatchObject({
    ...{ status: 404, code: 'run-not-found', message: expect.stringContaining('"may_refund"') },
  })
  await runtime.answer(runId, 'may_refund', { result: 'yes' })
  const events = []
  for await (const event of runtime.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'It is done.' })
})
