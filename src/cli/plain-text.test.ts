import { expect, test } from 'vitest'
import { fitText, padText, plainLine, plainText, textWidth } from './plain-text.js'

test.each([
  ['colours', 'a\u001b[31mb\u001b[0mc', 'abc'],
  ['cursor moves', 'a\u001b[2J\u001b[Hb', 'ab'],
  ['private modes', '\u001b[?1049ha\u001b[>7u', 'a'],
  ['the clipboard', 'a\u001b]52;c;ZXZpbA==\u0007b', 'ab'],
  ['a title that ends with ST', 'a\u001b]0;owned\u001b\\b', 'ab'],
  ['a device string', 'a\u001bP1$r0m\u001b\\b', 'ab'],
  ['an application string', 'a\u001b_pi:c\u0007b', 'ab'],
  ['eight-bit sequences', 'a\u009b31mb\u009d52;c;x\u009cc', 'abc'],
  ['a full reset', 'a\u001bcb', 'ab'],
  ['a character set', 'a\u001b(0b', 'ab'],
  ['a string without an end, which keeps its words', 'a\u001b]52;c;rest of it', 'a]52;c;rest of it'],
  ['a lone escape', 'a\u001b', 'a'],
  ['bells, backspaces and returns', 'a\u0007\u0008b\r\nc\rd', 'ab\nc\nd'],
  ['marks of direction', 'rm \u202etxt.exe\u202c', 'rm txt.exe'],
  ['tabs', 'a\tb', 'a    b'],
  ['half of a character', 'a\ud83db', 'a\ufffdb'],
  ['what people write', 'héllo 世界 👩‍👩‍👧 한국어', 'héllo 世界 👩‍👩‍👧 한국어'],
])('plain text of %s is safe to print', (_, text, expected) => {
  expect(plainText(text)).toBe(expected)
})

test('plain text of a sequence inside a sequence has no control characters', () => {
  const nested = '\u001b\u001b[31m[31m\u001b]0;\u001b]52;c;x\u0007'
  expect(plainText(nested)).not.toMatch(/\p{Cc}/u)
})

test('a long hostile text is cleaned in linear time', () => {
  expect(plainText('\u009d'.repeat(200_000))).toBe('')
  expect(plainText('\u001b]'.repeat(200_000)).length).toBe(200_000)
})

test('a plain line has no line breaks', () => {
  expect(plainLine(' a\n\n b\u001b[31m\tc ')).toBe('a b c')
})

test.each([
  ['', 0],
  ['plain', 5],
  ['naïve – “quoted” …', 18],
  ['漢字かな', 8],
  ['한국어', 6],
  ['ｆｕｌｌ', 8],
  ['😀', 2],
  ['👩‍👩‍👧‍👦', 2],
  ['🇩🇪', 2],
  ['✈️', 2],
  ['1️⃣', 2],
  ['e\u0301', 1],
  ['a\u200bb', 2],
  ['กำ', 2],
])('%j takes %i columns', (text, width) => {
  expect(textWidth(text)).toBe(width)
})

test.each([
  ['short', 10, 'short'],
  ['a longer text', 8, 'a longe…'],
  ['漢字漢字', 8, '漢字漢字'],
  ['漢字漢字', 7, '漢字漢…'],
  ['漢字漢字', 6, '漢字…'],
  ['👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 3, '👩‍👩‍👧‍👦…'],
  ['anything', 0, ''],
])('%j is fitted into %i columns', (text, width, shown) => {
  expect(fitText(text, width)).toBe(shown)
  expect(textWidth(fitText(text, width))).toBeLessThanOrEqual(width)
})

test('padding counts columns, not characters', () => {
  expect(padText('漢', 4)).toBe('漢  ')
})
