import { expect, test } from 'vitest'
import { similarity } from './similar-words.js'
import { termsOf } from './terms.js'

test.each([
  ['case, accents and endings', 'Painted CAFÉS paints painting', ['paint', 'caf', 'paint', 'paint']],
  ['stop words', 'What is the name of it?', ['nam']],
  ['apostrophes', "Caroline's don't", ['carolin']],
  ['camelCase, whole and by its parts', 'getUserName', ['getusernam', 'user', 'nam']],
  ['snake_case', 'user_name', ['usernam', 'user', 'nam']],
  ['capitals in an identifier', 'HTTPServer', ['httpserver', 'http', 'server']],
  ['digits in a word', 'sha256', ['sha256', 'sha', '256']],
  ['Chinese by pairs', '東京都', ['東京', '京都']],
  ['a single character', '猫', ['猫']],
  ['Korean among English', 'hello 안녕하세요', ['안녕', '녕하', '하세', '세요']],
  ['full-width letters', 'ＡＢＣ', ['abc']],
  ['half of a character', 'a\ud83d word \ud83d\ude00', ['word']],
  ['nothing to find', '!!! ??? …', []],
])('search terms: %s', (_, text, terms) => {
  expect(termsOf(text)).toEqual(terms)
})

test('one spelling of an identifier finds the others', () => {
  for (const spelling of ['getUserName', 'get_user_name', 'GetUserName'])
    expect(termsOf(spelling)).toContain('getusernam')
})

test('terms of a long text, a long word and a repeated word are bounded', () => {
  expect(termsOf('word '.repeat(100_000)).length).toBeLessThanOrEqual(4000)
  expect(termsOf('x'.repeat(100_000))[0]?.length).toBe(40)
  expect(termsOf('𠀀'.repeat(100))[0]).toBe('𠀀𠀀')
})

test.each([
  ['adoption', 'adoption', 1],
  ['adopiton', 'adoption', 0.875],
  ['adoptin', 'adoption', 0.875],
  ['adption', 'adoption', 0.875],
  ['cat', 'dog', 0],
  ['short', 'shirt', 0.8],
  ['shrot', 'shirts', 0],
])('the words %s and %s are alike by %d', (one, other, expected) => {
  expect(similarity(one, other)).toBeCloseTo(expected)
})
