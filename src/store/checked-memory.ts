/** The part of `checked-store.ts` that concerns memory. */
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
  SessionMemory,
  StoredObservation,
  TermCounts,
} from '../session/session-memory.js'
import {
  checkFence,
  checkInteger,
  checkKey,
  checkLimit,
  checkName,
  checkNumber,
  invalid,
} from './check-input.js'
import { checked } from './checked-runs.js'

export class CheckedMemory implements SessionMemory {
  readonly #memory: SessionMemory

  constructor(memory: SessionMemory) {
    this.#memory = memory
  }

  progress(key: SessionKey): Promise<MemoryProgress | undefined> {
    return checked(
      () => checkKey(key),
      () => this.#memory.progress(key),
    )
  }

  index(key: SessionKey, step: IndexStep): Promise<boolean> {
    const check = () => {
      checkKey(key)
      checkInteger('version', step.version, 1)
      checkRange(step)
      let last = step.afterSeq
      for (const { seq, at, terms } of step.documents) {
        checkInteger('documents.seq', seq, last + 1)
        last = seq
        checkNumber('documents.at', at)
        checkTerms('documents.terms', terms)
      }
      if (last > step.throughSeq) throw invalid('documents.seq', 'must not be after throughSeq', last)
    }
    return checked(check, () => this.#memory.index(key, step))
  }

  observe(key: SessionKey, step: ObservationStep): Promise<StoredObservation[] | undefined> {
    const check = () => {
      checkKey(key)
      checkFence(step.fence)
      if (step.observed) checkRange(step.observed)
      checkNumbers('supersedes', step.supersedes ?? [])
      if (step.supersedes?.length && step.observations.length === 0)
        throw invalid('observations', 'must name at least one successor', undefined)
      for (const observation of step.observations) {
        const { text, time, fromSeq, toSeq, priority, terms = [] } = observation
        if (typeof text !== 'string' || text === '' || text.length > LONGEST_OBSERVATION)
          throw invalid('observations.text', `must have 1 to ${LONGEST_OBSERVATION} characters`, undefined)
        checkNumber('observations.time', time)
        checkInteger('observations.fromSeq', fromSeq, 1)
        checkInteger('observations.toSeq', toSeq, fromSeq)
        checkInteger('observations.priority', priority, 1)
        checkName('observations.origin', observation.origin)
        checkName('observations.kind', observation.kind)
        checkTerms('observations.terms', terms)
      }
    }
    return checked(check, () => this.#memory.observe(key, step))
  }

  readObservations(key: SessionKey, query: ObservationQuery = {}): Promise<StoredObservation[]> {
    const check = () => {
      checkKey(key)
      checkNumbers('numbers', query.numbers ?? [])
      checkLimit(query)
    }
    return checked(check, () => this.#memory.readObservations(key, query))
  }

  forget(key: SessionKey, numbers: readonly number[]): Promise<number> {
    const check = () => {
      checkKey(key)
      checkNumbers('numbers', numbers)
    }
    return checked(check, () => this.#memory.forget(key, numbers))
  }

  reset(key: SessionKey, what: { index?: boolean; observations?: boolean }): Promise<void> {
    return checked(
      () => checkKey(key),
      () => this.#memory.reset(key, what),
    )
  }

  keepLog(key: SessionKey, log: ObservationLog): Promise<ObservationLog> {
    const check = () => {
      checkKey(key)
      checkInteger('throughSeq', log.throughSeq, 0)
      checkNumbers('numbers', log.numbers)
    }
    return checked(check, () => this.#memory.keepLog(key, log))
  }

  countTerms(scope: MemoryScope, terms: readonly string[]): Promise<TermCounts> {
    const check = () => {
      checkScope(scope)
      checkTerms('terms', terms)
    }
    return checked(check, () => this.#memory.countTerms(scope, terms))
  }

  similarTerms(scope: MemoryScope, prefix: string, limit: number): Promise<string[]> {
    const check = () => {
      checkScope(scope)
      checkTerms('prefix', [prefix])
      checkInteger('limit', limit, 1)
    }
    return checked(check, () => this.#memory.similarTerms(scope, prefix, limit))
  }

  findDocuments(scope: MemoryScope, query: DocumentQuery): Promise<FoundDocument[]> {
    const check = () => {
      checkScope(scope)
      checkTerms('terms', query.terms)
      checkInteger('limit', query.limit, 1)
      if (query.after !== undefined) checkNumber('after', query.after)
      if (query.before !== undefined) checkNumber('before', query.before)
    }
    return checked(check, () => this.#memory.findDocuments(scope, query))
  }

  readMessages(key: SessionKey, seqs: readonly number[]): Promise<StoredMessage[]> {
    const check = () => {
      checkKey(key)
      checkNumbers('seqs', seqs)
    }
    return checked(check, () => this.#memory.readMessages(key, seqs))
  }
}

/** An observation is a sentence or two. */
const LONGEST_OBSERVATION = 4000

function checkRange({ afterSeq, throughSeq }: { afterSeq: number; throughSeq: number }): void {
  checkInteger('afterSeq', afterSeq, 0)
  checkInteger('throughSeq', throughSeq, afterSeq)
}

function checkScope({ appName, userId, sessionId }: MemoryScope): void {
  checkName('scope.appName', appName)
  checkName('scope.userId', userId)
  if (sessionId !== undefined) checkName('scope.sessionId', sessionId)
}

function checkNumbers(field: string, numbers: readonly number[]): void {
  for (const number of numbers) checkInteger(field, number, 1)
}

/** Terms are letters, marks and digits: anything else would be syntax of a query. */
function checkTerms(field: string, terms: readonly string[]): void {
  for (const term of terms) {
    if (/^[a-z0-9]{1,60}$/.test(term) || /^[\p{L}\p{M}\p{N}]{1,60}$/u.test(term)) continue
    throw invalid(field, 'must be words of 1 to 60 letters and digits', undefined)
  }
}
