/**
 * Step 4 of the specification's five: every call is answered, and the answers stand where the profile wants
 * them. A call that nobody answered gets an error result that says so; pending calls are never sent.
 */
import { NO_RESPONSE_MARKER } from '../../base/markers.js'
import type { ToolCallPart, ToolResultPart } from '../provider.js'
import { readArguments } from './fix-arguments.js'
import { matchResults } from './match-results.js'
import type { Profile } from './profile.js'
import {
  type CallSite,
  type Entry,
  hasResults,
  madeEntry,
  replaceParts,
  type StepContext,
  toolLabel,
} from './receipt.js'

const STEP = 'pair-calls'

/** Answers every call, in the place that the profile demands. */
export function pairCalls(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { pairing } = context.profile
  if (pairing === 'none') return entries
  const batches = batchesOf(matchResults(entries, context).calls)
  const broken = batches.filter(batch =>
    pairing === 'later' ? batch.some(site => !site.result) : !isInPlace(batch, entries, context.profile),
  )
  if (broken.length === 0) return entries
  return rebuild(entries, broken, context)
}

/** The calls of one message each. */
function batchesOf(calls: readonly CallSite[]): CallSite[][] {
  const batches: CallSite[][] = []
  let current: CallSite[] = []
  for (const site of calls) {
    if (current[0]?.entry === site.entry) {
      current.push(site)
      continue
    }
    current = [site]
    batches.push(current)
  }
  return batches
}

/** Whether the results of a batch, and only these, follow its message at once. */
function isInPlace(batch: readonly CallSite[], entries: readonly Entry[], { results }: Profile): boolean {
  const start = (batch[0] as CallSite).entry + 1
  let end = start
  let count = 0
  for (; end < entries.length && hasResults(entries[end] as Entry); end++) {
    for (const part of (entries[end] as Entry).message.parts) if (part.type === 'tool-result') count++
    // Text after the results of a user message ends the run.
    if ((entries[end] as Entry).message.parts.at(-1)?.type !== 'tool-result') {
      end++
      break
    }
  }
  if (results.grouped && end !== start + 1) return false
  let last = -1
  for (const { result } of batch) {
    if (!result || result.entry < start || result.entry >= end) return false
    if (results.inCallOrder && result.part < last) return false
    last = result.part
  }
  return count === batch.length
}

/** Takes the results of broken batches from anywhere in the history and puts them after their calls. */
function rebuild(
  entries: readonly Entry[],
  broken: readonly (readonly CallSite[])[],
  context: StepContext,
): readonly Entry[] {
  const groups = new Map<number, Entry>()
  const taken = new Map<number, Set<number>>()
  for (const batch of broken) {
    const index = (batch[0] as CallSite).entry
    groups.set(index, groupOf(batch, entries, context))
    for (const { result } of batch) {
      if (!result || context.profile.pairing === 'later') continue
      const places = taken.get(result.entry)
      if (places) places.add(result.part)
      else taken.set(result.entry, new Set([result.part]))
    }
  }
  const rebuilt: Entry[] = []
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry
    const places = taken.get(index)
    const rest = places ? replaceParts(entry, (part, place) => (places.has(place) ? undefined : part)) : entry
    if (rest.message.parts.length > 0) rebuilt.push(rest)
    const group = groups.get(index)
    if (group) rebuilt.push(group)
  }
  return rebuilt
}

const MOVES = {
  move: 'was moved directly after its call',
  group: 'was grouped with those of the other calls',
  reorder: 'was put in the order of the calls',
}

/** One message with a result for each call, in call order. Where results may come later, only what is missing. */
function groupOf(batch: readonly CallSite[], entries: readonly Entry[], context: StepContext): Entry {
  const { profile, report } = context
  const home = (batch[0] as CallSite).entry
  const { at } = entries[home] as Entry
  const together = batch.every(site => site.result?.entry === home + 1)
  const results: ToolResultPart[] = []
  let group = at
  for (const { call, result } of batch) {
    if (result) {
      if (profile.pairing === 'later') continue
      const from = (entries[result.entry] as Entry).at
      if (results.length === 0) group = from
      const kind = result.entry !== home + 1 ? 'move' : together ? 'reorder' : 'group'
      report({ step: STEP, kind, at: from, detail: `The result of ${toolLabel(call)} ${MOVES[kind]}.` })
      results.push(result.result)
      continue
    }
    const detail = `The call of ${toolLabel(call)} had no result: one was added that says so.`
    report({ step: STEP, kind: 'synthesize-result', at, detail })
    results.push(noResponse(call, profile))
  }
  return madeEntry('tool', results, group)
}

function noResponse(call: ToolCallPart, profile: Profile): ToolResultPart {
  // Arguments that were cut off cannot be sent as such; here the model can still read them.
  const { raw } = readArguments(call.args)
  const text =
    raw === undefined ? NO_RESPONSE_MARKER : `${NO_RESPONSE_MARKER} The arguments were cut off: ${raw}`
  const result = profile.results.object ? { error: text } : text
  return { type: 'tool-result', id: call.id, name: call.name, result, isError: true }
}
