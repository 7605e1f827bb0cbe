// Corners of lining up that no ordinary session has, and the tree of the raw body.
import { describe, expect, test } from 'vitest'
import { alignMessages } from '../../web/src/inspector/align-messages.js'
import { type DescribedRow, describeStep } from '../../web/src/inspector/describe-rows.js'
import { foldRows } from '../../web/src/inspector/fold-rows.js'
import { ancestorsOf, firstOpen, jsonLines, searchJson } from '../../web/src/inspector/json-tree.js'
import { lintVerdict } from '../../web/src/inspector/lint-verdict.js'
import { loadHistory } from '../../web/src/inspector/load-history.js'
import type { InspectedStep, StoredMessage, StoredPart } from '../../web/src/inspector/types.js'
import { readWireRequest } from '../../web/src/inspector/wire-messages.js'
import { bytesText, costText, shortCount } from '../../web/src/inspector/words.js'

function stored(seq: number, role: StoredMessage['role'], ...parts: (string | StoredPart)[]): StoredMessage {
  return {
    seq,
    role,
    author: role,
    timestamp: 0,
    tokens: 10,
    parts: parts.map(part => (typeof part === 'string' ? { type: 'text', text: part } : part)),
  }
}

const call = (id: string, args: unknown = {}): StoredPart => ({ type: 'tool-call', id, name: 'add', args })
const result = (id: string, value: unknown): StoredPart => ({
  type: 'tool-result',
  id,
  name: 'add',
  result: value,
})

function step(body: unknown, more: Partial<InspectedStep> = {}): InspectedStep {
  return {
    step: 1,
    model: 'a/m',
    profile: 'openai-chat',
    cuts: [],
    repairs: [],
    mappedIds: {},
    sent: { messages: 0, bytes: 0, body },
    ...more,
  }
}

const pairs = (rows: readonly { stored: StoredMessage[]; sent: { index: number }[] }[]) =>
  rows.map(row => [row.stored.map(({ seq }) => seq), row.sent.map(({ index }) => index)])

test('alignment pairs calls and results by name and arguments where the wire has no ids', () => {
  const history = [
    stored(1, 'user', 'add'),
    stored(2, 'assistant', call('one', { x: 1 }), call('two', { x: 2 })),
    stored(3, 'tool', result('one', { sum: 1 }), result('two', { sum: 2 })),
  ]
  const functionCall = (x: number) => ({ functionCall: { name: 'add', args: { x } } })
  const functionResponse = (sum: number) => ({ functionResponse: { name: 'add', response: { sum } } })
  const { messages } = readWireRequest({
    contents: [
      { role: 'user', parts: [{ text: 'add' }] },
      { role: 'model', parts: [functionCall(1), functionCall(2)] },
      { role: 'user', parts: [functionResponse(1), functionResponse(2)] },
    ],
  })
  expect(pairs(alignMessages(history, messages).rows)).toEqual([
    [[1], [0]],
    [[2], [1]],
    [[3], [2]],
  ])
})

test('alignment takes the newest of several equal texts, because a budget cuts the oldest', () => {
  const history = [1, 2, 3, 4].map(seq => stored(seq, seq % 2 === 1 ? 'user' : 'assistant', 'ok'))
  const { messages } = readWireRequest({
    messages: [
      { role: 'user', content: 'ok' },
      { role: 'assistant', content: 'ok' },
    ],
  })
  expect(pairs(alignMessages(history, messages).rows)).toEqual([
    [[1], []],
    [[2], []],
    [[3], [0]],
    [[4], [1]],
  ])
})

test('alignment ignores an answer that was stored after the request', () => {
  const history = [stored(1, 'user', 'hi'), stored(2, 'assistant', 'hi'), stored(3, 'user', 'hi')]
  const { messages } = readWireRequest({ messages: [{ role: 'user', content: 'hi' }] })
  const { rows, knownThrough } = alignMessages(history, messages, { storedBefore: 0 })
  expect(knownThrough).toBe(1)
  expect(pairs(rows)).toEqual([[[1], [0]]])
})

test('alignment finds messages that were joined into one text', () => {
  const history = [stored(1, 'user', 'first thing'), stored(2, 'user', 'second thing')]
  const request = readWireRequest({ messages: [{ role: 'user', content: 'first thing\nsecond thing' }] })
  const { rows } = describeStep(step({}, { stored: { messages: 2, tokens: 20 } }), request, history)
  expect(pairs(rows)).toEqual([[[1, 2], [0]]])
  expect(rows[0]?.notes).toEqual([{ kind: 'repair', text: '2 stored messages were sent as one' }])
})

test('alignment finds the message of another agent in the quotation that the model was sent', () => {
  const history = [
    stored(1, 'user', 'go'),
    stored(2, 'assistant', 'I am done.'),
    stored(3, 'assistant', call('x')),
  ]
  const text = '[helper] called tool `add` with parameters: {}'
  const request = readWireRequest({
    messages: [
      { role: 'user', content: 'go' },
      { role: 'user', content: 'For context:\n[helper] said: I am done.' },
      { role: 'user', content: `For context:\n${text}` },
    ],
  })
  const { rows } = alignMessages(history, request.messages, { storedBefore: 3 })
  expect(pairs(rows)).toEqual([
    [[1], [0]],
    [[2], [1]],
    [[3], [2]],
  ])
})

test('alignment marks an output that was shortened', () => {
  const shortened = [{ callId: 'one', name: 'add', fromTokens: 5000, toTokens: 300 }]
  const cut = {
    reason: 'token-budget',
    messages: 0,
    tokens: 0,
    keptMessages: 2,
    keptTokens: 9,
    shortened,
  } as const
  const history = [stored(1, 'assistant', call('one')), stored(2, 'tool', result('one', 'long'))]
  const request = readWireRequest({
    messages: [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'one', function: { name: 'add', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'one', content: 'lo…' },
    ],
  })
  const { rows } = describeStep(step({}, { cuts: [{ ...cut, shortened }] }), request, history)
  expect(rows[1]?.notes).toContainEqual({ kind: 'cut', text: 'Output shortened from 5,000 to 300 tokens' })
})

test.each([
  {
    system: [{ type: 'text', text: 'Be kind.' }],
    messages: [
      { role: 'user', content: 'add' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'one', name: 'add', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'one', content: 'No result was stored.' },
          { type: 'text', text: 'well?' },
        ],
      },
    ],
  },
  {
    contents: [
      { role: 'user', parts: [{ text: 'add' }] },
      { role: 'model', parts: [{ functionCall: { name: 'add', args: {} } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'add', response: { error: 'No result.' } } }, { text: 'well?' }],
      },
    ],
  },
])('a result that repair added is marked and among what differs (%#)', body => {
  const repairs = [
    { step: 'pair-calls', kind: 'synthesize-result', at: 1, detail: 'The call had no result.' },
  ]
  const history = [stored(1, 'user', 'add'), stored(2, 'assistant', call('one')), stored(3, 'user', 'well?')]
  const { rows } = describeStep(step(body, { repairs }), readWireRequest(body), history)
  const marked = rows.find(row =>
    row.sent.some(({ parts }) => parts.some(part => part.type === 'tool-result')),
  )
  expect(marked?.notes).toContainEqual({ kind: 'repair', text: 'Added by repair: The call had no result.' })
  const shown = foldRows(rows, { changesOnly: true, unfolded: new Set() })
  expect(shown.map(({ key }) => key)).toContain(marked?.key)
})

test('alignment of a request that shares nothing with the session shows both sides separately', () => {
  const request = readWireRequest({ messages: [{ role: 'user', content: 'a nested question' }] })
  const { rows } = describeStep(step({}, { stored: { messages: 1, tokens: 1 } }), request, [
    stored(1, 'user', 'x'),
  ])
  expect(rows.map(row => row.fate).sort()).toEqual(['added', 'not-sent'])
})

test('the body of a request to the offline model is read as messages and tools', () => {
  const request = readWireRequest({
    model: 'demo',
    messages: [
      { role: 'system', parts: [{ type: 'text', text: 'Be kind.' }] },
      { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'add', result: { sum: 1 } }] },
    ],
    tools: [{ name: 'add', description: 'Adds.', parameters: {} }],
  })
  expect(request).toMatchObject({ family: 'neutral', system: 'Be kind.', tools: [{ name: 'add' }] })
  expect(request.messages.map(({ role, index }) => [role, index])).toEqual([
    ['user', 1],
    ['tool', 2],
  ])
})

test.each([
  undefined,
  null,
  'text',
  7,
  [],
  {},
  { messages: 'none' },
  { contents: [null, 7, { parts: 'x' }] },
])('a body of no known shape (%j) is read without an error', body => {
  expect(() => readWireRequest(body)).not.toThrow()
})

test('media in a body are shown by kind and size, never by their data', () => {
  const data = 'A'.repeat(4096)
  const url = `data:image/png;base64,${data}`
  const bodies = [
    { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] }] },
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    {
      max_tokens: 9,
      messages: [
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
        },
      ],
    },
  ]
  for (const body of bodies) {
    expect(readWireRequest(body).messages[0]?.parts).toEqual([{ type: 'media', text: 'image/png, 3 KB' }])
  }
})

test('messages that were not sent are one line until they are unfolded', () => {
  const row = (key: string, fate: DescribedRow['fate']): DescribedRow => ({
    key,
    fate,
    stored: [],
    sent: [],
    notes: [],
  })
  const rows = [
    row('a', 'not-sent'),
    row('b', 'not-sent'),
    row('c', 'not-sent'),
    row('d', 'same'),
    row('e', 'added'),
  ]
  const keys = (changesOnly: boolean, unfolded: string[] = []) =>
    foldRows(rows, { changesOnly, unfolded: new Set(unfolded) }).map(item => item.key)
  expect(keys(false)).toEqual(['fold-a', 'd', 'e'])
  expect(keys(true)).toEqual(['fold-a', 'e'])
  expect(keys(false, ['fold-a'])).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('the stored side is read page by page, and no more than is needed', async () => {
  const asked: unknown[] = []
  const client = {
    messages: async (_: string, range: { beforeSeq?: number; limit?: number } = {}) => {
      asked.push(range)
      const { beforeSeq = 1, limit = 50 } = range
      const size = Math.min(limit, 100)
      const messages = Array.from({ length: Math.min(size, beforeSeq - 1) }, (_value, index) =>
        stored(Math.max(1, beforeSeq - size) + index, 'user', 'x'),
      )
      return { messages, totalMessages: 500 }
    },
  }
  const messages = await loadHistory(client, 's', { fromSeq: 250, throughSeq: 480 })
  expect(messages.map(({ seq }) => seq)).toEqual(Array.from({ length: 231 }, (_, index) => 250 + index))
  expect(asked).toEqual([
    { beforeSeq: 481, limit: 231 },
    { beforeSeq: 381, limit: 131 },
    { beforeSeq: 281, limit: 31 },
  ])
})

describe('the raw tree', () => {
  const body = {
    model: 'm',
    messages: Array.from({ length: 20 }, (_, at) => ({ role: 'user', content: `text ${at}` })),
  }

  test('the raw tree opens short branches and folds long ones', () => {
    expect(jsonLines(body, firstOpen(body)).map(({ name, text, open }) => [name, text, open])).toEqual([
      ['', '2 fields', true],
      ['model', '"m"', undefined],
      ['messages', '20 items', false],
    ])
  })

  test('a search in the raw tree finds a nested text and the branches that lead to it', () => {
    const [path = ''] = searchJson(body, 'TEXT 17')
    const open = new Set(ancestorsOf(path))
    const line = jsonLines(body, open).find(one => one.path === path)
    expect(line).toMatchObject({ name: 'content', text: '"text 17"', depth: 3 })
    expect(searchJson(body, 'text', 5)).toHaveLength(5)
    expect(searchJson(body, '  ')).toEqual([])
  })
})

test('figures are short and never hide a small sum', () => {
  expect([costText(0), costText(0.00001), costText(0.0061), costText(0.0123), costText(3)]).toEqual([
    'free',
    '< $0.0001',
    '$0.0061',
    '$0.012',
    '$3.00',
  ])
  expect([bytesText(12), bytesText(8300), bytesText(1_300_000)]).toEqual(['12 B', '8.1 KB', '1.2 MB'])
  expect([shortCount(980), shortCount(64_000), shortCount(1_048_576)]).toEqual(['980', '64k', '1M'])
})

describe('the verdict of the lint', () => {
  const profile = (name: string, refused: boolean) => ({
    profile: name,
    refused,
    breaks: refused ? 1 : 0,
    mapped: 0,
    findings: [],
  })
  const profiles = [profile('gemini-3', true), profile('ollama', false)]

  test('the verdict of the lint is yes if histories are repaired', () => {
    expect(lintVerdict({ profiles }, 'repair').answer).toBe('Yes, to any of them.')
    expect(lintVerdict({ profiles: profiles.slice(1) }, 'strict').answer).toBe('Yes, to any of them.')
  })

  test('the verdict of the lint counts the accepting profiles if repair is off, and names the setting', () => {
    const { answer, reason } = lintVerdict({ profiles }, 'strict')
    expect(answer).toBe('To 1 of 2.')
    expect(reason).toContain('history.repair is strict')
  })
})
