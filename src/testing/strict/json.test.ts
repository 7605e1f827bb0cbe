import { setFlagsFromString } from 'node:v8'
import { expect, test } from 'vitest'
import { estimateTokens } from './json.js'

const PAGE = 1600

/** So the engine compiles an expression now and then, when it has too little time or memory for more. */
function withPlainExpressions<T>(work: () => T): T {
  setFlagsFromString('--no-regexp-optimization')
  try {
    return work()
  } finally {
    setFlagsFromString('--regexp-optimization')
  }
}

test.each([
  ['of Claude', (data: string) => ({ source: { type: 'base64', media_type: 'image/png', data } })],
  ['of Converse', (bytes: string) => ({ image: { format: 'png', source: { bytes } } })],
  ['in a data URL', (data: string) => ({ image_url: { url: `data:image/png;base64,${data}` } })],
])('counts a picture of 12 MB %s as a page', (_, part) => {
  const body = { text: 'Look.', parts: [part('iVBO'.repeat(3_000_000)), part('/9j/'.repeat(4000))] }
  const tokens = withPlainExpressions(() => estimateTokens(body))
  expect(tokens).toBeGreaterThan(2 * PAGE)
  expect(tokens).toBeLessThan(2 * PAGE + 100)
})

test('counts short files and long texts by their length', () => {
  expect(estimateTokens({ data: 'iVBO'.repeat(10) })).toBe(13)
  expect(estimateTokens({ text: 'word '.repeat(4000) })).toBe(5003)
  expect(estimateTokens({ text: `;base64, ${'word '.repeat(4000)}` })).toBeGreaterThan(5000)
})
