/**
 * Stored messages as the neutral ones that the repair pipeline reads, each part with a number that leads back
 * to what was stored. Signatures and what only one vendor reads are not shown to the pipeline: they stay with
 * the part that they were stored next to.
 */

import { messagesToContents } from '../../adk/session/messages-to-events.js'
import type { MediaPart, ProviderMessage, ProviderPart } from '../../provider/provider.js'
import { openSignature } from '../../provider/provider.js'
import { isToolError, type Message, normalizeRole } from '../../session/message.js'
import { isRequestToPerson } from '../lint.js'

/** What ADK calls a content and a part, as the bridge restores them. */
export type Content = NonNullable<ReturnType<typeof messagesToContents>[number]>
export type Part = NonNullable<Content['parts']>[number]

/** A neutral part that remembers where it came from: a place in `View.sources`. */
export type ViewPart = ProviderPart & { readonly from?: number }

/** A stored part, with the hidden parts before and after it. */
export interface PartSource {
  /** Place of the stored message. */
  readonly index: number
  readonly part: Part
  readonly before: readonly Part[]
  readonly after: Part[]
}

export interface View {
  readonly messages: readonly ProviderMessage[]
  /** The stored message of each neutral one. */
  readonly origins: readonly number[]
  readonly sources: readonly PartSource[]
  readonly contents: readonly (Content | undefined)[]
  /** The stored id for an id of the view: parallel agents may use the same ids. */
  readonly realIds: ReadonlyMap<string, string>
}

/** The messages as the pipeline may see them. Those that are never sent are left out. */
export function viewOf(messages: readonly Message[]): View {
  const contents = messagesToContents(messages)
  const scoped = messages.some(({ branch }) => branch !== undefined)
  const realIds = new Map<string, string>()
  const view = { messages: [], origins: [], sources: [], contents, scoped, realIds }
  for (const [index, message] of messages.entries()) {
    const content = contents[index]
    if (content && !isRequestToPerson(message)) addMessage(view, message, content, index)
  }
  return view
}

interface GrowingView {
  messages: ProviderMessage[]
  origins: number[]
  sources: PartSource[]
  /** Whether some messages have a branch. */
  scoped: boolean
  realIds: Map<string, string>
}

function addMessage(view: GrowingView, message: Message, content: Content, index: number): void {
  const role = roleOf(message, content)
  const pieces: { role: string; parts: ViewPart[] }[] = []
  for (const source of sourcesOf(content.parts ?? [], index)) {
    const shown = toViewPart(source.part, view.sources.length, id => scopedId(view, message, id))
    if (!shown) continue
    view.sources.push(source)
    const own = shown.type === 'tool-result' ? 'tool' : shown.type === 'tool-call' ? 'assistant' : role
    const last = pieces.at(-1)
    if (last?.role === own) last.parts.push(shown)
    else pieces.push({ role: own, parts: [shown] })
  }
  for (const piece of pieces.length > 0 ? pieces : [{ role, parts: [] }]) {
    view.messages.push(piece)
    view.origins.push(index)
  }
}

/** As `messagesToProvider` reads it: the row's own role where it says more than the content's. */
function roleOf(message: Message, content: Content): string {
  const role = normalizeRole(message.role)
  if (role === undefined) return message.role
  if (role === 'system') return role
  return content.role === 'model' ? 'assistant' : 'user'
}

function scopedId(view: GrowingView, { branch }: Message, id: string): string {
  if (!view.scoped || id === '') return id
  const scoped = `${branch ?? ''}/${id}`
  view.realIds.set(scoped, id)
  return scoped
}

/** Hidden parts belong to the part before them, or to the part after them if they come first. If all are hidden, all are shown. */
function sourcesOf(parts: readonly Part[], index: number): PartSource[] {
  if (parts.every(isHidden)) {
    // Nothing here says anything to anyone: as plain parts they are judged like any others.
    return parts.map(part => ({ index, part: unsigned(part), before: [], after: [] }))
  }
  const sources: PartSource[] = []
  let waiting: Part[] = []
  for (const part of parts) {
    const last = sources.at(-1)
    if (!isHidden(part)) {
      sources.push({ index, part, before: waiting, after: [] })
      waiting = []
    } else if (last) last.after.push(part)
    else waiting.push(part)
  }
  return sources
}

/** Gemini's thoughts and the empty text that carries its signature: others never get them, so they break nothing. */
function isHidden(part: Part): boolean {
  if (part.functionCall || part.functionResponse) return false
  if (part.thought) return part.thoughtSignature !== undefined && vendorOf(part.thoughtSignature) === 'gemini'
  return part.text === '' && part.thoughtSignature !== undefined
}

function vendorOf(signature: string): string {
  return openSignature(signature).origin.vendor
}

function unsigned(part: Part): Part {
  if (part.thought || part.text !== '') return part
  const { thoughtSignature: _, ...rest } = part
  return rest
}

/** The vendor of the profile that heals: what is its own is left alone. */
const OWN = { vendor: 'lango' }

function toViewPart(part: Part, from: number, scoped: (id: string) => string): ViewPart | undefined {
  const { functionCall: call, functionResponse: response } = part
  if (call) {
    const name = call.name ?? ''
    return { type: 'tool-call', id: scoped(call.id ?? ''), name, args: call.args ?? {}, from }
  }
  if (response) {
    const result: unknown = response.response ?? {}
    const media = (response.parts ?? []).flatMap(item => mediaOf(item as Part) ?? [])
    const id = scoped(response.id ?? '')
    return {
      ...{ type: 'tool-result' as const, id, name: response.name ?? '', result, from },
      ...(isToolError(result) ? { isError: true } : {}),
      ...(media.length > 0 ? { media } : {}),
    }
  }
  if (part.thought) return { type: 'reasoning', text: part.text ?? '', origin: OWN, from }
  const media = mediaOf(part)
  if (media) return { ...media, from }
  if (typeof part.text === 'string' && part.partMetadata === undefined) {
    return { type: 'text', text: part.text, from }
  }
  if (Object.values(part).every(value => value === undefined)) return undefined
  return { type: 'vendor', ...OWN, value: null, text: 'opaque', from }
}

function mediaOf({ inlineData, fileData }: Part): MediaPart | undefined {
  if (inlineData) {
    const mimeType = inlineData.mimeType ?? 'application/octet-stream'
    return { type: 'media', mimeType, data: inlineData.data ?? '' }
  }
  if (!fileData) return undefined
  const mimeType = fileData.mimeType ?? 'application/octet-stream'
  return { type: 'media', mimeType, url: fileData.fileUri ?? '' }
}
