/**
 * The requests of a session repeat each other: every step sends the whole conversation again. So a long request is cut into
 * parts at places that its JSON gives, each distinct part is stored once for the session, and the entry of the request has
 * a list of their numbers. The cuts do not understand the JSON: joined, the parts are the very same text.
 */
import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync, type ZlibOptions } from 'node:zlib'
import { defined } from '../base/defined.js'
import type { EntryData, NewEntry, NewParts } from '../session/log-store.js'
import type { SessionKey } from '../session/message.js'
import type { RunRequest } from '../session/run-store.js'
import { storableJson } from './check-input.js'
import { keyText } from './log/log-rows.js'
import { namesOf, numberIn, type Row, type SqlDatabase, sql, textIn } from './sql-database.js'
import { partMissing } from './store-errors.js'
import { Turns } from './turns.js'

/** Shorter requests are stored whole. */
const SHORT_REQUEST = 4096

/** Requests as entries, and the parts that their session does not have yet. */
export interface PackedRequests {
  readonly entries: readonly NewEntry[]
  readonly parts?: NewParts
  /** The last request, if it is short: the next one of the run is compressed with it. */
  readonly last?: ShortRequest
}

interface ShortRequest {
  readonly step: number
  readonly json: string
}

/** The parts that a session has: their numbers by digest. */
interface KnownParts {
  count: number
  readonly numbers: Map<string, number>
}

/** Digests in memory, of all sessions together: some 20 MB at most. */
const MOST_KNOWN = 100_000

/** Runs whose last short request is remembered: some 8 MB at most. */
const MOST_RUNS = 2000

/** Packs the requests of runs. It remembers the parts of sessions, and the last short request of runs, that it has stored. */
export class RequestParts {
  readonly #database: SqlDatabase
  readonly #sessions = new Map<string, KnownParts>()
  readonly #requests = new Map<string, ShortRequest>()
  readonly #turns = new Turns<string>()
  #size = 0

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  /** A run has begun in a session with so many parts. */
  noteCount(key: SessionKey, count: number): void {
    if (count === 0) this.#keep(keyText(key), { count, numbers: new Map() })
  }

  /** The session has other parts than this process knows of. */
  forget(key: SessionKey): void {
    this.#drop(keyText(key))
  }

  async pack(key: SessionKey, runId: string, requests: readonly RunRequest[]): Promise<PackedRequests> {
    const records = requests.map(({ step, record }) => ({ step, json: storableJson('record', record) }))
    const isLong = records.some(({ json }) => json.length >= SHORT_REQUEST)
    const known = isLong ? await this.#known(key) : undefined
    const added = new Map<string, { number: number; part: string }>()
    let before = this.#requests.get(runId)
    const entries = records.map(({ step, json }): NewEntry => {
      const isLong = known && json.length >= SHORT_REQUEST
      const data = isLong ? { step, parts: partList(known, added, json) } : shortRequest(step, json, before)
      before = isLong ? undefined : { step, json }
      return { kind: 'request', runId, data }
    })
    const last = defined({ last: before })
    if (!known) return { entries, ...last }
    // Also without new ones: those that the session had may have been pruned.
    const parts = Array.from(added, ([digest, { part }]) => ({ digest, part: packPart(part) }))
    return { entries, ...last, parts: { before: known.count, added: parts } }
  }

  /** Each request of a session adds parts to those before it. */
  inTurn<T>(key: SessionKey, work: () => Promise<T>): Promise<T> {
    return this.#turns.take(keyText(key), work)
  }

  /** The requests of a run, and their parts, are in the store. */
  stored(key: SessionKey, runId: string, { parts, last }: PackedRequests): void {
    if (parts) this.#storedParts(key, parts)
    this.#requests.delete(runId)
    if (last !== undefined) this.#requests.set(runId, last)
    const [oldest] = this.#requests.keys()
    if (this.#requests.size > MOST_RUNS && oldest !== undefined) this.#requests.delete(oldest)
  }

  /** The run has ended, or goes on elsewhere. */
  forgetRun(runId: string): void {
    this.#requests.delete(runId)
  }

  #storedParts(key: SessionKey, { before, added }: NewParts): void {
    const known = this.#sessions.get(keyText(key))
    if (known?.count !== before) return
    for (const { digest } of added) {
      known.count += 1
      known.numbers.set(digest, known.count)
    }
    this.#keep(keyText(key), known)
  }

  async #known(key: SessionKey): Promise<KnownParts> {
    const found = this.#sessions.get(keyText(key))
    if (found) return found
    const rows = await this.#database.run(
      sql(
        `SELECT s.part_count, p.number, p.digest FROM lango_sessions s
          LEFT JOIN lango_request_parts p ON p.session_pk = s.pk
          WHERE s.app_name = ? AND s.user_id = ? AND s.session_id = ?`,
        ...namesOf(key),
      ),
    )
    const stored = rows.filter(({ number }) => number !== null)
    const numbers = new Map(stored.map(row => [textIn(row, 'digest'), numberIn(row, 'number')]))
    const known = { count: numberIn(rows[0], 'part_count'), numbers }
    this.#keep(keyText(key), known)
    return known
  }

  #keep(name: string, known: KnownParts): void {
    this.#drop(name)
    this.#sessions.set(name, known)
    this.#size += known.numbers.size + 1
    // The session that wrote longest ago is dropped first; its parts are read again when it writes.
    for (const [oldest] of this.#sessions) {
      if (this.#size <= MOST_KNOWN || oldest === name) break
      this.#drop(oldest)
    }
  }

  #drop(name: string): void {
    const known = this.#sessions.get(name)
    if (!known) return
    this.#size -= known.numbers.size + 1
    this.#sessions.delete(name)
  }
}

/** A short request is compressed; `after`: together with the request of that step, whose text it mostly repeats. */
function shortRequest(step: number, json: string, before: ShortRequest | undefined): EntryData {
  return { step, text: packPart(json, before?.json), ...(before ? { after: before.step } : {}) }
}

/** The numbers of a request's parts. Those that the session does not have are added, and numbered after it. */
function partList(
  known: KnownParts,
  added: Map<string, { number: number; part: string }>,
  json: string,
): string {
  const numbers = splitRequest(json).map(part => {
    const digest = digestOf(part)
    const number = known.numbers.get(digest) ?? added.get(digest)?.number
    if (number !== undefined) return number
    const next = known.count + added.size + 1
    added.set(digest, { number: next, part })
    return next
  })
  return writePartList(numbers)
}

/** Requests as their entries have them, with the parts that they refer to. `session_pk` and `data` are columns of the rows. */
export async function readRequests(
  database: SqlDatabase,
  runId: string,
  rows: readonly Row[],
): Promise<{ step: number; record: Record<string, unknown> }[]> {
  const stored = rows.map(row => JSON.parse(textIn(row, 'data')) as StoredRequest)
  const numbers = [
    ...new Set(stored.flatMap(({ parts }) => (parts === undefined ? [] : readPartList(parts)))),
  ]
  const found =
    numbers.length === 0
      ? []
      : await database.run(
          sql(
            `SELECT number, part FROM lango_request_parts WHERE session_pk = ? AND number ${database.dialect.among('BIGINT')}`,
            numberIn(rows[0], 'session_pk'),
            JSON.stringify(numbers),
          ),
        )
  const parts = new Map(found.map(row => [numberIn(row, 'number'), unpackPart(textIn(row, 'part'))]))
  // A step that was saved again replaces the earlier one.
  const byStep = new Map<number, string>()
  for (const request of stored) byStep.set(request.step, textOf(runId, request, parts, byStep))
  return Array.from(byStep, ([step, json]) => ({
    step,
    record: JSON.parse(json) as Record<string, unknown>,
  })).sort((one, other) => one.step - other.step)
}

interface StoredRequest {
  readonly step: number
  readonly text?: string
  /** The text is compressed with that of the request of this step. */
  readonly after?: number
  readonly parts?: string
}

function textOf(
  runId: string,
  { step, text, after, parts = '' }: StoredRequest,
  found: ReadonlyMap<number, string>,
  byStep: ReadonlyMap<number, string>,
): string {
  if (text !== undefined) return unpackPart(text, after === undefined ? undefined : byStep.get(after))
  const texts = readPartList(parts).map(number => found.get(number))
  if (texts.includes(undefined)) throw partMissing(runId, step)
  return texts.join('')
}

/** Parts are at least this long, except before a place where a new one always begins. */
const LEAST_PART = 512

/** Between two fields or two objects of a list, and at the end of a list. Quotes inside of texts are escaped. */
const CUT = /(?<=[}"])(?=,\{?"|\]\}*,")/

/** What comes before these places grows from step to step, and what comes after stays. */
const ALWAYS_NEW = /^(?:,"body":|\]\}*,")/

/** Cuts JSON into parts, most of them the same for the next request of the session. */
export function splitRequest(json: string): string[] {
  const parts: string[] = []
  let gathered = ''
  const flush = () => {
    if (gathered !== '') parts.push(gathered)
    gathered = ''
  }
  for (const piece of json.split(CUT)) {
    if (ALWAYS_NEW.test(piece)) flush()
    gathered += piece
    if (gathered.length >= LEAST_PART) flush()
  }
  flush()
  return parts
}

/** Identifies a part within its session. */
function digestOf(part: string): string {
  return createHash('sha256').update(part).digest('base64url').slice(0, DIGEST_LENGTH)
}

/** 132 bits. */
const DIGEST_LENGTH = 22

/**
 * A list of numbers as text: `5+3` for 5, 6, 7, 8 and `5+3*2` for 5, 7, 9, 11, as numbers mostly follow each other
 * with equal gaps.
 */
export function writePartList(ids: readonly number[]): string {
  const series: { first: number; more: number; gap: number }[] = []
  for (const id of ids) {
    const last = series.at(-1)
    if (last?.more === 0 && id > last.first) Object.assign(last, { more: 1, gap: id - last.first })
    else if (last !== undefined && last.more > 0 && id === last.first + last.gap * (last.more + 1))
      last.more++
    else series.push({ first: id, more: 0, gap: 1 })
  }
  return series.map(writeSeries).join(' ')
}

function writeSeries({ first, more, gap }: { first: number; more: number; gap: number }): string {
  if (more === 0) return `${first}`
  return gap === 1 ? `${first}+${more}` : `${first}+${more}*${gap}`
}

/** The numbers that `writePartList` wrote. */
export function readPartList(stored: string): number[] {
  return stored.split(' ').flatMap(series => {
    const [first = 0, more = 0, gap = 1] = series.split(/[+*]/).map(Number)
    return Array.from({ length: more + 1 }, (_, index) => first + index * gap)
  })
}

/** A part as it is stored: compressed where that makes it shorter. `before`: a text that it repeats. */
export function packPart(part: string, before?: string): string {
  const packed = PACKED_MARKER + deflateRawSync(part, optionsFor(part, before)).toString('base64')
  return packed.length < part.length + PLAIN_MARKER.length ? packed : PLAIN_MARKER + part
}

/** The reverse of `packPart`. */
export function unpackPart(stored: string, before?: string): string {
  const rest = stored.slice(PLAIN_MARKER.length)
  return stored.startsWith(PACKED_MARKER)
    ? inflateRawSync(Buffer.from(rest, 'base64'), withDictionary(before)).toString()
    : rest
}

function withDictionary(before: string | undefined): { dictionary?: Buffer } {
  return before === undefined ? {} : { dictionary: Buffer.from(before) }
}

/** Short texts need little memory, which takes longer to get than the texts to compress. */
function optionsFor(part: string, before: string | undefined): ZlibOptions {
  const isShort = part.length < SHORT_REQUEST
  return { ...withDictionary(before), ...(isShort ? { windowBits: 13, memLevel: 5 } : {}) }
}

const PACKED_MARKER = 'z'
const PLAIN_MARKER = ' '
