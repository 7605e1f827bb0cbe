/**
 * Reads the type of a picture or a document, and a picture's size in pixels, from its first bytes. Only the few bytes that
 * are needed are decoded, however long the file is.
 */

export interface MediaHeader {
  readonly type: string
  /** In pixels; 0 where the header does not say. */
  readonly width: number
  readonly height: number
}

const SIGNATURES: readonly (readonly [type: string, offset: number, signature: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF87a'],
  ['image/gif', 0, 'GIF89a'],
  ['image/webp', 8, 'WEBP'],
  ['image/bmp', 0, 'BM'],
  ['application/pdf', 0, '%PDF-'],
]

/** The type that the first bytes of a file tell, given as Latin-1. */
export function signedType(start: string): string | undefined {
  const found = SIGNATURES.find(([, offset, signature]) => start.startsWith(signature, offset))?.[0]
  // Text may start with BM, too; bitmaps have a NUL in the header.
  return found === 'image/bmp' && !start.includes('\0') ? undefined : found
}

/** True for types that can be recognised by their first bytes. */
export function isSignedType(mimeType: string): boolean {
  return mimeType === 'image/jpg' || SIGNATURES.some(([type]) => type === mimeType)
}

/** Reads the header of a file in base64. `undefined`: it is of no type that can be recognised. */
export function readMediaHeader(data: string): MediaHeader | undefined {
  const type = signedType(bytesAt(data, 0, 48))
  if (type === undefined) return undefined
  const [width, height] = SIZES[type]?.(data) ?? UNKNOWN
  return { type, width, height }
}

type Size = readonly [width: number, height: number]

const UNKNOWN: Size = [0, 0]

const SIZES: Readonly<Record<string, (data: string) => Size>> = {
  'image/png': data => {
    const bytes = bytesAt(data, 16, 8)
    return [big(bytes, 0, 4), big(bytes, 4, 4)]
  },
  'image/gif': data => {
    const bytes = bytesAt(data, 6, 4)
    return [little(bytes, 0, 2), little(bytes, 2, 2)]
  },
  'image/jpeg': jpegSize,
  'image/webp': webpSize,
}

/** More segments than any camera writes. */
const MOST_SEGMENTS = 1000

/** The size stands in the first frame header; the segments before it are skipped by their lengths. */
function jpegSize(data: string): Size {
  let at = 2
  for (let count = 0; count < MOST_SEGMENTS; count++) {
    const bytes = bytesAt(data, at, 9)
    if (bytes.length < 4 || bytes.charCodeAt(0) !== 0xff) return UNKNOWN
    const marker = bytes.charCodeAt(1)
    if (isFrame(marker)) return [big(bytes, 7, 2), big(bytes, 5, 2)]
    if (marker === START_OF_SCAN || marker === END_OF_IMAGE) return UNKNOWN
    // Fill bytes may stand before a marker; restart markers and TEM have no length.
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2
    else at += 2 + Math.max(2, big(bytes, 2, 2))
  }
  return UNKNOWN
}

const START_OF_SCAN = 0xda
const END_OF_IMAGE = 0xd9

/** SOF0 to SOF15 without DHT, JPG and DAC. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

function webpSize(data: string): Size {
  const bytes = bytesAt(data, 12, 18)
  switch (bytes.slice(0, 4)) {
    case 'VP8 ':
      return [little(bytes, 14, 2) & 0x3fff, little(bytes, 16, 2) & 0x3fff]
    case 'VP8L': {
      const bits = little(bytes, 9, 4)
      return [1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)]
    }
    case 'VP8X':
      return [1 + little(bytes, 12, 3), 1 + little(bytes, 15, 3)]
    default:
      return UNKNOWN
  }
}

/** Some bytes of a file in base64, as Latin-1; fewer at its end, none where it is not base64. */
function bytesAt(data: string, from: number, count: number): string {
  const start = Math.floor(from / 3) * 4
  const end = Math.ceil((from + count) / 3) * 4
  try {
    return atob(data.slice(start, end)).slice(from % 3, (from % 3) + count)
  } catch {
    return ''
  }
}

function big(bytes: string, at: number, count: number): number {
  let value = 0
  for (let index = at; index < at + count; index++) value = value * 256 + byteOf(bytes, index)
  return value
}

function little(bytes: string, at: number, count: number): number {
  let value = 0
  for (let index = at + count - 1; index >= at; index--) value = value * 256 + byteOf(bytes, index)
  return value
}

function byteOf(bytes: string, index: number): number {
  return index < bytes.length ? bytes.charCodeAt(index) : 0
}
