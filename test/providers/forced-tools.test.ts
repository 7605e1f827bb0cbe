// Models that think cannot be forced to call a tool while they do: what is sent to which of them instead.
import { expect, onTestFinished, test } from 'vitest'
import type { GenerationOptions } from '../../src/provider/provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { collect } from './collect.js'
import { strictTarget } from './strict-profiles.js'

const tools = ['clock', 'search'].map(name => ({
  name,
  description: name,
  parameters: { type: 'object', properties: {} },
}))

async function send(model: string, options: GenerationOptions) {
  const server = await startStrictProvider({ profile: 'kimi', models: [model] })
  onTestFinished(() => server.close())
  const { provider } = strictTarget('kimi', server.baseUrl)
  const messages = [{ role: 'user', parts: [{ type: 'text' as const, text: 'What time is it?' }] }]
  const events = await collect(provider, { model, messages, tools, options })
  expect(server.violations).toEqual([])
  const [first] = events
  return {
    events,
    body: server.requests[0]?.body as Record<string, unknown> | undefined,
    details: first?.type === 'request' ? first.repairs.map(({ detail }) => detail) : [],
  }
}

const forced: GenerationOptions[] = [
  { toolChoice: 'required' },
  { toolChoice: { name: 'clock' } },
  { toolChoice: { names: ['clock', 'search'] } },
]

test.each(forced)('K2.6 does not think in a request with $toolChoice', async options => {
  const { body, events, details } = await send('kimi-k2.6', options)
  expect(body).toMatchObject({ thinking: { type: 'disabled' } })
  expect(events.some(({ type }) => type.startsWith('tool-call'))).toBe(true)
  expect(details).toContainEqual(expect.stringContaining('does not think in this request'))
})

test.each(forced)('K3 must call one of the tools that are declared, with $toolChoice', async options => {
  const { body, events } = await send('kimi-k3', options)
  expect(body).toMatchObject({ tool_choice: 'required' })
  expect(body).not.toHaveProperty('thinking')
  const isNamed = typeof options.toolChoice === 'object' && 'name' in options.toolChoice
  expect(body?.tools).toHaveLength(isNamed ? 1 : 2)
  expect(events.some(({ type }) => type.startsWith('tool-call'))).toBe(true)
})

test.each(forced)('K2.7 cannot be forced, and is not sent $toolChoice', async options => {
  const { body, events } = await send('kimi-k2.7-code', options)
  expect(body).toBeUndefined()
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'invalid-config' } })
})

test.each<[string, GenerationOptions['thinking'] & {}, object, boolean]>([
  ['kimi-k2.6', { budgetTokens: 0 }, { thinking: { type: 'disabled' } }, false],
  ['kimi-k2.6', { effort: 'high' }, { thinking: { type: 'enabled' } }, false],
  ['kimi-k2.6', { budgetTokens: -1 }, {}, false],
  ['kimi-k2.7-code', { budgetTokens: 0 }, {}, true],
  ['kimi-k2.7-code', { effort: 'high' }, {}, false],
  ['kimi-k3', { effort: 'low' }, { reasoning_effort: 'low' }, false],
  ['kimi-k3', { effort: 'medium' }, { reasoning_effort: 'high' }, false],
  ['kimi-k3', { budgetTokens: 0 }, { reasoning_effort: 'low' }, true],
  ['kimi-k3.1-pro', { budgetTokens: -1 }, {}, false],
])('%s with thinking %o sends %o', async (model, thinking, expected, isReported) => {
  const { body, details } = await send(model, { thinking })
  const { thinking: field, reasoning_effort: effort } = body ?? {}
  expect({ thinking: field, reasoning_effort: effort }).toEqual({
    thinking: undefined,
    reasoning_effort: undefined,
    ...expected,
  })
  expect(details.some(detail => detail.includes('always thinks'))).toBe(isReported)
})

test.each([
  ['deepseek-v4', { thinking: { type: 'disabled' } }],
  ['qwen', { enable_thinking: false }],
] as const)('%s does not think in a request that must call a tool', async (profile, expected) => {
  const server = await startStrictProvider({ profile })
  onTestFinished(() => server.close())
  const { provider, model } = strictTarget(profile, server.baseUrl)
  const messages = [{ role: 'user', parts: [{ type: 'text' as const, text: 'What time is it?' }] }]
  for (const options of forced) {
    const events = await collect(provider, { model, messages, tools, options })
    expect(events.some(({ type }) => type.startsWith('tool-call'))).toBe(true)
    expect(server.requests.at(-1)?.body).toMatchObject(expected)
  }
  await collect(provider, { model, messages, tools, options: { toolChoice: 'auto' } })
  expect(server.requests.at(-1)?.body).not.toMatchObject(expected)
  expect(server.violations).toEqual([])
})
