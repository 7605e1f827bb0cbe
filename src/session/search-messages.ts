/**
 * Finds messages by their words, newest first, in one session or in all of a user. It reads the messages themselves, so it
 * works in every store and needs no index; one call reads a bounded number of them, and `nextCursor` goes on from there.
 */
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { createPause } from '../base/pause.js'
import { AgentError } from '../errors.js'
import { normalizeRole, type StoredMessage } from './message.js'
import { newestMessagePages } from './session-pages.js'
import type { SessionStore, SessionSummary } from './session-store.js'
import { isSynthetic } from './turn.js'

export interface SearchQuery {
  appName: string
  userId: string
  /** Only this session. */
  sessionId?: string | undefined
  /** Words that must all occur in a message, in any case. */
  text: string
  /** The `nextCursor` of the answer before. */
  cursor?: string | undefined
  /** At most so many messages; default 20. */
  limit?: number | undefined
}

export interface FoundMessage {
  sessionId: string
  /** The title of the session, or else how its newest message begins. */
  title?: string
  seq: number
  role: 'user' | 'assistant' | 'tool'
  timestamp: number
  /** The place of the first word, and the text around it on one line. */
  before: string
  match: string
  after: string
}

export interface FoundMessages {
  found: FoundMessage[]
  /** How many messages were read for this answer. */
  searched: number
  /** Present when there is more to search. */
  nextCursor?: string
}

type Store = Pick<SessionStore, 'listSessions' | 'describeSession' | 'readMessages'>

/** Messages that one call reads, and those of one page. */
const MOST_READ = 5000
const PAGE = 250
const SESSIONS = 50
/** Of one session, when all are searched: a word that stands everywhere must not hide the other chats. */
const MOST_OF_ONE = 3

/** Where a search goes on: a page of sessions, how many of it are done, and the message before which it goes on. */
interface Place {
  page?: string
  done: number
  beforeSeq?: number
  /** How many were found in the session already. */
  of?: number
}

/** Finds messages. `session-not-found` when the one session does not exist. */
export async function searchMessages(store: Store, query: SearchQuery): Promise<FoundMessages> {
  const words = folded(query.text).split(/\s+/u).filter(Boolean)
  if (words.length === 0) return { found: [], searched: 0 }
  const search = new Search(store, words, query)
  return query.sessionId === undefined ? search.all() : search.one(query.sessionId)
}

class Search {
  readonly #store: Store
  readonly #words: readonly string[]
  readonly #query: SearchQuery
  readonly #limit: number
  readonly #pause = createPause()
  readonly #found: FoundMessage[] = []
  #searched = 0
  /** What the call has cost: a session without messages is read as well. */
  #cost = 0

  constructor(store: Store, words: readonly string[], query: SearchQuery) {
    this.#store = store
    this.#words = words
    this.#query = query
    this.#limit = query.limit ?? 20
  }

  async one(sessionId: string): Promise<FoundMessages> {
    const { appName, userId } = this.#query
    const session = await this.#store.describeSession({ appName, userId, sessionId })
    if (!session) throw new AgentError('session-not-found', `There is no session "${sessionId}".`)
    const { beforeSeq } = readPlace(this.#query.cursor)
    const rest = await this.#search(session, { beforeSeq, most: this.#limit })
    return this.#answer(rest === undefined ? undefined : { done: 0, beforeSeq: rest })
  }

  async all(): Promise<FoundMessages> {
    const { appName, userId } = this.#query
    let place = readPlace(this.#query.cursor)
    while (true) {
      const listed = { appName, userId, limit: SESSIONS, ...defined({ cursor: place.page }) }
      const { sessions, nextCursor } = await this.#store.listSessions(listed)
      for (const session of sessions.slice(place.done)) {
        const before = this.#found.length
        const { of = 0, beforeSeq } = place
        const rest = await this.#search(session, { beforeSeq, most: MOST_OF_ONE - of })
        const total = of + this.#found.length - before
        const isDone = rest === undefined || total >= MOST_OF_ONE
        const at = { done: place.done + (isDone ? 1 : 0), ...defined({ page: place.page }) }
        place = isDone ? at : { ...at, beforeSeq: rest, of: total }
        if (!isDone || this.#isFull()) return this.#answer(place)
      }
      if (nextCursor === undefined || sessions.length === 0) return this.#answer(undefined)
      place = { page: nextCursor, done: 0 }
    }
  }

  #isFull(): boolean {
    return this.#found.length >= this.#limit || this.#cost >= MOST_READ
  }

  /** The message before which the search of a session goes on; `undefined` when it is done. */
  async #search(
    session: SessionSummary,
    { beforeSeq, most }: { beforeSeq: number | undefined; most: number },
  ): Promise<number | undefined> {
    const range = { pageSize: PAGE, ...defined({ beforeSeq }) }
    let found = 0
    this.#cost += 1
    for await (const page of newestMessagePages(this.#store, session.key, range)) {
      for (const message of page.toReversed()) {
        this.#searched += 1
        this.#cost += 1
        const hit = findIn(message, this.#words)
        if (hit) {
          this.#found.push(foundIn(session, message, hit))
          found += 1
        }
        if (found >= most || this.#isFull()) return message.seq > 1 ? message.seq : undefined
      }
      await this.#pause()
    }
    return undefined
  }

  #answer(place: Place | undefined): FoundMessages {
    const nextCursor = place && JSON.stringify(place)
    return { found: this.#found, searched: this.#searched, ...defined({ nextCursor }) }
  }
}

function readPlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { done: 0 }
  const place = parseJson(cursor)
  if (isRecord(place) && isCount(place.done) && isCount(place.beforeSeq ?? 1) && isCount(place.of ?? 0)) {
    if (place.page === undefined || typeof place.page === 'string') return place as unknown as Place
  }
  throw new AgentError('invalid-argument', 'cursor must be the nextCursor of an earlier answer')
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

type Hit = Pick<FoundMessage, 'before' | 'match' | 'after'>

function foundIn({ key, title, preview }: SessionSummary, message: StoredMessage, hit: Hit): FoundMessage {
  const { seq, timestamp, role } = message
  const name = normalizeRole(role)
  return {
    sessionId: key.sessionId,
    ...defined({ title: title ?? preview }),
    seq,
    role: name === 'user' || name === 'tool' ? name : 'assistant',
    timestamp,
    ...hit,
  }
}

/** What a reader sees of the message, if all words occur in it. */
function findIn(message: StoredMessage, words: readonly string[]): Hit | undefined {
  if (message.role === 'system' || isSynthetic(message)) return undefined
  const calls = (message.toolCalls ?? []).map(({ name, input, output }) =>
    [name, input, output].filter(Boolean).join(' '),
  )
  // The text of a result repeats its output.
  const isResult = normalizeRole(message.role) === 'tool' && calls.length > 0
  const text = [...(isResult ? [] : [message.content]), ...calls].filter(Boolean).join('\n')
  const searched = folded(text)
  const [first = ''] = words
  if (!words.every(word => searched.includes(word))) return undefined
  const phrase = words.join(' ')
  return around(text, searched.includes(phrase) ? phrase : first)
}

/** Letters independent of case, width and the way in which accents are written. */
function folded(text: string): string {
  return text.normalize('NFKD').toLowerCase()
}

const SHOWN_BEFORE = 40
const SHOWN_AFTER = 120

/** Beyond this the place of a word is only looked for where folding keeps lengths. */
const MOST_CHARACTERS = 200_000

/** The text around a word. Folding may change lengths, so its place is found character by character. */
function around(whole: string, word: string): Hit {
  // Texts that are folded to their own length, almost all, are only cut out around the place.
  const plain = folded(whole)
  const start = plain.length === whole.length ? Math.max(0, plain.indexOf(word) - 2 * SHOWN_BEFORE) : 0
  const length = plain.length === whole.length ? word.length + 4 * SHOWN_AFTER : MOST_CHARACTERS
  const text = whole.slice(start, start + length)
  const characters = [...text]
  const starts: number[] = []
  let joined = ''
  for (const character of characters) {
    starts.push(joined.length)
    joined += folded(character)
  }
  const at = Math.max(0, joined.indexOf(word))
  const first = Math.max(
    0,
    starts.findLastIndex(start => start <= at),
  )
  const next = starts.findIndex(start => start >= at + word.length)
  const end = next < 0 ? characters.length : Math.max(next, first + 1)
  const line = (from: number, to: number) =>
    characters.slice(Math.max(0, from), to).join('').replaceAll(/\s+/gu, ' ')
  const isCut = first > SHOWN_BEFORE
  const isLong = end + SHOWN_AFTER < characters.length
  return {
    before: `${isCut ? '…' : ''}${line(first - SHOWN_BEFORE, first)}`,
    match: line(first, end),
    after: `${line(end, end + SHOWN_AFTER)}${isLong ? '…' : ''}`,
  }
}
