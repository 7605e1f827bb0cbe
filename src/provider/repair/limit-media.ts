/**
 * Pictures and documents beyond every documented limit, and those that the provider has refused, are not sent: a note
 * stands in their place. The stored bytes are as they were, so that a model with other limits gets them.
 */
import { readMediaHeader } from '../../base/media-header.js'
import type { LeftOut, MediaPart, ProviderMessage, ProviderPart, ToolResultPart } from '../provider.js'
import { type MediaItem, mediaBeyondLimits } from './choose-media.js'
import { type Entry, replaceEntries, replaceParts, type StepContext } from './receipt.js'

const STEP = 'limit-media'

/** Replaces by a note what the model does not take. */
export function limitMedia(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const reading = context.mediaLimits
  if (!context.memo.hasMedia || reading === 'none') return entries
  const items = itemsOf(entries.map(({ message }) => message))
  const beyond = mediaBeyondLimits(items, context.profile.media.limits, reading)
  let next = 0
  const reasonOf = (part: MediaPart): LeftOut | undefined => {
    if (part.leftOut) return part.leftOut
    const limit = beyond.get(next++)
    return limit && { kind: 'media-left-out', ...limit }
  }
  return replaceEntries(entries, entry => replaceParts(entry, part => settle(part, entry, reasonOf, context)))
}

/** The media of a message, in the order in which they stand. */
export function mediaOf({ parts }: ProviderMessage): readonly MediaPart[] {
  return parts.flatMap(part => {
    if (part.type === 'media') return [part]
    return part.type === 'tool-result' ? (part.media ?? []) : []
  })
}

/** The media that would be sent, as limits see them. */
export function itemsOf(messages: readonly ProviderMessage[]): MediaItem[] {
  return messages.flatMap((message, index) =>
    mediaOf(message).flatMap(part => (part.leftOut ? [] : [toItem(part, index)])),
  )
}

function toItem(part: MediaPart, message: number): MediaItem {
  const { mimeType, data = '' } = part
  const kind = mimeType.startsWith('image/') ? 'image' : isDocument(mimeType) ? 'document' : 'other'
  const { width = 0, height = 0 } = kind === 'image' ? (readMediaHeader(data) ?? {}) : {}
  return { kind, size: data.length, width, height, message }
}

function isDocument(mimeType: string): boolean {
  return mimeType === 'application/pdf' || mimeType.startsWith('text/')
}

/** Called for each part once, in the order in which they stand. */
type ReasonOf = (part: MediaPart) => LeftOut | undefined

function settle(part: ProviderPart, entry: Entry, reasonOf: ReasonOf, context: StepContext): ProviderPart {
  if (part.type === 'tool-result') return settleResult(part, entry, reasonOf, context)
  const reason = part.type === 'media' ? reasonOf(part) : undefined
  if (part.type !== 'media' || !reason) return part
  return { type: 'text', text: leaveOut(part, reason, entry, context) }
}

/** The notes of a result stand in the result. */
function settleResult(
  result: ToolResultPart,
  entry: Entry,
  reasonOf: ReasonOf,
  context: StepContext,
): ToolResultPart {
  const notes: string[] = []
  const media = (result.media ?? []).filter(part => {
    const reason = reasonOf(part)
    if (reason) notes.push(leaveOut(part, reason, entry, context))
    return !reason
  })
  if (notes.length === 0) return result
  const { media: _, ...rest } = result
  const noted = { ...rest, result: withNotes(result.result, notes.join('\n')) }
  return media.length === 0 ? noted : { ...noted, media }
}

function withNotes(result: unknown, notShown: string): unknown {
  if (typeof result === 'string') return result === '' ? notShown : `${result}\n${notShown}`
  const isPlain = typeof result === 'object' && result !== null && !Array.isArray(result)
  return isPlain && !('notShown' in result) ? { ...result, notShown } : { result, notShown }
}

/** Reports it, and returns the note. */
function leaveOut(part: MediaPart, why: LeftOut, { at }: Entry, { report }: StepContext): string {
  const { kind, reason, source } = why
  const label = part.name === undefined ? part.mimeType : `${part.mimeType} ${part.name}`
  const documented = source === '' ? '' : ` (${source})`
  report({ step: STEP, kind, at, detail: `${label} was left out, because ${reason}${documented}.` })
  return `[${label}, not shown, because ${reason}]`
}
