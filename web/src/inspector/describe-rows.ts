/** Aligned rows, with notes on how each was changed. */
import { own } from '../../../src/base/own.js'
import { type AlignedRow, type Alignment, alignMessages } from './align-messages.js'
import { storedText } from './match-keys.js'
import { cutsOf, repairSeq } from './step-facts.js'
import type { InspectedStep, StepRepair, StoredMessage } from './types.js'
import type { WireMessage, WireRequest } from './wire-messages.js'
import { countText } from './words.js'

export interface DescribedRow extends AlignedRow {
  key: string
  /** `same`: sent as it is stored. */
  fate: 'same' | 'changed' | 'not-sent' | 'added'
  notes: RowNote[]
}

export interface RowNote {
  kind: 'cut' | 'repair' | 'mapped' | 'signed'
  text: string
}

export interface DescribedStep {
  rows: DescribedRow[]
  /** By their position in `step.repairs`, the stored message that each is about. */
  repairSeqs: (number | undefined)[]
}

/** Lines up a step with the stored history and says of every row what happened to it. */
export function describeStep(
  step: InspectedStep,
  request: WireRequest,
  stored: readonly StoredMessage[],
): DescribedStep {
  const alignment = alignMessages(stored, request.messages, {
    mappedIds: step.mappedIds,
    storedBefore: step.stored?.messages,
  })
  const repairSeqs = step.repairs.map(repair => repairSeq(repair, step, request, alignment))
  return { rows: describeRows(step, alignment, repairSeqs), repairSeqs }
}

function describeRows(
  step: InspectedStep,
  { rows }: Alignment,
  repairSeqs: readonly (number | undefined)[],
): DescribedRow[] {
  const repairs = new Map<number, StepRepair[]>()
  step.repairs.forEach((repair, index) => {
    const seq = repairSeqs[index]
    if (seq !== undefined) repairs.set(seq, [...(repairs.get(seq) ?? []), repair])
  })
  const firstSent = rows.findIndex(row => row.sent.length > 0)
  const places = { first: firstSent, last: rows.findLastIndex(row => row.sent.length > 0) }
  return rows.map((row, index) => {
    const key = row.stored[0] ? `stored-${row.stored[0].seq}` : `sent-${row.sent[0]?.index}`
    if (row.sent.length === 0) {
      return { ...row, key, fate: 'not-sent', notes: [unsentNote(row, step, index < firstSent, repairs)] }
    }
    if (row.stored.length === 0) {
      return { ...row, key, fate: 'added', notes: [addedNote(row, step, index, places), ...signedNotes(row)] }
    }
    const changes = changesOf(row, step, repairs)
    return {
      ...row,
      key,
      fate: changes.length > 0 ? 'changed' : 'same',
      notes: [...changes, ...signedNotes(row)],
    }
  })
}

function unsentNote(
  row: AlignedRow,
  step: InspectedStep,
  leads: boolean,
  repairs: ReadonlyMap<number, readonly StepRepair[]>,
): RowNote {
  const [message] = row.stored
  const [repair] = repairs.get(message?.seq ?? 0) ?? []
  if (repair) return { kind: 'repair', text: repair.detail }
  const { atLoad, atSend } = cutsOf(step)
  const isCut =
    (message?.seq ?? 0) <= (atLoad?.messages ?? 0) || (atSend !== undefined && atSend.messages > 0)
  if (isCut || (leads && step.cuts.length > 0)) {
    return { kind: 'cut', text: `Cut by the budget: ${countText(message?.tokens ?? 0)} tokens saved` }
  }
  return { kind: 'cut', text: 'Not part of this request' }
}

function addedNote(
  row: AlignedRow,
  step: InspectedStep,
  index: number,
  places: { first: number; last: number },
): RowNote {
  const of = (kind: string) => step.repairs.find(repair => `${repair.step}/${repair.kind}` === kind)
  const isResult = row.sent.some(message => message.parts.some(part => part.type === 'tool-result'))
  const repair = isResult
    ? of('pair-calls/synthesize-result')
    : ((index === places.first ? of('prepend-user/prepend') : undefined) ??
      (index === places.last ? of('close-tail/append') : undefined) ??
      of('drop-orphans/note') ??
      of('move-media/move'))
  if (repair) return { kind: 'repair', text: `Added by repair: ${repair.detail}` }
  return { kind: 'repair', text: 'Only in the request: not a stored message' }
}

function changesOf(
  row: AlignedRow,
  step: InspectedStep,
  repairs: ReadonlyMap<number, readonly StepRepair[]>,
): RowNote[] {
  const found = row.stored.flatMap(message => repairs.get(message.seq) ?? [])
  // A renamed id is noted below, at every message that has it.
  const notes: RowNote[] = found
    .filter(repair => repair.step !== 'map-ids' || Object.keys(step.mappedIds).length === 0)
    .map(repair => ({ kind: 'repair', text: repair.detail }))
  notes.push(...addedResults(row, step))
  for (const id of callIds(row.stored)) {
    const wire = own(step.mappedIds, id)
    if (wire !== undefined) notes.push({ kind: 'mapped', text: `Id ${id} is ${wire} on the wire` })
    const shortened = step.cuts.flatMap(cut => cut.shortened).find(output => output.callId === id)
    if (shortened && hasResult(row.stored, id)) {
      const { fromTokens, toTokens } = shortened
      notes.push({
        kind: 'cut',
        text: `Output shortened from ${countText(fromTokens)} to ${countText(toTokens)} tokens`,
      })
    }
  }
  if (notes.length > 0) return notes
  if (row.stored.length > row.sent.length) {
    return [{ kind: 'repair', text: `${row.stored.length} stored messages were sent as one` }]
  }
  if (sameTexts(row)) return []
  // The form in which ADK quotes other agents to an agent.
  const isQuoted = textsOf(row.sent)[0]?.startsWith('For context:') === true
  const text = isQuoted ? 'Quoted from another agent' : 'Sent in other words than it is stored'
  return [{ kind: 'repair', text }]
}

/** Some wires put a result that repair has made into the message of the user that follows. */
function addedResults({ stored, sent }: AlignedRow, step: InspectedStep): RowNote[] {
  const own = stored.flatMap(message => message.parts).filter(part => part.type === 'tool-result').length
  const results = sent.flatMap(message => message.parts).filter(part => part.type === 'tool-result')
  const added = results.length - own
  if (added <= 0) return []
  const made = step.repairs.filter(repair => repair.kind === 'synthesize-result')
  return made.slice(0, added).map(({ detail }) => ({ kind: 'repair', text: `Added by repair: ${detail}` }))
}

function signedNotes(row: AlignedRow): RowNote[] {
  const signed = row.sent.flatMap(message => message.parts).filter(part => part.signed).length
  if (signed === 0) return []
  return [{ kind: 'signed', text: signed === 1 ? 'Signature kept' : `${signed} signatures kept` }]
}

function callIds(stored: readonly StoredMessage[]): string[] {
  const ids = stored.flatMap(message =>
    message.parts.flatMap(part =>
      part.type === 'tool-call' || part.type === 'tool-result' ? [part.id] : [],
    ),
  )
  return [...new Set(ids)]
}

function hasResult(stored: readonly StoredMessage[], id: string): boolean {
  return stored.some(message => message.parts.some(part => part.type === 'tool-result' && part.id === id))
}

/** Whether every text that a person wrote or read is there, letter for letter. Layout on the wire may differ. */
function sameTexts({ stored, sent }: AlignedRow): boolean {
  const written = stored.flatMap(message =>
    message.parts.filter(part => part.type === 'text').map(storedText),
  )
  return spaceless(written) === spaceless(textsOf(sent))
}

function textsOf(sent: readonly WireMessage[]): string[] {
  return sent.flatMap(message => message.parts.filter(part => part.type === 'text').map(part => part.text))
}

function spaceless(texts: readonly string[]): string {
  return texts.join('').replaceAll(/\s+/g, '')
}
