/**
 * Call ids in the form that the wire takes. The new id is a function of the old one, so that the same history
 * is the same request every time and prompt caches hold; a call and its result always get the same.
 */
import type { ToolCallPart } from '../provider.js'
import { matchResults } from './match-results.js'
import type { Profile } from './profile.js'
import {
  type CallSite,
  type Entry,
  type Matching,
  replaceAllParts,
  type StepContext,
  toolLabel,
} from './receipt.js'
import { shortHash } from './short-hash.js'

const STEP = 'map-ids'

/** Maps ids that the profile refuses, and renames calls that share one. */
export function mapIds(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { ids } = context.profile
  if (ids.pattern === undefined && ids.unique === 'no') return entries
  const matching = matchResults(entries, context)
  const renamed = renameCalls(matching, entries, context)
  const strays =
    ids.pattern !== undefined &&
    matching.results.some(site => !site.call && !fits(site.result.id, ids.pattern))
  if (renamed.size === 0 && !strays) return entries
  return rename(entries, matching, renamed, context)
}

function fits(id: string, pattern: RegExp | undefined): boolean {
  return pattern === undefined || pattern.test(id)
}

/** The new id of every call that needs one. */
function renameCalls(
  { calls }: Matching,
  entries: readonly Entry[],
  context: StepContext,
): ReadonlyMap<CallSite, string> {
  const { ids } = context.profile
  const renamed = new Map<CallSite, string>()
  const occurrences = new Map<string, number>()
  let taken = new Set<string>()
  let message = -1
  for (const site of calls) {
    if (ids.unique === 'step' && site.entry !== message) {
      taken = new Set()
      message = site.entry
    }
    const wire = wireId(site.call, taken, occurrences, context.profile)
    // Where no form is demanded an empty id is not sent, so it is no id at all.
    if (ids.unique !== 'no' && wire.id !== '') taken.add(wire.id)
    if (wire.kind === 'keep') continue
    renamed.set(site, wire.id)
    tell(site.call, wire, (entries[site.entry] as Entry).at, context)
  }
  return renamed
}

interface WireId {
  readonly id: string
  readonly kind: 'keep' | 'rename-id' | 'mint-id' | 'renumber-id'
}

function wireId(
  call: ToolCallPart,
  taken: ReadonlySet<string>,
  occurrences: Map<string, number>,
  { ids }: Profile,
): WireId {
  const legal = fits(call.id, ids.pattern)
  const lost = call.id === '' && !legal
  const id = legal ? call.id : shortHash(call.id)
  if (!lost && !taken.has(id)) return { id, kind: legal ? 'keep' : 'rename-id' }
  // The number counts from the start of the history, so that later messages do not shift it.
  const seed = lost ? `lost ${call.name}` : `again ${call.id}`
  for (;;) {
    const count = (occurrences.get(seed) ?? 0) + 1
    occurrences.set(seed, count)
    const numbered = shortHash(`${seed} ${count}`)
    if (!taken.has(numbered)) return { id: numbered, kind: lost ? 'mint-id' : 'renumber-id' }
  }
}

function tell(
  call: ToolCallPart,
  { id, kind }: WireId,
  at: number,
  { mappedIds, report }: StepContext,
): void {
  const tool = toolLabel(call)
  if (kind === 'rename-id') mappedIds[call.id] = id
  const detail =
    kind === 'mint-id'
      ? `The call of ${tool} had no id and got "${id}".`
      : kind === 'rename-id'
        ? `The call id "${call.id}" was sent as "${id}".`
        : `The call of ${tool} shared its id "${call.id}" with another and got "${id}".`
  report({ step: STEP, kind, at, detail })
}

function rename(
  entries: readonly Entry[],
  { calls, results }: Matching,
  renamed: ReadonlyMap<CallSite, string>,
  { profile }: StepContext,
): readonly Entry[] {
  let call = 0
  let result = 0
  // Sites are listed in the order of the walk, so two counters find the site of each part.
  return replaceAllParts(entries, part => {
    if (part.type === 'tool-call') {
      const id = renamed.get(calls[call++] as CallSite)
      if (id === undefined) return part
      // A signature that goes with the call was made under its id; only the first call of a message needs one.
      const { signature, ...unsigned } = part
      return signature === undefined || profile.signatures !== 'required'
        ? { ...part, id }
        : { ...unsigned, id }
    }
    if (part.type !== 'tool-result') return part
    const site = results[result++]
    const id = site?.call ? renamed.get(site.call) : strayId(part.id, profile)
    return id === undefined || id === part.id ? part : { ...part, id }
  })
}

/** Where results need no call, theirs is mapped as a call's would be. */
function strayId(id: string, { ids }: Profile): string | undefined {
  return fits(id, ids.pattern) ? undefined : shortHash(id)
}
