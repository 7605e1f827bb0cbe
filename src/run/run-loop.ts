import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { adkFailure } from '../adk/adk-quirks.js'
import type { Content, Event } from '../adk/sdk.js'
import { RUN_ENDED_FIRST, RUN_STOPPED } from '../base/markers.js'
import { createPause } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import { type SessionKey, toolCallKind } from '../session/message.js'
import type { Lease } from '../session/session-store.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../tool.js'
import { closeCalls, pendingInStore, seenIn } from './close-calls.js'
import { EventReader, PendingCalls, subAgentNames } from './event-reader.js'
import {
  abortMarker,
  agentNameCorrection,
  agentNotFound,
  asAgentError,
  asUser,
  withCause,
} from './recovery.js'
import type { ResumedRun } from './resumed-run.js'
import { type ApprovalDesk, openApprovalDesk } from './run-approvals.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { RunHost, RunInput, StoredOpening } from './run-host.js'
import { RunJournal } from './run-journal.js'
import { RunLimits, transferTarget } from './run-limits.js'
import { enterAgent, RunPlugin, startAdk } from './run-plugin.js'
import { type AppendGate, gateAppends, RunRecorder } from './run-recorder.js'
import { AdkEvents, createScope, Outbox } from './run-scope.js'
import { openLedger, type ToolLedger } from './tool-ledger.js'

export interface RunLoopParts {
  host: RunHost
  key: SessionKey
  lease: Lease
  input: RunInput
  runId: string
  /** The first events of the run, or of this attempt: they are stored. */
  first: readonly RunEvent[]
  /** What earlier attempts of the run have left. */
  resumed?: ResumedRun | undefined
  /** The message of the run and where it is stored; absent when the store could not open the run in one write. */
  opening?: RunOpened | undefined
  /** Releases the session. */
  end(): Promise<void>
}

/** The user's message as the opening of the run stored it. */
export interface RunOpened extends StoredOpening {
  invocationId: string
}

/** A person must answer, the process ends, or the lease was lost: another process may have the run already. */
export type LeftFor = 'waiting' | 'handover' | 'lost'

/** Lists of events; a list may be empty. */
export type EventLists = AsyncGenerator<readonly RunEvent[], void, undefined>

/**
 * One run, from its first event to its last. The order is always: start; ADK's events as they come, mixed
 * with what the model layer reports; at most one more round, with a correction; then every open call is
 * answered, and the run is finished.
 */
export class RunLoop {
  readonly runId: string
  readonly #plugin = new RunPlugin()
  readonly #outbox = new Outbox<RunEventBody>()
  /** The calls of the messages that are stored. */
  readonly #pending = new PendingCalls()
  /** What closes the calls could not be stored. */
  #isUnsettled = false
  readonly #abort = new AbortController()
  readonly #gate: AppendGate
  readonly #reader: EventReader
  readonly #recorder: RunRecorder
  readonly #ledger: ToolLedger | undefined
  readonly #limits: RunLimits
  readonly #host: RunHost
  readonly #key: SessionKey
  readonly #lease: Lease
  readonly #input: RunInput
  readonly #first: readonly RunEvent[]
  readonly #resumed: ResumedRun | undefined
  /** Where the store can resume runs. */
  readonly #journal: RunJournal | undefined
  readonly #end: () => Promise<void>
  /** Until the first round has begun. */
  #opening: RunOpened | undefined
  /** Events that are stored with a message and not handed out yet. */
  #ready: RunEvent[] = []
  /** The number of the last event that was stored with an event of ADK's. */
  readonly #lastSeqOf = new WeakMap<Event, number>()
  /** Opened by the first request for approval. */
  #desk: ApprovalDesk | undefined
  #failure: AgentError | undefined
  #unknownAgent: AgentError | undefined
  #stopped = false
  #finished = false
  #marked = false
  #lastAuthor: string | undefined
  /** The end of the run, once it has begun: it happens once, whether or not the events are read. */
  #shutting: Promise<RunEvent[]> | undefined

  /** Why the run is left to another attempt. */
  #leftFor: LeftFor | undefined
  #waitingTimer: NodeJS.Timeout | undefined

  constructor({ host, key, lease, input, runId, first, resumed, opening, end }: RunLoopParts) {
    this.runId = runId
    this.#host = host
    this.#key = key
    this.#lease = lease
    this.#input = input
    this.#first = first
    this.#resumed = resumed
    this.#opening = opening
    this.#end = end
    // Each running tool and model call has one listener; their number is not a leak.
    setMaxListeners(0, this.#abort.signal)
    const names = new Set([host.rootAgent.name, ...subAgentNames(host.rootAgent)])
    this.#reader = new EventReader(names, reference => host.models.priceOf(reference))
    this.#recorder = new RunRecorder({
      store: host.store,
      key,
      runId: this.runId,
      lease,
      logger: host.logger,
      observe: host.observe,
      onStored: input.onStored,
    })
    this.#ledger = openLedger(host, {
      key,
      runId: this.runId,
      recorder: this.#recorder,
      emit: body => {
        this.#outbox.put(body)
        if (body.type === 'tool-unknown' && body.asks) this.#watchWaiting()
      },
      fail: error => this.stop(error),
      enterAgent: invocation => this.#enterAgent(invocation),
      restored: resumed?.calls,
    })
    this.#plugin.onTool = tool => host.tools.adopt(tool)
    this.#gate = gateAppends({
      store: host.store,
      recorder: this.#recorder,
      ledger: this.#ledger,
      lease,
      hasAppended: opening !== undefined,
      onStored: message => {
        if (message.author !== 'user') this.#pending.observe(seenIn(message))
      },
    })
    this.#limits = new RunLimits(host.limits, this.#plugin)
    this.#journal = this.#openJournal()
    this.#plugin.journal = this.#journal
    if (resumed) this.#resume(resumed)
  }

  /** A run without a ledger cannot be resumed: nobody would know what its tools have done. */
  #openJournal(): RunJournal | undefined {
    const { store } = this.#host
    if (!this.#ledger || !store.runs.readResumable || !store.runs.resumeRun) return undefined
    return new RunJournal({
      key: this.#key,
      replay: this.#resumed?.replay,
      write: step => this.#gate.append(step),
    })
  }

  #resume({ replay, messages, earlier, progress }: ResumedRun): void {
    for (const message of messages) if (message.author !== 'user') this.#pending.observe(seenIn(message))
    for (const event of earlier) {
      this.#reader.replay(event)
      this.#limits.observe(event)
    }
    for (const { message } of replay.skipped) {
      const calls = (message?.toolCalls ?? []).filter(
        call => toolCallKind(call, message?.role ?? '') === 'call',
      )
      if (calls.length > 0) this.#limits.observeNested(calls)
    }
    this.#reader.resume(progress.usage)
  }

  /** The events of the run, in lists: those that are stored in one write are handed out together. */
  async *events(message: Content): EventLists {
    try {
      this.#recorder.began(this.#first, this.#resumed?.progress.step)
      yield this.#first
      const isCorrection = this.#resumed?.isCorrection ?? false
      yield* this.#round(message, isCorrection)
      const original = this.#unknownAgent
      const again = original && !isCorrection ? this.#correction(original) : undefined
      if (again) yield* this.#round(again, true)
      if (original && again) this.#judgeCorrection(original)
      else if (original && isCorrection) this.#failure ??= original
      if (!this.#shutting) {
        await this.#settle()
        const rest = this.#outbox.take()
        if (rest.length > 0) yield await this.#emit(rest)
      }
      const last = await this.#shutDown()
      this.#finished = true
      yield [...this.#takeReady(last[0]?.seq ?? 0), ...last]
    } finally {
      this.#desk?.close()
      if (!this.#finished) await this.#leftEarly()
    }
  }

  /** Aborts the run. With a failure the run ends in that error instead. */
  stop(failure?: AgentError): void {
    if (failure) this.#failure ??= failure
    this.#abort.abort()
    void this.#shutDown()
  }

  /** Why the events ended without an end of the run: another attempt continues it. */
  get leftFor(): LeftFor | undefined {
    return this.#leftFor
  }

  /** Whether the run can be continued by another attempt. */
  get isResumable(): boolean {
    return this.#journal !== undefined && this.#host.resume !== false
  }

  /**
   * Leaves the run to another attempt: nothing begins any more, tools that have effects may end, and then the run is
   * given back.
   */
  async handOver(graceMs: number): Promise<void> {
    this.#ledger?.hold()
    this.#journal?.hold()
    const until = Date.now() + graceMs
    while (this.#ledger?.isExecuting({ withReads: false }) && Date.now() < until && !this.#shutting)
      await sleep(HANDOVER_POLL_MS)
    await this.leave('handover')
  }

  /** Stops working on the run without ending it. */
  async leave(why: LeftFor): Promise<void> {
    if (this.#shutting) return
    this.#leftFor = why
    this.#shutting = (async () => {
      try {
        this.#ledger?.seal()
        await this.#gate.seal()
        if (why !== 'lost') await this.#recorder.pause(why)
        else this.#recorder.leaveUnfinished([])
        return []
      } finally {
        await this.#end()
      }
    })()
    this.#abort.abort()
    await this.#shutting
  }

  /** Takes an answer that may come before its call asks for it: a resumed run gets there in time. */
  receive(callId: string, answer: ApprovalAnswer | OutcomeAnswer): void {
    if (isOutcome(answer)) this.#ledger?.expect(callId, answer)
    else this.#approvals().expect(callId, answer)
  }

  /** Answers a tool call that waits for a person; `false` when none waits under that id. */
  answer(callId: string, answer: ApprovalAnswer | OutcomeAnswer): boolean {
    if (isOutcome(answer)) return this.#ledger?.answer(callId, answer) ?? false
    return this.#desk?.answer(callId, answer) ?? false
  }

  /** The correction of an unknown agent's name, once; without other agents the run fails. */
  #correction(original: AgentError): Content | undefined {
    const valid = subAgentNames(this.#host.rootAgent)
    if (valid.length === 0) {
      this.#failure = original
      return undefined
    }
    this.#unknownAgent = undefined
    this.#stopped = false
    return asUser(agentNameCorrection(String(original.details.name), valid))
  }

  #judgeCorrection(original: AgentError): void {
    const again = this.#unknownAgent ?? this.#failure
    if (again) this.#failure = withCause(again, original)
  }

  /** One call of ADK's runner. Its events and the outbox are taken as they come, one at a time. */
  async *#round(message: Content, synthetic: boolean): EventLists {
    if (this.#aborted) return
    const adk = new AdkEvents(this.#startAdk(message, synthetic), this.#createScope(), this.#outbox)
    const wake = () => this.#outbox.wakeUp()
    this.#abort.signal.addEventListener('abort', wake, { once: true })
    const pause = createPause(YIELD_EVERY_MS)
    try {
      adk.start()
      while (!this.#stopped) {
        if (!adk.hasArrived) await this.#outbox.ready()
        const next = adk.take()
        const waiting = this.#outbox.take()
        if (waiting.length > 0) yield await this.#emit(waiting)
        if (this.#aborted) return
        if (!next) continue
        if (next.done) return this.#resumed?.replay.finish()
        const stored = this.#takeStored(next.value)
        const reported = stored ?? (await this.#report(next.value))
        if (reported.length > 0) yield reported
        const bodies = this.#notEmitted(this.#judge(next.value))
        if (bodies.length > 0) yield await this.#emit(bodies)
        if (this.#stopped) return
        await pause()
        if (!this.#stopped) adk.start()
      }
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#abort.signal.removeEventListener('abort', wake)
      adk.leave()
    }
  }

  #startAdk(message: Content, synthetic: boolean): AsyncGenerator<Event, void, undefined> {
    const opening = this.#opening
    this.#opening = undefined
    if (opening) this.#plugin.expectInvocation(opening.invocationId)
    return startAdk(this.#host, {
      key: this.#key,
      sessions: this.#host.sessionService(this.#gate.store, this.#lease, {
        opening,
        onAppend: event => this.#appending(event),
        journal: this.#journal,
      }),
      plugin: this.#plugin,
      message,
      synthetic,
      signal: this.#abort.signal,
      stateDelta: synthetic ? undefined : this.#input.stateDelta,
    })
  }

  /** What code inside the run may do with it. */
  #createScope() {
    const { models, observeRequest } = this.#host
    return createScope({
      models,
      sessionId: this.#key.sessionId,
      model: this.#input.model,
      plugin: this.#plugin,
      recorder: this.#recorder,
      reader: this.#reader,
      limits: this.#limits,
      ledger: this.#ledger,
      emit: body => this.#outbox.put(body),
      observeRequest,
      approve: (call, signal) => {
        const asked = this.#approvals().request(call, signal)
        this.#watchWaiting()
        return asked
      },
    })
  }

  #approvals(): ApprovalDesk {
    this.#desk ??= openApprovalDesk({
      earlier: this.#resumed?.progress.approvals,
      timeoutMs: this.#host.approvalTimeoutMs,
      identity: { sessionId: this.#key.sessionId, runId: this.runId },
      onApproval: this.#input.onApproval,
      emit: body => this.#outbox.put(body),
    })
    return this.#desk
  }

  /** A run that waits for a person and does nothing else is given back after a while. */
  #watchWaiting(): void {
    const { approvalTimeoutMs, waitingGraceMs = WAITING_GRACE_MS } = this.#host
    if (!this.isResumable || this.#input.onApproval || approvalTimeoutMs !== undefined) return
    clearTimeout(this.#waitingTimer)
    const check = () => {
      const isAsking = (this.#desk?.pending.length ?? 0) > 0 || this.#ledger?.isAsking
      if (!isAsking || this.#shutting) return
      const isBusy = this.#ledger?.isExecuting({ withReads: true }) || this.#journal?.isAsking
      if (isBusy) this.#watchWaiting()
      else void this.leave('waiting')
    }
    this.#waitingTimer = setTimeout(check, waitingGraceMs)
  }

  #enterAgent(invocation: object): void {
    const journal = this.#journal
    if (!journal) return
    enterAgent(invocation, journal, event => {
      const calls = (event.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
      if (calls.length > 0) this.#limits.observeNested(calls)
    })
  }

  /** Prepares the events of the run that report an event of ADK's: they are stored in one write with its message. */
  #appending(event: Event): void {
    if (event.author === 'user') return
    const events = this.#recorder.prepare([...this.#outbox.take(), ...this.#reader.read(event)])
    this.#ready.push(...events)
    this.#lastSeqOf.set(event, events.at(-1)?.seq ?? 0)
  }

  /** The events of the run that were stored with an event of ADK's. */
  #takeStored(event: Event): RunEvent[] | undefined {
    const lastSeq = this.#lastSeqOf.get(event)
    return lastSeq === undefined ? undefined : this.#takeReady(lastSeq)
  }

  /** Records the events that report an event of ADK's which was not stored. */
  async #report(event: Event): Promise<RunEvent[]> {
    if (this.#resumed?.replay.has(event)) {
      this.#reader.replay(event)
      return []
    }
    this.#pending.observe(event)
    return this.#emit(this.#reader.read(event))
  }

  /** Without the notices that earlier attempts of the run have emitted. */
  #notEmitted(bodies: readonly RunEventBody[]): readonly RunEventBody[] {
    const notices = this.#resumed?.progress.notices
    if (!notices) return bodies
    return bodies.filter(({ type }) => {
      if ((type !== 'turn-warning' && type !== 'wrap-up') || notices[type] === 0) return true
      notices[type] -= 1
      return false
    })
  }

  /** Applies failures and limits to an event of ADK's, and returns what else is to be emitted. */
  #judge(event: Event): readonly RunEventBody[] {
    if (event.errorCode || event.errorMessage) {
      const isReplayed = this.#resumed?.replay.has(event)
      const original = isReplayed ? undefined : this.#plugin.modelError
      this.#failed(original ?? event.errorMessage ?? event.errorCode)
      return []
    }
    if (event.author && event.author !== 'user') this.#lastAuthor = event.author
    const alone = this.#host.rootAgent.subAgents.length === 0
    const missing = alone ? transferTarget(event) : undefined
    if (missing !== undefined) {
      this.#stopped = true
      this.#failure ??= agentNotFound(missing)
      return []
    }
    const { verdict, bodies } = this.#limits.observe(event)
    for (const body of bodies) {
      if (body.type === 'turn-warning')
        this.#host.logger.warn('A run has used most of its turns', { ...body })
    }
    if (verdict === 'stop') this.#stopped = true
    return bodies
  }

  /** Keeps the first failure. An unknown agent is kept apart, because it may be retried. */
  #failed(error: unknown): void {
    this.#stopped = true
    // An error that an abort causes is no failure of its own.
    if (this.#aborted) return
    this.#reader.answer.dropStep()
    const divergence = this.#resumed?.replay.divergence
    if (divergence) {
      this.#failure ??= divergence
      return
    }
    const message = typeof error === 'string' ? error : messageOf(error)
    const reason = adkFailure(message, { whole: error instanceof AgentError })
    if (reason.kind === 'unknown-agent') this.#unknownAgent ??= agentNotFound(reason.name)
    else this.#failure ??= asAgentError(error)
  }

  async #leftEarly(): Promise<void> {
    if (!this.#failure) this.#abort.abort()
    await this.#shutDown()
  }

  /**
   * Ends the run: ADK stores nothing more, no call stays open, the last event is recorded, and the session is
   * released. An abort calls this at once, because the reader of the events may never ask for the next one.
   */
  #shutDown(): Promise<RunEvent[]> {
    clearTimeout(this.#waitingTimer)
    this.#failure ??= this.#resumed?.replay.divergence
    this.#shutting ??= (async () => {
      try {
        await this.#settle()
        const failure: RunEventBody[] = this.#failure ? [{ type: 'error', error: this.#failure }] : []
        const last = [...failure, this.#finishEvent()]
        return this.#isUnsettled ? this.#recorder.leaveUnfinished(last) : await this.#recorder.finish(last)
      } finally {
        await this.#end()
      }
    })()
    return this.#shutting
  }

  /** Records events and returns them, after those that were stored before them, until the run is shut down. */
  async #emit(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    if (bodies.length === 0 || this.#shutting) return []
    const events = await this.#recorder.record(bodies)
    return [...this.#takeReady(events[0]?.seq ?? 0), ...events]
  }

  /** The events up to that number that were stored with messages. */
  #takeReady(lastSeq: number): RunEvent[] {
    const taken = this.#ready.filter(({ seq }) => seq <= lastSeq)
    this.#ready = this.#ready.slice(taken.length)
    return taken
  }

  #finishEvent(): RunEventBody {
    const { text, lastText } = this.#reader.answer
    const { turns, delegations } = this.#limits
    const usage = this.#reader.usage
    const finishReason = this.#finishReason
    return { type: 'run-finish', finishReason, text, lastText, turns, delegations, usage }
  }

  get #finishReason(): RunFinishReason {
    if (this.#failure) return 'error'
    return this.#aborted ? 'aborted' : this.#limits.finishReason
  }

  get #aborted(): boolean {
    return this.#abort.signal.aborted
  }

  /**
   * Closes the store to ADK, answers open calls, and stores a marker of an abort for the next turn. When that
   * cannot be stored, the run stays unfinished in the store, so that its calls are settled when it is looked after.
   */
  async #settle(): Promise<void> {
    this.#ledger?.seal()
    await this.#gate.seal()
    if (this.#lease.lost.aborted) this.#isUnsettled ||= this.#ledger?.hasOpenCalls ?? false
    if (this.#lease.lost.aborted || this.#isUnsettled) return
    try {
      const reason = this.#aborted ? RUN_STOPPED : RUN_ENDED_FIRST
      const { store } = this.#host
      const pending = this.#gate.writes.haveFailed ? await pendingInStore(store, this.runId) : this.#pending
      const closing = this.#ledger?.close(reason) ?? reason
      this.#ready.push(...(await closeCalls(pending, closing, this.#recorder)))
      if (this.#finishReason === 'aborted' && this.#gate.hasAppended && !this.#marked) {
        this.#marked = true
        const marker = abortMarker(this.#host.rootAgent, this.#lastAuthor)
        await this.#host.appendNote(this.#key, marker, this.#lease)
      }
    } catch (error) {
      this.#isUnsettled = true
      this.#host.logger.warn('The end of a run could not be stored', { error: messageOf(error) })
    }
  }
}

function isOutcome(answer: ApprovalAnswer | OutcomeAnswer): answer is OutcomeAnswer {
  return answer === 'happened' || answer === 'run' || answer === 'leave'
}

const WAITING_GRACE_MS = 2000
const HANDOVER_POLL_MS = 20

/** A fast model with fast tools uses microtasks only: the timers of lease renewals must fire all the same. */
const YIELD_EVERY_MS = 20
