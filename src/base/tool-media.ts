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
