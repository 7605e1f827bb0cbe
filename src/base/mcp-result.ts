/** The answers of MCP servers. They are other people's programs: what does not look as agreed is described, not trusted. */
import { isBase64 } from './base64.js'
import { isRecord } from './is-record.js'
import { isSignedType, signedType } from './media-header.js'
import { type ToolMedia, withMedia } from './tool-media.js'

/** A tool's answer, as far as it is read here. */
export interface McpAnswer {
  content?: unknown
  structuredContent?: unknown
  isError?: unknown
  [other: string]: unknown
}

/** The answer of a server's tool as a result for the model: data if it is data, otherwise its text; media besides. */
export function mcpResult(answer: McpAnswer): unknown {
  const media = new MediaCollector()
  const parts = Array.isArray(answer.content) ? answer.content.map(part => partText(part, media)) : []
  const text = parts.join('\n')
  const { structuredContent } = answer
  if (answer.isError === true)
    return withMedia({ error: text || 'The tool failed and did not say why.' }, media.found)
  if (!isRecord(structuredContent)) return withMedia(text, media.found)
  return withMedia(withoutShown(structuredContent, media.found, 0), media.found)
}

/** Structured data without the base64 of media that are shown: as text it would cost many times as much as the picture. */
function withoutShown<Value>(value: Value, shown: readonly ToolMedia[], depth: number): Value {
  if (shown.length === 0 || depth > DEEPEST) return value
  if (typeof value === 'string') {
    const media = value.length < LEAST_FILE ? undefined : shown.find(({ data }) => value.endsWith(data))
    // Alone, or in a data URL.
    const isFile = media !== undefined && (value.length === media.data.length || value.startsWith('data:'))
    return (isFile ? `[${media.mimeType}, shown beside this result]` : value) as Value
  }
  if (Array.isArray(value)) return value.map(item => withoutShown<unknown>(item, shown, depth + 1)) as Value
  if (!isRecord(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, withoutShown(item, shown, depth + 1)])
  return Object.fromEntries(entries) as Value
}

/** No data nests so far; a shorter text is no file. */
const DEEPEST = 32
const LEAST_FILE = 40

/** An answer in the protocol's own form, as ADK's tools return it: media are taken out, all else stays. */
export function withoutBinaries(answer: unknown): unknown {
  if (!isRecord(answer) || !Array.isArray(answer.content) || !answer.content.some(isBinary)) return answer
  const media = new MediaCollector()
  const content = answer.content.map((part: unknown) =>
    isBinary(part) ? { type: 'text', text: partText(part, media) } : part,
  )
  return withMedia(withoutShown({ ...answer, content }, media.found, 0), media.found)
}

function isBinary(part: unknown): boolean {
  if (!isRecord(part)) return false
  const { type, resource } = part
  if (type === 'resource') return isRecord(resource) && typeof resource.blob === 'string'
  return type === 'image' || type === 'audio'
}

function partText(part: unknown, media: MediaCollector): string {
  if (!isRecord(part)) return String(part)
  const { type, text, data, mimeType, resource } = part
  if (type === 'text') return String(text)
  if (type === 'image' || type === 'audio') return media.take(type, { mimeType, data })
  if (type === 'resource_link') return linkText(part)
  if (type === 'resource') return resourceText(resource, media)
  return `[${String(type)}, not shown]`
}

function linkText({ uri, name, title, mimeType, description }: Record<string, unknown>): string {
  const facts = [title ?? name, mimeType, description].filter(fact => typeof fact === 'string' && fact !== '')
  return `[resource ${String(uri)}${facts.length > 0 ? `: ${facts.join(', ')}` : ''}]`
}

function resourceText(resource: unknown, media: MediaCollector): string {
  if (!isRecord(resource)) return '[resource, not shown]'
  const { uri, text, blob, mimeType } = resource
  if (typeof text === 'string') return text
  const name = String(uri)
  const isText = typeof mimeType === 'string' && TEXT_TYPE.test(mimeType)
  if (isText && typeof blob === 'string' && isFile(blob)) return Buffer.from(blob, 'base64').toString('utf8')
  return media.take(`resource ${name}`, { mimeType, data: blob, name })
}

const TEXT_TYPE = /^(text\/|application\/(json|xml|yaml|javascript)\b|[^;]+\+(json|xml)\b)/i

/** Collects what models may look at; everything else is a note. */
class MediaCollector {
  readonly found: ToolMedia[] = []
  #bytes = 0

  /** The text that stands in the place of the media. */
  take(kind: string, given: { mimeType?: unknown; data?: unknown; name?: string }): string {
    const { mimeType, data, name } = given
    const bytes = typeof data === 'string' ? Buffer.byteLength(data, 'base64') : 0
    const size = `${bytes} bytes`
    if (typeof mimeType !== 'string' || !MIME_TYPE.test(mimeType) || !isFile(data))
      return `[${kind} ${String(mimeType)}, ${size}, not shown]`
    const type = realType(mimeType.toLowerCase(), data)
    if (!type) return `[${kind} ${mimeType}, ${size}, not shown: it is not what its type says]`
    if (!VISIBLE_TYPE.test(type)) return `[${kind} ${mimeType}, ${size}, not shown]`
    if (this.#bytes + bytes > MAX_BYTES)
      return `[${kind} ${mimeType}, ${size}, not shown: a result may have ${MAX_BYTES} bytes of media]`
    this.#bytes += bytes
    this.found.push({ mimeType: type, data, ...(name === undefined ? {} : { name }) })
    return `[${kind} ${type}, ${size}]`
  }
}

/** As much as the vendors take in one request. */
const MAX_BYTES = 10_000_000
export const MIME_TYPE = /^[\w.+-]+\/[\w.+-]+$/
const VISIBLE_TYPE = /^(image|audio|video)\/|^application\/pdf$/

function isFile(data: unknown): data is string {
  return typeof data === 'string' && data !== '' && data.length % 4 === 0 && isBase64(data)
}

/**
 * A vendor refuses an image whose bytes are of another type, and with it every later request of the session. So the
 * bytes decide; `undefined` for those that are none of the types that can be recognised.
 */
function realType(mimeType: string, data: string): string | undefined {
  const found = signedType(Buffer.from(data.slice(0, 64), 'base64').toString('latin1'))
  if (found) return found
  return isSignedType(mimeType) ? undefined : mimeType
}
