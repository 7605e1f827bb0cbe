import type { SessionKey } from '../session/message.js'
import { type Dialect, numberIn, type Row, type Statement, sql, type Task, textIn } from './sql-database.js'
import { partMissing } from './store-errors.js'

/** Stores what one model step sent, once for the session where requests have it in common. */
export function* saveRequestTask(dialect: Dialect, runId: string, step: number, json: string): Task<void> {
  yield* dialect.lock('requests')
  const [run] = yield findRun(dialect, runId)
  if (isDeleted(run)) return
  const session = run && isLongRequest(json) ? yield findSession(run) : []
  const stored = session[0]
    ? writePartList(yield* storeParts(dialect, numberIn(session[0], 'pk'), splitRequest(json)))
    : json
  yield sql(
    `INSERT INTO lango_run_requests (run_id, step, stored_at, record) VALUES (?, ?, ${dialect.now}, ?)
      ON CONFLICT (run_id, step) DO UPDATE SET record = excluded.record, stored_at = excluded.stored_at`,
    runId,
    step,
    stored,
  )
}

function findSession(run: Row): Statement {
  const names = ['app_name', 'user_id', 'session_id'].map(column => textIn(run, column))
  return sql(SESSION_PK, ...names)
}

/** The number of the session with a name. */
export const SESSION_PK =
  'SELECT pk FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?'

export function* readRequestsTask(dialect: Dialect, runId: string): Task<{ step: number; json: string }[]> {
  const rows = yield sql('SELECT step, record FROM lango_run_requests WHERE run_id = ? ORDER BY step', runId)
  const requests = rows.map(row => {
    const stored = textIn(row, 'record')
    return { step: numberIn(row, 'step'), stored, list: readPartList(stored) }
  })
  const ids = new Set(requests.flatMap(({ list }) => list ?? []))
  const parts = textsById(ids.size > 0 ? yield partsWith(dialect, [...ids]) : [])
  return requests.map(({ step, stored, list }) => {
    const found = list?.map(id => parts.get(id)) ?? [stored]
    if (found.includes(undefined)) throw partMissing(runId, step)
    return { step, json: found.join('') }
  })
}

function partsWith({ eachValue }: Dialect, ids: readonly number[]): Statement {
  return sql(
    `SELECT id, part FROM lango_request_parts WHERE id IN (SELECT CAST(value AS BIGINT) FROM ${eachValue})`,
    JSON.stringify(ids),
  )
}

function textsById(rows: readonly Row[]): Map<number, string> {
  return new Map(rows.map(row => [numberIn(row, 'id'), unpackPart(textIn(row, 'part'))]))
}

/** The session that a run belongs to, kept from being deleted until the transaction ends. */
export function findRun({ forUpdate }: Dialect, runId: string): Statement {
  return sql(
    `SELECT app_name, user_id, session_id, deleted_at, state FROM lango_runs WHERE run_id = ?${forUpdate}`,
    runId,
  )
}

/** Whether the session of the run was deleted during the run: nothing of the run is stored any more. */
export function isDeleted(run: Row | undefined): boolean {
  return (run?.deleted_at ?? null) !== null
}

/** The numbers of the parts, in order. Those that the session has already are not stored again. */
function* storeParts(dialect: Dialect, sessionPk: number, parts: readonly string[]): Task<number[]> {
  const digests = parts.map(digestOf)
  const known = new Map<string, number>()
  const note = (rows: readonly Row[]) => {
    for (const row of rows) known.set(textIn(row, 'digest'), numberIn(row, 'id'))
  }
  note(yield knownParts(dialect, digests, sql('SELECT CAST(? AS BIGINT)', sessionPk)))
  const missing = new Map<string, string>()
  for (const [index, digest] of digests.entries())
    if (!known.has(digest)) missing.set(digest, parts[index] ?? '')
  const rows = Array.from(missing, ([digest, part]) => [sessionPk, digest, packPart(part)])
  for (let start = 0; start < rows.length; start += PARTS_PER_STATEMENT) {
    const some = rows.slice(start, start + PARTS_PER_STATEMENT)
    note(
      yield sql(
        `INSERT INTO lango_request_parts (session_pk, digest, part) VALUES ${some.map(() => '(?, ?, ?)').join(', ')}
          ON CONFLICT (session_pk, digest) DO NOTHING RETURNING id, digest`,
        ...some.flat(),
      ),
    )
  }
  // Another run of the same session may have stored some of them meanwhile.
  if (digests.some(digest => !known.has(digest)))
    note(yield knownParts(dialect, digests, sql('SELECT CAST(? AS BIGINT)', sessionPk)))
  return digests.map(digest => known.get(digest) ?? 0)
}

/** Which of the digests a session has parts for; `session` gives its `pk`. */
function knownParts({ eachValue }: Dialect, digests: readonly string[], session: Statement): Statement {
  return sql(
    `SELECT id, digest FROM lango_request_parts
      WHERE session_pk = (${session.text}) AND digest IN (SELECT value FROM ${eachValue})`,
    ...session.parameters,
    JSON.stringify(digests),
  )
}

/** The parts of a request that its session has already. */
export function partsOfRequest(dialect: Dialect, key: SessionKey, json: string): Statement {
  const session = sql(SESSION_PK, key.appName, key.userId, key.sessionId)
  return knownParts(dialect, splitRequest(json).map(digestOf), session)
}

const PARTS_PER_STATEMENT = 32

/**
 * The requests of a session repeat each other: every step sends the whole conversation again. So a long request is
 * cut into parts at places that its JSON gives, each distinct part is stored once for the session, and the request
 * itself becomes a list of parts. The cuts do not understand the JSON: joined, the parts are the very same text.
 */

/** Shorter requests are stored as they are, readable. */
const SHORT_REQUEST = 4096

export function isLongRequest(json: string): boolean {
  return json.length >= SHORT_REQUEST
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
  return builtIn('node:crypto').createHash('sha256').update(part).digest('base64url').slice(0, DIGEST_LENGTH)
}

/** 132 bits. */
const DIGEST_LENGTH = 22

/**
 * A list of numbers as text: `5+3` for 5, 6, 7, 8 and `5+3*2` for 5, 7, 9, 11, as numbers mostly follow each other
 * with equal gaps. It starts with a marker that no JSON begins with.
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
  return LIST_MARKER + series.map(writeSeries).join(' ')
}

/** A request whose new parts have no numbers yet. */
export interface SplitRequest {
  /** Numbers in the notation of a part list, and the digests of new parts, in order; `undefined` for a short request. */
  items: string[] | undefined
  /** New parts by their digest, as they are stored. */
  missing: Map<string, string>
  /** The lowest number that the request refers to. */
  lowest: number | undefined
}

/** Splits a request against the parts that its session has. */
export function splitAgainst(known: ReadonlyMap<string, number>, json: string): SplitRequest {
  const split: SplitRequest = { items: undefined, missing: new Map(), lowest: undefined }
  if (!isLongRequest(json)) return split
  const items: string[] = []
  let ids: number[] = []
  const flush = () => {
    if (ids.length > 0) items.push(writePartList(ids).slice(LIST_MARKER.length))
    ids = []
  }
  for (const part of splitRequest(json)) {
    const digest = digestOf(part)
    const id = known.get(digest)
    if (id === undefined) {
      flush()
      items.push(digest)
      if (!split.missing.has(digest)) split.missing.set(digest, packPart(part))
    } else {
      ids.push(id)
      split.lowest = Math.min(split.lowest ?? id, id)
    }
  }
  flush()
  return { ...split, items }
}

/** The parts of sessions whose requests this process has stored: reading them once is enough. Bounded. */
export class KnownParts {
  readonly #sessions = new Map<string, Map<string, number>>()
  #size = 0

  get(key: SessionKey): ReadonlyMap<string, number> | undefined {
    return this.#sessions.get(nameOf(key))
  }

  add(key: SessionKey, parts: Iterable<readonly [digest: string, id: number]>): void {
    const name = nameOf(key)
    const known = this.#sessions.get(name) ?? new Map<string, number>()
    this.#size -= this.#sessions.has(name) ? known.size + 1 : 0
    for (const [digest, id] of parts) known.set(digest, id)
    this.#sessions.delete(name)
    this.#sessions.set(name, known)
    this.#size += known.size + 1
    // The session that wrote longest ago is dropped first; its parts are read again when it writes.
    for (const [oldest] of this.#sessions) {
      if (this.#size <= MOST_KNOWN || oldest === name) break
      this.#drop(oldest)
    }
  }

  forget(key: SessionKey): void {
    this.#drop(nameOf(key))
  }

  #drop(name: string): void {
    const known = this.#sessions.get(name)
    if (known === undefined) return
    this.#size -= known.size + 1
    this.#sessions.delete(name)
  }
}

function nameOf({ appName, userId, sessionId }: SessionKey): string {
  return JSON.stringify([appName, userId, sessionId])
}

/** Digests in memory, of all sessions together: some 20 MB at most. */
const MOST_KNOWN = 100_000

function writeSeries({ first, more, gap }: { first: number; more: number; gap: number }): string {
  if (more === 0) return `${first}`
  return gap === 1 ? `${first}+${more}` : `${first}+${more}*${gap}`
}

/** The numbers that `writePartList` wrote; `undefined` when the text is a request itself. */
export function readPartList(stored: string): number[] | undefined {
  if (!stored.startsWith(LIST_MARKER)) return undefined
  return stored
    .slice(LIST_MARKER.length)
    .split(' ')
    .flatMap(series => {
      const [first = 0, more = 0, gap = 1] = series.split(/[+*]/).map(Number)
      return Array.from({ length: more + 1 }, (_, index) => first + index * gap)
    })
}

export const LIST_MARKER = 'shared '

/** A part as it is stored: compressed where that makes it shorter. */
export function packPart(part: string): string {
  const packed = PACKED_MARKER + builtIn('node:zlib').deflateRawSync(part).toString('base64')
  return packed.length < part.length + PLAIN_MARKER.length ? packed : PLAIN_MARKER + part
}

/** The reverse of `packPart`. */
export function unpackPart(stored: string): string {
  const rest = stored.slice(PLAIN_MARKER.length)
  return stored.startsWith(PACKED_MARKER)
    ? builtIn('node:zlib').inflateRawSync(Buffer.from(rest, 'base64')).toString()
    : rest
}

const PACKED_MARKER = 'z'
const PLAIN_MARKER = ' '

/** Loaded on use: commands that only list sessions start faster without these modules. */
const builtIn = process.getBuiltinModule
