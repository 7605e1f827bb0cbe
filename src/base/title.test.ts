import { expect, test } from 'vitest'
import { MAX_TITLE, tidyTitle, titleOfMessage } from './title.js'

test.each([
  ['white space and control characters become one space', ' a\n\t b\0c ', 'a b c'],
  ['a text of the longest length stays whole', '😀'.repeat(MAX_TITLE), '😀'.repeat(MAX_TITLE)],
  ['a longer text is cut between two characters', `${'x'.repeat(199)}😀😀`, `${'x'.repeat(199)}😀`],
  ['long white space does not count', `${' \n'.repeat(1000)}😀${' '.repeat(1000)}b`, '😀 b'],
  ['no space is left where the text was cut', `${'x'.repeat(199)} y`, 'x'.repeat(199)],
  ['nothing is left of white space', ' \n ', undefined],
  ['no title stays none', undefined, undefined],
])('tidying a title: %s', (_, given, title) => {
  expect(tidyTitle(given)).toBe(title)
})

test('a message gives a title of at most 80 characters', () => {
  expect(titleOfMessage(`${'a'.repeat(79)}😀b`)).toBe(`${'a'.repeat(79)}😀`)
  expect(titleOfMessage('Hello,\nworld')).toBe('Hello, world')
  expect(titleOfMessage(undefined)).toBe('')
})
