// Files whose headers say what a test wants, and whose other bytes are noise: nothing here can be looked at.

/** The parts of a file in base64, filled up to a number of bytes. */
function file(header: readonly (number | string)[], bytes: number, fill = 0): string {
  const head = Buffer.concat(
    header.map(part => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from([part]))),
  )
  return Buffer.concat([head, Buffer.alloc(Math.max(0, bytes - head.length), fill)]).toString('base64')
}

const big = (value: number, count: number) =>
  Array.from({ length: count }, (_, index) => Math.floor(value / 256 ** (count - 1 - index)) % 256)
const little = (value: number, count: number) => big(value, count).toReversed()

export interface Picture {
  width?: number
  height?: number
  bytes?: number
  /** Makes the bytes of two pictures of one size differ. */
  fill?: number
}

export function png({ width = 8, height = 8, bytes = 64, fill = 0 }: Picture = {}): string {
  const size = [...big(width, 4), ...big(height, 4)]
  return file(['\x89PNG\r\n\x1a\n', ...big(13, 4), 'IHDR', ...size, 8, 6], bytes, fill)
}

/** With a segment of `before` bytes in front of the size, as cameras write previews. */
export function jpeg({ width = 8, height = 8, bytes = 64, fill = 0 }: Picture = {}, before = 16): string {
  const segment = [0xff, 0xe1, ...big(before + 2, 2), '\0'.repeat(before)]
  const frame = [0xff, 0xc2, ...big(17, 2), 8, ...big(height, 2), ...big(width, 2)]
  return file([0xff, 0xd8, ...segment, 0xff, ...frame], bytes, fill)
}

export function gif({ width = 8, height = 8, bytes = 64, fill = 0 }: Picture = {}): string {
  return file(['GIF89a', ...little(width, 2), ...little(height, 2)], bytes, fill)
}

export type WebpForm = 'VP8 ' | 'VP8L' | 'VP8X'

export function webp({ width = 8, height = 8, bytes = 64, fill = 0 }: Picture = {}, form: WebpForm = 'VP8X') {
  const bits = width - 1 + (height - 1) * 0x4000
  const headers = {
    'VP8 ': [...little(10, 4), 0, 0, 0, 0x9d, 0x01, 0x2a, ...little(width, 2), ...little(height, 2)],
    VP8L: [...little(10, 4), 0x2f, ...little(bits, 4)],
    VP8X: [...little(10, 4), 0, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3)],
  }
  return file(['RIFF', ...little(bytes, 4), 'WEBP', form, ...headers[form]], bytes, fill)
}

export function pdf({ bytes = 64, fill = 32 }: Picture = {}): string {
  return file(['%PDF-1.7\n'], bytes, fill)
}
