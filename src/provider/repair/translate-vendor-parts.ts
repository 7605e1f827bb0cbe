/**
 * Code execution, server tools and the like mean something to their vendor only: others get text. A server tool's
 * question and what it found are refused one without the other, as a turn leaves them that was cut off or paused.
 */
import { isRecord } from '../../base/is-record.js'
import type { ProviderPart, VendorPart } from '../provider.js'
import { type Entry, orNothing, type ReplacePart, replaceAllParts, type StepContext } from './receipt.js'

const STEP = 'translate-vendor-parts'

/** Turns parts that only another vendor understands into text, and halves of a server tool's use. */
export function translateVendorParts(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  const translate: ReplacePart = (part, place, entry) => {
    if (part.type !== 'vendor') return part
    const own = profile.vendorParts && part.vendor === profile.vendor
    if (own && isWhole(part, place, entry.message.parts)) return part
    const silent = part.text.trim() === ''
    const what = own ? 'A half of a server tool’s use' : `A part that only ${part.vendor} understands`
    const kind = own ? 'unpaired' : silent ? 'leave-out' : 'translate'
    report({ step: STEP, kind, at: entry.at, detail: `${what} was ${silent ? 'left out' : 'sent as text'}.` })
    return silent ? undefined : { type: 'text', text: part.text }
  }
  return replaceAllParts(entries, translate, orNothing)
}

/** Whether the other half of a server tool's use stands in the same message, on the right side. */
function isWhole({ value, vendor }: VendorPart, place: number, all: readonly ProviderPart[]): boolean {
  // A half that another vendor made is sent as text, so it does not count.
  const parts = all.map(part => (part.type === 'vendor' && part.vendor !== vendor ? undefined : part))
  if (isQuestion(value)) {
    return SERVER_ID.test(String(value.id)) && parts.slice(place).some(part => answers(part, value.id))
  }
  if (!isFinding(value)) return true
  return parts
    .slice(0, place)
    .some(part => part?.type === 'vendor' && isQuestion(part.value) && part.value.id === value.tool_use_id)
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
