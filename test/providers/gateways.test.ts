// Gateways with an API like OpenAI's carry signatures in fields of their own: what comes back must be what was sent.
import { afterEach, expect, test } from 'vitest'
import type { ProviderMessage, ToolDeclaration } from '../../src/provider/provider.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/testing/start-strict-provider.js'
import { collect, testProvider, toMessage, user } from './collect.js'

const tools: ToolDeclaration[] = [
  {
    name: 'weather',
    description: 'Tells the weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
]

const SCRIPT = [
  { thinking: 'Two cities.', text: 'Let me see.', toolCalls: [{ name: 'weather', args: { city: 'Oslo' } }] },
  {
    thinking: 'One more.',
    toolCalls: [
      { name: 'weather', args: { city: 'Rome' } },
      { name: 'weather', args: { city: 'Paris' } },
    ],
  },
  { thinking: 'Enough.', text: 'It rains everywhere.' },
]

interface Gateway {
  name: string
  server: Omit<StrictProviderOptions, 'script'>
  options: ProviderOptions
  model: string
}

const GATEWAYS: readonly Gateway[] = [
  {
    name: 'Gemini 3 through OpenRouter',
    server: { profile: 'openrouter-gemini' },
    options: { type: 'openai-compatible', preset: 'openrouter' },
    model: 'google/gemini-3.5-flash',
  },
  {
    name: 'Claude through OpenRouter',
    server: { profile: 'openrouter' },
    options: { type: 'openai-compatible', preset: 'openrouter' },
    model: 'anthropic/claude-sonnet-4.6',
  },
  {
    name: 'Gemini 3 behind an address with an API like OpenAI’s',
    server: { profile: 'compatible-gemini' },
    options: { type: 'openai-compatible', id: 'litellm' },
    model: 'gemini-3.5-flash',
  },
]

const opened: StrictProvider[] = []
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close()
})

async function start({ server, options }: Gateway) {
  const started = await startStrictProvider({
    ...server,
    script: (_, index) => SCRIPT[index % SCRIPT.length] ?? {},
  })
  opened.push(started)
  return { server: started, provider: testProvider({ ...options, baseUrl: started.baseUrl }) }
}

type Target = Awaited<ReturnType<typeof start>>

/** One turn with two rounds of tools. */
async function turn({ provider }: Target, model: string, messages: ProviderMessage[]): Promise<void> {
  messages.push(user('How is the weather?'))
  for (let step = 0; step < SCRIPT.length; step += 1) {
    const events = await collect(provider, {
      model,
      messages,
      tools,
      options: { thinking: { effort: 'low' } },
    })
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    const answer = toMessage(events)
    messages.push(answer)
    const results = answer.parts.flatMap(part =>
      part.type === 'tool-call'
        ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: { rain: true } }]
        : [],
    )
    if (results.length > 0) messages.push({ role: 'tool', parts: results })
  }
}

interface WireMessage {
  role: string
  reasoning?: string
  reasoning_details?: { type: string; text?: string; signature?: string; data?: string; id?: string }[]
  tool_calls?: { id: string; extra_content?: { google?: { thought_signature?: string } } }[]
}

function assistantsSent(server: StrictProvider): WireMessage[] {
  const body = server.requests.at(-1)?.body as { messages: WireMessage[] } | undefined
  return (body?.messages ?? []).filter(({ role }) => role === 'assistant')
}

test.each(GATEWAYS)('$name passes its tool results, in this turn and the next', async gateway => {
  const target = await start(gateway)
  const messages: ProviderMessage[] = []
  await turn(target, gateway.model, messages)
  await turn(target, gateway.model, messages)
  expect(target.server.violations).toEqual([])
  expect(JSON.stringify(target.server.requests.at(-1)?.body)).not.toContain(
    'skip_thought_signature_validator',
  )
})

test('details that came in fragments are sent back whole, and instead of the plain words', async () => {
  const target = await start(GATEWAYS[1] as Gateway)
  await turn(target, 'anthropic/claude-sonnet-4.6', [])
  const [first] = assistantsSent(target.server)
  expect(first?.reasoning).toBeUndefined()
  expect(first?.reasoning_details).toEqual([
    {
      type: 'reasoning.text',
      format: 'anthropic-v1',
      index: 0,
      text: 'Two cities.',
      signature: expect.stringMatching(/^[A-Za-z0-9+/]+=*$/),
    },
  ])
})

test('the thought signature of a call comes back under the call that had it', async () => {
  const target = await start(GATEWAYS[2] as Gateway)
  await turn(target, 'gemini-3.5-flash', [])
  const signed = assistantsSent(target.server).map(({ tool_calls: calls = [] }) =>
    calls.map(call => call.extra_content?.google?.thought_signature !== undefined),
  )
  expect(signed).toEqual([[true], [true, false]])
})

test.each(GATEWAYS.filter(({ model }) => model.includes('gemini')))(
  '$name accepts calls that another model has made in this turn',
  async gateway => {
    const target = await start(gateway)
    const call = { type: 'tool-call' as const, id: 'call_1', name: 'weather', args: {} }
    const messages: ProviderMessage[] = [
      user('How is the weather?'),
      { role: 'assistant', parts: [call] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'call_1', name: 'weather', result: 'rain' }] },
    ]
    const events = await collect(target.provider, { model: gateway.model, messages, tools })
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    expect(events[0]).toMatchObject({ repairs: [{ step: 'sign-calls', kind: 'stand-in', at: 1 }] })
    expect(target.server.violations).toEqual([])
  },
)

test('what one maker has sealed through OpenRouter is not sent to another, and comes back to the first', async () => {
  const claude = GATEWAYS[1] as Gateway
  const target = await start(claude)
  const messages: ProviderMessage[] = []
  await turn(target, claude.model, messages)
  await turn(target, 'openai/gpt-5.6', messages)
  expect(assistantsSent(target.server)[0]).not.toHaveProperty('reasoning_details')
  await turn(target, claude.model, messages)
  expect(assistantsSent(target.server)[0]?.reasoning_details).toMatchObject([{ text: 'Two cities.' }])
  expect(target.server.violations).toEqual([])
})

test('a session goes from OpenRouter to Google’s own endpoint and back', async () => {
  const [router, , google] = GATEWAYS as [Gateway, Gateway, Gateway]
  const [first, second] = [await start(router), await start(google)]
  const messages: ProviderMessage[] = []
  await turn(first, router.model, messages)
  await turn(second, google.model, messages)
  await turn(first, router.model, messages)
  expect([...first.server.violations, ...second.server.violations]).toEqual([])
  expect(assistantsSent(first.server)[0]?.reasoning_details).toMatchObject([
    { type: 'reasoning.text', text: 'Two cities.' },
    { type: 'reasoning.encrypted' },
  ])
})
