import { expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool } from '../../src/tool.js'

test.each([
  ['gemini-3', 'gemini'],
  ['openai-responses', 'openai'],
  ['anthropic-4.6', 'anthropic'],
] as const)('a tool without parameters is declared to %s and called', async (profile, type) => {
  const server = await startStrictProvider({
    profile,
    script: [{ toolCalls: [{ name: 'now', args: {} }] }, { text: 'It is noon.' }],
  })
  let calls = 0
  const now = defineTool({
    name: 'now',
    description: 'The time.',
    effect: 'read',
    execute: () => {
      calls += 1
      return { time: '12:00' }
    },
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { vendor: { type, apiKey: 'any', baseUrl: server.baseUrl, profile } },
    agent: { model: 'vendor/model', tools: [now] },
  })
  const { text } = await runtime.runAndCollect({ text: 'What time is it?' })
  expect({ text, calls, violations: server.violations }).toEqual({
    text: 'It is noon.',
    calls: 1,
    violations: [],
  })
  await runtime.close()
  await server.close()
})
