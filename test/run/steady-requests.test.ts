import { LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { brokenPairs, pairsOf, type SentRecord } from '../support/steady.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
const sessionId = key.sessionId

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
  effect: 'read',
  execute: () => 'a lamp',
})

const other = defineTool({
  name: 'listen',
  description: 'Listens.',
  parameters: { type: 'object', properties: {} },
  effect: 'read',
  execute: () => 'a bell',
})

/** Calls `look` after a user's message, and answers after a result. */
function lookAndAnswer(request: GenerateRequest, index: number): ScriptStep {
  if (request.messages.at(-1)?.role !== 'user') return { text: `answer ${index}` }
  return { toolCalls: [{ id: `call-${index}`, name: 'look', args: { at: String(index) } }] }
}

async function stage(folder: string, options: StageOptions = {}) {
  const script = new ScriptedProvider(options.script ?? lookAndAnswer, { model: options.model ?? {} })
  const store = await openStore(`sqlite:${folder}/lango.db`)
  const runtime = await createRuntime({
    store,
    providers: { script, second: script },
    agent: {
      model: 'script/any',
      instruction: options.instruction ?? 'Be brief.',
      tools: options.tools ?? [look],
      ...(options.maxTurns ? { maxTurns: options.maxTurns } : {}),
    },
    history: options.budget ? { maxMessageTokenBudget: options.budget } : {},
  })
  return {
    script,
    store,
    runtime,
    say: (text: string, model?: string) =>
      runtime.runAndCollect({ sessionId, text, ...(model ? { model } : {}) }),
    close: async () => {
      await runtime.close()
      await store.close()
    },
  }
}

interface StageOptions {
  script?: ConstructorParameters<typeof ScriptedProvider>[0]
  model?: { takesLaterSystem?: boolean; contextWindow?: number }
  instruction?: string
  tools?: (typeof look)[]
  budget?: number
  maxTurns?: number
}

/** Every request of the session, oldest first. */
async function sentRequests(folder: string): Promise<SentRecord[]> {
  const store = await openStore(`sqlite:${folder}/lango.db`)
  const runs = (await store.runs.listRuns(key, { limit: 1000 })).toReversed()
  const all: SentRecord[] = []
  for (const { runId } of runs)
    for (const { record } of await store.runs.readRequests(runId)) all.push(record as unknown as SentRecord)
  await store.close()
  return all
}

function breaksOf(requests: readonly SentRecord[]): string[] {
  return requests.flatMap(({ repairs }) =>
    repairs.flatMap(({ kind, reason }) => (kind === 'prefix-break' ? [reason ?? ''] : [])),
  )
}

test('each request of a session extends the one before, in one process and after a restart', async () => {
  const folder = await temporaryFolder()
  for (let process = 0; process < 3; process++) {
    const { say, close } = await stage(folder)
    await say(`one ${process}`)
    await say(`two ${process}`)
    await close()
  }
  const requests = await sentRequests(folder)
  expect(pairsOf(requests)).toHaveLength(11)
  expect(pairsOf(requests).every(pair => pair.extends)).toBe(true)
  expect(breaksOf(requests)).toEqual([])
})

test('a changed instruction is appended where the model takes a system message there, and stays', async () => {
  const folder = await temporaryFolder()
  const model = { takesLaterSystem: true }
  for (const instruction of ['Be brief.', 'Be long.', 'Be long.', 'Be brief.']) {
    const { say, close } = await stage(folder, { model, instruction })
    await say('hello')
    await close()
  }
  const requests = await sentRequests(folder)
  expect(breaksOf(requests)).toEqual([])
  expect(brokenPairs(requests)).toEqual([])
  const last = JSON.stringify(requests.at(-1)?.body)
  expect(last.split('"role":"system"')).toHaveLength(4)
  expect(last.indexOf('Be long.')).toBeGreaterThan(last.indexOf('Be brief.'))
  expect(last.lastIndexOf('Be brief.')).toBeGreaterThan(last.indexOf('Be long.'))
})

test('a changed instruction is one break where the model takes system messages first only', async () => {
  const folder = await temporaryFolder()
  for (const instruction of ['Be brief.', 'Be long.']) {
    const { say, close } = await stage(folder, { instruction })
    await say('hello')
    await close()
  }
  const requests = await sentRequests(folder)
  expect(breaksOf(requests)).toEqual(['instruction'])
  expect(brokenPairs(requests)).toEqual([])
  expect(JSON.stringify(requests.at(-1)?.body)).toContain('Be long.')
  expect(JSON.stringify(requests.at(-1)?.body)).not.toContain('Be brief.')
})

test('changed tools break the prefix once, another order of them does not', async () => {
  const folder = await temporaryFolder()
  for (const tools of [[look], [look, other], [other, look]]) {
    const { say, close } = await stage(folder, { tools })
    await say('hello')
    await close()
  }
  const requests = await sentRequests(folder)
  expect(breaksOf(requests)).toEqual(['tools'])
  expect(brokenPairs(requests)).toEqual([])
})

test('a switch of the model is reported as a break, and a request to the first model extends what it got before', async () => {
  const folder = await temporaryFolder()
  const { say, close } = await stage(folder)
  await say('one')
  await say('two', 'second/any')
  await say('three')
  await close()
  const requests = await sentRequests(folder)
  expect(breaksOf(requests)).toEqual(['model'])
  expect(brokenPairs(requests)).toEqual([])
})

for (const { restarts, least, most } of [
  { restarts: 8, least: 1, most: 8 },
  { restarts: 20, least: 5, most: 20 },
]) {
  test(
    `the budget moves the beginning in steps, with one break each, also across ${restarts} restarts`,
    longUnless(restarts === 8),
    async () => {
      const folder = await temporaryFolder()
      const long = (request: GenerateRequest, index: number): ScriptStep =>
        request.messages.at(-1)?.role === 'user'
          ? { toolCalls: [{ id: `call-${index}`, name: 'look', args: { at: 'x'.repeat(400) } }] }
          : { text: `answer ${index} ${'word '.repeat(100)}` }
      for (let process = 0; process < restarts; process++) {
        const { say, close } = await stage(folder, { script: long, budget: 4000 })
        for (let turn = 0; turn < 3; turn++) await say(`question ${process} ${turn}`)
        await close()
      }
      const requests = await sentRequests(folder)
      expect(brokenPairs(requests)).toEqual([])
      const breaks = breaksOf(requests)
      expect(new Set(breaks)).toEqual(new Set(['budget']))
      // About 290 tokens a turn: a step of 1,000 tokens lasts three turns or more.
      expect(breaks.length).toBeGreaterThan(least)
      expect(breaks.length).toBeLessThan(most)
    },
  )
}

test('a break is in `breaks` and in `repairs` of the event, the result and the inspection, and is not counted as a repair', async () => {
  const folder = await temporaryFolder()
  const first = await stage(folder)
  await first.say('hello')
  await first.close()
  const { runtime, close } = await stage(folder, { instruction: 'Be long.' })
  const broken = [{ kind: 'prefix-break', reason: 'instruction', tokens: expect.any(Number) }]
  const result = await runtime.runAndCollect({ sessionId, text: 'again' })
  expect(result).toMatchObject({ repairs: broken, breaks: broken })
  const events = await runtime.store.runs.readEvents(result.runId)
  expect(events.find(({ type }) => type === 'repair')).toMatchObject({ repairs: broken, breaks: broken })
  const inspection = await runtime.inspect(result.runId)
  expect(inspection?.steps[0]).toMatchObject({ repairs: broken, breaks: broken })
  expect(inspection?.total).toMatchObject({ repairs: 0, breaks: 1 })
  const { breaks } = await runtime.runAndCollect({ sessionId, text: 'and again' })
  expect(breaks).toEqual([])
  await close()
})

test('the requests of a sub-agent extend its own', async () => {
  const folder = await temporaryFolder()
  const script = new ScriptedProvider(request => {
    const text = JSON.stringify(request.messages)
    if (text.includes('I am the clerk')) return { text: 'The clerk answers.' }
    return { toolCalls: [{ id: 'transfer', name: 'transfer_to_agent', args: { agentName: 'clerk' } }] }
  })
  const clerk = new LlmAgent({
    name: 'clerk',
    description: 'Writes.',
    model: 'script/any',
    instruction: 'I am the clerk',
  })
  const root = new LlmAgent({
    name: 'root',
    model: 'script/any',
    instruction: 'Hand over.',
    subAgents: [clerk],
  })
  const store = await openStore(`sqlite:${folder}/lango.db`)
  const runtime = await createRuntime({ store, providers: { script }, rootAgent: root })
  for (const text of ['one', 'two', 'three']) await runtime.runAndCollect({ sessionId, text })
  await runtime.close()
  await store.close()
  const requests = await sentRequests(folder)
  expect(new Set(requests.map(request => request.place?.agent))).toEqual(new Set(['root', 'clerk']))
  expect(breaksOf(requests)).toEqual([])
  expect(brokenPairs(requests)).toEqual([])
})
