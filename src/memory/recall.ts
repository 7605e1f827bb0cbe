/**
 * Search over the messages and observations of a session, or of all sessions of a user.
 *
 * 1. The question becomes terms. A term that is not in the index is replaced by the most similar ones that are.
 * 2. The rarest terms choose the candidates, so that a word in half of the messages costs nothing.
 * 3. Candidates are ranked by BM25; a message also takes from its neighbours and from observations about it.
 * 4. The best are read and returned in the order of the conversation, within a budget of tokens.
 *
 * Every store returns the same candidates, so the ranking is the same on all of them.
 */
import type { StoredMessage } from '../session/message.js'
import type {
  FoundDocument,
  MemoryScope,
  SessionMemory,
  StoredObservation,
} from '../session/session-memory.js'
import { countTextTokens } from '../session/tokens.js'
import { dateWords, readableText } from './index-session.js'
import { similarity } from './similar-words.js'
import { termsOf } from './terms.js'

export interface RecallQuery {
  /** Words to look for. Without them, everything of the time range. */
  words?: string | undefined
  /** Milliseconds since 1970; `before` is exclusive. */
  after?: number | undefined
  before?: number | undefined
  /** Leaves out messages of a session from a number on: those that the model has before it. */
  shown?: { sessionId: string; fromSeq: number } | undefined
  /** What the result may cost. Default 2,000 tokens. */
  budgetTokens?: number | undefined
  /** The part of the budget that observations may take. Default 0.4; 1 for observations alone. */
  observationShare?: number | undefined
}

export interface Recalled {
  messages: RecalledMessage[]
  observations: StoredObservation[]
  /** Words of the question that occur nowhere, with those that were searched instead. */
  corrected?: Record<string, string[]>
}

export interface RecalledMessage extends StoredMessage {
  sessionId: string
}

/** Documents that are compared: enough for any question, and a few milliseconds of work. */
const MOST_CANDIDATES = 1000

const DEFAULT_BUDGET = 2000

export async function recall(
  memory: SessionMemory,
  scope: MemoryScope,
  query: RecallQuery,
): Promise<Recalled> {
  const { words = '', after, before, shown, budgetTokens = DEFAULT_BUDGET, observationShare = 0.4 } = query
  const range = { ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) }
  const question = await weigh(memory, scope, words)
  const terms = rarest(question)
  const isEmpty = terms.length === 0 && (termsOf(words).length > 0 || Object.keys(range).length === 0)
  const found = isEmpty ? [] : await memory.findDocuments(scope, { terms, ...range, limit: MOST_CANDIDATES })
  const isShown = ({ sessionId, seq, observation }: FoundDocument) =>
    observation === undefined && sessionId === shown?.sessionId && seq >= shown.fromSeq
  const ranked = rank(
    found.filter(document => !isShown(document)),
    question,
  )
  const observations = await readBest(memory, scope, ranked.observations, budgetTokens * observationShare)
  const spent = observations.reduce((all, observation) => all + observationTokens(observation), 0)
  const scores = spread(ranked.messages, observations, ranked.observations)
  const left = observationShare < 1 ? budgetTokens - spent : 0
  const messages = await readMessages(memory, scope, scores, left)
  return {
    messages,
    observations,
    ...(question.corrected.size > 0 ? { corrected: Object.fromEntries(question.corrected) } : {}),
  }
}

/** The terms of a question with what each is worth. */
interface Question {
  weights: Map<string, { idf: number; documents: number }>
  averageLength: number
  corrected: Map<string, string[]>
}

async function weigh(memory: SessionMemory, scope: MemoryScope, words: string): Promise<Question> {
  const terms = [...new Set(termsOf(words))].slice(0, MOST_TERMS)
  const { documents, terms: length, counts } = await memory.countTerms(scope, terms)
  const corrected = new Map<string, string[]>()
  const weights: Question['weights'] = new Map()
  const add = (term: string, count: number, weight: number) => {
    const idf = weight * Math.log(1 + (documents - count + 0.5) / (count + 0.5))
    weights.set(term, { idf, documents: count })
  }
  for (const [term, count] of counts) add(term, count, 1)
  for (const term of terms) {
    if (counts.has(term) || documents === 0) continue
    const similar = await similarTerms(memory, scope, term)
    if (similar.length === 0) continue
    corrected.set(term, similar)
    const found = await memory.countTerms(scope, similar)
    for (const [other, count] of found.counts) if (!weights.has(other)) add(other, count, SIMILAR_WEIGHT)
  }
  return { weights, averageLength: length / Math.max(1, documents), corrected }
}

/** Terms of a question that are used. */
const MOST_TERMS = 64
const SIMILAR_WEIGHT = 0.7
const MOST_SIMILAR = 3
const COMPARED_TERMS = 2000

/** Indexed terms that a misspelt one may stand for: they begin with the same letter. */
async function similarTerms(memory: SessionMemory, scope: MemoryScope, term: string): Promise<string[]> {
  const [first = ''] = term
  if ([...term].length < 4) return []
  const candidates = await memory.similarTerms(scope, first, COMPARED_TERMS)
  return candidates
    .map(candidate => ({ candidate, score: similarity(term, candidate) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST_SIMILAR)
    .map(({ candidate }) => candidate)
}

/** The rarest terms, as many as the number of candidates allows. */
function rarest({ weights }: Question): string[] {
  const chosen: string[] = []
  let sum = 0
  for (const [term, { documents }] of [...weights].sort(
    (one, other) => one[1].documents - other[1].documents,
  )) {
    if (chosen.length > 0 && sum + documents > MOST_CANDIDATES) break
    chosen.push(term)
    sum += documents
  }
  return chosen
}

/** A place of a session: messages by number, observations likewise. */
type Scores = Map<string, Map<number, number>>

function rank(
  found: readonly FoundDocument[],
  question: Question,
): { messages: Scores; observations: Scores } {
  const messages: Scores = new Map()
  const observations: Scores = new Map()
  for (const document of found) {
    const { sessionId, seq, observation } = document
    const scores = observation === undefined ? messages : observations
    addScore(scores, sessionId, observation ?? seq, score(document, question))
  }
  return { messages, observations }
}

function addScore(scores: Scores, sessionId: string, number: number, score: number): void {
  const inSession = scores.get(sessionId) ?? new Map<number, number>()
  scores.set(sessionId, inSession)
  inSession.set(number, (inSession.get(number) ?? 0) + score)
}

const K1 = 1.2
const B = 0.5

/** BM25. Without a question, newer is better: the order in which documents are found. */
function score({ terms, at }: FoundDocument, { weights, averageLength }: Question): number {
  if (weights.size === 0) return at / 1e15
  const counts = new Map<string, number>()
  for (const term of terms) if (weights.has(term)) counts.set(term, (counts.get(term) ?? 0) + 1)
  const length = K1 * (1 - B + (B * terms.length) / averageLength)
  let sum = 0
  for (const [term, count] of counts)
    sum += ((weights.get(term)?.idf ?? 0) * count * (K1 + 1)) / (count + length)
  return sum
}

/** What the messages before and after take from the score of a message. */
const NEIGHBOURS = [0.6, 0.3, 0.15]
/** What a message takes from the score of an observation about it. */
const OBSERVED = 0.3
/** What is left of the score of a message that a returned observation already tells. */
const ALREADY_TOLD = 0.3

/** The scores of messages with what they take from neighbours and observations. */
function spread(scores: Scores, shown: readonly StoredObservation[], observed: Scores): Scores {
  const base: Scores = new Map()
  for (const [sessionId, inSession] of scores)
    for (const [seq, score] of inSession) addScore(base, sessionId, seq, score)
  for (const { sessionId, number, fromSeq, toSeq } of shown) {
    if (toSeq - fromSeq >= NEIGHBOURS.length) continue
    const score = observed.get(sessionId)?.get(number) ?? 0
    for (let seq = fromSeq; seq <= toSeq; seq++) addScore(base, sessionId, seq, OBSERVED * score)
  }
  const all: Scores = new Map()
  for (const [sessionId, inSession] of base)
    for (const [seq, score] of inSession) {
      addScore(all, sessionId, seq, score)
      for (const [distance, share] of NEIGHBOURS.entries())
        for (const near of [seq - distance - 1, seq + distance + 1])
          if (near > 0) addScore(all, sessionId, near, share * score)
    }
  for (const { sessionId, fromSeq, toSeq } of shown) {
    const score = all.get(sessionId)?.get(fromSeq)
    if (fromSeq === toSeq && score !== undefined) all.get(sessionId)?.set(fromSeq, score * ALREADY_TOLD)
  }
  return all
}

interface Place {
  sessionId: string
  number: number
  score: number
}

function best(scores: Scores, limit: number): Place[] {
  const places: Place[] = []
  for (const [sessionId, inSession] of scores)
    for (const [number, score] of inSession) places.push({ sessionId, number, score })
  return places.sort((one, other) => other.score - one.score || other.number - one.number).slice(0, limit)
}

/** Messages and observations that are read at once: most results need no second read. */
function readAtOnce(budgetTokens: number): number {
  return Math.max(20, Math.min(200, Math.ceil(budgetTokens / 25)))
}

async function readBest(
  memory: SessionMemory,
  scope: MemoryScope,
  scores: Scores,
  budgetTokens: number,
): Promise<StoredObservation[]> {
  const places = best(scores, readAtOnce(budgetTokens))
  const found = new Map<string, StoredObservation>()
  for (const [sessionId, numbers] of bySession(places)) {
    const key = { ...scope, sessionId }
    for (const observation of await memory.readObservations(key, { numbers, current: true }))
      found.set(`${observation.number} ${sessionId}`, observation)
  }
  const ordered = places.flatMap(({ sessionId, number }) => found.get(`${number} ${sessionId}`) ?? [])
  const chosen = takeWithin(ordered, budgetTokens, observationTokens)
  return chosen.sort((one, other) => one.time - other.time || one.number - other.number)
}

async function readMessages(
  memory: SessionMemory,
  scope: MemoryScope,
  scores: Scores,
  budgetTokens: number,
): Promise<RecalledMessage[]> {
  const chosen: RecalledMessage[] = []
  let left = budgetTokens
  const places = best(scores, MOST_CANDIDATES)
  const step = readAtOnce(budgetTokens)
  for (let start = 0; start < places.length && left > 0; start += step) {
    const some = places.slice(start, start + step)
    const found = new Map<string, RecalledMessage>()
    for (const [sessionId, numbers] of bySession(some))
      for (const message of await memory.readMessages({ ...scope, sessionId }, numbers))
        found.set(`${message.seq} ${sessionId}`, { ...message, sessionId })
    const ordered = some.flatMap(({ sessionId, number }) => found.get(`${number} ${sessionId}`) ?? [])
    const taken = takeWithin(ordered, left, messageTokens)
    chosen.push(...taken)
    left -= taken.reduce((all, message) => all + messageTokens(message), 0)
    if (taken.length < ordered.length) break
  }
  return chosen.sort((one, other) =>
    one.sessionId === other.sessionId ? one.seq - other.seq : one.timestamp - other.timestamp,
  )
}

function bySession(places: readonly Place[]): Map<string, number[]> {
  const numbers = new Map<string, number[]>()
  for (const { sessionId, number } of places) {
    const inSession = numbers.get(sessionId) ?? []
    numbers.set(sessionId, inSession)
    inSession.push(number)
  }
  return numbers
}

/** From the best on, until the next does not fit. A single one that is too long by itself is left out. */
function takeWithin<T>(items: readonly T[], budgetTokens: number, tokensOf: (item: T) => number): T[] {
  const taken: T[] = []
  let left = budgetTokens
  for (const item of items) {
    const tokens = tokensOf(item)
    if (tokens > budgetTokens / 2) continue
    if (tokens > left) break
    left -= tokens
    taken.push(item)
  }
  return taken
}

/** The number, the role and the frame of an entry. */
const ENTRY_TOKENS = 8

/** What a message costs in a result: its text with its date and author in front. */
function messageTokens(message: StoredMessage): number {
  return ENTRY_TOKENS + countTextTokens(messageLine(message))
}

function observationTokens(observation: StoredObservation): number {
  return ENTRY_TOKENS + countTextTokens(`${dateWords(observation.time)}: ${observation.text}`)
}

export function messageLine(message: StoredMessage): string {
  return `${dateWords(message.timestamp)} ${message.author ?? message.role}: ${readableText(message)}`
}
