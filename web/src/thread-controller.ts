/** What the page does with one session: opens it, sends to it, follows its runs. The state is elsewhere, pure. */
import type { LangoClient } from '../../src/client/client.js'
import type { MediaPart, UnknownOutcome } from '../../src/transcript/item.js'
import { followAcrossNetworks, networkOr } from './follow-across-networks.js'
import { randomId } from './random-id.js'
import { announce, listenForRuns } from './run-channel.js'
import { RunNotesReader } from './run-notes.js'
import type { ApprovalAnswer, OutcomeReply, Outgoing, RunEvent, RunItem, SessionDetail } from './state/api.js'
import { newLiveRun } from './state/live-run.js'
import { Observable } from './state/observable.js'
import { problemOf } from './state/problem-of.js'
import {
  NEW_THREAD,
  newestSeq,
  type Problem,
  reduceThread,
  type ThreadAction,
  type ThreadState,
} from './state/thread-state.js'

const PAGE_SIZE = 100
/** Older messages come in larger pages: a reader who scrolls back usually reads more. */
const OLDER_PAGE_SIZE = 200
/** As many of the newest runs are looked at for those that wait. */
const QUEUE_SIZE = 50
/** How often a session is looked at for runs that were started elsewhere. */
const POLL_MS = 4000
/** Events are shown at most this often: a fast model must not keep the page busy. */
const FLUSH_MS = 40
/** Shown when another run was first; the draft is kept. */
const BUSY = 'Another answer is being written in this chat. Your message waits below: send it after that.'
/** A server that does not answer is asked again after this, for about an hour. */
const SETTLE_PAUSE_MS = 2000
const MAXIMUM_ATTEMPTS = 1800
/** A run of more messages than this is read in the next page load. */
const MAXIMUM_PAGES = 50

export class ThreadController {
  readonly #client: LangoClient
  readonly state = new Observable<ThreadState>(NEW_THREAD)
  /** The message that the reader asked to see last; a new value each time. */
  readonly revealed = new Observable<{ seq: number } | undefined>(undefined)
  /** Called after everything that changes the list of sessions. */
  onSessionsChanged: () => void = () => {}
  #leaving = new AbortController()
  readonly #waiting: { event: RunEvent; now?: number }[] = []
  #flushTimer: ReturnType<typeof setTimeout> | undefined
  #pollTimer: ReturnType<typeof setInterval> | undefined
  #notes: RunNotesReader | undefined

  constructor(client: LangoClient) {
    this.#client = client
  }

  async open(sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined || sessionId !== this.state.get().sessionId) await this.#openAnew(sessionId)
  }

  /** Loads again what could not be loaded: by hand, or after a time in which the server did not answer. */
  async reload(): Promise<void> {
    const { status, sessionId, problem } = this.state.get()
    if (problem?.code === 'unreachable') this.dismissProblem()
    await (status === 'failed' ? this.#openAnew(sessionId) : this.refresh())
  }

  async #openAnew(sessionId: string | undefined): Promise<void> {
    this.leave()
    this.#dispatch({ type: 'open', sessionId })
    if (sessionId !== undefined) await this.#load(sessionId)
  }

  leave(): void {
    this.#leaving.abort()
    this.#leaving = new AbortController()
    this.#waiting.length = 0
    clearTimeout(this.#flushTimer)
    clearInterval(this.#pollTimer)
    this.#flushTimer = undefined
    this.#notes = undefined
    this.revealed.set(undefined)
  }

  /** Sends a message. Resolves to false when it was refused, so that the draft is kept. */
  async send({ text, files: given = [], options = {}, onStarted }: Outgoing): Promise<boolean> {
    const files = [...given]
    const media = files.map(file => ({ type: 'media' as const, ...file }))
    const runId = await this.#begin({ text, media }, async (sessionId, id) => {
      const request = { runId: id, text, ...(files.length > 0 ? { files } : {}), ...options }
      await this.#client.start(sessionId, request)
      await onStarted?.().catch(error => this.showError(error))
    })
    return runId !== undefined
  }

  /** Sends the next message of a broken history through Lango. Resolves to the run, unless it was refused. */
  heal(question: string): Promise<string | undefined> {
    return this.#begin({ text: question, media: [] }, (sessionId, id) =>
      this.#client.healBroken(sessionId, id),
    )
  }

  /** Shows a run that begins, starts it and follows it. */
  async #begin(
    user: { text: string; media: readonly MediaPart[] },
    start: (sessionId: string, runId: string) => Promise<unknown>,
  ): Promise<string | undefined> {
    const state = this.state.get()
    if (state.live || state.status === 'loading') return undefined
    const { signal } = this.#leaving
    const sessionId = state.sessionId ?? randomId()
    const runId = randomId()
    this.#dispatch({
      type: 'run-sent',
      sessionId,
      run: newLiveRun({ runId, afterSeq: newestSeq(state), user }),
    })
    try {
      await start(sessionId, runId)
    } catch (error) {
      if (!signal.aborted) this.#refused(problemOf(error))
      return undefined
    }
    this.onSessionsChanged()
    if (signal.aborted) return runId
    announce(sessionId)
    this.#poll(sessionId, signal)
    void this.#follow(sessionId, runId, { replayThrough: 0, signal })
    return runId
  }

  #refused(problem: Problem): void {
    const isBusy = problem.code === 'session-busy'
    this.#dispatch({ type: 'run-refused', problem: isBusy ? { ...problem, message: BUSY } : problem })
    // The run that stands in the way is shown at once.
    if (isBusy) void this.refresh()
  }

  async stop(): Promise<void> {
    const { live } = this.state.get()
    if (!live || live.phase === 'finished') return
    this.#dispatch({ type: 'run-stopping' })
    await this.#client.stop(live.runId).catch(error => this.showError(error))
  }

  async approve(callId: string, answer: ApprovalAnswer | Record<string, unknown>): Promise<void> {
    const runId = this.state.get().live?.runId
    if (runId) await this.#client.approve(runId, callId, answer).catch(error => this.showError(error))
  }

  /** Says whether a call took effect: to the run that asks, or for the time when it is repeated. */
  async answerOutcome(outcome: UnknownOutcome, callId: string, answer: OutcomeReply): Promise<void> {
    const { runId, idempotencyKey, asks } = outcome
    try {
      await this.#client.approve(runId, callId, answer)
      if (!asks && typeof answer === 'string')
        this.#dispatch({ type: 'outcome-answered', idempotencyKey, answer })
    } catch (error) {
      this.showError(error)
    }
  }

  /** Ends a run that waits for its turn. */
  async stopQueued(runId: string): Promise<void> {
    const { sessionId } = this.state.get()
    await this.#client.stop(runId).catch(error => this.showError(error))
    if (sessionId !== undefined) await this.#readQueue(sessionId, this.#leaving.signal)
  }

  async loadOlder(): Promise<void> {
    const { sessionId, messages, older } = this.state.get()
    const beforeSeq = messages[0]?.seq
    if (sessionId === undefined || beforeSeq === undefined) return
    if (older !== 'idle' && older !== 'failed') return
    const { signal } = this.#leaving
    this.#dispatch({ type: 'older-asked' })
    try {
      const page = await this.#client.messages(sessionId, { beforeSeq, limit: OLDER_PAGE_SIZE })
      if (!signal.aborted) this.#dispatch({ type: 'older-loaded', messages: page.messages })
    } catch {
      if (!signal.aborted) this.#dispatch({ type: 'older-failed' })
    }
  }

  /** These messages of the user are on the screen: reads the notes of their runs. */
  async showNotes(seqs: readonly number[]): Promise<void> {
    await this.#notes?.readFor(seqs)
  }

  /** Loads what is needed to show a message, and scrolls to it. */
  async reveal(seq: number): Promise<void> {
    for (let page = 0; page < MAXIMUM_PAGES; page += 1) {
      const { messages, older } = this.state.get()
      if (older !== 'idle' || (messages[0]?.seq ?? 0) <= seq) break
      await this.loadOlder()
    }
    this.revealed.set({ seq })
  }

  /** A copy of the session up to a message, which the page then opens. */
  async fork(throughSeq?: number): Promise<string | undefined> {
    const { sessionId } = this.state.get()
    if (sessionId === undefined) return undefined
    try {
      const forked = await this.#client.fork(sessionId, throughSeq === undefined ? {} : { throughSeq })
      this.onSessionsChanged()
      return forked.sessionId
    } catch (error) {
      this.showError(error)
      return undefined
    }
  }

  dismissProblem(): void {
    this.#dispatch({ type: 'problem', problem: undefined })
  }

  /** Shows a sentence over the composer. */
  showProblem(code: string, message: string): void {
    this.#dispatch({ type: 'problem', problem: { code, message } })
  }

  showError(error: unknown): void {
    this.#dispatch({ type: 'problem', problem: problemOf(error) })
  }

  renamed(sessionId: string, title: string): void {
    if (sessionId === this.state.get().sessionId) this.#dispatch({ type: 'renamed', title })
  }

  /** Looks for a run that another page or person has started, and for messages that it has left. */
  async refresh(): Promise<void> {
    const { sessionId, live, status, lastRun } = this.state.get()
    const { signal } = this.#leaving
    if (sessionId === undefined || status !== 'ready') return
    if (live) return void (await this.#readQueue(sessionId, signal))
    const detail = await this.#client.session(sessionId).catch((error: unknown) => {
      if (!signal.aborted) this.#noticeMissing(error)
    })
    if (!detail || signal.aborted || this.state.get().live) return
    if (await this.#followNext(sessionId, detail, signal)) return
    if (detail.lastRun?.runId === lastRun?.runId && detail.totalMessages === newestSeq(this.state.get()))
      return
    // Whatever fails now is tried again with the next look.
    await this.#settle(sessionId, signal).catch(() => {})
  }

  async #load(sessionId: string): Promise<void> {
    const { signal } = this.#leaving
    this.#notes = new RunNotesReader(this.#client, { sessionId, signal }, notes =>
      this.#dispatch({ type: 'notes-loaded', notes }),
    )
    try {
      // In this order: a run that begins in between is found by the next look, one that ended is not followed.
      const detail = await this.#client.session(sessionId)
      const page = await this.#client.messages(sessionId, { limit: PAGE_SIZE })
      if (signal.aborted) return
      this.#dispatch({ type: 'opened', detail, messages: page.messages })
      this.#poll(sessionId, signal)
      if (!(await this.#followNext(sessionId, detail, signal)) && detail.lastRun)
        void this.#notes?.read(detail.lastRun)
    } catch (error) {
      if (signal.aborted) return
      if (!this.#noticeMissing(error))
        this.#dispatch({ type: 'failed', problem: problemOf(error), missing: false })
    }
  }

  /** The session was deleted, perhaps in another tab, or was never there. */
  #noticeMissing(error: unknown): boolean {
    const problem = problemOf(error)
    if (problem.code !== 'session-not-found' && problem.code !== 'not-found') return false
    this.leave()
    this.#dispatch({ type: 'failed', problem, missing: true })
    this.onSessionsChanged()
    return true
  }

  #followFound(sessionId: string, run: RunItem, signal: AbortSignal): void {
    this.#dispatch({ type: 'run-followed', run })
    void this.#follow(sessionId, run.runId, { replayThrough: run.lastSeq, signal })
  }

  async #follow(
    sessionId: string,
    runId: string,
    options: { replayThrough: number; signal: AbortSignal },
  ): Promise<void> {
    const { signal, replayThrough } = options
    let seen = 0
    this.#notes?.skip(runId)
    const onConnection = (connection: 'open' | 'lost') => {
      if (!signal.aborted) this.#dispatch({ type: 'connection', connection })
    }
    try {
      for await (const event of followAcrossNetworks(this.#client, runId, { signal, onConnection })) {
        if (signal.aborted) return
        this.#enqueue(event, event.seq > replayThrough)
        // The second event follows the user's message.
        seen += 1
        if (seen === 2) void this.#loadFirst(sessionId, signal)
      }
    } catch {
      // The events are gone or forbidden; what was stored is read all the same.
    }
    this.#flush()
    await this.#settleSurely(sessionId, signal)
  }

  /** Retries until the stored messages are read: before that nothing else can be sent in this chat. */
  async #settleSurely(sessionId: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < MAXIMUM_ATTEMPTS && !signal.aborted; attempt += 1) {
      try {
        return await this.#settle(sessionId, signal)
      } catch (error) {
        if (signal.aborted || this.#noticeMissing(error)) return
        this.#dispatch({ type: 'connection', connection: 'lost' })
        await networkOr(SETTLE_PAUSE_MS, signal)
      }
    }
  }

  /** The user's message of a run that was started elsewhere, when it was not stored yet at the first look. */
  async #loadFirst(sessionId: string, signal: AbortSignal): Promise<void> {
    const { live } = this.state.get()
    if (!live || live.user || newestSeq(this.state.get()) > live.afterSeq) return
    const page = await this.#client
      .messages(sessionId, { afterSeq: live.afterSeq, limit: 1 })
      .catch(() => ({ messages: [] }))
    if (!signal.aborted) this.#dispatch({ type: 'messages-loaded', messages: page.messages })
  }

  /** The run is over: what it stored takes the place of what was shown of it. */
  async #settle(sessionId: string, signal: AbortSignal): Promise<void> {
    const { live } = this.state.get()
    const afterSeq = Math.min(newestSeq(this.state.get()), live?.afterSeq ?? Number.POSITIVE_INFINITY)
    const messages = []
    for (let page = 0, from = afterSeq; page < MAXIMUM_PAGES; page += 1) {
      const next = await this.#client.messages(sessionId, { afterSeq: from, limit: PAGE_SIZE })
      messages.push(...next.messages)
      if (next.messages.length < PAGE_SIZE) break
      from = next.messages.at(-1)?.seq ?? from
    }
    const detail = await this.#client.session(sessionId)
    if (signal.aborted) return
    this.#dispatch({ type: 'run-stored', detail, messages })
    this.onSessionsChanged()
    void this.#notes?.readOutcomes(this.state.get().notes)
    await this.#followNext(sessionId, detail, signal)
  }

  /** Follows the run that works, or the next one that waits. `false` when there is none. */
  async #followNext(sessionId: string, detail: SessionDetail, signal: AbortSignal): Promise<boolean> {
    const { activeRun, lastRun, nextRun } = detail
    if (activeRun) this.#followFound(sessionId, activeRun, signal)
    const mayWait = lastRun?.status === 'queued' || nextRun !== undefined
    if (!activeRun && !mayWait && this.state.get().queued.length === 0) return false
    const [next] = await this.#readQueue(sessionId, signal)
    if (signal.aborted || this.state.get().live) return true
    const isDue = next !== undefined && next.status !== 'scheduled'
    if (isDue) this.#followFound(sessionId, next, signal)
    return isDue
  }

  async #readQueue(sessionId: string, signal: AbortSignal): Promise<readonly RunItem[]> {
    const found = await this.#client.runs(sessionId, { limit: QUEUE_SIZE }).catch(() => undefined)
    if (found && !signal.aborted) this.#dispatch({ type: 'queue-read', runs: found.runs })
    return this.state.get().queued
  }

  #poll(sessionId: string, signal: AbortSignal): void {
    clearInterval(this.#pollTimer)
    this.#pollTimer = setInterval(() => {
      if (document.visibilityState === 'visible' && !signal.aborted) void this.refresh()
    }, POLL_MS)
    listenForRuns(signal, started => {
      if (started === sessionId) void this.refresh()
    })
  }

  #enqueue(event: RunEvent, isNew: boolean): void {
    this.#waiting.push(isNew ? { event, now: Date.now() } : { event })
    this.#flushTimer ??= setTimeout(() => this.#flush(), FLUSH_MS)
  }

  #flush(): void {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    const events = this.#waiting.splice(0)
    if (events.length > 0) this.#dispatch({ type: 'run-events', events })
  }

  #dispatch(action: ThreadAction): void {
    this.state.set(reduceThread(this.state.get(), action))
  }
}
