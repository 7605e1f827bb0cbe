import fc from 'fast-check'
import { expect, test } from 'vitest'
import { restoreText, storableText } from './storable-text.js'

test.each(['', 'plain', '한국어 😀', 'a\nb\tc\u0002', '"quoted"', '\\u0000'])(
  'storableText keeps %j readable',
  text => {
    expect(storableText(text)).toBe(text)
  },
)

test('storableText brings any string into a form that every database holds, and restoreText brings it back', () => {
  // `unit: 'binary'` of fast-check takes a second to begin.
  const character = fc.integer({ min: 0, max: 0x10ffff }).map(code => String.fromCodePoint(code))
  const odd = fc.constantFrom('\0', '\ud800', '\udfff', '\u0001', 'a', '😀')
  fc.assert(
    fc.property(fc.array(fc.oneof(odd, fc.string({ unit: character, maxLength: 5 }))), parts => {
      const text = parts.join('')
      const stored = storableText(text)
      expect(restoreText(stored)).toBe(text)
      expect(stored).not.toContain('\0')
      expect(Buffer.from(stored).toString()).toBe(stored)
    }),
  )
})
