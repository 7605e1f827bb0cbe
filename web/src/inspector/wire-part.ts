/** What the readers of the vendors' bodies share. */

export interface WireMessage {
  /** Position in the vendor's list. */
  index: number
  role: 'user' | 'assistant' | 'tool' | 'system'
  /** The role, or the kind of item, as the wire says it. */
  label: string
  parts: WirePart[]
}

export interface WirePart {
  type: 'text' | 'reasoning' | 'tool-call' | 'tool-result' | 'media' | 'other'
  /** What there is to read: the text, the arguments, the result, or a word about media. */
  text: string
  /** Of a call or a result. Empty where the wire has no ids. */
  callId?: string
  /** The tool, where the wire names it. */
  name?: string
  /** A signature or an encrypted thought travels with it. */
  signed?: boolean
  isError?: boolean
}

export interface WireTool {
  name: string
  description: string
  parameters?: unknown
}

export type Fields = Record<string, unknown>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A value as compact JSON; a string as itself. */
export function jsonText(value: unknown): string {
  if (typeof value === 'string') return value
  return JSON.stringify(value) ?? ''
}

/** The text of a string, of a list of blocks, or of a content with parts. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (isFields(value)) return Array.isArray(value.parts) ? textOf(value.parts) : stringOf(value.text)
  return listOf(value)
    .map(textOf)
    .filter(text => text !== '')
    .join('\n')
}

/** A call: arguments are shown the same, whether the wire has them as text or as an object. */
export function callPart(id: unknown, name: unknown, args: unknown): WirePart {
  return { type: 'tool-call', text: jsonText(args ?? {}), callId: stringOf(id), name: stringOf(name) }
}

/** What was sent as a picture or a file, in words: never the data itself. */
export function mediaPart(mimeType: unknown, data: unknown): WirePart {
  const kind = stringOf(mimeType) || 'media'
  const size = typeof data === 'string' ? `, ${Math.round((data.length * 3) / 4 / 1024)} KB` : ''
  return { type: 'media', text: `${kind}${size}` }
}

/** The kind and the size of a `data:` address, or the address itself. */
export function mediaOfUrl(url: unknown): WirePart {
  const address = stringOf(url)
  const kind = /^data:([^;,]+)[^,]*,/.exec(address)
  return kind
    ? mediaPart(kind[1], address.slice(kind[0].length))
    : { type: 'media', text: address || 'media' }
}

/** A part that no reader knows, as it is. */
export function otherPart(value: unknown): WirePart {
  return { type: 'other', text: jsonText(value) }
}
