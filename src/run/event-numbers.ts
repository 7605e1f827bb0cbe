/**
 * The numbers of run events. An event takes one number; a delta takes one number for each character (UTF-16 unit) of its
 * text and has the last of them. Therefore a number does not depend on the pieces in which a text arrived, was stored or
 * was sent: a delta with number `seq` and a text of n characters covers `seq - n + 1` to `seq`. Numbers rise and have no
 * gaps within one attempt of a run. All arithmetic on numbers is in this file.
 */
import type { RunEvent, RunEventBody, RunEventIdentity } from './run-event.js'

type DeltaType = 'text-delta' | 'reasoning-delta'
export type Delta = Extract<RunEvent, { type: DeltaType }>

/**
 * An attempt that continues after a crash begins at the next multiple of this. Deltas are handed out before they are
 * stored, so that the process that is gone may have used numbers above the last stored one; it hands out none from
 * that multiple on (`mayPrecedeStoring`).
 */
const ATTEMPT_SPAN = 2 ** 24

/** The number after which the events of an attempt begin that continues after a crash. */
export function lastSeqBeforeAttempt(lastStoredSeq: number): number {
  return (Math.floor(lastStoredSeq / ATTEMPT_SPAN) + 1) * ATTEMPT_SPAN - 1
}

/** True if an event may be handed out although only the numbers up to `lastStoredSeq` are stored. */
export function mayPrecedeStoring(event: RunEvent, lastStoredSeq: number): boolean {
  return isDelta(event) && event.seq <= lastSeqBeforeAttempt(lastStoredSeq)
}

export function isDelta<E extends RunEventBody>(event: E): event is Extract<E, { type: DeltaType }> {
  return event.type === 'text-delta' || event.type === 'reasoning-delta'
}

/** The first of the numbers that an event takes. Ids that name an event or a text are made from it. */
export function firstSeqOf(event: RunEvent): number {
  return seqBefore(event) + 1
}

/** The number before an event: a cursor with this number is followed by the whole event. */
export function seqBefore(event: RunEvent): number {
  return event.seq - widthOf(event)
}

/** The number of the first character of a text whose last one has the number `seq`. */
export function firstSeqOfText(text: string, seq: number): number {
  return seq - text.length + 1
}

function widthOf(event: RunEventBody): number {
  return isDelta(event) ? event.text.length : 1
}

/** True if no number lies between `lastSeq` and an event. */
export function follows(event: RunEvent, lastSeq: number): boolean {
  return seqBefore(event) <= lastSeq
}

/** True if an event, or the first part of a delta, is a part of another. */
export function isWithin(event: RunEvent, whole: RunEvent): boolean {
  return seqBefore(event) >= seqBefore(whole) && seqBefore(event) < whole.seq
}

/** Events with the numbers after `lastSeq`. A delta without text is left out: it would have the number of another event. */
export function numbered(
  bodies: readonly RunEventBody[],
  { sessionId, runId }: Pick<RunEventIdentity, 'sessionId' | 'runId'>,
  lastSeq: number,
): RunEvent[] {
  let seq = lastSeq
  return bodies
    .filter(body => widthOf(body) > 0)
    .map(body => {
      seq += widthOf(body)
      return { ...body, sessionId, runId, seq }
    })
}

/** The events after a number. A delta that contains it is cut: its text after the number remains. */
export function eventsAfter(events: readonly RunEvent[], seq: number): readonly RunEvent[] {
  const from = events.findIndex(event => event.seq > seq)
  const first = events[from]
  if (!first) return []
  const rest = from === 0 ? events : events.slice(from)
  return firstSeqOf(first) > seq ? rest : [...parts(first, seq).slice(-1), ...rest.slice(1)]
}

/** The same events; a delta that contains a number and continues after it is in two parts. */
export function splitAt(events: readonly RunEvent[], seq: number): readonly RunEvent[] {
  return events.flatMap(event => (firstSeqOf(event) <= seq && seq < event.seq ? parts(event, seq) : event))
}

/** The same events, the texts in pieces of one character: whatever number a reader has, no piece contains it. */
export function* inCharacters(events: readonly RunEvent[]): Generator<RunEvent> {
  for (const event of events) {
    if (!isDelta(event)) {
      yield event
      continue
    }
    let seq = seqBefore(event)
    for (const character of event.text) {
      seq += character.length
      yield { ...event, text: character, seq }
    }
  }
}

/**
 * An event up to a number and after it. Half a character cannot be sent as UTF-8, so a surrogate pair that contains the
 * number stays whole, in the second part. No delta ends inside of a pair: only a forged cursor does.
 */
function parts(event: RunEvent, seq: number): RunEvent[] {
  if (!isDelta(event)) return [event]
  const first = firstSeqOf(event)
  const { text } = event
  const end = seq - first + 1
  const cut = endsInPair(text.slice(0, end)) && LOW_SURROGATE.test(text.charAt(end)) ? end - 1 : end
  const head = { ...event, text: text.slice(0, cut), seq: first + cut - 1 }
  const tail = { ...event, text: text.slice(cut) }
  return cut === 0 ? [tail] : [head, tail]
}

const LOW_SURROGATE = /[\udc00-\udfff]/

/** True if a text ends with the first half of a surrogate pair. */
export function endsInPair(text: string): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(text.length - 1))
}

/** The events with adjacent deltas of one stream joined: same type, same author, no number between them. */
export function joinDeltas(events: readonly RunEvent[]): RunEvent[] {
  const all: RunEvent[] = []
  for (const event of events) {
    const last = all.at(-1)
    const joined = last && join(last, event)
    if (joined) all[all.length - 1] = joined
    else all.push(event)
  }
  return all
}

function join(one: RunEvent, next: RunEvent): RunEvent | undefined {
  if (!isDelta(one) || !isDelta(next) || one.type !== next.type || one.author !== next.author)
    return undefined
  return seqBefore(next) === one.seq ? { ...next, text: one.text + next.text } : undefined
}
