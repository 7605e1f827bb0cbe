/** Text that says nothing, media without data and messages without parts are refused by some and needed by none. */
import type { MediaPart, ProviderPart } from '../provider.js'
import type { Profile } from './profile.js'
import { type Entry, type ReplacePart, replaceAllParts, replaceEntries, type StepContext } from './receipt.js'

const STEP = 'drop-empties'

/** Drops empty parts, and then the messages that hold nothing. */
export function dropEmpties(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  const keep: ReplacePart = part => (isEmpty(part, profile) ? undefined : withoutEmptyMedia(part))
  const kept = replaceAllParts(entries, keep, entry => {
    if (entry.message.parts.length > 0) {
      const detail = 'Empty parts of a message were dropped.'
      report({ step: STEP, kind: 'drop-part', at: entry.at, detail })
    }
    return entry
  })
  return replaceEntries(kept, entry => {
    if (entry.message.parts.length > 0) return entry
    const detail = `An empty ${entry.message.role} message was dropped.`
    report({ step: STEP, kind: 'drop-message', at: entry.at, detail })
    return undefined
  })
}

function withoutEmptyMedia(part: ProviderPart): ProviderPart {
  if (part.type !== 'tool-result' || !part.media?.some(isHollow)) return part
  return { ...part, media: part.media.filter(media => !isHollow(media)) }
}

function isHollow(part: MediaPart): boolean {
  return !part.data && !part.url
}

function isEmpty(part: ProviderPart, profile: Profile): boolean {
  if (part.type === 'media') return isHollow(part)
  if (part.type !== 'text' || profile.dropText === 'never') return false
  // Gemini 3 ends an answer with an empty text that carries the signature: there it is not empty.
  if (part.signature !== undefined && profile.signatures !== 'ignored') return false
  return profile.dropText === 'blank' ? part.text.trim() === '' : part.text === ''
}
