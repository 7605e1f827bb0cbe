import { comesNext } from '../../chaos/check.js'
import { joinDeltas } from '../../src/run/event-numbers.js'
import type { RunEvent } from '../../src/run/run-event.js'

/** The numbers of events that do not follow the event before them. */
export function gapsIn(events: readonly object[]): number[] {
  // Stored events are what the recorder of runs wrote.
  const all = events as readonly RunEvent[]
  return all.flatMap((event, index) => (comesNext(event, all[index - 1]?.seq ?? 0) ? [] : [event.seq]))
}

/** Events with the texts in one piece: followers and the store have them in pieces of their own. */
export function inOnePiece(events: readonly object[]): RunEvent[] {
  return joinDeltas(events as readonly RunEvent[])
}

/** The text of the answer. */
export function textOf(events: readonly RunEvent[]): string {
  return events.flatMap(event => (event.type === 'text-delta' ? event.text : [])).join('')
}
