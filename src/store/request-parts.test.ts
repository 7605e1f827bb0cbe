import { expect, test } from 'vitest'
import { packPart, readPartList, splitRequest, unpackPart, writePartList } from './request-parts.js'

function request(count: number, first = 0): string {
  const messages = Array.from({ length: count }, (_, index) => [
    { role: 'assistant', parts: [{ call: { name: 'look', args: { at: first + index } } }] },
    { role: 'tool', content: `${first + index} },{ ],[ "näxt" `.repeat(30) },
  ])
  const tools = Array.from({ length: 20 }, (_, index) => ({
    name: `tool-${index}`,
    parameters: [{ a: 'b' }],
  }))
  const body = { model: 'm', system: 's'.repeat(3000), messages: messages.flat(), tools }
  return JSON.stringify({ model: 'm', repairs: [`repair ${count}`], mappedIds: {}, body, cuts: [] })
}

test.each(['{}', '', 'null', '"}]"', `["${'},{'.repeat(2000)}"]`, request(10), 'x'.repeat(5000)])(
  'the parts of the stored request %.20s are the whole',
  json => {
    expect(splitRequest(json).join('')).toBe(json)
  },
)

test.each([
  ['one message more', request(10), request(12), 2],
  ['the first messages left out and one more at the end', request(10), request(8, 3), 2],
])('a request with %s shares the rest with the one before', (_name, before, after, news) => {
  const known = new Set(splitRequest(before))
  const fresh = splitRequest(after).filter(part => !known.has(part))
  expect(fresh.join('').length).toBeLessThan(1000 * news + 100)
})

test.each([
  [[1], '1'],
  [[5, 6, 7, 9, 9, 8], '5+2 9 9 8'],
  [[3, 1, 2], '3 1+1'],
  [[1, 2, 3, 5, 7, 9, 40], '1+2 5+2*2 40'],
])('a list of the parts %j is written as %s', (ids, text) => {
  expect(writePartList(ids)).toBe(text)
  expect(readPartList(text)).toEqual(ids)
})

test.each(['', 'z', ' ', 'short', 'long '.repeat(500), '€ü😀'.repeat(300)])(
  'the part %.10s of a request is the same after packing and unpacking',
  part => {
    expect(unpackPart(packPart(part))).toBe(part)
  },
)

test('packing makes repetitive text shorter', () => {
  expect(packPart('word '.repeat(400)).length).toBeLessThan(100)
})
