import { expect, test } from 'vitest'
import type { GenerateRequest, ProviderMessage, ToolDeclaration } from '../provider.js'
import { createProvider } from '../provider-registry.js'
import type { StreamEvent } from '../stream-event.js'
import { argumentsFor } from './demo-provider.js'

const weather: ToolDeclaration = {
  name: 'get_weather',
  description: 'Tells the weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const clock: ToolDeclaration = { name: 'clock', description: 'Tells the time.', parameters: {} }
const user = (text: string): ProviderMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

async function ask(request: Partial<GenerateRequest>, signal?: AbortSignal): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  const provider = createProvider({ type: 'demo' })
  for await (const event of provider.generate({ model: 'demo', messages: [], ...request }, signal))
    events.push(event)
  return events
}

const textOf = (events: StreamEvent[]) =>
  events.flatMap(event => (event.type === 'text-delta' ? [event.text] : [])).join('')
const callsOf = (events: StreamEvent[]) =>
  events.flatMap(event => (event.type === 'tool-call' ? [event] : []))

test('the demo model answers in small pieces and says that it is a demo', async () => {
  const events = await ask({ messages: [user('Hello there')] })
  expect(events[0]).toMatchObject({ type: 'request', model: 'demo', repairs: [] })
  expect(events.filter(event => event.type === 'text-delta').length).toBeGreaterThan(5)
  expect(textOf(events)).toContain('Hello there')
  expect(textOf(events)).toContain('demo')
  expect(events.slice(-2).map(event => event.type)).toEqual(['usage', 'done'])
})

test('the demo model calls the tool that the words fit, answers from its result, and does not call it twice', async () => {
  const messages = [user('What is the weather in Oslo?')]
  const first = await ask({ messages, tools: [clock, weather] })
  const [call] = callsOf(first)
  expect(call).toMatchObject({ name: 'get_weather', args: { city: 'Oslo' } })
  expect(first.at(-1)).toEqual({ type: 'done', finishReason: 'tool-calls' })
  messages.push({ role: 'assistant', parts: [call!] })
  messages.push({
    role: 'tool',
    parts: [{ type: 'tool-result', id: call!.id, name: 'get_weather', result: { degrees: 7 } }],
  })
  const second = await ask({ messages, tools: [clock, weather] })
  expect(callsOf(second)).toEqual([])
  expect(textOf(second)).toContain('{"degrees":7}')
})

test('the demo model transfers once to the agent that the words fit', async () => {
  const text =
    'Your internal name is "host".\n\nAgent name: meteorologist\nAgent description: Knows the weather.\n\n\nAgent name: poet\nAgent description: Writes poems.\n'
  const system: ProviderMessage = { role: 'system', parts: [{ type: 'text', text }] }
  const transfer: ToolDeclaration = {
    name: 'transfer_to_agent',
    description: 'Transfer the question to another agent.',
    parameters: { type: 'object', properties: { agentName: { type: 'string' } }, required: ['agentName'] },
  }
  const messages = [system, user('A poem, please')]
  const [call] = callsOf(await ask({ messages, tools: [transfer] }))
  expect(call).toMatchObject({ name: 'transfer_to_agent', args: { agentName: 'poet' } })
  const result = { type: 'tool-result' as const, id: call!.id, name: 'transfer_to_agent', result: {} }
  messages.push({ role: 'assistant', parts: [call!] }, { role: 'tool', parts: [result] })
  expect(callsOf(await ask({ messages, tools: [transfer] }))).toEqual([])
  expect(callsOf(await ask({ messages: [system, user('Hello')], tools: [transfer] }))).toEqual([])
})

test.each([
  ['What time is it?', {}],
  ['What time is it in Tokyo?', { time_zone: 'Asia/Tokyo' }],
  ['The time in New York, please', { time_zone: 'America/New_York' }],
  ['The time in "Europe/Lisbon"', { time_zone: 'Europe/Lisbon' }],
])('the demo model fills an optional argument when the words name it: %s', (text, expected) => {
  const schema = { type: 'object', properties: { time_zone: { type: 'string' }, sides: { type: 'integer' } } }
  expect(argumentsFor(schema, text)).toEqual(expected)
})

test('the demo model calls two named tools one after another', async () => {
  const messages = [user('Use the clock, then the weather in Rome')]
  const names: string[] = []
  for (let step = 0; step < 5; step += 1) {
    const [call] = callsOf(await ask({ messages, tools: [clock, weather] }))
    if (!call) break
    names.push(call.name)
    messages.push({ role: 'assistant', parts: [call] })
    messages.push({
      role: 'tool',
      parts: [{ type: 'tool-result', id: call.id, name: call.name, result: { ok: true } }],
    })
  }
  expect(names.sort()).toEqual(['clock', 'get_weather'])
})

test('the demo model calls no tool with tool choice none', async () => {
  const events = await ask({ messages: [user('clock')], tools: [clock], options: { toolChoice: 'none' } })
  expect(callsOf(events)).toEqual([])
})
test('the demo model calls a tool with tool choice required', async () => {
  const events = await ask({
    messages: [user('hello')],
    tools: [clock],
    options: { toolChoice: 'required' },
  })
  expect(callsOf(events)).toHaveLength(1)
})
test('the demo model calls the tool that is forced by name, and refuses an undeclared one', async () => {
  const named = { toolChoice: { name: 'clock' } }
  expect(callsOf(await ask({ messages: [user('hello')], tools: [clock], options: named }))).toHaveLength(1)
  expect((await ask({ messages: [user('hello')], options: named })).at(-1)).toMatchObject({
    type: 'error',
    error: { code: 'provider-rejected' },
  })
})

test('the demo model reports what it repaired', async () => {
  const events = await ask({
    messages: [
      user('hi'),
      { role: 'assistant', parts: [{ type: 'tool-call', id: 'a', name: 'x', args: {} }] },
      user('go on'),
    ],
  })
  expect(events[0]).toMatchObject({ type: 'request', repairs: [{ step: expect.any(String) }] })
})

test('the demo model stops when its signal is aborted', async () => {
  expect((await ask({ messages: [user('hi')] }, AbortSignal.abort())).at(-1)).toMatchObject({
    error: { code: 'aborted' },
  })
})

test.each([
  [
    { url: { type: 'string' } },
    'open https://example.com/a?b=1 please',
    { url: 'https://example.com/a?b=1' },
  ],
  [{ path: { type: 'string' } }, 'read notes/today.md now', { path: 'notes/today.md' }],
  [{ a: { type: 'number' }, b: { type: 'integer' } }, 'add 1.5 and 2', { a: 1.5, b: 2 }],
  [{ unit: { enum: ['celsius', 'kelvin'] } }, 'in Kelvin', { unit: 'kelvin' }],
  [{ on: { type: 'boolean' } }, 'switch it', { on: true }],
  [{ tags: { type: 'array', items: { type: 'string' } } }, 'say "red"', { tags: ['red'] }],
  [
    { who: { type: 'object', properties: { email: { type: ['string', 'null'] } } } },
    'to a@b.org',
    { who: { email: 'a@b.org' } },
  ],
  [{ query: { type: 'STRING' } }, 'cats', { query: 'cats' }],
  [{ limit: { type: 'integer', default: 5 } }, 'list 3', { limit: 5 }],
  [{}, 'anything', {}],
])('arguments for %j are read from the words %j', (properties, text, expected) => {
  expect(argumentsFor({ type: 'object', properties }, text)).toEqual(expected)
})
