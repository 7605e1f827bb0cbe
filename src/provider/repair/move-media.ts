/**
 * Images and files stand where the profile takes them. From a result or an assistant's message they move to
 * the next user message, with a text that says where they came from; what the model cannot take at all is
 * replaced by a text.
 */
import type { MediaPart, ProviderPart, ToolResultPart } from '../provider.js'
import type { MediaRules } from './profile.js'
import {
  type Entry,
  hasResults,
  madeEntry,
  replaceParts,
  type StepContext,
  toolLabel,
  withParts,
} from './receipt.js'
import { holdsMedia } from './survey-parts.js'

const STEP = 'move-media'

/** Moves media to where the profile takes them, and replaces by a text what it does not take. */
export function moveMedia(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (!context.memo.hasMedia) return entries
  let moved: Entry[] | undefined
  let waiting: ProviderPart[] = []
  let from = 0
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    const arrived = waiting
    if (mayPart(entries[index - 1], entry)) waiting = []
    const collected = waiting.length
    let settled = entry.message.parts.some(holdsMedia) ? settle(entry, waiting, context) : entry
    if (arrived !== waiting && arrived.length > 0) {
      moved ??= entries.slice(0, index)
      if (settled.message.role === 'user')
        settled = withParts(settled, [...arrived, ...settled.message.parts])
      else moved.push(madeEntry('user', arrived, from))
    }
    if (settled !== entry) moved ??= entries.slice(0, index)
    moved?.push(settled)
    if (waiting.length > collected) from = entry.at
  }
  if (waiting.length > 0) moved?.push(madeEntry('user', waiting, from))
  return moved ?? entries
}

/**
 * Whether a user message may come between two entries: not in front of results, and not between two messages
 * of the assistant, where the first may end in a thought that leads to the second.
 */
function mayPart(before: Entry | undefined, entry: Entry): boolean {
  return !hasResults(entry) && (before?.message.role !== 'assistant' || entry.message.role !== 'assistant')
}

function settle(entry: Entry, waiting: ProviderPart[], context: StepContext): Entry {
  return replaceParts(entry, part => settlePart(part, entry, waiting, context))
}

function settlePart(
  part: ProviderPart,
  entry: Entry,
  waiting: ProviderPart[],
  context: StepContext,
): ProviderPart {
  const rules = context.profile.media
  if (part.type === 'tool-result' && part.media?.length) return settleResult(part, entry, waiting, context)
  if (part.type !== 'media') return part
  if (!isTaken(part, rules)) {
    context.report({ step: STEP, kind: 'stub', at: entry.at, detail: stubDetail(part, context) })
    return { type: 'text', text: stubText(part) }
  }
  if (entry.message.role !== 'assistant' || rules.inAssistant) return part
  waiting.push({ type: 'text', text: `[${part.mimeType} from the assistant]` }, part)
  const detail = `${part.mimeType} of the assistant was moved to the next user message.`
  context.report({ step: STEP, kind: 'move', at: entry.at, detail })
  return { type: 'text', text: `[${part.mimeType}: see the next user message]` }
}

function settleResult(
  result: ToolResultPart,
  entry: Entry,
  waiting: ProviderPart[],
  context: StepContext,
): ToolResultPart {
  const rules = context.profile.media
  const stays: MediaPart[] = []
  for (const part of result.media ?? []) {
    const taken = isTaken(part, rules)
    if (taken && rules.inResult) {
      stays.push(part)
      continue
    }
    const from = `from ${toolLabel(result)}`
    if (taken) waiting.push({ type: 'text', text: `[${part.mimeType} ${from}]` }, part)
    else waiting.push({ type: 'text', text: `${stubText(part)} ${from}` })
    const detail = taken
      ? `${part.mimeType} ${from} was moved to the next user message.`
      : stubDetail(part, context)
    context.report({ step: STEP, kind: taken ? 'move' : 'stub', at: entry.at, detail })
  }
  if (stays.length === result.media?.length) return result
  const { media: _, ...rest } = result
  return stays.length === 0 ? rest : { ...rest, media: stays }
}

/** What is left out has a note of its own, whatever its type is. */
function isTaken(part: MediaPart, rules: MediaRules): boolean {
  if (part.leftOut) return true
  return rules.types.test(part.mimeType) && (rules.remote || Boolean(part.data))
}

function stubText(part: MediaPart): string {
  const label = part.name === undefined ? part.mimeType : `${part.mimeType} ${part.name}`
  return part.url === undefined ? `[${label}, which cannot be shown]` : `[${label} at ${part.url}]`
}

function stubDetail(part: MediaPart, { profile }: StepContext): string {
  return `${part.mimeType}, which ${profile.name} does not take, was replaced by a text.`
}
