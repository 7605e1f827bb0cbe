import { afterEach, expect, test } from 'vitest'
import type { ProviderMessage, ToolDeclaration } from '../../src/provider/provider.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { collect, toMessage, user } from './collect.js'
import { strictTarget } from './strict-profiles.js'

// What a model thought goes back to it, on the turns and in the field where it wants it.

let server: StrictProvider
afterEach(() => server.close())

const clock: ToolDeclaration = { name: 'clock', description: 'Tells the time.', parameters: {} }

interface Sent {
  role: string
  reasoning_content?: string
}

/** Two turns, each a call and an answer, thinking every time; then a last question. */
async function talk(profile: StrictProfile) {
  server = await startStrictProvider({
    profile,
    script: (_, index) =>
      index % 2 === 0
        ? { thinking: `thought ${index}`, toolCalls: [{ name: 'clock' }] }
        : { thinking: `thought ${index}`, text: `It is ${index}.` },
  })
  const { provider, model } = strictTarget(profile, server.baseUrl)
  const messages: ProviderMessage[] = []
  for (let step = 0; step < 5; step += 1) {
    if (step % 2 === 0) messages.push(user(`question ${step}`))
    const answer = toMessage(await collect(provider, { model, messages, tools: [clock] }))
    const parts = answer.parts.flatMap(part =>
      part.type === 'tool-call'
        ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: 'noon' }]
        : [],
    )
    messages.push(answer, ...(parts.length > 0 ? [{ role: 'tool', parts }] : []))
  }
  const body = server.requests.at(-1)?.body as { messages?: Sent[] } | undefined
  return body?.messages ?? []
}

test.each(['kimi', 'glm', 'qwen', 'minimax', 'deepseek-v4'] as const)(
  '%s gets the reasoning of every turn back unchanged',
  async profile => {
    const messages = await talk(profile)
    expect(server.violations).toEqual([])
    const thoughts = messages
      .filter(({ role }) => role === 'assistant')
      .map(message => message.reasoning_content)
    expect(thoughts).toEqual(['thought 0', 'thought 1', 'thought 2', 'thought 3'])
  },
)

test.each([
  ['kimi', '(no reasoning was recorded)'],
  ['deepseek-v4', ''],
] as const)('%s gets a stand-in for the calls of another model', async (profile, standIn) => {
  server = await startStrictProvider({ profile, script: [{ text: 'Noon.' }] })
  const { provider, model } = strictTarget(profile, server.baseUrl)
  const messages: ProviderMessage[] = [
    user('time?'),
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'call_1', name: 'clock', args: {} }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'call_1', name: 'clock', result: 'noon' }] },
  ]
  await collect(provider, { model, messages, tools: [clock] })
  expect(server.violations).toEqual([])
  expect(server.requests[0]?.body).toMatchObject({ messages: [{}, { reasoning_content: standIn }, {}] })
})

test('xAI is called with the Responses API and gets its encrypted reasoning back', async () => {
  server = await startStrictProvider({
    profile: 'xai-responses',
    script: [{ thinking: 'hm', toolCalls: [{ name: 'clock' }] }, { text: 'Noon.' }],
  })
  const { provider, model } = strictTarget('xai-responses', server.baseUrl)
  const messages = [user('time?')]
  const answer = toMessage(await collect(provider, { model, messages, tools: [clock] }))
  const call = answer.parts.find(part => part.type === 'tool-call')
  messages.push(answer, {
    role: 'tool',
    parts: [{ type: 'tool-result', id: call?.id ?? '', name: 'clock', result: 'noon' }],
  })
  await collect(provider, { model, messages, tools: [clock] })
  expect(server.violations).toEqual([])
  expect(server.requests[1]?.path).toBe('/v1/responses')
  expect(JSON.stringify(server.requests[1]?.body)).toContain('"encrypted_content"')
})

test('the phase of a message is sent back to OpenAI with its text, and to no other vendor', async () => {
  server = await startStrictProvider({
    profile: 'openai-responses',
    script: [{ text: 'Let me see.', phase: 'commentary', toolCalls: [{ name: 'clock' }] }, { text: 'Noon.' }],
  })
  const { provider, model } = strictTarget('openai-responses', server.baseUrl)
  const messages = [user('time?')]
  const answer = toMessage(await collect(provider, { model, messages, tools: [clock] }))
  messages.push(answer)
  await collect(provider, { model, messages, tools: [clock] })
  expect(server.violations).toEqual([])
  expect(JSON.stringify(server.requests[1]?.body)).toContain('"phase":"commentary"')
  const other = await startStrictProvider({ profile: 'kimi', script: [{ text: 'Noon.' }] })
  const target = strictTarget('kimi', other.baseUrl)
  await collect(target.provider, { model: target.model, messages, tools: [clock] })
  expect(JSON.stringify(other.requests[0]?.body)).not.toContain('commentary')
  expect(other.violations).toEqual([])
  await other.close()
})
