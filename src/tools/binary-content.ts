import type { FileHandle } from 'node:fs/promises'
import { signedType } from '../base/media-header.js'

/** A description of a file that is not text; `undefined` for text. */
export async function describeBinary(
  handle: FileHandle,
  bytes: number,
): Promise<{ binary: true; note: string } | undefined> {
  const head = Buffer.alloc(Math.min(bytes, HEAD_BYTES))
  const { bytesRead } = await handle.read(head, 0, head.length, 0)
  const start = head.subarray(0, bytesRead)
  const type = signedType(start.toString('latin1'))
  if (type?.startsWith('image/'))
    return { binary: true, note: `This is an image (${type}). It cannot be read as text.` }
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
