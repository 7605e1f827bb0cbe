import { expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { toChatMessages } from '../../src/runtime/chat-view.js'
import { listModels } from '../../src/runtime/models.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { inOnePiece } from '../support/event-numbers.js'

const UUID = '6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11'

function scripted() {
  return new ScriptedProvider([
    { deltas: ['one ', 'two ', 'three'], usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 } },
    { text: 'again' },
  ])
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

test('onStored is called with events that can be read from the store, in order and without a gap', async () => {
  const store = await openStore('memory:')
  const runtime = await createRuntime({
    store,
    providers: { scripted: scripted() },
    agent: { model: 'scripted/x' },
  })
  const told: RunEvent[] = []
  const checks: Promise<void>[] = []
  const onStored = (events: readonly RunEvent[]) => {
    told.push(...events)
    const last = events.at(-1)?.seq ?? 0
    checks.push(
      store.runs.readEvents(UUID, { afterSeq: last - 1, limit: 1 }).then(([read]) => {
        expect(read?.seq).toBe(last)
      }),
    )
  }
  const seen = await collect(runtime.run({ sessionId: 's', text: 'hello', runId: UUID, onStored }))
  await Promise.all(checks)
  expect(told.map(({ seq }) => seq)).toEqual(inOnePiece(seen).map(({ seq }) => seq))
  expect(told).toEqual(await store.runs.readEvents(UUID))
  expect(await store.runs.findRun(UUID)).toMatchObject({
    afterSeq: 0,
    finished: true,
    finishReason: 'stop',
  })
  await runtime.close()
})

test('a run id that is taken is the run that has it; one of another session, or no UUID, is refused', async () => {
  const store = await openStore('memory:')
  const runtime = await createRuntime({
    store,
    providers: { scripted: scripted() },
    agent: { model: 'scripted/x' },
  })
  const first = await collect(runtime.run({ sessionId: 's', text: 'hello', runId: UUID }))
  expect(await collect(runtime.run({ sessionId: 's', text: 'hello', runId: UUID }))).toEqual(
    inOnePiece(first),
  )
  const elsewhere = collect(runtime.run({ sessionId: 't', text: 'hello', runId: UUID }))
  await expect(elsewhere).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(collect(runtime.run({ text: 'x', runId: 'mine' }))).rejects.toMatchObject({
    code: 'invalid-argument',
  })
  expect((await runtime.store.listSessions({ appName: 'lango' })).sessions).toHaveLength(1)
  await runtime.close()
})

test('words of a model that falls silent are stored although nothing follows', async () => {
  const store = await openStore('memory:')
  let release: () => void = () => {}
  const silence = new Promise<void>(resolve => {
    release = resolve
  })
  const provider = scripted()
  const generate = provider.generate.bind(provider)
  provider.generate = async function* (...parameters: Parameters<typeof generate>) {
    for await (const event of generate(...parameters)) {
      yield event
      if (event.type === 'text-delta') await silence
    }
  }
  const runtime = await createRuntime({
    store,
    providers: { scripted: provider },
    agent: { model: 'scripted/x' },
  })
  const stored = new Promise<RunEvent>(resolve => {
    const onStored = (events: readonly RunEvent[]) => {
      for (const event of events) if (event.type === 'text-delta') resolve(event)
    }
    void collect(runtime.run({ sessionId: 's', text: 'hello', onStored }))
  })
  expect(await stored).toMatchObject({ text: 'one ' })
  release()
  await runtime.close()
})

test('the title that a message gives ends between two characters', async () => {
  const text = `${'a'.repeat(79)}😀 and more`
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { scripted: scripted() },
    agent: { model: 'scripted/x' },
  })
  await runtime.runAndCollect({ sessionId: 's', text })
  const { sessions } = await runtime.store.listSessions({ appName: 'lango' })
  expect(sessions[0]?.title).toBe(`${'a'.repeat(79)}😀`)
  await runtime.close()
})

test('a session that a message opens is called by its first words', async () => {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { scripted: scripted() },
    agent: { model: 'scripted/x' },
  })
  await runtime.runAndCollect({ sessionId: 's', text: 'Plan a trip\nto Lisbon' })
  await runtime.runAndCollect({ sessionId: 's', text: 'something else' })
  const { sessions } = await runtime.store.listSessions({ appName: 'lango' })
  expect(sessions[0]?.title).toBe('Plan a trip to Lisbon')
  const key = { appName: 'lango', userId: 'user', sessionId: 's' }
  const messages = await runtime.messages(key)
  expect(messages.map(({ seq, role, parts }) => [seq, role, parts])).toEqual([
    [1, 'user', [{ type: 'text', text: 'Plan a trip\nto Lisbon' }]],
    [2, 'assistant', [{ type: 'text', text: 'one two three' }]],
    [3, 'user', [{ type: 'text', text: 'something else' }]],
    [4, 'assistant', [{ type: 'text', text: 'again' }]],
  ])
  expect(await runtime.messages(key, { beforeSeq: 3, limit: 1 })).toMatchObject([{ seq: 2 }])
  expect((await runtime.usage(key)).totalTokens).toBe(8)
  expect(await runtime.info()).toMatchObject({
    agent: 'lango-agent',
    model: 'scripted/x',
    store: 'memory',
    demo: false,
  })
  expect((await runtime.lint(key, { profiles: ['gemini-3'] })).profiles).toMatchObject([{ refused: false }])
  await runtime.close()
})

test('a model for all runs replaces that of an agent, and a run may name another', async () => {
  const provider = scripted()
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { scripted: provider },
    agent: { model: 'scripted/own' },
    model: 'scripted/chosen',
  })
  expect((await runtime.info()).model).toBe('scripted/chosen')
  const events = await collect(runtime.run({ text: 'a' }))
  expect(events[0]).toMatchObject({ type: 'run-start', model: 'scripted/chosen' })
  await collect(runtime.run({ text: 'b', model: 'scripted/other' }))
  expect(provider.requests.map(({ model }) => model)).toEqual(['chosen', 'other'])
  await runtime.close()
  const bad = createRuntime({ store: 'memory:', agent: { model: 'demo/demo' }, model: 'nobody/x' })
  await expect(bad).rejects.toMatchObject({ code: 'invalid-config' })
})

test('calls, results, reasoning and media are parts that a person can read', () => {
  const [call, result] = toChatMessages(
    [
      {
        seq: 1,
        tokens: 1,
        timestamp: 1,
        role: 'assistant',
        author: 'a',
        content: '',
        toolCalls: [{ id: 'c1', name: 'look', input: '{"at":1}', signature: 'c2ln' }],
      },
      {
        seq: 2,
        tokens: 1,
        timestamp: 1,
        role: 'tool',
        content: '',
        toolCalls: [{ id: 'c1', name: 'look', output: '{"error":"no"}' }],
      },
    ],
    () => undefined,
  )
  expect(call?.parts).toEqual([{ type: 'tool-call', id: 'c1', name: 'look', args: { at: 1 }, signed: true }])
  expect(result?.parts).toEqual([
    { type: 'tool-result', id: 'c1', name: 'look', result: { error: 'no' }, isError: true },
  ])
})

test('models with a key come first, and what is configured is among them', async () => {
  const providers = {
    mine: {
      type: 'openai-compatible',
      baseUrl: 'http://127.0.0.1:1',
      apiKey: 'k',
      models: { tiny: { contextWindow: 99 } },
    },
  } as const
  const runtime = await createRuntime({ store: 'memory:', providers, agent: { model: 'mine/tiny' } })
  const models = await runtime.models()
  const lastWith = models.findLastIndex(({ keyPresent }) => keyPresent)
  const firstWithout = models.findIndex(({ keyPresent }) => !keyPresent)
  expect(firstWithout === -1 || lastWith < firstWithout).toBe(true)
  expect(models.find(({ reference }) => reference === 'mine/tiny')).toMatchObject({
    contextWindow: 99,
    keyPresent: true,
  })
  const openai = listModels({ env: {} }).find(({ provider }) => provider === 'openai')
  expect(openai).toMatchObject({ keyPresent: false, keyVariable: 'OPENAI_API_KEY' })
  await runtime.close()
})
