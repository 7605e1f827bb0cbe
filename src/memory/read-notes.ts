/**
 * What a model answered, read as notes. A model may answer anything: text around the JSON, other types, sources that do
 * not exist, ten megabytes. What is not a note is left out and counted; nothing of it reaches the store.
 */
import { isRecord } from '../base/is-record.js'
import { AgentError } from '../errors.js'
import type { ObservationKind, Observed } from '../session/session-memory.js'

export interface NotesSource {
  /** Messages that a note may name, and the time of each. */
  times: ReadonlyMap<number, number>
  origin: string
}

export interface ReadNotes {
  notes: Observed[]
  /** Entries that were no notes, or named sources that were not given. */
  refused: number
}

const MOST_NOTES = 200
const LONGEST_NOTE = 1000

export function readNotes(answer: string, source: NotesSource): ReadNotes {
  const entries = parseArray(answer)
  const notes = entries.slice(0, MOST_NOTES).flatMap(entry => readNote(entry, source) ?? [])
  return { notes, refused: entries.length - notes.length }
}

function parseArray(answer: string): unknown[] {
  const start = answer.indexOf('[')
  const end = answer.lastIndexOf(']')
  try {
    const parsed: unknown = JSON.parse(answer.slice(start, end + 1))
    if (start >= 0 && Array.isArray(parsed)) return parsed
  } catch {
    // Reported below, like an answer that is JSON of another shape.
  }
  throw new AgentError('provider-rejected', 'The observer did not answer with a JSON array of notes', {
    details: { length: answer.length },
  })
}

function readNote(entry: unknown, { times, origin }: NotesSource): Observed | undefined {
  if (!isRecord(entry)) return undefined
  const { text, kind, priority, from, to } = entry
  if (typeof text !== 'string' || text.trim() === '' || text.length > LONGEST_NOTE) return undefined
  if (typeof from !== 'number' || typeof to !== 'number' || from > to) return undefined
  const time = times.get(from)
  if (time === undefined || !times.has(to)) return undefined
  return {
    text: text.trim(),
    kind: KINDS.find(known => known === kind) ?? 'fact',
    priority: priority === 1 || priority === 3 ? priority : 2,
    ...{ time, fromSeq: from, toSeq: to, origin },
  }
}

const KINDS: readonly ObservationKind[] = ['fact', 'preference', 'decision', 'event', 'task']
