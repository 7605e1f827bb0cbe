import { expect, test } from 'vitest'
import { plainBase64, readDataUrl } from './base64.js'

const bytes = Buffer.from([0xfb, 0xff, 0xfe, 1])
const plain = bytes.toString('base64')

test('plain base64 is the very text', () => {
  expect(plainBase64(plain)).toBe(plain)
})

test.each([
  ['a data URL', `data:image/png;base64,${plain}`],
  ['a data URL in a data URL', `data:image/png;base64,data:image/png;base64,${plain}`],
  ['the URL alphabet without padding', bytes.toString('base64url')],
  ['line breaks', `${plain.slice(0, 3)}\r\n ${plain.slice(3)}\n`],
])('%s is written plainly', (_, text) => {
  expect(plainBase64(text)).toBe(plain)
})

test.each(['%%%%', 'data:nothing', 'ab=cd===', 'abcde', '{"a":1}'])('%s is not base64', text => {
  expect(plainBase64(text)).toBeUndefined()
})

test('a data URL has a type and data', () => {
  expect(readDataUrl(`data:image/png;base64,${plain}`)).toEqual({ mimeType: 'image/png', data: plain })
  expect(readDataUrl('data:text/plain,hello')).toBeUndefined()
  expect(readDataUrl('https://host/a.png')).toBeUndefined()
})
