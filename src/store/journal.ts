/**
 * The journal of a run as it is stored: one JSON text per entry, so that any text and any key of state survives. Keys that
 * a delta removes are listed apart, because JSON has no `undefined`.
 */
import type { JournalEntry, RunStep } from '../session/run-store.js'
import { storableJson } from './check-input.js'

/** An entry as it is stored. */
export interface JournalRow {
  id: string
  /** Its number is that of the step's message. */
  isOfMessage: boolean
  seq: number | null
  json: string
}

/** The entries of a step. The end of a run deletes its journal, so a step that ends it adds nothing. */
export function journalRows({ journal = [], message, at, events = [] }: RunStep): JournalRow[] {
  if (events.some(({ type }) => type === 'run-finish')) return []
  return journal.map(({ seq = null, delta, ...entry }) => {
    const isOfMessage = message?.id !== undefined && message.id === entry.id
    const removed = Object.keys(delta ?? {}).filter(key => delta?.[key] === undefined)
    const stored = {
      ...entry,
      ...(isOfMessage ? { at } : {}),
      delta,
      ...(removed.length > 0 ? { removed } : {}),
    }
    return { id: entry.id, isOfMessage, seq, json: storableJson('journal', stored) }
  })
}

/** The reverse of `journalRows`. */
export function readEntry(json: string, seq: number | null): JournalEntry {
  const { removed, ...entry } = JSON.parse(json) as JournalEntry & { removed?: string[] }
  return {
    ...entry,
    ...(seq === null ? {} : { seq }),
    ...(removed ? { delta: withRemoved(entry.delta ?? {}, removed) } : {}),
  }
}

function withRemoved(delta: object, removed: readonly string[]): Record<string, unknown> {
  return Object.fromEntries([...Object.entries(delta), ...removed.map(key => [key, undefined] as const)])
}
