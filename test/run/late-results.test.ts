// A result that arrives after the user has spoken again: it is moved to its call, and a sentence says where it arrived.
import { LlmAgent, node } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { StrictStep } from '../../src/entries/testing.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { providerFor } from '../support/every-profile.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const SENTENCE = '[System: The result of `search` has arrived. It follows its call.]'
const model = 'main/claude-sonnet-4-6'

const LATE: Message[] = [
  { role: 'user', content: 'look', timestamp: 1 },
  {
    role: 'assistant',
    content: '',
    timestamp: 2,
    toolCalls: [{ id: 'c1', name: 'search', input: '{}', kind: 'call' }],
  },
  { role: 'user', content: 'and hurry', timestamp: 3 },
  {
    role: 'tool',
    content: '',
    timestamp: 4,
    toolCalls: [{ id: 'c1', name: 'search', output: '{"found":1}', kind: 'response' }],
  },
]
const IN_TIME = [LATE[0], LATE[1], LATE[3], LATE[2]] as Message[]

async function server(script: (index: number) => StrictStep = () => ({ text: 'ok' })) {
  const started = await startStrictProvider({
    profile: 'anthropic-4.6',
    script: (_, index) => script(index),
  })
  onTestFinished(() => started.close())
  return started
}

async function stored(messages: readonly Message[], repair: 'repair' | 'strict' | 'explain') {
  const { baseUrl, requests } = await server()
  const store = await openStore('memory:')
  await store.createSession(KEY)
  for (const message of messages) await store.appendMessage(KEY, message)
  const runtime = await createRuntime({
    store,
    providers: { main: providerFor('anthropic-4.6', baseUrl) },
    agent: { name: 'root', model },
    history: { repair },
  })
  onTestFinished(() => runtime.close())
  const result = await runtime.runAndCollect({ ...KEY, text: 'and?' }).catch((error: unknown) => ({ error }))
  const sent = JSON.stringify(requests.map(({ body }) => body))
  return { result, runtime, requests, sent }
}

test('in a stored history the sentence stands where the result arrived, with a receipt in the inspector', async () => {
  const { result, runtime, sent } = await stored(LATE, 'repair')
  expect(result).toMatchObject({ text: 'ok', finishReason: 'stop' })
  expect(sent.split(SENTENCE)).toHaveLength(2)
  const inspection = 'runId' in result ? await runtime.inspect(result.runId) : undefined
  expect(inspection?.steps[0]?.repairs).toContainEqual(
    expect.objectContaining({ step: 'note-arrivals', kind: 'note' }),
  )
})

test('strict mode sends nothing, and names the late result', async () => {
  const { result, requests } = await stored(LATE, 'strict')
  expect(result).toMatchObject({ error: { code: 'history-illegal' } })
  expect(JSON.stringify('error' in result && (result.error as { details?: object }).details)).toContain(
    'arrived after the user had spoken again',
  )
  expect(requests).toEqual([])
})

test('explain mode sends the history as it is', async () => {
  const { sent } = await stored(LATE, 'explain')
  expect(sent).toContain('and hurry')
  expect(sent).not.toContain('has arrived')
})

test('a result that follows its call gets no sentence', async () => {
  const { result, sent } = await stored(IN_TIME, 'repair')
  expect(result).toMatchObject({ text: 'ok' })
  expect(sent).not.toContain('has arrived')
})

test('a node that is used as a tool and speaks before it ends gets no sentence', async () => {
  const search = node(
    function* () {
      yield 'searching'
      yield 'found'
    },
    { name: 'search', description: 'Searches.', inputSchema: z.object({ words: z.string() }) },
  )
  const { baseUrl, requests, violations } = await server(index =>
    index === 0 ? { toolCalls: [{ name: 'search', args: { words: 'a' } }] } : { text: 'ok' },
  )
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { main: providerFor('anthropic-4.6', baseUrl) },
    rootAgent: new LlmAgent({ name: 'root', model, tools: [search] }),
  })
  onTestFinished(() => runtime.close())
  for (const text of ['look', 'and?'])
    expect(await runtime.runAndCollect({ ...KEY, text })).toMatchObject({ text: 'ok' })
  expect(violations).toEqual([])
  expect(requests).toHaveLength(3)
  const sent = JSON.stringify(requests.map(({ body }) => body))
  expect(sent).toContain('found')
  expect(sent).not.toContain('has arrived')
})
