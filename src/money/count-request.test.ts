import { expect, test } from 'vitest'
import type { GenerateRequest } from '../provider/provider.js'
import { countRequest } from './count-request.js'

const REQUEST: GenerateRequest = {
  model: 'm',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
}
const LONG_TEXT = 'a long description '.repeat(100)

/** At least a quarter of the bytes that are sent. */
const LEAST = LONG_TEXT.length / 4

test.each<[string, Partial<GenerateRequest>]>([
  ['tool', { tools: [{ name: 'look', description: LONG_TEXT, parameters: { type: 'object' } }] }],
  ['response schema', { options: { responseSchema: { type: 'object', description: LONG_TEXT } } }],
  ['message', { messages: [{ role: 'user', parts: [{ type: 'text', text: LONG_TEXT }] }] }],
  [
    'tool result',
    {
      messages: [
        { role: 'tool', parts: [{ type: 'tool-result', id: 'c', name: 'look', result: LONG_TEXT }] },
      ],
    },
  ],
  [
    'tool call',
    {
      messages: [
        { role: 'assistant', parts: [{ type: 'tool-call', id: 'c', name: 'look', args: { at: LONG_TEXT } }] },
      ],
    },
  ],
])('a long %s counts towards the worst case of a request', (_title, more) => {
  expect(countRequest({ ...REQUEST, ...more })).toBeGreaterThanOrEqual(countRequest(REQUEST) + LEAST - 10)
})

test('a picture counts the same whatever its bytes, and a document by its size', () => {
  const withMedia = (mimeType: string, data: string) =>
    countRequest({ ...REQUEST, messages: [{ role: 'user', parts: [{ type: 'media', mimeType, data }] }] })
  expect(withMedia('image/png', 'A'.repeat(100_000))).toBe(withMedia('image/png', 'A'))
  expect(withMedia('application/pdf', 'A'.repeat(100_000))).toBeGreaterThan(withMedia('application/pdf', 'A'))
})
