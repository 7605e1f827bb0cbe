/** The little that every wire needs to say about media: its form as a URL, and words where it cannot go. */
import type { MediaPart } from './provider.js'

/** A URL that carries or names the media. */
export function mediaUrl(media: MediaPart): string {
  return media.data === undefined ? (media.url ?? '') : `data:${media.mimeType};base64,${media.data}`
}

/** What a model is told where media cannot be sent. */
export function mediaNote(media: MediaPart): string {
  const name = media.name === undefined ? '' : ` ${media.name}`
  const place = media.data === undefined && media.url !== undefined ? ` at ${media.url}` : ''
  return `[${media.mimeType}${name}${place}: not shown, because this model cannot take it here]`
}

/** A tool's result as the text that chat-style wires take. */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return result === '' ? '(no output)' : result
  return JSON.stringify(result) ?? '(no output)'
}

/** A schema that every provider accepts as a tool's parameters: an object, even when it asks for nothing. */
export function objectSchema(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...schema, type: 'object', properties: schema.properties ?? {} }
}
