// Whatever was cut and whichever ids a history has: an answer that the model reads is the answer of the call
// that it stands behind.
import { expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'

const key = { appName: 'lango', userId: 'user', sessionId: 's' }

const asked = (city: string, id = ''): Message => ({
  role: 'assistant',
  content: '',
  timestamp: 1,
  toolCalls: [{ id, name: 'weather', input: JSON.stringify({ city }), kind: 'call' }],
})
const answered = (city: string, id = ''): Message => ({
  role: 'tool',
  content: '',
  timestamp: 1,
  toolCalls: [
    { id, name: 'weather', output: JSON.stringify({ city, text: 'rain '.repeat(60) }), kind: 'response' },
  ],
})
const said = (content: string): Message => ({ role: 'user', content, timestamp: 1 })

/** What the model is sent of a stored history, before and after repair. */
async function sent(rows: readonly Message[], budgetTokens: number): Promise<ProviderMessage[][]> {
  const store = await openStore('memory:')
  await store.createSession(key)
  for (const row of rows) await store.appendMessage(key, row)
  const provider = new ScriptedProvider([{ text: 'Fine.' }])
  const runtime = await createRuntime({
    store,
    providers: { scripted: provider },
    agent: { model: 'scripted/x' },
    history: { maxMessageTokenBudget: budgetTokens },
  })
  await runtime.runAndCollect({ sessionId: 's', text: 'And now?' })
  await runtime.close()
  const given = [...(provider.requests[0]?.messages ?? [])]
  return [given, repairHistory(given, 'openai-chat').messages, repairHistory(given, 'anthropic-4.6').messages]
}

/** The cities of all pairs: of the call, and of the result with its id. */
function citiesOf(messages: readonly ProviderMessage[]): [call: unknown, result: unknown][] {
  const parts = messages.flatMap(message => message.parts)
  return parts.flatMap(part => {
    if (part.type !== 'tool-call') return []
    const result = parts.find(other => other.type === 'tool-result' && other.id === part.id)
    if (result?.type !== 'tool-result' || typeof result.result !== 'object') return []
    return [[Reflect.get(part.args as object, 'city'), Reflect.get(result.result as object, 'city')]]
  })
}

const BUDGETS = Array.from({ length: 20 }, (_, index) => 60 + 30 * index)

test.each(BUDGETS)('calls without ids, cut to %i tokens, keep their own answers', async budgetTokens => {
  const rows = [
    said('Rome and Oslo?'),
    asked('Rome'),
    asked('Oslo'),
    answered('Rome'),
    answered('Oslo'),
    said('Bern and Kyiv?'),
    asked('Bern'),
    asked('Kyiv'),
    answered('Bern'),
    answered('Kyiv'),
  ]
  for (const messages of await sent(rows, budgetTokens)) {
    for (const [call, result] of citiesOf(messages)) expect(result).toBe(call)
  }
})

test('the copy of an answer with a reused id is not the answer of an older call', async () => {
  const rows = [
    said('Rome?'),
    asked('Rome', 'call_0'),
    said('Oslo?'),
    asked('Oslo', 'call_0'),
    answered('Oslo', 'call_0'),
    answered('Oslo', 'call_0'),
  ]
  for (const messages of await sent(rows, 32_000)) {
    expect(citiesOf(messages).filter(([, result]) => result !== undefined)).toEqual([['Oslo', 'Oslo']])
  }
})

test('repair gives the copy of an answer with a reused id to no older call', () => {
  const call = (city: string): ProviderMessage => ({
    role: 'assistant',
    parts: [{ type: 'tool-call', id: 'call_0', name: 'weather', args: { city } }],
  })
  const result = (city: string): ProviderMessage => ({
    role: 'tool',
    parts: [{ type: 'tool-result', id: 'call_0', name: 'weather', result: { city } }],
  })
  const user = (text: string): ProviderMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
  const history = [user('Rome?'), call('Rome'), user('Oslo?'), call('Oslo'), result('Oslo'), result('Oslo')]
  for (const profile of ['openai-chat', 'anthropic-4.6', 'gemini-3']) {
    const { messages, repairs } = repairHistory(history, profile)
    const results = messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool-result'))
    expect(results).toMatchObject([{ isError: true }, { result: { city: 'Oslo' } }])
    expect(repairs.map(({ kind }) => kind)).toContain('drop-duplicate')
  }
})
