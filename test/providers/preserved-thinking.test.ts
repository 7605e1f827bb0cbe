import { afterEach, expect, test } from 'vitest'
import { breakReasoning } from '../../src/entries/provider.js'
import type { GenerateRequest, ProviderMessage, ToolDeclaration } from '../../src/provider/provider.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { Script } from '../../src/testing/strict/script.js'
import { collect, toMessage, user } from './collect.js'
import { strictTarget } from './strict-profiles.js'

// Our provider for Claude 5.1 and later, with Anthropic's own SDK, on the server that binds thinking to its prefix.

let server: StrictProvider
afterEach(() => server.close())

const clock: ToolDeclaration = { name: 'clock', description: 'Tells the time.', parameters: {} }
const system = (text: string): ProviderMessage => ({ role: 'system', parts: [{ type: 'text', text }] })

async function start(script: Script, headers: Record<string, string> = {}) {
  server = await startStrictProvider({ profile: 'anthropic-5.1', script })
  const { provider, model } = strictTarget('anthropic-5.1', server.baseUrl, { headers })
  const send = (request: Partial<GenerateRequest>) => collect(provider, { model, tools: [clock], ...request })
  return send
}

function results(message: ProviderMessage): ProviderMessage[] {
  const parts = message.parts.flatMap(part =>
    part.type === 'tool-call'
      ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: 'noon' }]
      : [],
  )
  return parts.length > 0 ? [{ role: 'tool', parts }] : []
}

const thinkingIn = (request: StrictProvider['requests'][number] | undefined) =>
  (JSON.stringify(request?.body).match(/"type":"thinking"/g) ?? []).length

/** So many turns, each a call and an answer with thoughts. */
const TURNS: Script = (_, index) =>
  index % 2 === 0
    ? { thinking: `so ${index}`, redactedThinking: index % 4 === 0, toolCalls: [{ name: 'clock' }] }
    : { thinking: `then ${index}`, text: `It is ${index}.` }

async function talk(send: Awaited<ReturnType<typeof start>>, messages: ProviderMessage[], turns: number) {
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push(user(`question ${turn}`))
    for (let step = 0; step < 2; step += 1) {
      const answer = toMessage(await send({ messages }))
      messages.push(answer, ...results(answer))
    }
  }
}

test('a conversation that only grows keeps every thought through twelve turns with tools', async () => {
  const send = await start(TURNS)
  const messages = [system('Be brief.')]
  await talk(send, messages, 12)
  expect(server.violations).toEqual([])
  expect(thinkingIn(server.requests.at(-1))).toBe(23)
})

test('drop_block and its beta are sent with every request, together with the configured betas', async () => {
  const send = await start([{ text: 'hi' }], { 'Anthropic-Beta': 'mine-2026-01-01' })
  await send({})
  const [request] = server.requests
  expect(request?.headers['anthropic-beta']).toBe('mine-2026-01-01,thinking-binding-controls-2026-08-01')
  expect(request?.body).toMatchObject({
    thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
  })
})

test('an instruction that is added later is sent where it was added', async () => {
  const send = await start(TURNS)
  const messages = [system('Be brief.')]
  await talk(send, messages, 1)
  messages.push(user('and?'), system('Be kind.'))
  messages.push(toMessage(await send({ messages })))
  expect(server.requests.at(-1)?.body).toMatchObject({
    messages: expect.arrayContaining([
      {
        role: 'system',
        content: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
      },
    ]),
  })
  expect(server.violations).toEqual([])
})

async function cut() {
  const send = await start(TURNS)
  const messages: ProviderMessage[] = []
  await talk(send, messages, 3)
  return { send, rest: [...messages.slice(4), user('and now?')] }
}

test('when the beginning was cut unnoticed, the API drops the thoughts and its report becomes receipts', async () => {
  const { send, rest } = await cut()
  const events = await send({ messages: rest })
  expect(server.violations).toEqual([])
  const receipts = events.find(event => event.type === 'receipts')
  expect(receipts?.repairs).toHaveLength(5)
  expect(receipts?.repairs[0]).toMatchObject({
    step: 'input-transformations',
    kind: 'leave-out',
    at: 1,
    detail: expect.stringContaining('prefix_binding_mismatch'),
  })
})

test('when the beginning was cut knowingly, old thoughts are left out with a receipt, and new thoughts stay', async () => {
  const { send, rest } = await cut()
  const marked = breakReasoning(rest, () => true)
  const events = await send({ messages: marked })
  expect(events.find(event => event.type === 'receipts')).toBeUndefined()
  const [sent] = events
  const kinds = sent?.type === 'request' ? sent.repairs.map(({ step, kind }) => `${step}/${kind}`) : []
  expect(new Set(kinds)).toEqual(new Set(['drop-foreign-reasoning/prefix-broken']))
  expect(thinkingIn(server.requests.at(-1))).toBe(0)
  const answer = toMessage(events)
  await send({ messages: [...marked, answer, ...results(answer)] })
  expect(server.violations).toEqual([])
  expect(thinkingIn(server.requests.at(-1))).toBe(1)
})

test('a forced tool is an error before anything is sent to a model that cannot be forced', async () => {
  const send = await start([])
  for (const toolChoice of ['required', { name: 'clock' }] as const) {
    const [first] = await send({ options: { toolChoice } })
    expect(first).toMatchObject({ type: 'error', error: { code: expect.stringMatching(/^invalid-/) } })
  }
  expect(server.requests).toEqual([])
})

test('thinking that is switched off becomes the lowest effort', async () => {
  const send = await start([{ text: 'no' }])
  const [request] = await send({ options: { thinking: { budgetTokens: 0 }, temperature: 0.2 } })
  expect(request).toMatchObject({
    body: { output_config: { effort: 'low' } },
    repairs: expect.arrayContaining([
      expect.objectContaining({ step: 'options', kind: 'replace' }),
      expect.objectContaining({ step: 'options', kind: 'option-dropped' }),
    ]),
  })
  expect(server.violations).toEqual([])
})

test('thinking at the end of a truncated answer takes the thinking before it along', async () => {
  const send = await start([
    { thinking: 'a', text: 'I', afterthought: 'b', finish: 'length' },
    { text: 'ok' },
  ])
  const messages = [user('hi')]
  messages.push(toMessage(await send({ messages })), user('go on'))
  expect(messages[1]?.parts.map(({ type }) => type)).toEqual(['reasoning', 'text', 'reasoning'])
  await send({ messages })
  expect(server.violations).toEqual([])
  expect(thinkingIn(server.requests.at(-1))).toBe(0)
})

test('a paused turn is continued as one answer, with the usage of both requests', async () => {
  const send = await start([
    {
      thinking: 'look',
      serverTool: { name: 'web_search', input: { q: 'x' } },
      finish: 'paused',
      usage: { input: 10, output: 3 },
    },
    { text: 'Found it.', usage: { input: 20, output: 4 } },
    { text: 'Bye.' },
  ])
  const messages = [user('search')]
  const events = await send({ messages })
  expect(events.at(-1)).toEqual({ type: 'done', finishReason: 'stop' })
  expect(events.find(event => event.type === 'usage')).toMatchObject({
    usage: { inputTokens: 30, outputTokens: 7 },
  })
  const answer = toMessage(events)
  expect(answer.parts.map(({ type }) => type)).toEqual(['reasoning', 'vendor', 'text'])
  messages.push(answer, user('thanks'))
  const [sent] = await send({ messages })
  // The tool's question was never answered, so later requests show it as text.
  expect(sent).toMatchObject({ repairs: [{ step: 'translate-vendor-parts', kind: 'unpaired' }] })
  expect(server.violations).toEqual([])
})

test('a server tool that was answered is sent back unchanged', async () => {
  const send = await start([
    { thinking: 'look', serverTool: { name: 'web_search', input: { q: 'x' }, result: [] }, text: 'Found.' },
    { text: 'Bye.' },
  ])
  const messages = [user('search')]
  messages.push(toMessage(await send({ messages })), user('thanks'))
  const [sent] = await send({ messages })
  expect(sent).toMatchObject({ repairs: [] })
  expect(server.violations).toEqual([])
  expect(thinkingIn(server.requests.at(-1))).toBe(1)
})
