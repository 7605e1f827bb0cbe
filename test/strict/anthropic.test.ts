import { expect, test } from 'vitest'
import { judge, mintSignature, type StrictProfile } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()
const headers = { 'anthropic-version': '2023-06-01' }

const user = { role: 'user', content: 'hi' }
const said = { role: 'assistant', content: 'ok' }
const use = (id: string, extra: object = {}) => ({ type: 'tool_use', id, name: 'f', input: {}, ...extra })
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'y' })
const calling = (...ids: string[]) => ({ role: 'assistant', content: ids.map(id => use(id)) })
const results = (...ids: string[]) => ({ role: 'user', content: ids.map(result) })
const text = (value: string) => ({ type: 'text', text: value })
const thought = (thinking: string, place: object = {}) => ({
  type: 'thinking',
  thinking,
  signature: mintSignature('anthropic', { thinking, ...place }),
})
const tools = [{ name: 'f', input_schema: { type: 'object' } }]

const A1 = (n: number, ids: string) =>
  `messages.${n}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
const A2 = (n: number, m: number, id: string) =>
  `messages.${n}.content.${m}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
const A8 =
  'This model does not support assistant message prefill. The conversation must end with a user message.'
const A12 = (n: number, m: number) =>
  `messages.${n}.content.${m}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`
const A13 = (n: number, found: string) =>
  `messages.${n}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`

const turn = { turn: 'one', count: 2 }
const cached = (n: number) => ({ ...text(`t${n}`), cache_control: { type: 'ephemeral' } })

type Request = unknown[] | Record<string, unknown>
const refused: [string, StrictProfile, Request, string][] = [
  ['A1 an unanswered call', 'anthropic-4.6', [user, calling('a'), user], A1(1, 'a')],
  ['A1 one of two calls', 'anthropic-4.5', [user, calling('a', 'b'), results('a')], A1(1, 'b')],
  ['A1 a pending call', 'anthropic-4.5', [user, calling('a')], A1(1, 'a')],
  [
    'A1 text after a call',
    'anthropic-4.5',
    [user, { role: 'assistant', content: [use('a'), text('x')] }, results('a')],
    A1(1, 'a'),
  ],
  [
    'A1 text before the results',
    'anthropic-4.5',
    [user, calling('a'), { role: 'user', content: [text('x'), result('a')] }],
    A1(1, 'a'),
  ],
  ['A2 an orphan', 'anthropic-4.5', [results('a'), said, user], A2(0, 0, 'a')],
  [
    'A1 results split over two messages',
    'anthropic-4.5',
    [user, calling('a', 'b'), results('a'), results('b')],
    A1(1, 'b'),
  ],
  [
    'A3 two results',
    'anthropic-4.5',
    [user, calling('a'), results('a', 'a')],
    'each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
  ],
  [
    'A4 an id twice',
    'anthropic-4.5',
    [user, calling('a', 'a'), results('a')],
    'messages.1.content.1: `tool_use` ids must be unique',
  ],
  [
    'A5 an id',
    'anthropic-4.5',
    [user, calling('a:b'), results('a:b')],
    "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
  ],
  [
    'A6 empty text',
    'anthropic-4.5',
    [{ role: 'user', content: [text('')] }],
    'messages: text content blocks must be non-empty',
  ],
  [
    'A6 blank text',
    'anthropic-4.5',
    [{ role: 'user', content: [text(' \n')] }],
    'messages: text content blocks must contain non-whitespace text',
  ],
  [
    'A6 an empty system block',
    'anthropic-4.5',
    { messages: [user], system: [text('')] },
    'system: text content blocks must be non-empty',
  ],
  [
    'A7 an empty message',
    'anthropic-4.5',
    [user, { role: 'assistant', content: [] }, user],
    'messages.1: all messages must have non-empty content except for the optional final assistant message',
  ],
  ['A8 a prefill', 'anthropic-4.6', [user, said], A8],
  ['A8 a pending call', 'anthropic-4.6', [user, calling('a')], A8],
  [
    'A9 a prefill with a space',
    'anthropic-4.5',
    [user, { role: 'assistant', content: 'so ' }],
    'messages: final assistant content cannot end with trailing whitespace',
  ],
  [
    'A10 thinking last',
    'anthropic-4.6',
    [user, { role: 'assistant', content: [thought('a')] }],
    'messages.1: The final block in an assistant message cannot be `thinking`.',
  ],
  [
    'A11 a foreign signature',
    'anthropic-4.6',
    [
      user,
      {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: 'a', signature: mintSignature('gemini') }, text('b')],
      },
      user,
    ],
    'messages.1.content.0: Invalid `signature` in `thinking` block',
  ],
  [
    'A11 foreign data',
    'anthropic-4.6',
    [user, { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'abcd' }, text('b')] }, user],
    'messages.1.content.0: Invalid `data` in `redacted_thinking` block',
  ],
  [
    'A11 thinking that was edited in an earlier turn',
    'anthropic-4.6',
    [user, { role: 'assistant', content: [{ ...thought('a'), thinking: 'b' }, text('b')] }, user, said, user],
    'messages.1.content.0: Invalid `signature` in `thinking` block',
  ],
  [
    'A12 edited thinking',
    'anthropic-4.6',
    [user, { role: 'assistant', content: [{ ...thought('a'), thinking: 'b' }, text('b')] }, user],
    A12(1, 0),
  ],
  [
    'A12 dropped thinking',
    'anthropic-4.6',
    [user, { role: 'assistant', content: [thought('a', { ...turn, index: 0 }), text('b')] }, user],
    A12(1, 0),
  ],
  [
    'A12 reordered thinking',
    'anthropic-4.6',
    [
      user,
      {
        role: 'assistant',
        content: [thought('b', { ...turn, index: 1 }), thought('a', { ...turn, index: 0 }), text('c')],
      },
      user,
    ],
    A12(1, 0),
  ],
  [
    'A13 a call without thinking in manual mode',
    'anthropic-4.5',
    {
      messages: [user, calling('a'), results('a')],
      thinking: { type: 'enabled', budget_tokens: 1024 },
      max_tokens: 2048,
    },
    A13(1, 'tool_use'),
  ],
  [
    'A14 a system message',
    'anthropic-4.5',
    [{ role: 'system', content: 's' }, user],
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
  ],
  [
    'A15 tool blocks without tools',
    'anthropic-4.5',
    { messages: [user, calling('a'), results('a')], tools: undefined },
    'Requests which include `tool_use` or `tool_result` blocks must define tools.',
  ],
  [
    'A16 five cache marks',
    'anthropic-4.5',
    {
      messages: [{ role: 'user', content: [cached(1), cached(2), cached(3)] }],
      system: [cached(4), cached(5)],
    },
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'A17 an assistant first',
    'anthropic-4.5',
    [said, user],
    'messages: first message must use the "user" role',
  ],
  [
    'A20 a foreign server tool',
    'anthropic-4.5',
    [
      user,
      { role: 'assistant', content: [{ type: 'server_tool_use', id: 'x', name: 'web_search', input: {} }] },
      user,
    ],
    "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
  ],
  [
    'A21 a tool name',
    'anthropic-4.5',
    { messages: [user], tools: [{ name: 'a.b', input_schema: { type: 'object' } }] },
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  [
    'no max_tokens',
    'anthropic-4.5',
    { messages: [user], max_tokens: undefined },
    'max_tokens: Field required',
  ],
  ['an unknown key', 'anthropic-4.5', { messages: [user], foo: 1 }, 'foo: Extra inputs are not permitted'],
  [
    'input that is no object',
    'anthropic-4.5',
    [user, { role: 'assistant', content: [use('a', { input: '{}' })] }, results('a')],
    'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
  ],
  [
    'an image of OpenAI',
    'anthropic-4.5',
    [user, calling('a'), { role: 'user', content: [{ ...result('a'), content: [{ type: 'image_url' }] }] }],
    "messages.2.content.0.tool_result.content.0: Input tag 'image_url' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'",
  ],
  [
    'a schema without a type',
    'anthropic-4.5',
    { messages: [user], tools: [{ name: 'f', input_schema: {} }] },
    'tools.0.custom.input_schema.type: Field required',
  ],
  [
    'a forced tool while thinking',
    'anthropic-4.6',
    { messages: [user], thinking: { type: 'adaptive' }, tool_choice: { type: 'any' } },
    'Thinking may not be enabled when tool_choice forces tool use.',
  ],
]

const bodyOf = (request: Request) => {
  const rest = Array.isArray(request) ? { messages: request } : request
  return { model: 'claude', max_tokens: 100, tools, ...rest }
}

test.each(refused)('Anthropic refuses %s (%s)', async (label, profile, request, message) => {
  const server = await pool.shared(profile)
  const { status, body } = await post(server, bodyOf(request))
  expect(body).toEqual({
    type: 'error',
    error: { type: 'invalid_request_error', message },
    request_id: expect.stringMatching(/^req_/),
  })
  expect(status).toBe(400)
  if (/^A\d/.test(label)) expect(server.violations.at(-1)?.code).toBe(label.split(' ')[0])
})

test('Anthropic refuses a prompt over the window (A18), and a prompt that leaves too little for max_tokens (A19)', () => {
  const body = bodyOf([{ role: 'user', content: 'x'.repeat(400) }])
  const tokens = Math.ceil(JSON.stringify(body).length / 4)
  const short = judge('anthropic-4.5', body, { headers, contextWindow: 100 })
  expect(short.map(({ message }) => message)).toEqual([`prompt is too long: ${tokens} tokens > 100 maximum`])
  const tight = judge('anthropic-4.5', body, { headers, contextWindow: 200 })
  expect(tight.map(({ message }) => message)).toEqual([
    `input length and \`max_tokens\` exceed context limit: ${tokens} + 100 > 200, decrease input length or \`max_tokens\` and try again`,
  ])
})

test.each([
  ['A22', { messages: [user], temperature: 1 }],
  ['A23', { messages: [user, { role: 'assistant', content: [{ type: 'document', source: {} }] }, user] }],
  ['A24', { messages: [{ role: 'user', content: [{ ...text('a'), citations: [{}] }] }] }],
])(
  'Anthropic refuses %s, which the version of October 2026 removed, only in that version',
  async (code, request) => {
    const server = await pool.shared('anthropic-4.5')
    const body = bodyOf(request)
    expect((await post(server, body)).status).toBe(200)
    expect((await post(server, body, { headers: { 'anthropic-version': '2026-10-21' } })).status).toBe(400)
    expect(server.violations.at(-1)?.code).toBe(code)
  },
)

const legal: [string, StrictProfile, Request][] = [
  ['consecutive roles', 'anthropic-4.6', [user, user, said, said, user]],
  ['a prefill on 4.5', 'anthropic-4.5', [user, said]],
  [
    'results and then text',
    'anthropic-4.6',
    [user, calling('a', 'b'), { role: 'user', content: [result('b'), result('a'), text('x')] }],
  ],
  [
    'an id that is used again in a later turn',
    'anthropic-4.6',
    [user, calling('a'), results('a'), calling('a'), results('a')],
  ],
  [
    'empty results',
    'anthropic-4.6',
    [user, calling('a'), { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }],
  ],
  [
    'thinking as it was',
    'anthropic-4.6',
    [
      user,
      {
        role: 'assistant',
        content: [thought('a', { ...turn, index: 0 }), thought('b', { ...turn, index: 1 }), use('a')],
      },
      results('a'),
    ],
  ],
  [
    'earlier turns without their thinking',
    'anthropic-4.6',
    [user, calling('a'), results('a'), { role: 'assistant', content: [thought('c'), text('d')] }, user],
  ],
  [
    'an image in a result',
    'anthropic-4.6',
    [
      user,
      calling('a'),
      {
        role: 'user',
        content: [
          {
            ...result('a'),
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }],
          },
        ],
      },
    ],
  ],
]
test.each(legal)('Anthropic accepts %s', (_label, profile, request) => {
  expect(judge(profile, bodyOf(request), { headers })).toEqual([])
})

test.each([
  ['an assistant first', [said, user]],
  ['results split over two messages', [user, calling('a', 'b'), results('a'), results('b')]],
])('Anthropic accepts %s in the lenient reading only', (_label, messages) => {
  expect(judge('anthropic-4.5', bodyOf(messages), { headers, reading: 'lenient' })).toEqual([])
  expect(judge('anthropic-4.5', bodyOf(messages), { headers })).not.toEqual([])
})

test('Anthropic accepts tool blocks without tools in the lenient reading', () => {
  const body = { ...bodyOf([user, calling('a'), results('a')]), tools: undefined }
  expect(judge('anthropic-4.5', body, { headers, reading: 'lenient' })).toEqual([])
})

test('Anthropic counts tokens without max_tokens', async () => {
  const server = await pool.shared('anthropic-4.6')
  const { status, body } = await post(
    server,
    { model: 'm', messages: [user] },
    { path: '/v1/messages/count_tokens' },
  )
  expect({ status, body }).toMatchObject({ status: 200, body: { input_tokens: expect.any(Number) } })
})
