/**
 * Media: how they are read from a request, wherever the vendors' forms put them; how large and how many they may be, by
 * profile, in either reading (what any source says is refused, and what every source agrees is refused, where one of them is
 * a page of the vendor; docs/strict-servers.md lists the sources); and the same checks for every vendor, with the words of
 * each. Sizes are characters of base64.
 */
import { readDataUrl } from '../../../base/base64.js'
import { readMediaHeader } from '../../../base/media-header.js'
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { StrictPlatform, StrictProfile } from '../profile.js'
import {
  firstOf,
  type JudgeContext,
  type LimitsReading,
  type Rule,
  readOnce,
  type Violation,
} from '../violation.js'

/** What is wrong with a picture, or with all of them together. */
export type MediaFault =
  | { readonly what: 'type' | 'unreadable' | 'unlisted'; readonly media: ReadMedia }
  | {
      readonly what: 'size' | 'side' | 'many-side' | 'pixels'
      readonly media: ReadMedia
      readonly most: number
    }
  | {
      readonly what: 'count'
      readonly kind: ReadMedia['kind']
      readonly count: number
      readonly most: number
      /** Set where the limit is one of messages. */
      readonly message?: number
    }
  | { readonly what: 'total'; readonly most: number }

/** The rule of a family: `words` says it as its vendor does. */
export function mediaRule(words: (fault: MediaFault, context: JudgeContext) => Violation): Rule {
  return (body, context) => {
    const fault = faultIn(body, context)
    return fault && words(fault, context)
  }
}

function faultIn(body: JsonObject, context: JudgeContext): MediaFault | undefined {
  const all = readMedia(body)
  if (all.length === 0) return undefined
  const limits = mediaLimits(context.profile, context.limits, context.platform)
  const many = all.filter(({ kind }) => kind === 'image').length > limits.many
  return (
    firstOf(all, media => typeFault(media, context)) ??
    firstOf(all, media => sizeFault(media, limits, many)) ??
    countFault(all, limits)
  )
}

/** Whose servers compare the type with the bytes is known of some; by the strict reading all do. */
function typeFault(media: ReadMedia, { profile, limits, opaque }: JudgeContext): MediaFault | undefined {
  const isPicky = limits === 'strict' || profile.startsWith('anthropic') || profile === 'converse'
  const compares = isPicky && !TEXTS.test(media.declared)
  if (media.actual !== undefined)
    return compares && media.actual !== media.declared ? { what: 'type', media } : undefined
  const isUnreadable = limits === 'strict' && !opaque && SIGNED.has(media.declared)
  return isUnreadable ? { what: 'unreadable', media } : undefined
}

/** Converse's formats of texts, which may begin with anything. */
const TEXTS = /^(text\/|application\/(txt|csv|html|md)$)/

const SIGNED: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'application/pdf',
])

function sizeFault(media: ReadMedia, limits: MediaLimits, many: boolean): MediaFault | undefined {
  const { kind, size, width, height } = media
  const most = kind === 'image' ? limits.imageSize : limits.documentSize
  if (size > most) return { what: 'size', media, most }
  if (kind === 'document') return undefined
  if (limits.listed && !limits.listed.test(media.actual ?? media.declared)) return { what: 'unlisted', media }
  const side = Math.max(width, height)
  if (side > limits.imageSide) return { what: 'side', media, most: limits.imageSide }
  if (width * height > limits.imagePixels) return { what: 'pixels', media, most: limits.imagePixels }
  return many && side > limits.manySide ? { what: 'many-side', media, most: limits.manySide } : undefined
}

function countFault(all: readonly ReadMedia[], limits: MediaLimits): MediaFault | undefined {
  const of = (kind: ReadMedia['kind']) => all.filter(media => media.kind === kind)
  const images = of('image')
  const documents = of('document')
  if (images.length > limits.images)
    return { what: 'count', kind: 'image', count: images.length, most: limits.images }
  if (documents.length > limits.documents)
    return { what: 'count', kind: 'document', count: documents.length, most: limits.documents }
  const total = all.reduce((sum, { size }) => sum + size, 0)
  return (
    perMessage(images, limits.imagesPerMessage) ??
    perMessage(documents, limits.documentsPerMessage) ??
    (total > limits.total ? { what: 'total', most: limits.total } : undefined)
  )
}

function perMessage(all: readonly ReadMedia[], most: number): MediaFault | undefined {
  return firstOf(all, ({ kind, message }) => {
    const count = all.filter(media => media.message === message).length
    return count > most ? { what: 'count', kind, count, most, message } : undefined
  })
}

export interface MediaLimits {
  readonly imageSize: number
  readonly documentSize: number
  readonly imageSide: number
  readonly imagePixels: number
  /** The side of every picture once a request has more than `many` of them. */
  readonly manySide: number
  readonly many: number
  readonly images: number
  readonly imagesPerMessage: number
  readonly documents: number
  readonly documentsPerMessage: number
  readonly total: number
  /** The types of pictures that the vendor's page lists; absent where others are taken. */
  readonly listed?: RegExp
}

const NONE: MediaLimits = {
  imageSize: Infinity,
  documentSize: Infinity,
  imageSide: Infinity,
  imagePixels: Infinity,
  manySide: Infinity,
  many: Infinity,
  images: Infinity,
  imagesPerMessage: Infinity,
  documents: Infinity,
  documentsPerMessage: Infinity,
  total: Infinity,
}

const MB = 1_048_576
const base64 = (bytes: number) => 4 * Math.ceil(bytes / 3)

type Both = Readonly<Record<LimitsReading, Partial<MediaLimits>>>

const CLAUDE_SIDES = { imageSide: 8000, manySide: 2000, many: 20 }
const CLAUDE: Both = {
  strict: { ...CLAUDE_SIDES, imageSize: 5 * MB, images: 100, total: 32 * MB },
  documented: { ...CLAUDE_SIDES, imageSize: 10 * MB, images: 600, total: 32 * MB },
}
const CLAUDE_ON_PLATFORMS: Both = {
  strict: { ...CLAUDE_SIDES, imageSize: 5 * MB, images: 100, total: 20 * MB },
  documented: { ...CLAUDE_SIDES, imageSize: 5 * MB, images: 600 },
}
const OPENAI: Both = {
  strict: { imageSize: base64(20 * MB), documentSize: base64(32 * MB), images: 500, total: 50 * MB },
  documented: {},
}
const GEMINI: Both = {
  strict: {
    documentSize: base64(20 * MB),
    images: 3000,
    total: 20 * MB,
    listed: /^image\/(png|jpeg|webp|heic|heif)$/,
  },
  documented: { documentSize: base64(50 * MB), total: base64(100 * MB) },
}
const GROQ_BOTH = { imagePixels: 33_177_600, total: 4 * MB }

const LIMITS: Readonly<Partial<Record<StrictProfile, Both>>> = {
  'anthropic-4.5': CLAUDE,
  'anthropic-4.6': CLAUDE,
  'anthropic-5.1': CLAUDE,
  'gemini-2': GEMINI,
  'gemini-3': GEMINI,
  'gemini-3-strict': GEMINI,
  'openai-chat': OPENAI,
  'openai-responses': OPENAI,
  'xai-responses': { strict: { imageSize: base64(10 * MB) }, documented: {} },
  'compatible-gemini': GEMINI,
  groq: { strict: { ...GROQ_BOTH, images: 5 }, documented: GROQ_BOTH },
  minimax: { strict: { images: 50 }, documented: {} },
  converse: {
    strict: {
      imageSize: base64(3.75 * MB),
      imageSide: 8000,
      documentSize: base64(4.5 * MB),
      imagesPerMessage: 20,
      documents: 5,
      documentsPerMessage: 5,
    },
    documented: { documentsPerMessage: 5 },
  },
}

export function mediaLimits(
  profile: StrictProfile,
  reading: LimitsReading,
  platform: StrictPlatform | undefined,
): MediaLimits {
  const isClaude = profile.startsWith('anthropic')
  const both = isClaude && platform !== undefined ? CLAUDE_ON_PLATFORMS : LIMITS[profile]
  return { ...NONE, ...both?.[reading] }
}

export interface ReadMedia {
  readonly kind: 'image' | 'document'
  /** The type that the request says. */
  readonly declared: string
  /** The type that the bytes say; absent when they are of none that can be recognised. */
  readonly actual: string | undefined
  /** Characters of base64. */
  readonly size: number
  /** In pixels; 0 where it is not known. */
  readonly width: number
  readonly height: number
  /** The index of the message, and the place of the part in it: `3` and `content.1`. */
  readonly message: number
  readonly place: string
}

interface Found {
  readonly kind: 'image' | 'document'
  readonly declared: string
  readonly data: string
}

const readMedia: (body: JsonObject) => readonly ReadMedia[] = readOnce(body => {
  const list = [body.messages, body.contents, body.input].map(listOf).find(({ length }) => length > 0) ?? []
  return list.flatMap((message, index) => mediaIn(message, index, []))
})

const DEEPEST = 8

function mediaIn(node: unknown, message: number, path: readonly string[]): ReadMedia[] {
  if (typeof node !== 'object' || node === null || path.length > DEEPEST) return []
  const found = isObject(node) ? mediaOf(node) : undefined
  if (found) return [toMedia(found, message, path.join('.'))]
  return Object.entries(node).flatMap(([key, value]) => mediaIn(value, message, [...path, key]))
}

function toMedia({ kind, declared, data }: Found, message: number, place: string): ReadMedia {
  const { type, width = 0, height = 0 } = readMediaHeader(data) ?? {}
  return { kind, declared, actual: type, size: data.length, width, height, message, place }
}

/** What one block holds, in the form of any vendor. */
function mediaOf(block: JsonObject): Found | undefined {
  const { type, source, image_url: url, file, file_data: fileData, image, document } = block
  if (type === 'image' || type === 'document') {
    const { type: form, media_type: declared, data } = objectOf(source)
    return form === 'base64' ? { kind: type, declared: textOf(declared), data: textOf(data) } : undefined
  }
  if (type === 'image_url' || type === 'input_image') return inUrl('image', isObject(url) ? url.url : url)
  if (type === 'file') return inUrl('document', objectOf(file).file_data)
  if (type === 'input_file') return inUrl('document', fileData)
  if (isObject(image)) return inConverse('image', image)
  if (isObject(document)) return inConverse('document', document)
  return inGemini(objectOf(block.inlineData ?? block.inline_data))
}

function inUrl(kind: Found['kind'], url: unknown): Found | undefined {
  const read = readDataUrl(textOf(url))
  return read && { kind, declared: read.mimeType, data: read.data }
}

function inConverse(kind: Found['kind'], { format, source }: JsonObject): Found {
  const declared = kind === 'image' ? `image/${textOf(format)}` : `application/${textOf(format)}`
  return { kind, declared, data: textOf(objectOf(source).bytes) }
}

function inGemini(inline: JsonObject): Found | undefined {
  const declared = textOf(inline.mimeType ?? inline.mime_type)
  const kind = declared.startsWith('image/')
    ? 'image'
    : declared === 'application/pdf'
      ? 'document'
      : undefined
  return kind && { kind, declared, data: textOf(inline.data) }
}
