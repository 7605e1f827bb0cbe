import { setMaxListeners } from 'node:events'
import type { Content, Event } from '../adk/sdk.js'
import { RUN_ENDED_FIRST, RUN_STOPPED } from '../base/markers.js'
import { createPause, inTurn } from '../base/pause.js'
import { type AgentError, messageOf } from '../errors.js'
import type { RunAnswer } from '../tool.js'
import { AdkEvents } from './adk-events.js'
import type { AppendGate } from './append-gate.js'
import { closeCalls, pendingInStore, seenIn } from './close-calls.js'
import { EventReader, Outbox } from './event-reader.js'
import { NodeRuns } from './node-runs.js'
import { PendingCalls } from './pending-calls.js'
import { AnswerForm, abortMarker, RunFailures } from './recovery.js'
import { restoreCounts } from './resumed-run.js'
import { type Round, waitEntry } from './round-questions.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { EventLists, LeftFor, RunHost, RunOpened } from './run-host.js'
import { endEntry, type RunJournal } from './run-journal.js'
import { RunLimits } from './run-limits.js'
import type { PreparedRun } from './run-opening.js'
import { RunOutput } from './run-output.js'
import { enterAgent, type RunPlugin, startAdk } from './run-plugin.js'
import { RunQuestions } from './run-questions.js'
import type { RunRecorder } from './run-recorder.js'
import { createScope } from './run-scope.js'
import { openWrites, type WriteParts } from './run-writes.js'
import type { ToolLedger } from './tool-ledger.js'

export interface RunLoopParts extends WriteParts, Pick<PreparedRun, 'output'> {
  /** The first events of the run, or of this attempt: they are stored. */
  first: readonly RunEvent[]
  /** Releases the session. */
  end(): Promise<void>
}

/** One run: ADK's events mixed with what the model layer reports; further rounds; then every open call is answered. */
export class RunLoop {
  readonly runId: string
  readonly #plugin: RunPlugin
  readonly #outbox = new Outbox<RunEventBody>()
  /** The calls of the messages that are stored. */
  readonly #pending = new PendingCalls()
  /** What closes the calls could not be stored. */
  #isUnsettled = false
  /** Once at a time: an abort may come meanwhile, and a call that is being answered looks open in the store. */
  readonly #settle = inTurn(() => this.#closeAndMark())
  readonly #abort = new AbortController()
  readonly #gate: AppendGate
  readonly #reader: EventReader
  readonly #recorder: RunRecorder
  readonly #ledger: ToolLedger
  readonly #limits: RunLimits
  readonly #host: RunHost
  readonly #parts: RunLoopParts
  readonly #journal: RunJournal
  #opening: RunOpened | undefined
  readonly #output: RunOutput
  /** From the first question on. */
  #questions: RunQuestions | undefined
  #roundNumber: number
  readonly #failures: RunFailures
  readonly #form: AnswerForm
  #stopped = false
  #finished = false
  #marked = false
  #endReason: RunFinishReason | undefined
  #lastAuthor: string | undefined
  /** The end of the run, once it has begun: it happens once. */
  #shutting: Promise<RunEvent[]> | undefined
  /** Why the events ended without an end of the run: another attempt continues it. */
  leftFor: LeftFor | undefined
  constructor(parts: RunLoopParts) {
    const { host, input, runId, resumed, opening } = parts
    this.runId = runId
    this.#parts = parts
    this.#host = host
    this.#opening = opening
    // Each running tool and model call has one listener; their number is not a leak.
    setMaxListeners(0, this.#abort.signal)
    this.#abort.signal.addEventListener('abort', () => this.#outbox.wakeUp(), { once: true })
    const reader = new EventReader(host.agentNames, reference => host.models.priceOf(reference))
    this.#reader = reader
    const { recorder, ledger, gate, journal, plugin } = openWrites(parts, {
      emit: body => {
        if (!this.#shutting) this.#output.prepare(body)
        if (body.type === 'tool-unknown' && body.asks) this.#asking().watch()
      },
      fail: error => this.stop(error),
      enterAgent: invocation => enterAgent(invocation, this.#plugin, this.#limits),
      mayEndWith: agent => !this.#hasAsked && !this.#form.schemaOf(agent),
      stored: message => {
        this.#pending.observe(seenIn(message))
        this.#output.handOutHeld()
      },
      lost: error => this.#failed(error),
    })
    this.#recorder = recorder
    this.#ledger = ledger
    this.#gate = gate
    this.#journal = journal
    this.#plugin = plugin
    this.#limits = new RunLimits(host.limits, plugin)
    plugin.onTool = tool => host.tools.adopt(tool)
    plugin.client = host.clientOf(input)
    this.#output = new RunOutput({ outbox: this.#outbox, recorder, reader, resumed })
    if (resumed) restoreCounts(resumed, { pending: this.#pending, reader, limits: this.#limits })
    this.#roundNumber = resumed?.round ?? 1
    this.#failures = new RunFailures(parts.host.agentNames, resumed?.isCorrection)
    this.#form = new AnswerForm(host.outputs, parts.output, resumed?.isCorrection)
    // What earlier attempts have asked is known from the beginning.
    if (resumed) this.#asking()
  }

  /** What the run asks of people. */
  #asking(): RunQuestions {
    const { host, key, input, resumed } = this.#parts
    this.#questions ??= new RunQuestions({
      ...{ host, earlier: resumed?.progress, isBetween: resumed?.isBetween ?? false },
      ...{ identity: { sessionId: key.sessionId, runId: this.runId }, onApproval: input.onApproval },
      ...{ ledger: this.#ledger, pending: this.#pending, recorder: this.#recorder },
      ...{ canLeave: this.isResumable, signal: this.#abort.signal },
      isBusy: () => this.#ledger.isExecuting({ withReads: true }) || this.#journal.isAsking,
      leave: () => this.leave('waiting'),
      emit: body => this.#outbox.put(body),
      prepare: body => this.#output.prepare(body),
    })
    return this.#questions
  }

  /** The events of the run, in lists: those that are stored in one write are handed out together. */
  async *events(message: Content): EventLists {
    try {
      this.#recorder.began(this.#parts.first, this.#parts.resumed?.progress.step)
      yield this.#parts.first
      const { isBetween = false, isCorrection = false } = this.#parts.resumed ?? {}
      let next = isBetween ? undefined : { message, isSynthetic: isCorrection }
      do {
        if (next) yield* this.#round(next)
        next = await this.#nextRound()
        this.#roundNumber += 1
      } while (next)
      this.#failures.judge()
      if (!this.#shutting) {
        await this.#settle()
        const rest = await this.#emit(this.#outbox.take())
        if (rest.length > 0) yield rest
      }
      const last = await this.#shutDown()
      this.#finished = true
      yield [...this.#output.upTo(last[0]?.seq ?? 0), ...last]
    } finally {
      this.#questions?.close()
      if (!this.#finished && !this.#failures.failure) this.#abort.abort()
      if (!this.#finished) await this.#shutDown()
    }
  }

  /** Aborts the run. With a failure the run ends in that error instead. */
  stop(failure?: AgentError): void {
    this.#failures.keep(failure)
    this.#abort.abort()
    void this.#shutDown()
  }

  /** Whether the run can be continued by another attempt. */
  get isResumable(): boolean {
    return this.#host.resume !== false
  }

  /** Leaves the run to another attempt: nothing begins any more, tools that have effects may end, it is given back. */
  async handOver(graceMs: number): Promise<void> {
    this.#ledger.hold()
    this.#journal.hold()
    await this.#ledger.settled(graceMs)
    await this.leave('handover')
  }

  /** The message of the next round: a correction, or the answers to what ADK asks. Without them the run is left. */
  async #nextRound(): Promise<Round | undefined> {
    const correction = this.#failures.correction(this.#host.rootAgent)
    if (correction) {
      this.#stopped = false
      return { message: correction, isSynthetic: true }
    }
    if (this.#aborted || this.#shutting) return undefined
    if (this.#stopped) return this.#form.nextRound(this.#reader.answer, this.#failures, false)
    const answers = this.#hasAsked ? await this.#asking().answers(this.#roundNumber) : undefined
    const isLost = answers === 'lost'
    if ((isLost || answers === 'missing') && !this.#aborted) await this.leave(isLost ? 'lost' : 'round')
    if (isLost || answers === 'missing' || this.#aborted) return undefined
    if (answers) return { message: answers, isSynthetic: false }
    return this.#form.nextRound(this.#reader.answer, this.#failures, this.#limits.finishReason === 'stop')
  }

  /** Stops working on the run without ending it. */
  async leave(why: LeftFor): Promise<void> {
    if (this.#shutting) return
    this.leftFor = why
    this.#shutting = (async () => {
      try {
        this.#ledger.seal()
        await this.#gate.seal()
        if (why === 'lost') return await this.#recorder.leaveUnfinished([])
        const entries = why === 'round' ? [waitEntry(this.#roundNumber)] : undefined
        const isStored = await this.#recorder.pause(why === 'round' ? 'waiting' : why, entries)
        // Between two rounds the events end here.
        return entries && isStored ? this.#output.upTo(Number.POSITIVE_INFINITY) : []
      } finally {
        await this.#parts.end()
      }
    })()
    this.#abort.abort()
    await this.#shutting
  }

  /** Takes an answer that may come before its call asks for it: a resumed run gets there in time. */
  receive(callId: string, answer: RunAnswer): void {
    if (!this.#shutting) this.#asking().expect(callId, answer)
  }

  /** Answers a tool call that waits for a person; `false` when none waits under that id. */
  answer(callId: string, answer: RunAnswer): boolean {
    return !this.#shutting && this.#asking().answer(callId, answer)
  }

  /** One call of ADK's runner. Its events and the outbox are taken as they come, one at a time. */
  async *#round(round: Round): EventLists {
    if (this.#aborted) return
    const adk = new AdkEvents(this.#startAdk(round), this.#createScope(), this.#outbox)
    const pause = createPause(YIELD_EVERY_MS)
    try {
      adk.start()
      while (!this.#stopped) {
        if (!adk.hasArrived) await this.#outbox.ready()
        const next = adk.take()
        const notices = this.#outbox.take()
        const waiting = this.#output.isQuiet(notices) ? [] : await this.#emit(notices)
        if (waiting.length > 0) yield waiting
        if (this.#aborted) return
        if (!next) continue
        if (next.done) return this.#parts.resumed?.replay.finish()
        const stored = this.#shutting ? [] : this.#output.storedWith(next.value)
        const reported = stored ?? (await this.#output.report(next.value))
        if (reported.length > 0) yield reported
        const bodies = this.#judge(next.value)
        if (bodies.length > 0) yield await this.#emit(bodies)
        if (this.#stopped) return
        // A last answer is stored with the end of the run when that comes at once.
        if (!this.#recorder.isHolding) await pause()
        if (!this.#stopped) adk.start()
      }
    } catch (error) {
      this.#failed(error)
    } finally {
      adk.leave()
    }
  }

  #startAdk({ message, isSynthetic }: Round): AsyncGenerator<Event, void, undefined> {
    const opening = this.#opening
    this.#opening = undefined
    if (opening) this.#plugin.expectInvocation(opening.invocationId)
    return startAdk(this.#host, {
      key: this.#parts.key,
      sessions: this.#host.sessionService(this.#gate.store, this.#parts.lease, {
        opening,
        onAppend: event => this.#output.appending(event),
        journal: this.#journal,
        openNodes: () =>
          new NodeRuns({ journal: this.#journal, ledger: this.#ledger, resumed: this.#parts.resumed }),
      }),
      plugin: this.#plugin,
      message,
      synthetic: isSynthetic,
      signal: this.#abort.signal,
      stateDelta: this.#roundNumber > 1 ? undefined : this.#parts.input.stateDelta,
    })
  }

  /** What code inside the run may do with it. */
  #createScope() {
    return createScope({
      run: this.#parts,
      round: this.#roundNumber,
      outputOf: agent => this.#form.schemaOf(agent)?.jsonSchema,
      plugin: this.#plugin,
      recorder: this.#recorder,
      reader: this.#reader,
      limits: this.#limits,
      ledger: this.#ledger,
      emit: body => this.#outbox.put(body),
      defer: body => this.#output.defer(body),
      approve: (call, signal) => this.#asking().approve(call, signal),
      ask: (question, signal) => this.#asking().ask(question, signal),
    })
  }

  /** Applies failures and limits to an event of ADK's, and returns what else is to be emitted. */
  #judge(event: Event): readonly RunEventBody[] {
    if (event.errorCode || event.errorMessage) {
      const { replay } = this.#parts.resumed ?? {}
      const original = replay?.has(event) ? replay.failureOf(event) : this.#plugin.modelError
      this.#failed(original ?? event.errorMessage ?? event.errorCode, event)
      return []
    }
    if (event.author && event.author !== 'user') this.#lastAuthor = event.author
    if (this.#failures.missesTarget(this.#host.rootAgent, event)) {
      this.#stopped = true
      return []
    }
    const { verdict, bodies } = this.#limits.observe(event)
    const warning = bodies.find(({ type }) => type === 'turn-warning')
    if (warning) this.#host.logger.warn('A run has used most of its turns', { ...warning })
    if (verdict === 'stop') this.#stopped = true
    return bodies
  }

  #failed(error: unknown, event?: Event): void {
    this.#stopped = true
    this.#outbox.wakeUp()
    // An error that an abort causes is no failure of its own.
    if (this.#aborted) return
    this.#reader.answer.dropStep()
    this.#failures.add(this.#parts.resumed?.replay.divergence ?? error, event)
  }

  /**
   * Ends the run: ADK stores nothing more, no call stays open, the last event is recorded, and the session is
   * released. An abort calls this at once, because the reader of the events may never ask for the next one.
   */
  #shutDown(): Promise<RunEvent[]> {
    this.#questions?.stopWatching()
    this.#failures.keep(this.#parts.resumed?.replay.divergence)
    this.#shutting ??= (async () => {
      try {
        await this.#settle()
        // A last answer that cannot be stored is another end.
        await this.#recorder.lettingGo
        if (this.#isUnsettled) return await this.#recorder.leaveUnfinished(this.#last())
        return await this.#recorder.finish(this.#last()).catch(error => {
          this.#failures.add(error)
          return this.#recorder.finish(this.#last())
        })
      } finally {
        await this.#parts.end()
      }
    })()
    return this.#shutting
  }

  #last(): RunEventBody[] {
    const { failure: error } = this.#failures
    const reason = (!error && this.#endReason) || this.#finishReason
    const end = this.#output.finish(reason, this.#limits, this.#form.output)
    return error ? [{ type: 'error', error }, end] : [end]
  }

  /** Records events and returns them, until the run is shut down. */
  async #emit(bodies: readonly RunEventBody[]): Promise<RunEvent[]> {
    return this.#shutting ? [] : [...(await this.#output.prepared()), ...(await this.#output.emit(bodies))]
  }

  get #finishReason(): RunFinishReason {
    return this.#failures.failure ? 'error' : this.#aborted ? 'aborted' : this.#limits.finishReason
  }

  /** Whether people are asked, or were. */
  get #hasAsked(): boolean {
    return this.#questions !== undefined || this.#pending.requests().length > 0
  }

  get #aborted(): boolean {
    return this.#abort.signal.aborted
  }

  /** Answers open calls, and marks an abort for the next turn. Where that fails the run stays unfinished, to be settled later. */
  async #closeAndMark(): Promise<void> {
    this.#ledger.seal()
    await this.#gate.seal()
    if (this.#parts.lease.lost.aborted) this.#isUnsettled ||= this.#ledger.hasOpenCalls
    if (this.#parts.lease.lost.aborted || this.#isUnsettled) return
    try {
      const reason = this.#aborted ? RUN_STOPPED : RUN_ENDED_FIRST
      const pending = this.#gate.haveWritesFailed
        ? await pendingInStore(this.#host.store, this.runId)
        : this.#pending
      const closing = this.#ledger.close(reason)
      const ending = endEntry(this.#finishReason, this.#failures.failure)
      this.#output.add(await closeCalls(pending, closing, this.#recorder, ending))
      // An abort that comes later finds a run that has ended.
      this.#endReason = this.#finishReason
      if (this.#endReason === 'aborted' && !this.#marked) {
        this.#marked = true
        await this.#recorder.letGo()
        const marker = abortMarker(this.#host.rootAgent, this.#lastAuthor)
        await this.#host.appendNote(this.#parts.key, marker, this.#parts.lease)
      }
    } catch (error) {
      this.#isUnsettled = true
      this.#host.logger.warn('The end of a run could not be stored', { error: messageOf(error) })
    }
  }
}

/** A fast model with fast tools uses microtasks only: the timers of lease renewals must fire all the same. */
const YIELD_EVERY_MS = 20
