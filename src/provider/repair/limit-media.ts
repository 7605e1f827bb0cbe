/**
 * Pictures and documents beyond every documented limit, and those that the provider has refused, are not sent: a note
 * stands in their place. The stored bytes are as they were, so that a model with other limits gets them.
 */
import type { LeftOut, MediaPart, ProviderPart, ToolResultPart } from '../provider.js'
import { mediaBeyond } from './choose-media.js'
import { type Entry, replaceEntries, replaceParts, type StepContext } from './receipt.js'

const STEP = 'limit-media'

/** Replaces by a note what the model does not take. */
export function limitMedia(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const reading = context.mediaLimits
  if (!context.memo.hasMedia || reading === 'none') return entries
  const rules = context.profile.media
  const messages = entries.map(({ message }) => message)
  const beyond = mediaBeyond(messages, rules, reading)
  const reasonOf = (part: MediaPart): LeftOut | undefined => part.leftOut ?? beyond.next(part)
  return replaceEntries(entries, entry => replaceParts(entry, part => settle(part, entry, reasonOf, context)))
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

/** A result that is nested as far as vendors take it gets no further level. */
const DEEP = 60

function withNotes(result: unknown, notShown: string): unknown {
  if (typeof result === 'string') return result === '' ? notShown : `${result}\n${notShown}`
  if (Array.isArray(result) && isDeeper(result, DEEP)) return [...result, notShown]
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return { result, notShown }
  let name = 'notShown'
  for (let count = 2; name in result; count += 1) name = `notShown${count}`
  return { ...result, [name]: notShown }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1))
}

/** Reports it, and returns the note. */
function leaveOut(part: MediaPart, why: LeftOut, { at }: Entry, { report }: StepContext): string {
  const { kind, reason, source, isUnreadable } = why
  const label = part.name === undefined ? part.mimeType : `${part.mimeType} ${part.name}`
  const documented = source === '' ? '' : ` (${source})`
  const step = isUnreadable ? 'type-media' : STEP
  report({ step, kind, at, detail: `${label} was left out, because ${reason}${documented}.` })
  return `[${label}, not shown, because ${reason}]`
}
