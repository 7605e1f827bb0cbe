import type { FileHandle } from 'node:fs/promises'

/** A description of a file that is not text; `undefined` for text. */
export async function describeBinary(
  handle: FileHandle,
  bytes: number,
): Promise<{ binary: true; note: string } | undefined> {
  const head = Buffer.alloc(Math.min(bytes, HEAD_BYTES))
  const { bytesRead } = await handle.read(head, 0, head.length, 0)
  const start = head.subarray(0, bytesRead)
  const image = imageType(start)
  if (image) return { binary: true, note: `This is an image (${image}). It cannot be read as text.` }
  return isBinary(start)
    ? { binary: true, note: 'This is a binary file. It cannot be read as text.' }
    : undefined
}

/** Text has no NUL, and few bytes that are not UTF-8. */
export function isBinary(start: Uint8Array): boolean {
  if (start.includes(0)) return true
  const text = new TextDecoder('utf-8').decode(start, { stream: true })
  const broken = text.split('\ufffd').length - 1
  return broken > start.length * 0.1
}

const HEAD_BYTES = 8_192

const IMAGES: readonly (readonly [type: string, offset: number, signature: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF8'],
  ['image/webp', 8, 'WEBP'],
  ['image/bmp', 0, 'BM'],
]

function imageType(start: Buffer): string | undefined {
  const found = IMAGES.find(
    ([, offset, signature]) => start.toString('latin1', offset, offset + signature.length) === signature,
  )
  // Text may start with BM, too; bitmaps have a NUL in the header.
  return found && (found[0] !== 'image/bmp' || start.includes(0)) ? found[0] : undefined
}
