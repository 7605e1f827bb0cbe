import { expect, test } from 'vitest'
import { gif, jpeg, pdf, png, webp } from '../../test/support/pictures.js'
import { readMediaHeader } from './media-header.js'

const size = { width: 1170, height: 2532 }

test.each([
  ['image/png', png(size)],
  ['image/jpeg', jpeg(size)],
  ['image/gif', gif(size)],
  ['image/webp', webp(size, 'VP8 ')],
  ['image/webp', webp(size, 'VP8L')],
  ['image/webp', webp(size, 'VP8X')],
])('reads type and size of %s', (type, data) => {
  expect(readMediaHeader(data)).toEqual({ type, ...size })
})

test('reads the size of a photo behind a preview of 60 kB', () => {
  expect(readMediaHeader(jpeg(size, 60_001))).toEqual({ type: 'image/jpeg', ...size })
})

test('reads the type of a PDF, which has no size', () => {
  expect(readMediaHeader(pdf())).toEqual({ type: 'application/pdf', width: 0, height: 0 })
})

test.each([
  ['nothing', ''],
  ['text', Buffer.from('Hello there').toString('base64')],
  ['no base64', '§§§§'],
])('%s is of no type', (_, data) => {
  expect(readMediaHeader(data)).toBeUndefined()
})

test.each([
  ['a PNG', png(size)],
  ['a JPEG', jpeg(size, 3)],
  ['a GIF', gif(size)],
  ['a WebP', webp(size)],
])('%s that ends anywhere is read without an error', (_, data) => {
  for (let length = 0; length < 64; length++) {
    const read = readMediaHeader(data.slice(0, length))
    expect(read === undefined || read.width >= 0).toBe(true)
  }
})

test('a JPEG of markers alone ends the search', () => {
  const data = Buffer.from([0xff, 0xd8, ...Array.from({ length: 9000 }, () => 0xff)]).toString('base64')
  expect(readMediaHeader(data)).toEqual({ type: 'image/jpeg', width: 0, height: 0 })
})
