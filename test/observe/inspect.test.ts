// A run with a cut, a repair and another provider than the one before: all three are told, and the figures
// are those of what the servers received.
import { afterEach, expect, test } from 'vitest'
import { inspectRun } from '../../src/observe/inspect.js'
import { callKey } from '../../src/run/call-key.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { searchTool } from '../support/tools.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

let runtime: Runtime | undefined
const servers: StrictProvider[] = []

afterEach(async () => {
  await runtime?.close()
  await Promise.all(servers.splice(0).map(server => server.close()))
})

async function startServers() {
  const callThenAnswer = [
    { toolCalls: [{ name: 'search', args: { query: 'one' } }], usage: { input: 900, output: 20 } },
    { text: 'Found one.', usage: { input: 950, output: 5 } },
  ]
  const openai = await startStrictProvider({ profile: 'openai-chat', script: callThenAnswer })
  const anthropic = await startStrictProvider({ profile: 'anthropic-4.6', script: callThenAnswer })
  servers.push(openai, anthropic)
  return { openai, anthropic }
}

/** A session that is too long for its budget and has an open call where the cut does not reach. */
async function fillSession(store: Runtime['store']): Promise<void> {
  await store.createSession(KEY)
  for (let turn = 0; turn < 30; turn++) {
    const long = `turn ${turn} ${'word '.repeat(120)}`
    await store.appendMessage(KEY, { role: 'user', author: 'user', content: long, timestamp: turn })
    await store.appendMessage(KEY, { role: 'assistant', author: 'root', content: long, timestamp: turn })
  }
  await store.appendMessage(KEY, { role: 'user', author: 'user', content: 'look', timestamp: 90 })
  await store.appendMessage(KEY, {
    role: 'assistant',
    author: 'root',
    content: '',
    toolCalls: [{ id: 'call_lost', name: 'search', input: '{"query":"x"}' }],
    timestamp: 91,
  })
}

test('the inspection of a run has the cut, the repair and the switch, in figures that the servers confirm', async () => {
  const { openai, anthropic } = await startServers()
  runtime = await createRuntime({
    store: 'memory:',
    providers: {
      first: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: openai.baseUrl },
      second: { type: 'anthropic', apiKey: 'k', baseUrl: anthropic.baseUrl },
    },
    agent: { name: 'root', model: 'first/gpt-4.1', tools: [searchTool] },
    history: { maxMessageTokenBudget: 2000 },
  })
  await fillSession(runtime.store)
  const before = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  const after = await runtime.runAndCollect({
    sessionId: 's',
    text: 'go on',
    model: 'second/claude-sonnet-4-6',
  })
  expect([...openai.violations, ...anthropic.violations]).toEqual([])

  const cases = [
    { result: before, server: openai, model: 'first/gpt-4.1', profile: 'openai-chat' },
    {
      result: after,
      server: anthropic,
      model: 'second/claude-sonnet-4-6',
      profile: 'anthropic-4.6',
    },
  ]
  for (const { result, server, model, profile } of cases) {
    const inspection = await inspectRun(runtime.store, result.runId, callKey)
    expect(inspection).toMatchObject({ sessionId: 's', agent: 'root', finishReason: 'stop' })
    const steps = inspection?.steps ?? []
    expect(steps.map(step => [step.step, step.model, step.profile])).toEqual([
      [1, model, profile],
      [2, model, profile],
    ])
    const received = server.requests.map(request => request.body as { messages: unknown[] })
    expect(steps.map(step => step.sent.body)).toEqual(received)
    expect(steps.map(step => step.sent.messages)).toEqual(received.map(body => body.messages.length))
    expect(inspection?.total).toMatchObject({
      requests: server.requests.length,
      bytes: received.reduce((all, body) => all + Buffer.byteLength(JSON.stringify(body)), 0),
      usage: { inputTokens: 1850, outputTokens: 25 },
    })
    expect(steps.map(step => step.usage?.inputTokens)).toEqual([900, 950])
    for (const step of steps) {
      // A session is opened with half as much again as a request may hold.
      expect(step.cuts[0]).toMatchObject({ reason: 'token-budget', budgetTokens: 3000 })
      expect(step.cuts[0]?.messages).toBeGreaterThan(0)
      expect(step.repairs.map(({ step: name, kind }) => [name, kind])).toContainEqual([
        'pair-calls',
        'synthesize-result',
      ])
    }
  }
  // What the store held when the first run opened it: sixty messages of chatter, the question and the lost call.
  const first = (await inspectRun(runtime.store, before.runId, callKey))?.steps[0]
  expect(first?.stored?.messages).toBe(62)
})

test('the inspection of a failed call has its request, its error and no usage', async () => {
  const server = await startStrictProvider({ profile: 'openai-chat', apiKey: 'right' })
  servers.push(server)
  runtime = await createRuntime({
    store: 'memory:',
    providers: { first: { type: 'openai', api: 'chat', apiKey: 'a-wrong-key', baseUrl: server.baseUrl } },
    agent: { model: 'first/gpt-4.1' },
  })
  let runId = ''
  for await (const event of runtime.run({ text: 'go' })) runId = event.runId
  const inspection = await inspectRun(runtime.store, runId, callKey)
  expect(inspection).toMatchObject({ finishReason: 'error', error: { code: 'provider-auth' } })
  // The instruction and the question.
  expect(inspection?.steps).toMatchObject([{ model: 'first/gpt-4.1', cuts: [], sent: { messages: 2 } }])
  expect(inspection?.steps[0]).not.toHaveProperty('usage')
  expect(JSON.stringify(inspection)).not.toContain('a-wrong-key')
})

test('the inspection of a run takes what was recorded with a request', async () => {
  const store = await openStore('memory:')
  await store.createSession(KEY)
  const cut = {
    reason: 'token-budget',
    messages: 3,
    tokens: 30,
    keptMessages: 2,
    keptTokens: 20,
    shortened: [],
  }
  const record = {
    model: 'a/m',
    profile: 'gemini-3',
    repairs: [],
    mappedIds: {},
    body: { contents: [1, 2] },
  }
  const usage = (inputTokens: number) => ({
    inputTokens,
    outputTokens: 1,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    totalTokens: inputTokens + 1,
  })
  const stored = { messages: 9, tokens: 90 }
  const history = { messages: 5, tokens: 50 }
  await store.runs.appendEvents(KEY, 'r', [
    { seq: 1, type: 'usage', model: 'a/m', step: 2, usage: usage(7) },
    { seq: 2, type: 'history-cut', cut },
  ])
  await store.runs.saveRequest('r', 1, { ...record, stored, history, cuts: [cut] })
  await store.runs.saveRequest('r', 2, { ...record, stored, history, cuts: [] })
  const inspection = await inspectRun(store, 'r', callKey)
  expect(inspection?.steps).toMatchObject([
    { step: 1, stored, history, cuts: [cut], sent: { messages: 2 } },
    { step: 2, stored, history, cuts: [], usage: usage(7) },
  ])
  expect(inspection?.steps[0]).not.toHaveProperty('usage')
  await store.close()
})

test('the inspection of an unknown run is undefined', async () => {
  const store = await openStore('memory:')
  expect(await inspectRun(store, 'nowhere', callKey)).toBeUndefined()
  await store.close()
})
