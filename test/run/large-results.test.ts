// A large result of a tool is stored once: in its message. The ledger says where, and a resumed run finds it there.
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { crashable } from '../support/crashable-store.js'

const RUN = '00000000-0000-4000-8000-000000000001'
const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

interface World {
  executed: number
  /** The results that the model has read, in the order of its requests. */
  read: unknown[]
}

async function runtimeOn(store: SessionStore, world: World, size: number) {
  const dump = defineTool({
    name: 'dump',
    description: 'Returns a lot',
    parameters: z.object({}),
    effect: 'read',
    execute: () => {
      world.executed += 1
      return { text: `${world.executed} ${'x'.repeat(size)}` }
    },
  })
  const provider = new ScriptedProvider(({ messages }) => {
    const results = messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool-result'))
    world.read = results.map(part => (part.type === 'tool-result' ? part.result : undefined))
    return results.length < 2 ? { toolCalls: [{ name: 'dump', args: {} }] } : { text: 'Done.' }
  })
  return createRuntime({
    store,
    providers: { play: provider },
    agent: { model: 'play/m', tools: [dump] },
    tools: { outputLimitTokens: 1_000_000 },
  })
}

async function newStore(): Promise<SessionStore> {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  return store
}

test.each([
  ['a small result is in the ledger', 100, { text: expect.stringMatching(/^1 x+$/) }],
  ['of a large one, the ledger says where it is', 50_000, { 'lango:in-message': expect.any(String), at: 0 }],
])('the ledger of tool calls: %s', async (_name, size, expected) => {
  const store = await newStore()
  const runtime = await runtimeOn(store, { executed: 0, read: [] }, size)
  await runtime.runAndCollect({ sessionId: 's', runId: RUN, text: 'Dump it.' })
  const [first, second] = await store.runs.readCalls(RUN)
  expect([first?.status, second?.status]).toEqual(['done', 'done'])
  expect(first?.result).toEqual(expected)
  await runtime.close()
})

test('a run that is resumed after any of its writes gives the model the same large results', async () => {
  const whole = await newStore()
  const reference: World = { executed: 0, read: [] }
  const watched = crashable(whole)
  const first = await runtimeOn(watched.store, reference, 50_000)
  await first.runAndCollect({ sessionId: 's', runId: RUN, text: 'Dump it.' })
  await first.close()
  expect(reference.read).toHaveLength(2)
  for (let endsAfter = 2; endsAfter < watched.writes; endsAfter++) {
    const store = await newStore()
    const world: World = { executed: 0, read: [] }
    const process = crashable(store, { endsAfter })
    const runtime = await runtimeOn(process.store, world, 50_000)
    void runtime.start({ sessionId: 's', runId: RUN, text: 'Dump it.' }).catch(() => {})
    await process.over
    await process.crash()
    void runtime.close()
    const stored = (await store.readMessages(KEY)).flatMap(({ toolCalls = [] }) =>
      toolCalls.flatMap(({ output }) => (output === undefined ? [] : [JSON.parse(output)])),
    )
    const next = await runtimeOn(store, world, 50_000)
    await next.resume(RUN).catch(() => {})
    for await (const _event of next.follow(RUN));
    const where = `cut after write ${endsAfter}`
    // What was stored is read again, and executed again is only what was not.
    expect(world.read, where).toHaveLength(2)
    expect(world.read.slice(0, stored.length), where).toEqual(stored)
    const results = (await store.readMessages(KEY)).flatMap(({ toolCalls = [] }) =>
      toolCalls.flatMap(({ output }) => (output === undefined ? [] : [JSON.parse(output)])),
    )
    expect(results, where).toEqual(world.read)
    await next.close()
  }
})
