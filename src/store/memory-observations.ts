/** Observations and the index of words of sessions in memory. A search compares every document of its scope. */
import type { SessionKey, StoredMessage } from '../session/message.js'
import type {
  DocumentQuery,
  FoundDocument,
  IndexStep,
  MemoryProgress,
  MemoryScope,
  ObservationLog,
  ObservationQuery,
  ObservationStep,
  ObserverUsage,
  SessionMemory,
  StoredObservation,
  TermCounts,
} from '../session/session-memory.js'
import { joinUsage, memoryUsage } from '../session/session-memory.js'
import type { MemorySpending } from './memory-spending.js'

/** What memory keeps of one session. */
export interface KeptMemory {
  version: number
  indexedSeq: number
  observedSeq: number
  /** By the number of the message. */
  messages: Map<number, Document>
  /** By the number of the observation. */
  observed: Map<number, Document>
  observations: StoredObservation[]
  added: number
  log?: ObservationLog
  usage?: ObserverUsage[]
}

interface Document {
  seq: number
  at: number
  terms: readonly string[]
}

interface KeptSession {
  key: SessionKey
  messages: readonly StoredMessage[]
  memory?: KeptMemory
}

export interface MemoryPlaces {
  spending: MemorySpending
  assertOpen(): void
  sessionOf(key: SessionKey): KeptSession | undefined
  sessions(): Iterable<KeptSession>
  /** The session, for a writer that may hold its lease. `session-not-found`, `lease-lost`. */
  writable(key: SessionKey, fence: number | undefined): KeptSession
}

export class MemoryObservations implements SessionMemory {
  readonly #places: MemoryPlaces

  constructor(places: MemoryPlaces) {
    this.#places = places
  }

  async progress(key: SessionKey): Promise<MemoryProgress | undefined> {
    this.#places.assertOpen()
    const session = this.#places.sessionOf(key)
    if (!session) return undefined
    const { version, indexedSeq, observedSeq, messages, observed, added, log, usage } =
      session.memory ?? empty()
    const documents = [...messages.values(), ...observed.values()]
    return {
      totalMessages: session.messages.length,
      ...{ version, indexedSeq, observedSeq },
      documents: documents.length,
      terms: documents.reduce((all, { terms }) => all + terms.length, 0),
      observations: added,
      ...(log ? { log: structuredClone(log) } : {}),
      ...(usage ? { usage: structuredClone(usage) } : {}),
    }
  }

  async index(key: SessionKey, step: IndexStep): Promise<boolean> {
    const memory = this.#memoryOf(key)
    const { version, afterSeq, throughSeq, documents } = step
    if (memory.indexedSeq !== afterSeq) return false
    for (const seq of memory.messages.keys())
      if (seq > afterSeq && seq <= throughSeq) memory.messages.delete(seq)
    for (const { seq, at, terms } of documents)
      if (terms.length > 0) memory.messages.set(seq, { seq, at, terms: [...terms] })
    Object.assign(memory, { version, indexedSeq: throughSeq })
    return true
  }

  async observe(key: SessionKey, step: ObservationStep): Promise<StoredObservation[] | undefined> {
    const { observed, supersedes = [], observations, fence } = step
    const memory = this.#memoryOf(key, fence)
    if (observed && memory.observedSeq !== observed.afterSeq) return undefined
    const replaced = memory.observations.filter(({ number }) => supersedes.includes(number))
    const areCurrent = replaced.every(({ supersededBy }) => supersededBy === undefined)
    if (!areCurrent || replaced.length !== new Set(supersedes).size) return undefined
    const added = observations.map(({ terms = [], ...observation }, index) => {
      const number = memory.added + 1 + index
      const { fromSeq: seq, time: at } = observation
      if (terms.length > 0) memory.observed.set(number, { seq, at, terms: [...terms] })
      return { ...observation, sessionId: key.sessionId, number, createdAt: Date.now() }
    })
    for (const old of replaced) {
      old.supersededBy = memory.added + 1
      memory.observed.delete(old.number)
    }
    memory.observations.push(...added)
    memory.added += added.length
    memory.observedSeq = observed?.throughSeq ?? memory.observedSeq
    if (step.usage) {
      memory.usage = joinUsage(memory.usage ?? [], step.usage)
      this.#places.spending.keep(key, step.runId ?? '', memoryUsage(step.usage))
    }
    return structuredClone(added)
  }

  async readObservations(key: SessionKey, query: ObservationQuery = {}): Promise<StoredObservation[]> {
    this.#places.assertOpen()
    const { numbers, current = false, afterNumber = 0, limit = 1000 } = query
    const found = (this.#places.sessionOf(key)?.memory?.observations ?? []).filter(
      ({ number, supersededBy }) =>
        number > afterNumber &&
        (numbers?.includes(number) ?? true) &&
        !(current && supersededBy !== undefined),
    )
    return structuredClone(found.slice(0, limit))
  }

  async forget(key: SessionKey, numbers: readonly number[]): Promise<number> {
    const memory = this.#memoryOf(key)
    const all = new Set(numbers)
    // A successor has a higher number than what it replaced.
    for (const { number, supersededBy } of memory.observations.toReversed())
      if (supersededBy !== undefined && all.has(supersededBy)) all.add(number)
    const forgotten = memory.observations.filter(
      ({ number, kind }) => all.has(number) && kind !== 'forgotten',
    )
    for (const observation of forgotten) {
      Object.assign(observation, { text: '', kind: 'forgotten', supersededBy: observation.number })
      memory.observed.delete(observation.number)
    }
    return forgotten.length
  }

  async reset(key: SessionKey, what: { index?: boolean; observations?: boolean }): Promise<void> {
    const memory = this.#memoryOf(key)
    if (what.index) {
      memory.messages.clear()
      Object.assign(memory, { version: 0, indexedSeq: 0 })
    }
    if (!what.observations) return
    memory.observations = memory.observations.filter(({ kind }) => kind === 'forgotten')
    memory.observed.clear()
    memory.observedSeq = 0
    delete memory.log
  }

  async keepLog(key: SessionKey, log: ObservationLog): Promise<ObservationLog> {
    const memory = this.#memoryOf(key)
    if (memory.log?.throughSeq !== log.throughSeq) memory.log = structuredClone(log)
    return structuredClone(memory.log ?? log)
  }

  async countTerms(scope: MemoryScope, terms: readonly string[]): Promise<TermCounts> {
    const wanted = new Set(terms)
    const all = { documents: 0, terms: 0, counts: new Map<string, number>() }
    for (const { document } of this.#documents(scope)) {
      all.documents += 1
      all.terms += document.terms.length
      for (const term of new Set(document.terms))
        if (wanted.has(term)) all.counts.set(term, (all.counts.get(term) ?? 0) + 1)
    }
    return all
  }

  async similarTerms(scope: MemoryScope, prefix: string, limit: number): Promise<string[]> {
    const counts = new Map<string, number>()
    for (const { document } of this.#documents(scope))
      for (const term of new Set(document.terms))
        if (term.startsWith(prefix)) counts.set(term, (counts.get(term) ?? 0) + 1)
    const ordered = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
    return ordered.slice(0, limit).map(([term]) => term)
  }

  async findDocuments(scope: MemoryScope, query: DocumentQuery): Promise<FoundDocument[]> {
    const { terms, after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY, limit } = query
    const wanted = new Set(terms)
    const found: FoundDocument[] = []
    for (const { sessionId, document, observation } of this.#documents(scope)) {
      const { seq, at } = document
      const isWanted = wanted.size === 0 || document.terms.some(term => wanted.has(term))
      if (!isWanted || at < after || at >= before) continue
      const number = observation === undefined ? {} : { observation }
      found.push({ sessionId, seq, ...number, at, terms: [...document.terms] })
    }
    return found.sort((one, other) => other.at - one.at || other.seq - one.seq).slice(0, limit)
  }

  async readMessages(key: SessionKey, seqs: readonly number[]): Promise<StoredMessage[]> {
    this.#places.assertOpen()
    const messages = this.#places.sessionOf(key)?.messages ?? []
    const wanted = [...new Set(seqs)].sort((one, other) => one - other)
    return structuredClone(wanted.flatMap(seq => messages[seq - 1] ?? []))
  }

  *#documents({ appName, userId, sessionId }: MemoryScope) {
    this.#places.assertOpen()
    for (const { key, memory } of this.#places.sessions()) {
      if (key.appName !== appName || key.userId !== userId || !memory) continue
      if (sessionId !== undefined && key.sessionId !== sessionId) continue
      for (const document of memory.messages.values()) yield { sessionId: key.sessionId, document }
      for (const [observation, document] of memory.observed)
        yield { sessionId: key.sessionId, document, observation }
    }
  }

  #memoryOf(key: SessionKey, fence?: number): KeptMemory {
    this.#places.assertOpen()
    const session = this.#places.writable(key, fence)
    session.memory ??= empty()
    return session.memory
  }
}

function empty(): KeptMemory {
  return {
    ...{ version: 0, indexedSeq: 0, observedSeq: 0, added: 0 },
    ...{ messages: new Map(), observed: new Map(), observations: [] },
  }
}

/** What is known of the first messages of a session, for a copy of them. The index is built when it is needed. */
export function copyMemory(memory: KeptMemory, sessionId: string, throughSeq: number): KeptMemory {
  const known = memory.observations.filter(({ toSeq }) => toSeq <= throughSeq)
  const numbers = new Set(known.map(({ number }) => number))
  const observations = known.map(({ supersededBy, ...observation }) => {
    const successor = supersededBy !== undefined && numbers.has(supersededBy) ? { supersededBy } : {}
    return { ...observation, sessionId, ...successor }
  })
  return {
    ...empty(),
    observedSeq: Math.min(memory.observedSeq, throughSeq),
    added: memory.added,
    observations,
  }
}

/** A replaced message is read again. */
export function indexAgain(memory: KeptMemory | undefined, seq: number): void {
  if (memory && memory.indexedSeq >= seq) memory.indexedSeq = seq - 1
}
