import { type BaseSessionService, FunctionTool, InMemorySessionService, LlmAgent } from '@google/adk'
import type { Content, Part } from '@google/genai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { historyGuard } from '../../src/adk/history-guard.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { openStore } from '../../src/store/open-store.js'
import { runTurn } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

/** Three agents, two tools, parallel calls, hand-overs in every direction, ids given and not given. */
function answer(contents: readonly Content[], index: number, self: string): Part[] {
  const last = contents.at(-1)?.parts?.at(-1)
  if (!last?.functionResponse) return firstStep(index, self)
  if (last.functionResponse.name === 'transfer_to_agent') return [{ text: `I am ${self} (${index}).` }]
  return index % 7 === 0
    ? [
        { text: `thinking ${index}`, thought: true },
        { text: `done ${index}`, thoughtSignature: 'c2ln' },
      ]
    : [{ text: `done ${index}` }]
}

function firstStep(index: number, self: string): Part[] {
  const call = (name: string, args: Record<string, unknown>, id?: string): Part => ({
    functionCall: { ...(id ? { id } : {}), name, args },
  })
  switch (index % 5) {
    case 0:
      return [
        { text: 'Let me look.' },
        call('search', { q: index }, `c${index}`),
        call('read', { n: 1 }, `d${index}`),
      ]
    case 1:
      return [call('search', { q: index }), call('search', { q: index + 1 }), call('read', { n: index })]
    case 2: {
      const others = ['root', 'writer', 'critic'].filter(name => name !== self)
      return [call('transfer_to_agent', { agentName: others[index % 2] ?? 'root' })]
    }
    case 3:
      return [{ ...call('read', { n: index }, `s${index}`), thoughtSignature: 'c2lnbmF0dXJl' }]
    default:
      return [{ text: `Just text ${index}.` }]
  }
}

/** A new tree each time: an agent has one parent. All three write what they are sent into one record. */
function agents(requests: string[], counter: { value: number }) {
  const model = (name: string) =>
    new RecordingModel(contents => {
      requests.push(`${name} ${JSON.stringify(contents)}`)
      const index = counter.value
      counter.value += 1
      return answer(contents, index, name)
    })
  const tool = (name: string, parameters: z.ZodObject) =>
    new FunctionTool({
      name,
      description: name,
      parameters,
      execute: args => ({ name, args, list: [1, 'zwei', null] }),
    })
  const tools = () => [tool('search', z.object({ q: z.number() })), tool('read', z.object({ n: z.number() }))]
  const sub = (name: string) => new LlmAgent({ name, description: name, model: model(name), tools: tools() })
  return new LlmAgent({
    name: 'root',
    model: model('root'),
    tools: tools(),
    subAgents: [sub('writer'), sub('critic')],
  })
}

async function converse(
  turns: number,
  sessionsFor: () => Promise<{ sessions: BaseSessionService; close(): Promise<void> }>,
) {
  const requests: string[] = []
  const counter = { value: 0 }
  for (let turn = 0; turn < turns; turn += 1) {
    const { sessions, close } = await sessionsFor()
    await runTurn({ agent: agents(requests, counter), sessions, message: `Question ${turn}` })
    await close()
  }
  return requests
}

/** ADK draws random ids for calls without one; they are taken out of requests, so requests can be compared. */
for (const turns of [15, 100]) {
  test(`a conversation restarted from disk at each of ${turns} turns sends the same bytes as one that never stopped`, {
    ...longUnless(turns === 15),
    timeout: 300_000,
  }, async () => {
    const memory = new InMemorySessionService()
    const uninterrupted = await converse(turns, async () => ({ sessions: memory, close: async () => {} }))
    const folder = await temporaryFolder()
    const restarted = await converse(turns, async () => {
      const store = await openStore(`sqlite:${folder}/lango.db?sync=normal`)
      const sessions = new SessionServiceAdapter(store, { budgetTokens: 10_000_000, rootAgentName: 'root' })
      return { sessions, close: () => store.close() }
    })
    expect(restarted.length).toBe(uninterrupted.length)
    expect(uninterrupted.length).toBeGreaterThan(turns * 1.5)
    expect(new Set(uninterrupted.map(request => request.split(' ')[0]))).toEqual(
      new Set(['root', 'writer', 'critic']),
    )
    for (const [index, request] of restarted.entries()) expect(request).toBe(uninterrupted[index])
  })
}

test('two questions in a row are loaded as two events and sent as one content', async () => {
  const folder = await temporaryFolder()
  const open = () => openStore(`sqlite:${folder}/lango.db`)
  const failing = new RecordingModel(() => ({ errorCode: 'UNAVAILABLE', errorMessage: 'not now' }))
  for (const message of ['first try', 'second try']) {
    const store = await open()
    const agent = new LlmAgent({ name: 'root', model: failing })
    await runTurn({ agent, sessions: new SessionServiceAdapter(store), message })
    await store.close()
  }
  const store = await open()
  const key = { appName: 'app', userId: 'ann', sessionId: 's1' }
  // The failed answers are events without content: in what is said, the two questions follow each other.
  expect(await store.readMessages(key)).toHaveLength(4)
  const model = new RecordingModel(() => [{ text: 'here' }])
  await runTurn({
    agent: new LlmAgent({ name: 'root', model }),
    sessions: new SessionServiceAdapter(store),
    message: 'third',
    plugins: [historyGuard()],
  })
  const parts = [{ text: 'first try' }, { text: 'second try' }, { text: 'third' }]
  expect(model.last).toEqual([{ role: 'user', parts }])
  await store.close()
})
