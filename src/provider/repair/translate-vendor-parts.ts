/**
 * Code execution, server tools and the like mean something to their vendor only: others get text. A server tool's
 * question and what it found are refused one without the other, as a turn leaves them that was cut off or paused.
 */
import { isRecord } from '../../base/is-record.js'
import { isAlive, isContainer } from '../anthropic/container.js'
import type { ProviderPart, VendorPart } from '../provider.js'
import { isOwnOrigin } from './own-origin.js'
import { type Entry, orNothing, type ReplacePart, replaceAllParts, type StepContext } from './receipt.js'

const STEP = 'translate-vendor-parts'

/** Turns parts that only another vendor understands into text, and halves of a server tool's use. */
export function translateVendorParts(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report, memo } = context
  if (!memo.hasVendors) return entries
  const pending = pendingIn(entries, context)
  const translate: ReplacePart = (part, place, entry) => {
    if (part.type !== 'vendor') return part
    const own = profile.vendorParts && isOwnPart(part, context)
    const { parts } = entry.message
    if (
      own &&
      (isContainer(part) ? parts.some(isServerTool) : isWhole(part, { place, parts, pending }, context))
    )
      return part
    const silent = part.text.trim() === '' || isContainer(part)
    const what = own
      ? 'A half of a server tool’s use'
      : `A part that only ${part.vendor}${part.vendor === profile.vendor ? ', under another account,' : ''} understands`
    const kind = own ? 'unpaired' : silent ? 'leave-out' : 'translate'
    report({ step: STEP, kind, at: entry.at, detail: `${what} was ${silent ? 'left out' : 'sent as text'}.` })
    if (silent) return undefined
    // Its words say what was asked for: what did not happen must not read as if it had.
    return { type: 'text', text: own && isCode(part.value) ? `${UNFINISHED} ${part.text}` : part.text }
  }
  return replaceAllParts(entries, translate, orNothing)
}

/** Gemini's parts hold nothing sealed, Claude's hold what only the account that found it can read. */
function isOwnPart(part: VendorPart, context: StepContext): boolean {
  const { vendor, sealsVendorParts } = context.profile
  if (part.vendor !== vendor) return false
  return !sealsVendorParts || part.origin === undefined || isOwnOrigin(part.origin, context)
}

/** Whether the other half of a server tool's use stands in the same message, on the right side. */
function isWhole(
  { value }: VendorPart,
  {
    place,
    parts: all,
    pending,
  }: { place: number; parts: readonly ProviderPart[]; pending: ReadonlySet<unknown> },
  context: StepContext,
): boolean {
  if (isQuestion(value) && pending.has(value.id)) return true
  if (isFinding(value) && pending.has(value.tool_use_id)) return true
  // A half that another vendor or account made is sent as text, so it does not count.
  const parts = all.map(part => (isVendor(part, context) ? part : undefined))
  if (isQuestion(value)) {
    return SERVER_ID.test(String(value.id)) && parts.slice(place).some(part => answers(part, value.id))
  }
  if (!isFinding(value)) return true
  return parts
    .slice(0, place)
    .some(part => part?.type === 'vendor' && isQuestion(part.value) && part.value.id === value.tool_use_id)
}

const UNFINISHED = '[This did not run.]'

/**
 * Code that waits for a tool of the client: its question stands beside the call, and what it found follows in a later
 * answer. The API wants it back as it is, together with the container that the code waits in.
 */
function pendingIn(entries: readonly Entry[], context: StepContext): Set<unknown> {
  const pending = new Set<unknown>()
  if (!context.profile.vendorParts) return pending
  const last = entries.findLastIndex(({ message }) => message.role === 'assistant')
  for (const [index, { message }] of entries.entries()) {
    const { parts } = message
    if (!parts.some(part => part.type === 'tool-call')) continue
    const lives = index < last || parts.some(part => isAlive(part) && isVendor(part, context))
    for (const part of parts) {
      if (part.type !== 'vendor' || !isVendor(part, context) || !isCode(part.value)) continue
      const { id } = part.value
      if (parts.some(other => answers(other, id))) continue
      const found = entries
        .slice(index + 1)
        .some(later => later.message.parts.some(other => answers(other, id)))
      if (lives && (found || index === last)) pending.add(id)
    }
  }
  return pending
}

function isVendor(part: ProviderPart, context: StepContext): boolean {
  return part.type === 'vendor' && isOwnPart(part, context)
}

function isCode(value: unknown): value is { id: unknown } {
  return (
    isQuestion(value) &&
    SERVER_ID.test(String(value.id)) &&
    /code_execution$/.test(String((value as { name?: unknown }).name))
  )
}

function isServerTool(part: ProviderPart): boolean {
  return part.type === 'vendor' && (isQuestion(part.value) || isFinding(part.value))
}

const SERVER_ID = /^(srv|mcp)toolu_[a-zA-Z0-9_]+$/

function isQuestion(value: unknown): value is { id: unknown } {
  return isRecord(value) && (value.type === 'server_tool_use' || value.type === 'mcp_tool_use')
}

function isFinding(value: unknown): value is { tool_use_id: unknown } {
  return isRecord(value) && typeof value.type === 'string' && value.type.endsWith('_tool_result')
}

function answers(part: ProviderPart | undefined, id: unknown): boolean {
  return part?.type === 'vendor' && isFinding(part.value) && part.value.tool_use_id === id
}
