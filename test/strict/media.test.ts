import { expect, test } from 'vitest'
import { judge, type StrictProfile } from '../../src/entries/testing.js'
import { gif, jpeg, pdf, png } from '../support/pictures.js'

const MB = 1024 * 1024

interface File {
  data: string
  type?: string
  name?: string
}

/** A request with one message for each list of files, in the form of the profile. */
function bodyOf(profile: StrictProfile, ...messages: File[][]): unknown {
  const forms: Record<string, (file: Required<File>) => unknown> = {
    anthropic: ({ data, type }) => ({
      type: type.startsWith('image/') ? 'image' : 'document',
      source: { type: 'base64', media_type: type, data },
    }),
    gemini: ({ data, type }) => ({ inlineData: { mimeType: type, data } }),
    converse: ({ data, type, name }) =>
      type.startsWith('image/')
        ? { image: { format: type.slice(6), source: { bytes: data } } }
        : { document: { format: 'pdf', name, source: { bytes: data } } },
    responses: ({ data, type }) => ({
      type: 'input_image',
      image_url: `data:${type};base64,${data}`,
      detail: 'auto',
    }),
    chat: ({ data, type }) => ({ type: 'image_url', image_url: { url: `data:${type};base64,${data}` } }),
  }
  const family =
    Object.keys(forms).find(name => profile.startsWith(name) || profile === `openai-${name}`) ?? 'chat'
  let files = 0
  const partsOf = (all: File[]) =>
    all.map(file => forms[family]?.({ type: 'image/png', name: `file ${files++}`, ...file }))
  const turns = messages.flatMap((files, index) => [
    ...(index === 0 ? [] : [{ said: true, parts: [] }]),
    { said: false, parts: partsOf(files) },
  ])
  if (family === 'gemini')
    return {
      contents: turns.map(({ said, parts }) => ({
        role: said ? 'model' : 'user',
        parts: said ? [{ text: 'ok' }] : parts,
      })),
    }
  const text = family === 'converse' ? { text: 'ok' } : { type: 'text', text: 'ok' }
  const list = turns.map(({ said, parts }) => ({
    role: said ? 'assistant' : 'user',
    content: said ? (family === 'responses' ? 'ok' : [text]) : parts,
  }))
  if (family === 'responses') return { model: 'm', input: list }
  if (family === 'converse') return { messages: list }
  return { model: 'm', messages: list, ...(family === 'anthropic' ? { max_tokens: 9 } : {}) }
}

const large = (characters: number) => ({ data: png({ bytes: (characters * 3) / 4 }) })
const many = (count: number, file: File = { data: png() }) => Array.from({ length: count }, () => file)

type Row = [name: string, StrictProfile, File[][], documented: string | undefined, strict: string | undefined]

test.each<Row>([
  ['a PNG', 'anthropic-4.6', [[{ data: png() }]], undefined, undefined],
  ['a JPEG called PNG', 'anthropic-4.6', [[{ data: jpeg() }]], 'A41', 'A41'],
  ['no picture', 'anthropic-4.6', [[{ data: 'eA==' }]], undefined, 'A42'],
  ['6 MB', 'anthropic-4.6', [[large(6 * MB)]], undefined, 'A43'],
  ['11 MB', 'anthropic-4.6', [[large(11 * MB)]], 'A43', 'A43'],
  ['8001 pixels', 'anthropic-4.6', [[{ data: png({ height: 8001 }) }]], 'A44', 'A44'],
  ['20 large ones', 'anthropic-4.6', [many(20, { data: png({ width: 2001 }) })], undefined, undefined],
  ['21 large ones', 'anthropic-4.6', [many(21, { data: png({ width: 2001 }) })], 'A44', 'A44'],
  ['101', 'anthropic-4.6', [many(101)], undefined, 'A45'],
  ['601', 'anthropic-4.6', [many(601)], 'A45', 'A45'],
  ['40 MB in all', 'anthropic-4.6', [many(10, large(4 * MB))], 'A46', 'A46'],
  ['a GIF called PNG', 'converse', [[{ data: gif() }]], 'B21', 'B21'],
  ['no picture', 'converse', [[{ data: 'eA==' }]], undefined, 'B22'],
  ['6 MB', 'converse', [[large(6 * MB)]], undefined, 'B23'],
  ['9000 pixels', 'converse', [[{ data: png({ width: 9000 }) }]], undefined, 'B24'],
  ['6 documents in a message', 'converse', [many(6, { data: pdf(), type: 'application/pdf' })], 'B25', 'B25'],
  [
    '6 documents in two messages',
    'converse',
    [many(3, { data: pdf(), type: 'application/pdf' }), many(3, { data: pdf(), type: 'application/pdf' })],
    undefined,
    'B25',
  ],
  ['a GIF called PNG', 'gemini-3', [[{ data: gif() }]], undefined, 'G31'],
  [
    'a document of 30 MB',
    'gemini-3',
    [[{ data: pdf({ bytes: 30 * MB }), type: 'application/pdf' }]],
    undefined,
    'G32',
  ],
  ['3001', 'gemini-3', [many(3001)], undefined, 'G33'],
  ['24 MB in all', 'gemini-3', [many(4, large(6 * MB))], undefined, 'G34'],
  ['a GIF called PNG', 'openai-chat', [[{ data: gif() }]], undefined, 'C21'],
  ['30 MB', 'openai-chat', [[large(30 * MB)]], undefined, 'C22'],
  ['501', 'openai-responses', [many(501)], undefined, 'C23'],
  ['60 MB in all', 'openai-responses', [many(6, large(10 * MB))], undefined, 'C24'],
  ['a JPEG called PNG', 'vllm', [[{ data: jpeg() }]], undefined, 'X31'],
  ['36 megapixels', 'groq', [[{ data: png({ width: 6000, height: 6000 }) }]], 'X32', 'X32'],
  ['6', 'groq', [many(6)], undefined, 'X33'],
  ['24 MB in all', 'compatible-gemini', [many(4, large(6 * MB))], undefined, 'X32'],
  ['a JPEG called PNG', 'openrouter', [[{ data: jpeg() }]], undefined, 'X31'],
  ['51', 'minimax', [many(51)], undefined, 'X33'],
])('%s on %s', (_, profile, messages, documented, strict) => {
  const body = bodyOf(profile, ...messages)
  const codes = (limits: 'strict' | 'documented') => judge(profile, body, { limits }).map(({ code }) => code)
  expect(codes('documented')).toEqual(documented === undefined ? [] : [documented])
  expect(codes('strict')).toEqual(strict === undefined ? [] : [strict])
})

test('a platform has limits of its own', () => {
  const body = bodyOf('anthropic-4.6', [large(6 * MB)])
  expect(judge('anthropic-4.6', body, { platform: 'bedrock' })).toMatchObject([{ code: 'A43', status: 400 }])
})

test('Claude names the place of a picture inside a result', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: jpeg() } }
  const body = {
    model: 'm',
    max_tokens: 9,
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [image] }] },
    ],
  }
  expect(judge('anthropic-4.6', body)[0]?.message).toBe(
    'messages.2.content.0.tool_result.content.0.image.source.base64.data: Image does not match the provided media type image/png',
  )
})
