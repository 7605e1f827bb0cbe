import { setMaxListeners } from 'node:events'
import { type Content, type Event, isBaseAgent } from '../adk/sdk.js'
import { RUN_ENDED_FIRST, RUN_STOPPED } from '../base/markers.js'
import { createPause } from '../base/pause.js'
import { type AgentError, messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { Lease } from '../session/session-store.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../tool.js'
import { closeCalls, pendingInStore, seenIn } from './close-calls.js'
import { EventReader, PendingCalls } from './event-reader.js'
import { abortMarker, agentNotFound, RunFailures } from './recovery.js'
import { type ResumedRun, restoreCounts } from './resumed-run.js'
import { RunQuestions } from './run-approvals.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { EventLists, LeftFor, RunHost, RunInput, RunOpened } from './run-host.js'
import { endEntry, openJournal, type RunJournal } from './run-journal.js'
import { RunLimits, transferTarget } from './run-limits.js'
import { enterAgent, RunPlugin, startAdk } from './run-plugin.js'
import { type AppendGate, gateAppends, RunRecorder } from './run-recorder.js'
import { AdkEvents, createScope, Outbox, RunOutput } from './run-scope.js'
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
  readonly #output: RunOutput
  /** Opened by the first question. */
  #opened: RunQuestions | undefined
  readonly #failures = new RunFailures()
  #stopped = false
  #finished = false
  #marked = false
  #lastAuthor: string | undefined
  /** The end of the run, once it has begun: it happens once, whether or not the events are read. */
  #shutting: Promise<RunEvent[]> | undefined

  /** Why the run is left to another attempt. */
  #leftFor: LeftFor | undefined

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
    this.#reader = new EventReader(host.agentNames, reference => host.models.priceOf(reference))
    const { store, logger, observe } = host
    const { onStored } = input
    this.#recorder = new RunRecorder({ store, key, runId, lease, logger, observe, onStored })
    this.#ledger = openLedger(host, {
      key,
      runId: this.runId,
      recorder: this.#recorder,
      emit: body => {
        if (!this.#shutting) this.#output.prepare(body)
        if (body.type === 'tool-unknown' && body.asks) this.#questions.watch()
      },
      fail: error => this.stop(error),
      enterAgent: invocation => enterAgent(invocation, this.#plugin, this.#limits),
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
    this.#journal = openJournal(host.store, this.#ledger, {
      key,
      replay: resumed?.replay,
      answerUnknownTools: host.answerUnknownTools,
      failureOf: event => (event.errorCode ? this.#plugin.modelError : undefined),
      write: step => this.#gate.append(step),
    })
    this.#plugin.journal = this.#journal
    this.#output = new RunOutput({
      outbox: this.#outbox,
      recorder: this.#recorder,
      reader: this.#reader,
      resumed,
    })
    if (resumed)
      restoreCounts(resumed, { pending: this.#pending, reader: this.#reader, limits: this.#limits })
  }

  get #questions(): RunQuestions {
    this.#opened ??= new RunQuestions({
      ...this.#host,
      identity: { sessionId: this.#key.sessionId, runId: this.runId },
      earlier: this.#resumed?.progress.approvals,
      onApproval: this.#input.onApproval,
      ledger: this.#ledger,
      canLeave: this.isResumable,
      isBusy: () => this.#ledger?.isExecuting({ withReads: true }) || this.#journal?.isAsking || false,
      leave: () => this.leave('waiting'),
      emit: body => this.#outbox.put(body),
    })
    return this.#opened
  }

  /** The events of the run, in lists: those that are stored in one write are handed out together. */
  async *events(message: Content): EventLists {
    try {
      this.#recorder.began(this.#first, this.#resumed?.progress.step)
      yield this.#first
      const isCorrection = this.#resumed?.isCorrection ?? false
      yield* this.#round(message, isCorrection)
      const again = isCorrection ? undefined : this.#failures.correction(this.#host.rootAgent)
      if (again) {
        this.#stopped = false
        yield* this.#round(again, true)
      }
      this.#failures.judge()
      if (!this.#shutting) {
        await this.#settle()
        const rest = this.#outbox.take()
        if (rest.length > 0) yield await this.#emit(rest)
      }
      const last = await this.#shutDown()
      this.#finished = true
      yield [...this.#output.upTo(last[0]?.seq ?? 0), ...last]
    } finally {
      this.#opened?.close()
      if (!this.#finished && !this.#failures.failure) this.#abort.abort()
      if (!this.#finished) await this.#shutDown()
    }
  }

  /** Aborts the run. With a failure the run ends in that error instead. */
  stop(failure?: AgentError): void {
    if (failure) this.#failures.keep(failure)
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
    await this.#ledger?.settled(graceMs)
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
    this.#questions.expect(callId, answer)
  }

  /** Answers a tool call that waits for a person; `false` when none waits under that id. */
  answer(callId: string, answer: ApprovalAnswer | OutcomeAnswer): boolean {
    return this.#opened?.answer(callId, answer) ?? false
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
        const waiting = await this.#emit(this.#outbox.take())
        if (waiting.length > 0) yield waiting
        if (this.#aborted) return
        if (!next) continue
        if (next.done) return this.#resumed?.replay.finish()
        const reported = this.#shutting ? [] : await this.#output.report(next.value)
        if (reported.length > 0) yield reported
        const bodies = this.#judge(next.value)
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
        onAppend: event => this.#output.appending(event),
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
      key: this.#key,
      isResumed: this.#resumed !== undefined,
      model: this.#input.model,
      plugin: this.#plugin,
      recorder: this.#recorder,
      reader: this.#reader,
      limits: this.#limits,
      ledger: this.#ledger,
      emit: body => this.#outbox.put(body),
      observeRequest,
      approve: (call, signal) => this.#questions.approve(call, signal),
    })
  }

  /** Applies failures and limits to an event of ADK's, and returns what else is to be emitted. */
  #judge(event: Event): readonly RunEventBody[] {
    if (event.errorCode || event.errorMessage) {
      const { replay } = this.#resumed ?? {}
      const original = replay?.has(event) ? replay.failureOf(event) : this.#plugin.modelError
      this.#failed(original ?? event.errorMessage ?? event.errorCode)
      return []
    }
    if (event.author && event.author !== 'user') this.#lastAuthor = event.author
    const { rootAgent } = this.#host
    const alone = isBaseAgent(rootAgent) && rootAgent.subAgents.length === 0
    const missing = alone ? transferTarget(event) : undefined
    if (missing !== undefined) {
      this.#stopped = true
      this.#failures.keep(agentNotFound(missing))
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

  #failed(error: unknown): void {
    this.#stopped = true
    // An error that an abort causes is no failure of its own.
    if (this.#aborted) return
    this.#reader.answer.dropStep()
    this.#failures.add(this.#resumed?.replay.divergence ?? error)
  }

  /**
   * Ends the run: ADK stores nothing more, no call stays open, the last event is recorded, and the session is
   * released. An abort calls this at once, because the reader of the events may never ask for the next one.
   */
  #shutDown(): Promise<RunEvent[]> {
    this.#opened?.stopWatching()
    const divergence = this.#resumed?.replay.divergence
    if (divergence) this.#failures.keep(divergence)
    this.#shutting ??= (async () => {
      try {
        await this.#settle()
        const { failure: error } = this.#failures
        const last: RunEventBody[] = [
          ...(error ? [{ type: 'error' as const, error }] : []),
          this.#output.finish(this.#finishReason, this.#limits),
        ]
        return this.#isUnsettled ? this.#recorder.leaveUnfinished(last) : await this.#recorder.finish(last)
      } finally {
        await this.#end()
      }
    })()
    return this.#shutting
  }

  /** Records events and returns them, until the run is shut down. */
  async #emit(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    return this.#shutting ? [] : [...(await this.#output.prepared()), ...(await this.#output.emit(bodies))]
  }

  get #finishReason(): RunFinishReason {
    if (this.#failures.failure) return 'error'
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
      const isUncertain = this.#gate.writes.haveFailed
      const pending = isUncertain ? await pendingInStore(this.#host.store, this.runId) : this.#pending
      const closing = this.#ledger?.close(reason) ?? reason
      const ending = this.#journal && endEntry(this.#finishReason, this.#failures.failure)
      this.#output.add(await closeCalls(pending, closing, this.#recorder, ending))
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

/** A fast model with fast tools uses microtasks only: the timers of lease renewals must fire all the same. */
const YIELD_EVERY_MS = 20
