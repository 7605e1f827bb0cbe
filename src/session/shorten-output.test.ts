import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shortenOutput } from './shorten-output.js'
import { countTextTokens } from './tokens.js'

const MARKER = /… \[shortened by Lango: [\d,]+ of [\d,]+ characters left out\] …/

test('shortenOutput returns an output that fits as it is', () => {
  expect(shortenOutput('{"a": 1}', 6)).toBe('{"a": 1}')
})

test('shortenOutput keeps the beginning and the end of plain text, and states how much is missing', () => {
  const text = `BEGIN ${'x'.repeat(80_000)} END`
  const shorter = shortenOutput(text, 200)
  expect(shorter).toMatch(
    /^BEGIN x+… \[shortened by Lango: 79,\d{3} of 80,010 characters left out\] …x+ END$/,
  )
  expect(countTextTokens(shorter)).toBeLessThanOrEqual(200)
})

test('shortenOutput shortens the longest string of JSON in place and leaves all else as it was written', () => {
  const json = `{"id": 12345678901234567890, "text": "${'a\\"b\\\\ '.repeat(9000)}" , "n":[1.50, "kept"]}`
  const shorter = shortenOutput(json, 300)
  expect(shorter).toContain('{"id": 12345678901234567890, "text": "a')
  expect(shorter).toContain('" , "n":[1.50, "kept"]}')
  expect((JSON.parse(shorter) as { text: string }).text).toMatch(MARKER)
  expect(countTextTokens(shorter)).toBeLessThanOrEqual(300)
})

test('shortenOutput turns JSON without one dominating string into an object with its text', () => {
  const json = JSON.stringify(Array.from({ length: 5000 }, (_, index) => `row ${index}`))
  const shorter = JSON.parse(shortenOutput(json, 300)) as { output: string }
  expect(shorter.output).toMatch(/^\["row 0"/)
  expect(shorter.output).toMatch(MARKER)
  expect(shorter.output).toMatch(/"row 4999"\]$/)
})

test('shortenOutput does not shorten a long key', () => {
  const json = JSON.stringify({ ['k'.repeat(4000)]: 'v' })
  expect(Object.keys(JSON.parse(shortenOutput(json, 200)) as object)).toEqual(['output'])
})

test('shortenOutput reaches the limit, keeps JSON valid and characters whole, for any text', () => {
  const unit = fc.constantFrom('a', 'é', '한', '😀', '"', '\\', '\n', ' ', '\u0000', '{', '}', ':')
  const text = fc
    .array(fc.string({ unit, minLength: 1, maxLength: 40 }), { maxLength: 60 })
    .map(parts => parts.join(''))
  fc.assert(
    fc.property(text, fc.boolean(), fc.integer({ min: 64, max: 300 }), (raw, asJson, limit) => {
      const input = asJson ? JSON.stringify({ a: raw, b: [raw.slice(0, 7)] }) : raw
      const shorter = shortenOutput(input, limit)
      expect(countTextTokens(shorter)).toBeLessThanOrEqual(
        Math.max(limit, countTextTokens(input) <= limit ? limit : 64),
      )
      if (asJson) JSON.parse(shorter)
      expect(/\p{Surrogate}/u.test(shorter)).toBe(false)
    }),
    { numRuns: 500 },
  )
})

test('shortenOutput shortens a very large output in one pass', () => {
  const json = JSON.stringify({ rows: 'x"'.repeat(5_000_000) })
  expect(countTextTokens(shortenOutput(json, 1000))).toBeLessThanOrEqual(1000)
})
