/**
 * Images, audio and files that a tool returns besides its JSON. Until the result is stored they travel in a field of
 * it, so that the ledger and every copy of a result keep them; stored and sent they are parts of the response.
 */
import { isRecord } from './is-record.js'

/** Base64. */
export interface ToolMedia {
  mimeType: string
  data: string
  name?: string
}

/** Media as parts of ADK's function response. */
export interface InlinePart {
  inlineData: { mimeType: string; data: string; displayName?: string }
}

const MEDIA_KEY = 'lango:media'

/** A result with media: what is not an object becomes one. */
export function withMedia(result: unknown, media: readonly ToolMedia[]): unknown {
  if (media.length === 0) return result
  return { ...(isRecord(result) ? result : { result }), [MEDIA_KEY]: media }
}

/** A result without its media, and the media. */
export function splitMedia<Result>(result: Result): { result: Result; media: readonly ToolMedia[] } {
  if (!isRecord(result) || !Object.hasOwn(result, MEDIA_KEY)) return { result, media: [] }
  const { [MEDIA_KEY]: found, ...rest } = result
  const media = Array.isArray(found) ? found.filter(isToolMedia) : []
  // A field of that name which holds something else is data of the tool.
  return media.length === 0 ? { result, media } : { result: rest as Result, media }
}

/** Media as parts of a function response. */
export function toInlineParts(media: readonly ToolMedia[]): InlinePart[] {
  return media.map(({ mimeType, data, name }) => ({
    inlineData: { mimeType, data, ...(name === undefined ? {} : { displayName: name }) },
  }))
}

function isToolMedia(value: unknown): value is ToolMedia {
  return isRecord(value) && typeof value.mimeType === 'string' && typeof value.data === 'string'
}

const SIGNATURES: readonly (readonly [type: string, offset: number, signature: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF8'],
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

/** Whether files of a type tell it with their first bytes. */
export function isSignedType(mimeType: string): boolean {
  return mimeType === 'image/jpg' || SIGNATURES.some(([type]) => type === mimeType)
}
