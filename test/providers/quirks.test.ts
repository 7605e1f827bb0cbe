import { afterEach, expect, test } from 'vitest'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { QUIRKS, type Quirk } from '../../src/testing/strict/script.js'
import { collect, toMessage } from './collect.js'
import { strictTarget } from './strict-profiles.js'

let server: StrictProvider | undefined
afterEach(() => server?.close())

const CHAT: StrictProfile[] = ['openai-chat', 'mistral', 'groq', 'vllm', 'ollama', 'deepseek-thinking']
const cases = QUIRKS.flatMap((quirk): [Quirk, StrictProfile][] =>
  quirk === 'partial-args' || quirk === 'old-vertex'
    ? [[quirk, 'gemini-2']]
    : CHAT.map(profile => [quirk, profile]),
)

test.each(cases)('parallel calls and text are read from a stream with %s of %s', async (quirk, profile) => {
  const calls = [
    { name: 'add', args: { x: 1, list: ['a', 'b'] } },
    { name: 'add', args: { x: 2 } },
    { name: 'clock', args: {} },
  ]
  server = await startStrictProvider({
    profile,
    quirks: [quirk],
    script: [{ text: 'On it.', toolCalls: calls }],
  })
  const { provider, model } = strictTarget(profile, server.baseUrl)
  const parameters = { type: 'object', properties: { x: { type: 'number' } } }
  const tools = ['add', 'clock'].map(name => ({ name, description: name, parameters }))
  const events = await collect(provider, { model, tools })
  const { parts } = toMessage(events)
  expect(
    parts.flatMap(part => (part.type === 'tool-call' ? [{ name: part.name, args: part.args }] : [])),
  ).toEqual(calls)
  expect(parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')).toBe('On it.')
  expect(new Set(parts.flatMap(part => (part.type === 'tool-call' ? [part.id] : []))).size).toBe(3)
  expect(events.at(-1)).toEqual({ type: 'done', finishReason: 'tool-calls' })
})
