import { expect, test } from 'vitest'
import { planAnswer, splitEvery, splitText } from './family.js'

test.each([
  '',
  ' ',
  'one',
  'one two three four  five\n\nsix ',
  '\n lead',
  '🌞'.repeat(40),
  '한국어 문장 입니다 네',
])('the pieces of %j add up to the text', text => {
  expect(splitText(text).join('')).toBe(text)
  expect(splitEvery(text, 3).join('')).toBe(text)
  expect(splitEvery(text, 3).every(piece => !/\p{Surrogate}/u.test(piece))).toBe(true)
})

test('a plan fills in what a step does not set', () => {
  expect(planAnswer({ deltas: ['a', 'b'] }, 5)).toMatchObject({
    text: 'ab',
    deltas: ['a', 'b'],
    finish: 'stop',
    usage: { input: 5, cached: 0, reasoning: 0 },
  })
  expect(planAnswer({ toolCalls: [{ name: 'f' }] }, 5)).toMatchObject({
    finish: 'tool-calls',
    toolCalls: [{ name: 'f', args: {} }],
  })
})
