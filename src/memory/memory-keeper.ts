/**
 * Keeps the memory of sessions beside their runs.
 *
 * - Nothing here blocks or fails a run: work is started when a session is loaded and when its run has ended, and what
 *   fails is logged and tried again later. After three failures a range is observed by rules.
 * - Each step (an index of 128 messages, one observation, one reflection) is one transaction that compares what it was
 *   made from, so a killed process leaves no half step and two processes add nothing twice.
 * - The current turn and calls that wait for an answer are not observed.
 * - A session in which nothing was left to do is known by how much it held then: after a run only what the run added is
 *   read, and until that is enough for a step nothing else is.
 */
import { within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { MEMORY_SHARE } from '../session/budget.js'
import { type SessionKey, type StoredMessage, toolCallKind } from '../session/message.js'
import type { ObservationStep, ObserverUsage, StoredObservation } from '../session/session-memory.js'
import type { SessionStore } from '../session/session-store.js'
import { countTextTokens } from '../session/tokens.js'
import { type IndexProgress, indexSession, turnStart } from './index-session.js'
import { chooseLog, logText } from './memory-log.js'
import { digestObserver, type Observation, type Observer, withTerms } from './observer.js'

export interface MemoryKeeperOptions {
  store: SessionStore
  logger: Logger
  /** Default: the rules of the digest. */
  observer?: Observer | undefined
  /** Tokens of history in a request. */
  budgetTokens: number
  /** Whether models have the tool `recall`. */
  canRecall: boolean
  /** Indexes after every run, for searches from other sessions. Default: a search indexes what is missing. */
  indexesAtOnce?: boolean | undefined
  /** The run whose budget the observer draws from. */
  runId?: (() => string | undefined) | undefined
  /** How long one call of the observer may take. Default 60,000. */
  timeoutMs?: number | undefined
}

export interface AttendOptions {
  /** Also observes what would be left for later because it is short. */
  all?: boolean
  onProgress?: (progress: MemoryWork) => void
}

export interface MemoryWork extends IndexProgress {
  observed: number
}

/** Messages that are not observed yet: the number of the last, and the tokens of all of them. */
interface Unobserved {
  throughSeq: number
  tokens: number
}

/** Messages that are to be observed, as far as they are read. */
interface Source {
  afterSeq: number
  /** Where the current turn begins. */
  readonly endSeq: number
  messages: StoredMessage[]
  /** Whether there may be more than those that are read. */
  isMore: boolean
}

interface IdleSession extends Unobserved {
  indexedSeq: number
}

export class MemoryKeeper {
  readonly #options: MemoryKeeperOptions
  readonly #abort = new AbortController()
  /** One job for each session; a second request is done by one more job after it. */
  readonly #jobs = new Map<string, { ended: Promise<void>; again: boolean }>()
  readonly #failures = new Map<string, number>()
  /** Sessions in which nothing was left to do, oldest first. */
  readonly #idle = new Map<string, IdleSession>()

  constructor(options: MemoryKeeperOptions) {
    this.#options = options
  }

  /** A session is loaded for a run. What the run adds is attended to when it ends. */
  open(key: SessionKey): void {
    if (!this.#idle.has(nameOf(key))) this.attend(key)
  }

  /** Does what there is to do for a session, in the background. */
  attend(key: SessionKey): void {
    const name = nameOf(key)
    const running = this.#jobs.get(name)
    if (running) running.again = true
    if (running || this.#abort.signal.aborted) return
    const job = { ended: Promise.resolve(), again: false }
    this.#jobs.set(name, job)
    job.ended = this.work(key)
      .catch(error => this.#options.logger.warn('Memory was not updated', { error: messageOf(error) }))
      .then(() => {
        this.#jobs.delete(name)
        if (job.again) this.attend(key)
      })
  }

  /** Indexes, observes and reflects until nothing is left to do. */
  async work(key: SessionKey, { all = false, onProgress }: AttendOptions = {}): Promise<void> {
    const { store } = this.#options
    const { signal } = this.#abort
    const idle = all ? undefined : await this.#added(key)
    // Remembered again at the end: a step that fails is tried again.
    this.#idle.delete(nameOf(key))
    const observes = !idle || idle.tokens >= this.#rangeTokens
    if (idle && !observes && !this.#isDue(idle.throughSeq - idle.indexedSeq)) return this.#remember(key, idle)
    const progress = await store.memory.progress(key)
    if (!progress) return
    let { observedSeq: observed, indexedSeq } = progress
    const { totalMessages: total } = progress
    const report = (index: IndexProgress) => onProgress?.({ ...index, observed })
    if (all || this.#isDue(total - indexedSeq))
      indexedSeq = (await indexSession(store, key, { signal, onProgress: report })).indexed
    if (idle && !observes) return this.#remember(key, { ...idle, indexedSeq })
    const source = await this.#sourceFrom(key, observed)
    let step = await this.#observeNext(key, all, source)
    for (; step !== undefined && 'observedSeq' in step; step = await this.#observeNext(key, all, source)) {
      observed = step.observedSeq
      onProgress?.({ indexed: total, total, observed })
      await new Promise(resume => setImmediate(resume))
    }
    for (let round = 0; round < MOST_ROUNDS && (await this.#reflect(key)); round++)
      await new Promise(resume => setImmediate(resume))
    if (step) this.#remember(key, { ...step, indexedSeq })
  }

  get #rangeTokens(): number {
    return this.#options.budgetTokens * MEMORY_SHARE
  }

  #isDue(unindexed: number): boolean {
    return unindexed >= (this.#options.indexesAtOnce ? 1 : INDEXED_TOGETHER)
  }

  /**
   * An idle session with what was added to it since. `undefined` when it is not known as idle, and when the number of new
   * messages says that it is not what it was: none after a run, or more than a run adds.
   */
  async #added(key: SessionKey): Promise<IdleSession | undefined> {
    const idle = this.#idle.get(nameOf(key))
    if (!idle) return undefined
    const { throughSeq: afterSeq, tokens, indexedSeq } = idle
    const added = await this.#options.store.readMessages(key, { afterSeq, limit: MOST_MESSAGES })
    const last = added.at(-1)
    if (!last || added.length === MOST_MESSAGES) return undefined
    const sum = added.reduce((all, message) => all + message.tokens, tokens)
    return { throughSeq: last.seq, tokens: sum, indexedSeq }
  }

  #remember(key: SessionKey, idle: IdleSession): void {
    const [oldest] = this.#idle.keys()
    if (oldest !== undefined && this.#idle.size >= MOST_IDLE) this.#idle.delete(oldest)
    this.#idle.set(nameOf(key), idle)
  }

  /** Waits until nothing is under way. */
  async settled(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.all(Array.from(this.#jobs.values(), ({ ended }) => ended))
  }

  /**
   * The text that stands in a request whose messages begin after `throughSeq`. It is decided once for each place of the
   * cut: what is observed later enters when the cut moves. A failure leaves the request without it.
   */
  async logFor(key: SessionKey, throughSeq: number): Promise<string | undefined> {
    const { store, budgetTokens, canRecall, logger } = this.#options
    try {
      const { memory } = store
      const progress = await memory.progress(key)
      if (!progress) return undefined
      const { numbers } =
        progress.log?.throughSeq === throughSeq
          ? progress.log
          : await memory.keepLog(key, {
              throughSeq,
              numbers: chooseLog(
                (await this.#current(key, progress.observations)).filter(({ toSeq }) => toSeq <= throughSeq),
                budgetTokens * MEMORY_SHARE,
              ),
            })
      const observations =
        numbers.length === 0 ? [] : await memory.readObservations(key, { numbers, limit: numbers.length })
      const kept = observations.filter(({ kind }) => kind !== 'forgotten')
      return logText({ throughSeq, observations: kept, canRecall })
    } catch (error) {
      logger.warn('The observations of a session could not be read', { error: messageOf(error) })
      return undefined
    }
  }

  /** Lets short work end, and stops the rest: the next run of the session continues it. */
  async close(): Promise<void> {
    await within(CLOSE_MS, this.settled())
    this.#abort.abort()
    await within(CLOSE_MS, this.settled())
  }

  /** What is not observed yet, up to the turn that is the current one now. */
  async #sourceFrom(key: SessionKey, afterSeq: number): Promise<Source> {
    return { afterSeq, endSeq: await turnStart(this.#options.store, key), messages: [], isMore: true }
  }

  /** Observes one range. Returns its end, or what there is when it is too little to be observed. */
  async #observeNext(
    key: SessionKey,
    all: boolean,
    source: Source,
  ): Promise<{ observedSeq: number } | Unobserved | undefined> {
    const { store, logger } = this.#options
    if (this.#abort.signal.aborted) return undefined
    const { afterSeq } = source
    const { messages, ...unobserved } = await this.#range(key, source, all)
    const last = messages.at(-1)
    if (!last) return unobserved
    const { lines, refused, usage } = await this.#ask(key, messages)
    if (refused > 0) logger.warn('Notes of the observer were refused', { refused, sessionId: key.sessionId })
    const added = await store.memory.observe(key, {
      observed: { afterSeq, throughSeq: last.seq },
      observations: lines.map(withTerms),
      ...this.#usedBy(usage),
    })
    // Otherwise another process was faster.
    const reached = added ? last.seq : (await store.memory.progress(key))?.observedSeq
    if (reached === undefined) return undefined
    source.afterSeq = reached
    // A model takes its time, and messages may be replaced meanwhile: they are read again.
    const isKept = added !== undefined && this.#options.observer === undefined
    source.messages = isKept ? source.messages.filter(({ seq }) => seq > reached) : []
    source.isMore ||= !isKept
    return { observedSeq: reached }
  }

  #usedBy(usage: ObserverUsage | undefined): Pick<ObservationStep, 'usage' | 'runId'> {
    const runId = this.#options.runId?.()
    return usage ? { usage, ...(runId === undefined ? {} : { runId }) } : {}
  }

  async #ask(key: SessionKey, messages: readonly StoredMessage[]): Promise<Observation> {
    const { observer = digestObserver, logger } = this.#options
    const place = JSON.stringify([key, messages[0]?.seq])
    try {
      const observation = await observer.observe(messages, this.#signal())
      this.#failures.delete(place)
      return observation
    } catch (error) {
      const failures = (this.#failures.get(place) ?? 0) + 1
      if (isBudgetSpent(error)) return digestObserver.observe(messages, this.#abort.signal)
      if (this.#abort.signal.aborted || failures < MOST_FAILURES) {
        this.#failures.set(place, failures)
        throw error
      }
      this.#failures.delete(place)
      logger.warn('The observer failed again: messages are noted by rules', { error: messageOf(error) })
      return digestObserver.observe(messages, this.#abort.signal)
    }
  }

  #signal(): AbortSignal {
    return AbortSignal.any([this.#abort.signal, AbortSignal.timeout(this.#options.timeoutMs ?? 60_000)])
  }

  /** The next messages to observe: about a quarter of the budget, before the current turn. */
  async #range(
    key: SessionKey,
    source: Source,
    all: boolean,
  ): Promise<Unobserved & { messages: StoredMessage[] }> {
    let found = this.#cut(source)
    if (!found.isEnough && source.isMore) {
      const { afterSeq, endSeq: beforeSeq } = source
      source.messages = await this.#options.store.readMessages(key, {
        afterSeq,
        beforeSeq,
        limit: MOST_MESSAGES,
      })
      source.isMore = source.messages.length === MOST_MESSAGES
      found = this.#cut(source)
    }
    const { range, closed, isEnough, ...unobserved } = found
    if (isEnough) return { ...unobserved, messages: range }
    // A call without an answer is left for later, unless its session has moved far beyond it.
    if (source.isMore) return { ...unobserved, messages: closed > 0 ? range.slice(0, closed) : range }
    return { ...unobserved, messages: all ? range.slice(0, closed) : [] }
  }

  /** Messages from the first on until they are enough, and how many of them stand before a call without an answer. */
  #cut({
    messages,
    afterSeq,
  }: Source): Unobserved & { range: StoredMessage[]; closed: number; isEnough: boolean } {
    const range: StoredMessage[] = []
    const open = new Set<string>()
    let tokens = 0
    let closed = 0
    let isEnough = false
    for (const message of messages) {
      range.push(message)
      tokens += message.tokens
      for (const call of message.toolCalls ?? [])
        if (toolCallKind(call, message.role) === 'call') open.add(call.id)
        else open.delete(call.id)
      if (open.size === 0) closed = range.length
      isEnough = closed === range.length && tokens >= this.#rangeTokens
      if (isEnough) break
    }
    return { range, closed, isEnough, tokens, throughSeq: range.at(-1)?.seq ?? afterSeq }
  }

  /** Joins the older half of the observations when there are more than requests have room for. */
  async #reflect(key: SessionKey): Promise<boolean> {
    const { store, observer, budgetTokens, logger } = this.#options
    if (!observer?.reflect || this.#abort.signal.aborted) return false
    const progress = await store.memory.progress(key)
    const current = (await this.#current(key, progress?.observations ?? 0)).sort(bySource)
    if (current.length < 2 || tokensOf(current) <= budgetTokens * MEMORY_SHARE) return false
    const older = current.slice(0, Math.max(2, Math.floor(current.length / 2))).slice(0, MOST_REFLECTED)
    const reflection = await observer.reflect(older, this.#signal()).catch(error => {
      if (isBudgetSpent(error)) return undefined
      throw error
    })
    if (!reflection) return false
    const { lines, usage } = reflection
    const isShorter =
      lines.length > 0 && lines.reduce((all, { text }) => all + countTextTokens(text), 0) < tokensOf(older)
    if (!isShorter) {
      logger.warn('A reflection was refused: it is not shorter', { sessionId: key.sessionId })
      return false
    }
    const added = await store.memory.observe(key, {
      supersedes: older.map(({ number }) => number),
      observations: lines.map(withTerms),
      ...this.#usedBy(usage),
    })
    return added !== undefined
  }

  /** The newest current observations. */
  async #current(key: SessionKey, added: number): Promise<StoredObservation[]> {
    const { memory } = this.#options.store
    return memory.readObservations(key, {
      ...{ current: true, limit: MOST_CURRENT },
      afterNumber: Math.max(0, added - MOST_CURRENT),
    })
  }
}

function nameOf({ appName, userId, sessionId }: SessionKey): string {
  return JSON.stringify([appName, userId, sessionId])
}

/** Nothing is left for an observer: rules cost nothing. */
function isBudgetSpent(error: unknown): boolean {
  return error instanceof AgentError && error.code === 'budget-spent'
}

/** Messages that wait before they are indexed together. */
const INDEXED_TOGETHER = 128
const MOST_FAILURES = 3
/** Idle sessions that are known. */
const MOST_IDLE = 10_000
const MOST_MESSAGES = 200
const MOST_CURRENT = 1000
const MOST_REFLECTED = 200
const MOST_ROUNDS = 20
const CLOSE_MS = 1500

/** Oldest sources first: a reflection is newer than what it stands for. */
function bySource(one: StoredObservation, other: StoredObservation): number {
  return one.fromSeq - other.fromSeq || one.number - other.number
}

function tokensOf(observations: readonly { text: string }[]): number {
  return observations.reduce((all, { text }) => all + countTextTokens(text) + 12, 0)
}
