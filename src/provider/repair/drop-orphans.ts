/**
 * Step 1 of the specification's five. A result whose call is gone is refused everywhere, but it is what a
 * tool said: it stays as a note in the user's voice. A result that comes before its call moves after it,
 * and of several results for one call the first successful one answers it: it was sent when the others came. A
 * result that came after the model had spoken again is a note too: the call was answered without it.
 */
import type { ProviderPart, ToolResultPart } from '../provider.js'
import { matchResults } from './match-results.js'
import {
  type CallSite,
  type Entry,
  hasResults,
  type Matching,
  madeEntry,
  type ResultSite,
  resultText,
  type StepContext,
  toolLabel,
  withParts,
} from './receipt.js'

/** Leaves exactly the results that answer an earlier call, each call having one at most. */
export function dropOrphans(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  if (context.profile.pairing === 'none') return entries
  const matching = matchResults(entries, context)
  const isLate = latenessOf(entries, context)
  if (matching.clean && !matching.results.some(site => isLate(site))) return entries
  const fates: Fates = { byEntry: new Map(), arrivals: new Map() }
  const early = earlyResults(entries, matching)
  for (const site of matching.results) {
    if (site.call || site.duplicateOf) continue
    const call = early.get(site)
    setFate(fates, site, call ? 'early' : 'orphan')
    if (call) pushTo(fates.arrivals, call.entry, site.result)
  }
  settleDuplicates(matching, fates, isLate)
  for (const site of matching.results) {
    if (site.call && isLate(site) && !fates.byEntry.get(site.entry)?.has(site.part))
      setFate(fates, site, 'late')
  }
  return applyFates(entries, fates, context)
}

/** What becomes of a result that answers no call where it stands. */
type Fate = 'orphan' | 'early' | 'late' | 'rival' | 'repeat'

interface Fates {
  /** By the index of the entry and the place of the part in it. */
  readonly byEntry: Map<number, Map<number, Fate>>
  /** Early results by the index of their call's entry. */
  readonly arrivals: Map<number, ToolResultPart[]>
}

function setFate(fates: Fates, site: ResultSite, fate: Fate): void {
  const places = fates.byEntry.get(site.entry) ?? new Map<number, Fate>()
  places.set(site.part, fate)
  fates.byEntry.set(site.entry, places)
}

/** Results that came before their call: only within one turn, for ids come back in later ones. */
function earlyResults(entries: readonly Entry[], matching: Matching): Map<ResultSite, CallSite> {
  const unanswered = new Map<string, CallSite[]>()
  for (const site of matching.calls) {
    if (!site.result && site.call.id !== '') pushTo(unanswered, site.call.id, site)
  }
  const early = new Map<ResultSite, CallSite>()
  if (unanswered.size === 0) return early
  const turns = turnNumbers(entries)
  // From the end, so that a list of calls can be eaten up from its end as well.
  for (let index = matching.results.length - 1; index >= 0; index--) {
    const site = matching.results[index] as ResultSite
    if (site.call || site.duplicateOf) continue
    const calls = unanswered.get(site.result.id)
    const call = calls?.at(-1)
    if (!call || call.entry < site.entry || turns[call.entry] !== turns[site.entry]) continue
    early.set(site, call)
    calls?.pop()
  }
  return early
}

/** Counts the user messages up to each entry: equal numbers are one turn. */
function turnNumbers(entries: readonly Entry[]): number[] {
  let turn = 0
  return entries.map(entry => {
    if (entry.message.role === 'user' && !hasResults(entry)) turn++
    return turn
  })
}

/**
 * Says of a result whether the model spoke between its call and it: then requests were sent in which the call had a
 * stand-in. Where results may stand anywhere after their call, only a second result is too late.
 */
function latenessOf(entries: readonly Entry[], { profile }: StepContext): (site: ResultSite) => boolean {
  let answers = 0
  const starts = entries.map((entry, index) => {
    const before = entries[index - 1]?.message.role
    if (entry.message.role === 'assistant' && before !== undefined && before !== 'assistant') answers++
    return answers
  })
  return ({ entry, call, duplicateOf }) => {
    const asked = (profile.pairing === 'next' ? (call ?? duplicateOf) : duplicateOf)?.entry
    return asked !== undefined && (starts[entry] ?? 0) > (starts[asked] ?? 0)
  }
}

function settleDuplicates({ results }: Matching, fates: Fates, isLate: (site: ResultSite) => boolean): void {
  const rivals = new Map<CallSite, ResultSite[]>()
  for (const site of results) if (site.duplicateOf) pushTo(rivals, site.duplicateOf, site)
  for (const [call, later] of rivals) {
    const sites = call.result ? [call.result, ...later] : later
    const inTime = sites.filter(site => !isLate(site))
    const winner = inTime.find(site => site.result.isError !== true) ?? inTime[0]
    const said = resultText(winner?.result.result)
    for (const site of sites) {
      if (site === winner) continue
      const repeats = resultText(site.result.result) === said && !site.result.media?.length
      setFate(fates, site, repeats ? 'repeat' : winner ? 'rival' : 'late')
    }
  }
}

function applyFates(entries: readonly Entry[], fates: Fates, context: StepContext): readonly Entry[] {
  const kept: Entry[] = []
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    const places = fates.byEntry.get(index)
    if (places) takeOut(entry, places, kept, context)
    else kept.push(entry)
    const arrivals = fates.arrivals.get(index)
    if (arrivals) kept.push(madeEntry('tool', arrivals, entry.at))
  }
  return kept
}

const RECEIPTS: Readonly<Record<Fate, { kind: string; what: string }>> = {
  orphan: { kind: 'note', what: 'without a call became a text note' },
  early: { kind: 'move', what: 'was moved after its call' },
  late: {
    kind: 'note-late',
    what: 'that came after its call had been answered without it became a text note',
  },
  rival: { kind: 'note-duplicate', what: 'that another one comes before became a text note' },
  repeat: { kind: 'drop-duplicate', what: 'that only repeats another was dropped' },
}

/** Keeps what stays of an entry, and what its lost results said as a note after it. */
function takeOut(
  entry: Entry,
  places: ReadonlyMap<number, Fate>,
  kept: Entry[],
  { report }: StepContext,
): void {
  const stays: ProviderPart[] = []
  const notes: ProviderPart[] = []
  for (const [place, part] of entry.message.parts.entries()) {
    const fate = places.get(place)
    if (part.type !== 'tool-result' || fate === undefined) {
      stays.push(part)
      continue
    }
    if (fate === 'orphan' || fate === 'rival' || fate === 'late') notes.push(...noteOf(part, fate))
    const { kind, what } = RECEIPTS[fate]
    report({ step: 'drop-orphans', kind, at: entry.at, detail: `A result of ${toolLabel(part)} ${what}.` })
  }
  if (stays.length > 0) kept.push(withParts(entry, stays))
  if (notes.length > 0) kept.push(madeEntry('user', notes, entry.at))
}

function noteOf(part: ToolResultPart, fate: 'orphan' | 'rival' | 'late'): readonly ProviderPart[] {
  const label = NOTE_LABELS[fate].replace('%', toolLabel(part))
  return [{ type: 'text', text: `[${label}] ${resultText(part.result)}` }, ...(part.media ?? [])]
}

const NOTE_LABELS = {
  orphan: 'result of %, whose call is not in this history',
  rival: 'another result of %',
  late: 'result of %, which came later',
} as const

function pushTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}
