import { expect, test } from 'vitest'
import { AgentError } from '../errors.js'
import type { StreamEvent } from '../provider/stream-event.js'
import { type Script, ScriptedProvider } from './scripted-provider.js'

const REQUEST = { model: 'm', messages: [{ role: 'user', parts: [{ type: 'text' as const, text: 'hi' }] }] }

async function play(script: Script, signal?: AbortSignal) {
  const provider = new ScriptedProvider(script)
  const events: StreamEvent[] = []
  for await (const event of provider.generate(REQUEST, signal)) events.push(event)
  return { provider, events, types: events.map(event => event.type) }
}

test('an answer starts with a request event and ends with done', async () => {
  const { events, types } = await play([
    {
      reasoning: 'hm',
      deltas: ['a', 'b'],
      toolCalls: [{ name: 't', id: 'c' }],
      usage: { inputTokens: 2, outputTokens: 3 },
    },
  ])
  expect(types).toEqual([
    'request',
    'reasoning-delta',
    'text-delta',
    'text-delta',
    'tool-call',
    'usage',
    'done',
  ])
  expect(events.at(-2)).toEqual({ type: 'usage', usage: { inputTokens: 2, outputTokens: 3, totalTokens: 5 } })
  expect(events.at(-1)).toEqual({ type: 'done', finishReason: 'tool-calls' })
})

test('an error ends the answer', async () => {
  const error = new AgentError('provider-auth', 'no')
  const { events } = await play([{ text: 'half', error }])
  expect(events.slice(1)).toEqual([
    { type: 'text-delta', text: 'half' },
    { type: 'error', error },
  ])
})

test('a script function receives the request, and recorded requests are copies', async () => {
  const { provider, events } = await play((request, index) => ({ text: `${request.model} ${index}` }))
  expect(events[1]).toEqual({ type: 'text-delta', text: 'm 0' })
  expect(provider.requests).toEqual([REQUEST])
  expect(provider.requests[0]).not.toBe(REQUEST)
})

test('a call after the last step fails with an error that says so', async () => {
  const { events } = await play([])
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'invalid-argument' } })
})

test('an abort ends the answer', async () => {
  const { types } = await play([{ text: 'never' }], AbortSignal.abort())
  expect(types).toEqual(['request', 'error'])
})
