import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { restoreText, storableText } from './storable-text.js'

describe('storableText', () => {
  test.each(['', 'plain', '한국어 😀', 'a\nb\tc\u0002', '"quoted"', '\\u0000'])('keeps %j readable', text => {
    expect(storableText(text)).toBe(text)
  })

  test('any string comes back, in a form that every database holds', () => {
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
})
