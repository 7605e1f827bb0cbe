/**
 * Media under the type that their bytes have. Programs call every screenshot `image/png`, and vendors refuse a request
 * whose bytes are of another type than it says, so the header of the file decides. Base64 that is wrapped in a data URL,
 * broken into lines or of the URL alphabet is written plainly; what is not base64 at all is marked to be left out.
 */
import { plainBase64, readDataUrl } from '../../base/base64.js'
import { readMediaHeader } from '../../base/media-header.js'
import type { MediaPart, ProviderPart } from '../provider.js'
import { type Entry, replaceAllParts, type StepContext } from './receipt.js'

const STEP = 'type-media'

/** Gives media the types of their bytes. */
export function typeMedia(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (!context.memo.hasMedia) return entries
  return replaceAllParts(entries, (part, _, entry) => typePart(part, entry, context))
}

function typePart(part: ProviderPart, entry: Entry, context: StepContext): ProviderPart {
  if (part.type === 'media') return typeOne(part, entry, context)
  if (part.type !== 'tool-result' || !part.media?.length) return part
  const media = part.media.map(one => typeOne(one, entry, context))
  return media.some((one, index) => one !== part.media?.[index]) ? { ...part, media } : part
}

function typeOne(part: MediaPart, entry: Entry, { report, mediaLimits }: StepContext): MediaPart {
  const { data, mimeType } = inlined(part)
  if (data === undefined || part.leftOut || mediaLimits === 'none') return part
  const plain = plainBase64(data)
  if (!plain) {
    const reason = plain === '' ? 'it holds nothing' : 'its data are not base64'
    return { ...part, leftOut: { kind: 'media-left-out', reason, source: '', isUnreadable: true } }
  }
  const type = typeOf(mimeType, plain)
  if (part.data === plain && part.mimeType === type) return part
  const was = type === part.mimeType ? '' : `${part.mimeType} was sent as ${type}`
  const mended = part.data === plain ? '' : 'its data were written as plain base64'
  const detail = `${was || part.mimeType}${was && mended ? '; ' : mended && ': '}${mended}.`
  report({ step: STEP, kind: 'media-retyped', at: entry.at, detail })
  const { url: _, ...rest } = part
  return { ...rest, mimeType: type, data: plain }
}

/** A data URL is data, wherever it stands; so is base64 in the place of an address. */
function inlined(part: MediaPart): { mimeType: string; data?: string | undefined } {
  const { mimeType, data, url } = part
  if (data === undefined && url !== undefined && !ADDRESS.test(url) && readMediaHeader(url))
    return { mimeType, data: url }
  const read = data === undefined && url !== undefined ? readDataUrl(url) : undefined
  if (!read) return { mimeType, data }
  return { mimeType: mimeType === UNKNOWN_TYPE && read.mimeType ? read.mimeType : mimeType, data: read.data }
}

const ADDRESS = /^[a-z][a-z\d+.-]*:/i

const UNKNOWN_TYPE = 'application/octet-stream'

/** The type of the bytes where their header tells it, otherwise the registered name of the type that is given. */
function typeOf(given: string, data: string): string {
  const named = given.toLowerCase().split(';')[0]?.trim() ?? ''
  // A text may begin as a file of another type does.
  if (named.startsWith('text/')) return given
  const type = readMediaHeader(data)?.type
  if (type !== undefined) return type
  return REGISTERED[named] ?? (/^image\/|^application\/pdf$/.test(named) ? named : given)
}

const REGISTERED: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'application/x-pdf': 'application/pdf',
}
