import { expect, test } from 'vitest'
import type { Quirk, StrictProfile } from '../../src/entries/testing.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

interface Delta {
  role?: string
  content?: string | null
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[]
}

interface Chunk {
  choices: { delta: Delta; finish_reason: string | null }[]
  usage?: object | null
}

async function stream(
  quirks: Quirk[],
  profile: StrictProfile = 'openai-chat',
): Promise<{ text: string; chunks: Chunk[] }> {
  const server = await pool.start({
    profile,
    quirks,
    script: [
      {
        text: 'let me look',
        toolCalls: [
          { name: 'f', args: { city: 'Seoul' } },
          { name: 'g', args: { city: 'Oslo' } },
        ],
      },
    ],
  })
  const { text } = await post(server, {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
  })
  const chunks = text
    .split('\n\n')
    .filter(frame => frame.startsWith('data: {'))
    .map(frame => JSON.parse(frame.slice(6)) as Chunk)
  return { text, chunks }
}

const calls = (chunks: Chunk[]) => chunks.flatMap(chunk => chunk.choices[0]?.delta.tool_calls ?? [])

test('a chat stream names a call first and sends its arguments in pieces', async () => {
  const { text, chunks } = await stream([])
  const first = calls(chunks).filter(call => call.index === 0)
  expect(first[0]).toMatchObject({ id: expect.any(String), function: { name: 'f', arguments: '' } })
  expect(first.slice(1).every(call => call.id === undefined)).toBe(true)
  expect(first.map(call => call.function?.arguments).join('')).toBe('{"city":"Seoul"}')
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
})

test('a chat stream can omit the indexes of calls', async () => {
  expect(calls((await stream(['index-missing'])).chunks).every(call => call.index === undefined)).toBe(true)
})

test('a chat stream can give every call the index 0', async () => {
  const { chunks } = await stream(['index-zero'])
  expect(new Set(calls(chunks).map(call => call.index))).toEqual(new Set([0]))
  expect(calls(chunks).filter(call => call.id !== undefined)).toHaveLength(2)
})

test('a chat stream can omit or repeat ids', async () => {
  expect(calls((await stream(['id-missing'])).chunks).every(call => call.id === undefined)).toBe(true)
  expect(calls((await stream(['id-repeated'])).chunks).every(call => call.id !== undefined)).toBe(true)
})

test.each([
  ['openai-chat', ['whole-arguments']],
  ['groq', []],
  ['ollama', []],
] as [StrictProfile, Quirk[]][])(
  'a chat stream of %s with quirks %j sends whole arguments',
  async (profile, quirks) => {
    expect(calls((await stream(quirks, profile)).chunks)).toMatchObject([
      { function: { name: 'f', arguments: '{"city":"Seoul"}' } },
      { function: { name: 'g', arguments: '{"city":"Oslo"}' } },
    ])
  },
)

test('a chat stream of Mistral sends all calls together with the finish', async () => {
  const { chunks } = await stream([], 'mistral')
  const finish = chunks.filter(chunk => chunk.choices[0]?.finish_reason === 'tool_calls')
  expect(finish).toHaveLength(1)
  expect(calls(finish)).toHaveLength(2)
  expect(calls(chunks)).toHaveLength(2)
  expect(finish[0]?.usage).toMatchObject({ total_tokens: expect.any(Number) })
})

test('a chat stream can repeat its role in every delta', async () => {
  const { chunks } = await stream(['role-in-every-delta'])
  expect(chunks.slice(0, -1).every(chunk => chunk.choices[0]?.delta.role === 'assistant')).toBe(true)
})

test('a chat stream can finish twice', async () => {
  const { chunks } = await stream(['finish-twice'])
  expect(chunks.filter(chunk => chunk.choices[0]?.finish_reason === 'tool_calls')).toHaveLength(2)
})

test('a chat stream can have a chunk without choices', async () => {
  expect((await stream(['empty-choices'])).chunks.filter(chunk => chunk.choices.length === 0)).toHaveLength(1)
})

test('a chat stream can send usage with the finish', async () => {
  const { chunks } = await stream(['usage-on-finish'])
  expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }], usage: {} })
})

test('a chat stream can hold comments and end without [DONE]', async () => {
  expect((await stream(['no-done'])).text).not.toContain('[DONE]')
  expect((await stream(['comments'])).text).toContain(': PROCESSING\n\n')
})

test('a Gemini stream sends arguments by path, with the name only in the first chunk', async () => {
  const server = await pool.start({
    profile: 'gemini-3',
    quirks: ['partial-args'],
    script: [{ toolCalls: [{ name: 'f', args: { city: 'Seoul', days: 3, tags: ['a'], dry: true } }] }],
  })
  const { text } = await post(
    server,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    { stream: true },
  )
  const calls = text
    .split('\r\n\r\n')
    .filter(frame => frame !== '')
    .map(frame => JSON.parse(frame.slice(6)).candidates[0].content.parts[0].functionCall)
    .filter(call => call !== undefined)
  expect(calls[0]).toMatchObject({ name: 'f', willContinue: true, id: expect.any(String) })
  expect(calls.slice(1).every(call => call.name === undefined)).toBe(true)
  expect(calls.at(-1)).toEqual({})
  const partial = calls.flatMap(call => call.partialArgs ?? [])
  const values: Record<string, unknown> = {}
  for (const { jsonPath, stringValue, numberValue, boolValue } of partial) {
    const value = stringValue ?? numberValue ?? boolValue
    values[jsonPath] = typeof value === 'string' ? `${values[jsonPath] ?? ''}${value}` : value
  }
  expect(values).toEqual({ '$.city': 'Seoul', '$.days': 3, '$.tags[0]': 'a', '$.dry': true })
})
