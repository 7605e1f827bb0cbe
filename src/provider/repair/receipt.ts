/**
 * What the steps of the pipeline share: an entry remembers which message of the given history it came from,
 * so that every receipt can point there, however far the message has moved since. Entries and messages are
 * never changed in place, and a step that has nothing to do returns the very list it was given.
 */
import type { ProviderMessage, ProviderPart, Repair, ToolCallPart, ToolResultPart } from '../provider.js'
import type { LimitsReading } from './media-limits.js'
import type { Profile } from './profile.js'

export interface Entry {
  readonly message: ProviderMessage
  /** Index in the history that was given. */
  readonly at: number
  /** Made by the pipeline, with a receipt of its own: joining it with a neighbour needs no second one. */
  readonly made?: true | undefined
}

export interface StepContext {
  readonly profile: Profile
  /** `user`: a user message will follow this history before it is sent. */
  readonly next: 'user' | 'none'
  /** The account that this history will be sent to, where it is known. */
  readonly account: string | undefined
  /** The model that this history will be sent to, where it is known. */
  readonly model: string | undefined
  /** Own tool name by the name on the wire, filled by `mapNames`. */
  readonly mappedNames: Record<string, string>
  /** Id on the wire by the stored id, filled by `mapIds`. */
  readonly mappedIds: Record<string, string>
  /** Which reading of disputed limits of media holds. */
  readonly mediaLimits: LimitsReading | 'none'
  /** The last list whose results were matched with its calls, and what `surveyParts` has noted. */
  readonly memo: { entries?: readonly Entry[]; matching?: Matching; hasMedia?: boolean; hasVendors?: boolean }
  report(repair: Repair): void
}

/** A call, and the first result that answers it. */
export interface CallSite {
  readonly entry: number
  readonly call: ToolCallPart
  result?: ResultSite
}

/** A result, and the call that it answers, or answers once more. */
export interface ResultSite {
  readonly entry: number
  readonly part: number
  readonly result: ToolResultPart
  call?: CallSite
  duplicateOf?: CallSite
}

/** Calls and results in the order in which they stand. */
export interface Matching {
  readonly calls: readonly CallSite[]
  readonly results: readonly ResultSite[]
  /** True when every result answers a call of its own. */
  readonly clean: boolean
}

export type Step = (entries: readonly Entry[], context: StepContext) => readonly Entry[]

/** Replaces entries one by one: by another, by several, or by none. The same list when nothing changed. */
export function replaceEntries(
  entries: readonly Entry[],
  replace: (entry: Entry, index: number) => Entry | readonly Entry[] | undefined,
): readonly Entry[] {
  let changed: Entry[] | undefined
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    const replacement = replace(entry, index)
    if (replacement === entry) {
      changed?.push(entry)
      continue
    }
    changed ??= entries.slice(0, index)
    if (replacement === undefined) continue
    if (isEntry(replacement)) changed.push(replacement)
    else for (const one of replacement) changed.push(one)
  }
  return changed ?? entries
}

function isEntry(value: Entry | readonly Entry[]): value is Entry {
  return !Array.isArray(value)
}

/**
 * Replaces parts one by one, or leaves some out. `settle` is called for each entry whose parts changed and
 * says what becomes of it. One function serves the whole list: making one for each entry costs more memory
 * than everything else in the pipeline.
 */
export function replaceAllParts(
  entries: readonly Entry[],
  replace: ReplacePart,
  settle?: (changed: Entry) => Entry | undefined,
): readonly Entry[] {
  return replaceEntries(entries, entry => {
    const changed = replaceParts(entry, replace)
    return changed === entry || settle === undefined ? changed : settle(changed)
  })
}

export type ReplacePart = (part: ProviderPart, place: number, entry: Entry) => ProviderPart | undefined

/** Replaces the parts of one entry, or leaves some out. The same entry when nothing changed. */
export function replaceParts(entry: Entry, replace: ReplacePart): Entry {
  const { parts } = entry.message
  let changed: ProviderPart[] | undefined
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as ProviderPart
    const replacement = replace(part, index, entry)
    if (replacement === part) {
      changed?.push(part)
      continue
    }
    changed ??= parts.slice(0, index)
    if (replacement !== undefined) changed.push(replacement)
  }
  return changed === undefined ? entry : withParts(entry, changed)
}

/** An entry from which parts were left out: when none remain, the message goes with them. */
export function orNothing(entry: Entry): Entry | undefined {
  return entry.message.parts.length === 0 ? undefined : entry
}

/** The same entry with other parts. */
export function withParts(entry: Entry, parts: readonly ProviderPart[]): Entry {
  return { ...entry, message: { ...entry.message, parts } }
}

/** An entry of another role in place of the one that stood at `at`. */
export function newEntry(role: string, parts: readonly ProviderPart[], at: number): Entry {
  return { message: { role, parts }, at }
}

/** An entry that the pipeline made because of what stood at `at`. */
export function madeEntry(role: string, parts: readonly ProviderPart[], at: number): Entry {
  return { message: { role, parts }, at, made: true }
}

export function hasCalls(entry: Entry): boolean {
  for (const part of entry.message.parts) if (part.type === 'tool-call') return true
  return false
}

/** Results lead every message that holds some, once `separateParts` has been there. */
export function hasResults(entry: Entry): boolean {
  return entry.message.parts[0]?.type === 'tool-result'
}

/** A tool's name for people. */
export function toolLabel(part: { readonly name: string }): string {
  return part.name === '' ? 'a tool without a name' : part.name
}

/** What a tool said, as text. */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return result
  return JSON.stringify(result) ?? '(no output)'
}
