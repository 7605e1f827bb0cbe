/**
 * The stored history next to what was sent. Calls and results are found by their ids, everything else by its
 * text, from the newest to the oldest: a budget cuts at the beginning, so of several equal texts the last are
 * the ones that were sent. One row is whatever belongs together: a message that was sent in three items, or
 * three messages that were joined into one.
 */

import { matchKeys, sentKeys, storedKeys, traceOf } from './match-keys.js'
import type { StoredMessage } from './types.js'
import type { WireMessage } from './wire-messages.js'

export interface AlignedRow {
  stored: StoredMessage[]
  sent: WireMessage[]
}

export interface AlignOptions {
  /** Stored call id → id on the wire, where they differ. */
  mappedIds?: Readonly<Record<string, string>>
  /** How many messages the session had when the run began. */
  storedBefore?: number | undefined
}

export interface Alignment {
  rows: AlignedRow[]
  /** The newest stored message that the request could know, 0 when none was recognised. */
  knownThrough: number
}

/** Lines up stored messages, in order of `seq`, with the messages of one request. */
export function alignMessages(
  stored: readonly StoredMessage[],
  sent: readonly WireMessage[],
  options: AlignOptions = {},
): Alignment {
  const wireToStored = new Map(Object.entries(options.mappedIds ?? {}).map(([id, wire]) => [wire, id]))
  const keysOf = (message: WireMessage) => sentKeys(message, wireToStored)
  const knownThrough = newestKnown(stored, sent, keysOf, options.storedBefore)
  const known = stored.filter(message => message.seq <= knownThrough)
  const links = new Links(known.length, sent.length)
  linkEqual(links, known, sent, keysOf)
  linkTraces(links, known, sent)
  return { rows: toRows(links, known, sent), knownThrough }
}

/**
 * A run stores more after each request. What the last recognisable message of the request is, is the newest
 * that it can have known; a question that was asked before is the one that opened this run.
 */
function newestKnown(
  stored: readonly StoredMessage[],
  sent: readonly WireMessage[],
  keysOf: (message: WireMessage) => string[][],
  storedBefore: number | undefined,
): number {
  const places = new Map<string, number[]>()
  for (const message of stored) {
    for (const key of storedKeys(message).flat()) {
      const list = places.get(key)
      if (list) list.push(message.seq)
      else places.set(key, [message.seq])
    }
  }
  const before = storedBefore ?? 0
  for (const message of sent.toReversed()) {
    const quoted = quotedSeq(stored, message)
    const found = keysOf(message).flatMap(keys => keys.flatMap(key => [places.get(key) ?? []]))
    const seqs = found.filter(list => list.length > 0).map(list => newestOf(list, message, storedBefore))
    if (quoted !== undefined) seqs.push(quoted)
    if (seqs.length > 0) return Math.max(before, ...seqs)
  }
  return before
}

/** ADK shows an agent what others did as a quotation. */
function quotedSeq(stored: readonly StoredMessage[], message: WireMessage): number | undefined {
  const text = textOf(message)
  if (!text.startsWith('For context:')) return undefined
  return stored.findLast(one => traceOf(one).some(trace => text.includes(trace)))?.seq
}

function textOf(message: WireMessage): string {
  return message.parts.map(part => part.text).join('\n')
}

function newestOf(seqs: readonly number[], message: WireMessage, storedBefore: number | undefined): number {
  const last = seqs.at(-1) ?? 0
  if (storedBefore === undefined || message.role !== 'user') return last
  return seqs.find(seq => seq > storedBefore) ?? last
}

/** Which stored message went into which sent one, both as positions. */
class Links {
  readonly ofStored: Set<number>[]
  readonly ofSent: Set<number>[]

  constructor(stored: number, sent: number) {
    this.ofStored = Array.from({ length: stored }, () => new Set())
    this.ofSent = Array.from({ length: sent }, () => new Set())
  }

  add(stored: number, sent: number): void {
    this.ofStored[stored]?.add(sent)
    this.ofSent[sent]?.add(stored)
  }
}

/** Equal ids and equal texts. Every stored part is used once. */
function linkEqual(
  links: Links,
  stored: readonly StoredMessage[],
  sent: readonly WireMessage[],
  keysOf: (message: WireMessage) => string[][],
): void {
  const take = matchKeys(stored.map(storedKeys))
  for (let index = sent.length - 1; index >= 0; index--) {
    const message = sent[index]
    if (!message) continue
    for (const keys of keysOf(message).toReversed()) {
      const place = take(keys)
      if (place !== undefined) links.add(place, index)
    }
  }
}

/**
 * What repair or ADK rewrote still stands inside a sent text near its neighbours: a note, a quotation, a merge.
 * In a message that has a counterpart already only a long trace counts, and none of what was cut before.
 */
function linkTraces(links: Links, stored: readonly StoredMessage[], sent: readonly WireMessage[]): void {
  const texts = sent.map(textOf)
  const taken = links.ofSent.map(places => places.size > 0)
  const last = lastPlaces(links, sent.length - 1)
  let previous: number | undefined
  stored.forEach((message, index) => {
    const linked = links.ofStored[index]
    if (linked && linked.size > 0) {
      previous = Math.min(...linked)
      return
    }
    const traces = traceOf(message)
    const start = previous ?? 0
    const end = Math.min(last[index] ?? 0, start + MAXIMUM_REACH)
    for (let place = start; place <= end; place++) {
      const usable = taken[place] ? (previous === undefined ? [] : traces.filter(isTelling)) : traces
      if (!usable.some(trace => texts[place]?.includes(trace))) continue
      links.add(index, place)
      previous = place
      return
    }
  })
}

/** A trace is looked for in so many messages: far away it would be chance. */
const MAXIMUM_REACH = 12

function isTelling(trace: string): boolean {
  return trace.length >= 12
}

/** For each stored message, the last place where it may stand: that of the next one that was found. */
function lastPlaces(links: Links, end: number): number[] {
  const places: number[] = []
  let next = end
  for (let index = links.ofStored.length - 1; index >= 0; index--) {
    places[index] = next
    const linked = links.ofStored[index]
    if (linked && linked.size > 0) next = Math.max(...linked)
  }
  return places
}

function toRows(links: Links, stored: readonly StoredMessage[], sent: readonly WireMessage[]): AlignedRow[] {
  const rows: AlignedRow[] = []
  const rowOfStored = new Map<number, AlignedRow>()
  sent.forEach((message, index) => {
    const places = [...(links.ofSent[index] ?? [])].sort((one, other) => one - other)
    const open = places.map(place => rowOfStored.get(place)).find(row => row !== undefined)
    const row = open ?? { stored: [], sent: [] }
    if (!open) rows.push(row)
    row.sent.push(message)
    for (const place of places) {
      const added = stored[place]
      if (!added || rowOfStored.has(place)) continue
      rowOfStored.set(place, row)
      row.stored.push(added)
      row.stored.sort((one, other) => one.seq - other.seq)
    }
  })
  const unsent = stored.filter((_, place) => !rowOfStored.has(place))
  return withUnsent(rows, unsent)
}

/** Messages that were not sent stand where they would have stood. */
function withUnsent(rows: readonly AlignedRow[], unsent: readonly StoredMessage[]): AlignedRow[] {
  const all: AlignedRow[] = []
  let next = 0
  for (const row of rows) {
    const first = row.stored[0]?.seq
    while (first !== undefined && next < unsent.length) {
      const message = unsent[next]
      if (!message || message.seq > first) break
      all.push({ stored: [message], sent: [] })
      next += 1
    }
    all.push(row)
  }
  for (const message of unsent.slice(next)) all.push({ stored: [message], sent: [] })
  return all
}
