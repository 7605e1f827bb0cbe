import { expect, test } from 'vitest'
import { post, serverPool } from './support.js'

// Preserved thinking on the wire: what the server of Claude 5.1 refuses, drops and reports.

const { start } = serverPool()

const BETA = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' }
const DROP = { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } }
const TOOLS = [{ name: 'clock', description: 'Tells the time.', input_schema: { type: 'object' } }]

interface Block {
  type: string
  [field: string]: unknown
}

interface Turn {
  role: string
  content: Block[] | string
}

const said = (text: string): Turn => ({ role: 'user', content: text })

function request(messages: Turn[], more: object = {}) {
  return { model: 'claude-opus-5-5', max_tokens: 1000, system: 'Be brief.', tools: TOOLS, messages, ...more }
}

/** Two turns with thinking, made by the server itself. */
async function conversation(reading: 'strict' | 'lenient' = 'strict') {
  const script = Array.from({ length: 20 }, (_, index) => ({
    thinking: `thought ${index}`,
    text: `answer ${index}`,
  }))
  const server = await start({ profile: 'anthropic-5.1', reading, script })
  const messages: Turn[] = []
  for (const text of ['one', 'two']) {
    messages.push(said(text))
    const { body } = await post(server, request(messages))
    messages.push({ role: 'assistant', content: (body as { content: Block[] }).content })
  }
  messages.push(said('three'))
  return { server, messages }
}

const CHANGES: [string, (messages: Turn[]) => object][] = [
  ['another system prompt', messages => request(messages, { system: 'Be long.' })],
  ['another tool', messages => request(messages, { tools: [...TOOLS, { ...TOOLS[0], name: 'other' }] })],
  ['an edited user message', messages => request([said('ONE'), ...messages.slice(1)])],
  ['older turns cut', messages => request(messages.slice(2))],
]

test('a thinking block sent back unchanged, with other cache marks, is accepted', async () => {
  const { server, messages } = await conversation()
  const marked = [
    { role: 'user', content: [{ type: 'text', text: 'one', cache_control: { type: 'ephemeral' } }] },
  ]
  const { status } = await post(server, request([...marked, ...messages.slice(1)]))
  expect([status, server.violations]).toEqual([200, []])
})

test.each(CHANGES)(
  'a thinking block after a change (%s) is refused with the documented message',
  async (_, change) => {
    const { server, messages } = await conversation()
    const { status, body } = await post(server, change(messages))
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(
      'The block is bound to a different conversation. Remove the block, or set',
    )
    expect(server.violations.at(-1)?.code).toBe('A25')
  },
)

test.each(CHANGES)(
  'a thinking block after a change (%s) is dropped and reported where the request asks for it',
  async (_, change) => {
    const { server, messages } = await conversation()
    const { status, body } = await post(server, { ...change(messages), ...DROP }, { headers: BETA })
    expect([status, server.violations]).toEqual([200, []])
    const dropped = (body as { input_transformations: { type: string; reason: string }[] })
      .input_transformations
    expect(dropped.length).toBeGreaterThan(0)
    expect(new Set(dropped.map(({ type, reason }) => `${type} ${reason}`))).toEqual(
      new Set(['thinking_dropped prefix_binding_mismatch']),
    )
  },
)

test('a thinking block that follows a change is bound to the changed history', async () => {
  const { server, messages } = await conversation()
  const changed = (list: Turn[]) => ({ ...request(list, { system: 'Be long.' }), ...DROP })
  const { body } = await post(server, changed(messages), { headers: BETA })
  const more = [
    ...messages,
    { role: 'assistant', content: (body as { content: Block[] }).content },
    said('four'),
  ]
  const next = await post(server, changed(more), { headers: BETA })
  const { input_transformations: dropped } = next.body as { input_transformations: { path: string }[] }
  expect(dropped.map(({ path }) => path)).toEqual(['messages.1.content.0', 'messages.3.content.0'])
})

test('a refusal names the thinking block that is missing between others', async () => {
  const { server, messages } = await conversation()
  const { content } = messages[1] as { content: Block[] }
  const cut = messages.with(1, {
    role: 'assistant',
    content: content.filter(({ type }) => type !== 'thinking'),
  })
  const { status, body } = await post(server, request(cut))
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(
    'The `thinking` block that preceded this one when it was created is missing',
  )
})

test('an older account accepts a thinking block after a change, and reports it only with the beta', async () => {
  const { server, messages } = await conversation('lenient')
  const changed = request(messages, { system: 'Be long.' })
  expect((await post(server, changed)).body).not.toHaveProperty('input_transformations')
  const { body } = await post(server, changed, { headers: BETA })
  expect(body).toMatchObject({
    input_transformations: [
      {
        type: 'thinking_mismatch_allowed',
        path: 'messages.1.content.0',
        reason: 'prefix_binding_mismatch',
      },
      { type: 'thinking_mismatch_allowed', path: 'messages.3.content.0' },
    ],
  })
})

test('a thinking block of a model that this one cannot read is dropped without an error', async () => {
  const { server, messages } = await conversation()
  const { status, body } = await post(
    server,
    { ...request(messages), model: 'claude-fable-5-2' },
    { headers: BETA },
  )
  expect(status).toBe(200)
  expect(body).toMatchObject({ input_transformations: [{ reason: 'model_binding_mismatch' }, {}] })
})

test.each([
  ['drop_block without its beta', { ...DROP }, {}],
  ['thinking switched off', { thinking: { type: 'disabled' } }, BETA],
  ['a thinking budget', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4000 }, BETA],
  ['any tool forced', { tool_choice: { type: 'any' } }, BETA],
  ['one tool forced', { tool_choice: { type: 'tool', name: 'clock' } }, BETA],
])('anthropic-5.1 refuses %s', async (_, more, headers) => {
  const server = await start({ profile: 'anthropic-5.1' })
  expect((await post(server, request([said('hi')], more), { headers })).status).toBe(400)
})

test.each([
  ['after a user', [said('hi'), { role: 'system', content: 'Be kind.' }], 200],
  ['first', [{ role: 'system', content: 'Be kind.' }, said('hi')], 400],
  ['between two user messages', [said('hi'), { role: 'system', content: 'Be kind.' }, said('ho')], 400],
])('anthropic-5.1 answers a system message %s with %s', async (_, messages, status) => {
  const server = await start({ profile: 'anthropic-5.1' })
  expect((await post(server, request(messages as Turn[]))).status).toBe(status)
})
