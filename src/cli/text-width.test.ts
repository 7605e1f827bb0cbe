import { expect, test } from 'vitest'
import { fitText, padText, textWidth } from './text-width.js'

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
