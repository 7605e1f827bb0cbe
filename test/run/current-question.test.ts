// A request that is cut to its budget keeps the question that it answers. Who asked is decided by role and
// origin, so the question may begin with words that programs use.
import { expect, test } from 'vitest'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'

const QUESTIONS = [
  'For context: we moved to Rome in May. Which contracts end this year?',
  'For context:',
  '[System: which contracts end this year?]',
  '[Previous Context Summary]: is this sentence right?',
  '[Earlier result of tool `x`: what does this line mean?]',
]

const CALLS = 20

const read = defineTool({
  name: 'read',
  description: 'Reads one contract.',
  parameters: { type: 'object', properties: { number: { type: 'number' } } },
  execute: ({ number }) => ({ contract: number, text: 'clause '.repeat(1371) }),
})

/** Reads twenty contracts, one after another, then answers. */
const readAll = (_: GenerateRequest, index: number): ScriptStep =>
  index % (CALLS + 1) < CALLS
    ? { toolCalls: [{ id: `c${index}`, name: 'read', args: { number: index } }] }
    : { text: 'Two of them.' }

const withQuestion = (provider: ScriptedProvider, question: string) =>
  provider.requests.map(({ messages }) =>
    messages.some(({ role, parts }) =>
      parts.some(part => role === 'user' && part.type === 'text' && part.text === question),
    ),
  )

test.each(QUESTIONS)('%s is in every request of a first turn with twenty large results', async question => {
  const provider = new ScriptedProvider(readAll)
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { scripted: provider },
    agent: { model: 'scripted/x', tools: [read] },
  })
  const { finishReason } = await runtime.runAndCollect({ sessionId: 's', text: question })
  expect(finishReason).toBe('stop')
  expect(withQuestion(provider, question)).toEqual(Array.from({ length: CALLS + 1 }, () => true))
  await runtime.close()
})

test.each(QUESTIONS)(
  '%s, restored, is in every request of a run that a late result continues',
  async question => {
    const store = await openStore('memory:')
    const key = { appName: 'lango', userId: 'user', sessionId: 's' }
    await store.createSession(key)
    const rows: Message[] = [
      { role: 'assistant', content: 'Hello!', timestamp: 1 },
      { role: 'user', content: question, timestamp: 2 },
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'late', name: 'read', input: '{}' }],
        timestamp: 3,
      },
    ]
    for (const row of rows) await store.appendMessage(key, row)
    const provider = new ScriptedProvider(readAll)
    const runtime = await createRuntime({
      store,
      providers: { scripted: provider },
      agent: { model: 'scripted/x', tools: [read] },
    })
    const late = { functionResponse: { id: 'late', name: 'read', response: { text: 'It is signed.' } } }
    await runtime.runAndCollect({ sessionId: 's', parts: [late] })
    expect(withQuestion(provider, question)).toEqual(Array.from({ length: CALLS + 1 }, () => true))
    await runtime.close()
  },
)

test('another agent’s words and a correction by Lango are not taken for the question', async () => {
  const question = 'For context: helper knows the contracts. Which end this year?'
  const steps: ScriptStep[] = [
    { toolCalls: [{ id: 't0', name: 'transfer_to_agent', args: { agentName: 'nobody' } }] },
    {
      text: 'I ask helper.',
      toolCalls: [{ id: 't1', name: 'transfer_to_agent', args: { agentName: 'helper' } }],
    },
    ...Array.from({ length: CALLS }, (_, index) => ({
      toolCalls: [{ id: `c${index}`, name: 'read', args: { number: index } }],
    })),
    { text: 'Two of them.' },
  ]
  const provider = new ScriptedProvider(steps)
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { scripted: provider },
    agent: {
      name: 'root',
      model: 'scripted/x',
      subAgents: [{ name: 'helper', description: 'Knows contracts.', tools: [read] }],
    },
  })
  const { finishReason } = await runtime.runAndCollect({ sessionId: 's', text: question })
  expect(finishReason).toBe('stop')
  expect(provider.requests.some(({ messages }) => JSON.stringify(messages).includes('[System: Agent'))).toBe(
    true,
  )
  expect(withQuestion(provider, question)).toEqual(steps.map(() => true))
  await runtime.close()
})
