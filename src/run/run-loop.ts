import { randomUUID } from 'node:crypto'
import { adkFailure } from '../adk/agent/adk-failure.js'
import type { Content, Event } from '../adk/sdk.js'
import { AgentError, messageOf } from '../errors.js'
import type { HistoryCut, SessionKey } from '../session/message.js'
import type { Lease, RunSignal } from '../session/session-store.js'
import type { RunUsage } from '../session/usage.js'
import { EventReader } from './event-reader.js'
import { ABORTED_MARKER, asUser, EMPTY_ANSWER_NUDGE } from './notices.js'
import {
  agentNameCorrection,
  agentNotFound,
  asAgentError,
  PendingCalls,
  subAgentNames,
  transferTarget,
  withCause,
} from './recovery.js'
import { RunApprovals, watchSignals } from './run-approvals.js'
import type { RunEvent, RunEventBody, RunFinishReason } from './run-event.js'
import type { RunHost, RunInput } from './run-host.js'
import { RunLimits } from './run-limits.js'
import { RunPlugin } from './run-plugin.js'
import { Outbox, RunRecorder } from './run-recorder.js'
import { type Counted, type RunScope, runScope, type SentRequest } from './run-scope.js'
import { type AppendGate, breather, gateAppends } from './session-queue.js'

export interface RunLoopParts {
  host: RunHost
  key: SessionKey
  lease: Lease
  input: RunInput
  /** Gives the session back. */
  end(): Promise<void>
}

/**
 * One run, from its first event to its last. The order is always: start; ADK's events as they come, mixed
 * with what the model layer reports; at most one more round (a correction or a nudge); then every open call
 * is answered, and the run is finished.
 */
export class RunLoop {
  private readonly plugin = new RunPlugin()
  private readonly outbox = new Outbox<RunEventBody>()
  private readonly pending = new PendingCalls()
  private readonly abort = new AbortController()
  private readonly gate: AppendGate
  private readonly reader: EventReader
  private readonly recorder: RunRecorder
  private readonly limits: RunLimits
  private readonly approvals: RunApprovals
  private stored: Counted | undefined
  private loadCut: HistoryCut | undefined
  private failure: AgentError | undefined
  private unknownAgent: AgentError | undefined
  private stopped = false
  private finished = false
  private marked = false
  private lastAuthor: string | undefined

  private readonly host: RunHost
  private readonly key: SessionKey
  private readonly lease: Lease
  private readonly input: RunInput
  private readonly end: () => Promise<void>
  /** The end of the run, once it has begun: it happens once, whether or not somebody listens. */
  private shutting: Promise<RunEvent[]> | undefined

  constructor({ host, key, lease, input, end }: RunLoopParts) {
    this.host = host
    this.key = key
    this.lease = lease
    this.input = input
    this.end = end
    this.gate = gateAppends(host.store)
    const names = new Set([host.rootAgent.name, ...subAgentNames(host.rootAgent)])
    this.reader = new EventReader(names, reference => host.priceOf(reference))
    this.recorder = new RunRecorder({
      runs: host.store.runs,
      key,
      runId: input.runId ?? randomUUID(),
      logger: host.logger,
      observe: event => host.observe?.(event),
      onStored: input.onStored,
    })
    this.approvals = new RunApprovals({
      createDesk: host.createDesk,
      identity: { sessionId: key.sessionId, runId: this.recorder.runId },
      onApproval: input.onApproval,
      tell: body => this.outbox.put(body),
    })
    this.limits = new RunLimits(host.limits, this.plugin)
  }

  async *events(message: Content): AsyncGenerator<RunEvent, void, undefined> {
    const forget = this.listenForEnds()
    try {
      yield await this.recorder.record(this.startEvent())
      yield* this.rounds(message)
      yield* this.finish()
    } finally {
      forget()
      if (!this.finished) await this.leftEarly()
    }
  }

  private startEvent(): RunEventBody {
    const model = this.host.modelReference(this.input.model)
    return {
      type: 'run-start',
      userId: this.key.userId,
      agent: this.host.rootAgent.name,
      model,
      ...(model.startsWith('demo/') ? { demo: true } : {}),
    }
  }

  /** The message itself; then, once, a correction for an unknown agent or a nudge for an empty answer. */
  private async *rounds(message: Content): AsyncGenerator<RunEvent, void, undefined> {
    yield* this.round(message, false)
    if (this.unknownAgent) yield* this.retryAgentName(this.unknownAgent)
    else if (this.needsNudge()) yield* this.round(asUser(EMPTY_ANSWER_NUDGE), true)
  }

  private async *retryAgentName(original: AgentError): AsyncGenerator<RunEvent, void, undefined> {
    const valid = subAgentNames(this.host.rootAgent)
    if (valid.length === 0) {
      this.failure = original
      return
    }
    this.unknownAgent = undefined
    this.stopped = false
    yield* this.round(asUser(agentNameCorrection(String(original.details.name), valid)), true)
    const again = this.unknownAgent ?? this.failure
    if (again) this.failure = withCause(again, original)
  }

  private needsNudge(): boolean {
    return (
      !this.failure &&
      !this.aborted &&
      this.limits.turns > 0 &&
      this.reader.answer.text === '' &&
      !this.limits.waiting
    )
  }

  /** One call of ADK's runner. Its events and the outbox are taken as they come, one at a time. */
  private async *round(message: Content, synthetic: boolean): AsyncGenerator<RunEvent, void, undefined> {
    if (this.aborted) return
    const events = this.startAdk(message, synthetic)
    const scope = this.scope
    const advance = () => runScope.run(scope, () => events.next())
    const wake = () => this.outbox.wakeUp()
    this.abort.signal.addEventListener('abort', wake, { once: true })
    const breathe = breather()
    let next = advance()
    try {
      while (!this.stopped) {
        // An abort wakes the outbox: a promise that outlives many races would collect them all.
        const winner = await Promise.race([next.then(() => 'event'), this.outbox.ready()])
        yield* this.emit(this.outbox.take())
        if (this.aborted) return
        if (winner !== 'event') continue
        const { done, value } = await next
        if (done) return
        yield* this.observe(value)
        await breathe()
        if (!this.stopped) next = advance()
      }
    } catch (error) {
      this.failed(error)
    } finally {
      this.abort.signal.removeEventListener('abort', wake)
      next.catch(() => {})
      // A generator that waits for a deaf tool would not return until the tool does: it is not waited for.
      void Promise.resolve(events.return(undefined)).catch(() => {})
    }
  }

  private startAdk(message: Content, synthetic: boolean): AsyncGenerator<Event, void, undefined> {
    return this.host.startAdk({
      key: this.key,
      sessions: this.host.sessionService(this.gate.store, this.lease),
      plugin: this.plugin,
      message,
      signal: this.abort.signal,
      ...(synthetic ? { customMetadata: { lango: { synthetic: true } } } : {}),
      ...(!synthetic && this.input.stateDelta ? { stateDelta: this.input.stateDelta } : {}),
    })
  }

  private async *observe(event: Event): AsyncGenerator<RunEvent, void, undefined> {
    this.pending.observe(event)
    yield* this.emit(this.reader.read(event))
    if (event.errorCode || event.errorMessage) {
      this.failed(this.plugin.modelError ?? event.errorMessage ?? event.errorCode)
      return
    }
    if (event.author && event.author !== 'user') this.lastAuthor = event.author
    const alone = subAgentNames(this.host.rootAgent).length === 0
    const nowhere = alone ? transferTarget(event) : undefined
    if (nowhere !== undefined) {
      this.stopped = true
      this.failure ??= agentNotFound(nowhere)
      return
    }
    const { verdict, bodies } = this.limits.observe(event)
    for (const body of bodies) {
      if (body.type === 'turn-warning') this.host.logger.warn('A run has used most of its turns', { ...body })
    }
    yield* this.emit(bodies)
    if (verdict === 'stop') this.stopped = true
  }

  /** Keeps the first failure. An unknown agent is kept apart, because it may be retried. */
  private failed(error: unknown): void {
    this.stopped = true
    // What breaks because the run was stopped is no failure of its own.
    if (this.aborted) return
    this.reader.answer.dropStep()
    const words = typeof error === 'string' ? error : messageOf(error)
    const reason = adkFailure(words, { whole: error instanceof AgentError })
    if (reason.kind === 'unknown-agent') this.unknownAgent ??= agentNotFound(reason.name)
    else this.failure ??= asAgentError(error)
  }

  /** Tells the rest: what arose beside the loop, the failure, and how it ended. */
  private async *finish(): AsyncGenerator<RunEvent, void, undefined> {
    if (!this.shutting) {
      await this.settle()
      yield* this.emit(this.outbox.take())
    }
    const last = await this.shutDown()
    this.finished = true
    yield* last
  }

  private async leftEarly(): Promise<void> {
    if (!this.failure) this.abort.abort()
    await this.shutDown()
  }

  /**
   * Ends the run: nothing more is stored by ADK, no call stays open, the last event is recorded, and the session
   * is given back. An abort comes here at once, because a listener that has stopped listening never would.
   */
  private shutDown(): Promise<RunEvent[]> {
    this.shutting ??= (async () => {
      await this.settle()
      const failure: RunEventBody[] = this.failure ? [{ type: 'error', error: this.failure }] : []
      const last: RunEvent[] = []
      for (const body of [...failure, this.finishEvent()]) last.push(await this.recorder.record(body))
      await this.end()
      return last
    })()
    return this.shutting
  }

  /** Records and tells events, until the run has been shut. */
  private async *emit(bodies: readonly RunEventBody[]): AsyncGenerator<RunEvent, void, undefined> {
    for (const body of bodies) {
      if (this.shutting) return
      yield await this.recorder.record(body)
    }
  }

  private finishEvent(): RunEventBody {
    const text = this.reader.answer.text
    const { turns, delegations } = this.limits
    return {
      type: 'run-finish',
      finishReason: this.finishReason,
      text,
      turns,
      delegations,
      usage: this.reader.usage,
    }
  }

  private get finishReason(): RunFinishReason {
    if (this.failure) return 'error'
    return this.aborted ? 'aborted' : this.limits.finishReason
  }

  private get aborted(): boolean {
    return this.abort.signal.aborted
  }

  /** Shuts the door to ADK, answers what is open, and leaves a word about an abort for the next turn. */
  private async settle(): Promise<void> {
    await this.gate.seal()
    await this.recorder.settled()
    if (this.lease.lost.aborted) return
    try {
      const reason = this.aborted ? 'The run was stopped.' : 'The run ended before the tool did.'
      for (const { parts, ...identity } of this.pending.close(reason)) {
        await this.host.appendEvent(this.key, { ...identity, content: { role: 'user', parts } }, this.lease)
      }
      if (this.finishReason === 'aborted' && this.gate.hasAppended && !this.marked) {
        this.marked = true
        const customMetadata = { lango: { synthetic: true } }
        await this.host.appendEvent(this.key, { ...this.abortMarker(), customMetadata }, this.lease)
      }
    } catch (error) {
      this.host.logger.warn('The end of a run could not be stored', { error: messageOf(error) })
    }
  }

  /** As the answer of the agent that was speaking, so that turns alternate and the same agent goes on. */
  private abortMarker(): { author: string; content: Content } {
    const only = this.host.rootAgent.subAgents.length === 0 ? this.host.rootAgent.name : undefined
    const author = this.lastAuthor ?? only
    if (author === undefined) return { author: 'user', content: asUser(ABORTED_MARKER) }
    return { author, content: { role: 'model', parts: [{ text: ABORTED_MARKER }] } }
  }

  /** The caller's signal and a lost lease both end the run. */
  private listenForEnds(): () => void {
    const stop = () => {
      // Whoever ends a run for a reason of their own says so; what a user stops has no failure.
      const reason: unknown = this.input.signal?.reason
      if (reason instanceof AgentError && reason.code === 'run-interrupted') this.failure ??= reason
      this.abort.abort()
      void this.shutDown()
    }
    const deaf = watchSignals(
      this.host.store.runs,
      this.recorder.runId,
      signal => this.hear(signal),
      this.host.logger,
    )
    const lose = () => {
      const reason = messageOf(this.lease.lost.reason ?? 'it could not be renewed')
      const message = `The run lost its session "${this.key.sessionId}": ${reason}`
      this.failure ??= new AgentError('lease-lost', message, { retryable: true })
      stop()
    }
    if (this.input.signal?.aborted) stop()
    this.input.signal?.addEventListener('abort', stop, { once: true })
    this.lease.lost.addEventListener('abort', lose, { once: true })
    return () => {
      deaf()
      this.approvals.desk.close()
      this.input.signal?.removeEventListener('abort', stop)
      this.lease.lost.removeEventListener('abort', lose)
    }
  }

  /** Another process speaks to the run. */
  private hear(signal: RunSignal): void {
    if (signal.type === 'stop') {
      this.abort.abort()
      void this.shutDown()
    } else this.approvals.desk.answer(signal.callId, signal.answer)
  }

  /** What code inside the run may do with it. */
  private get scope(): RunScope {
    const { limits } = this
    return {
      owner: this.host,
      runId: this.recorder.runId,
      sessionId: this.key.sessionId,
      ...(this.input.model === undefined ? {} : { model: this.input.model }),
      signal: this.abort.signal,
      isOwnRequest: request => this.plugin.owns(request),
      requestSent: request => this.requestSent(request),
      approve: (call, signal) => this.approvals.desk.request(call, signal),
      modelUsed: (request, step, model, usage) => this.modelUsed(request, step, model, usage),
      loaded: (stored, cut) => {
        this.stored = stored
        this.loadCut = cut
        if (cut) this.outbox.put({ type: 'history-cut', cut })
      },
      historyCut: cut => this.outbox.put({ type: 'history-cut', cut }),
      nestedFailed: error => this.plugin.noteNestedFailure(error),
      nestedCalls: calls => {
        for (const body of limits.observeNested(calls)) this.outbox.put(body)
      },
      get wrapUpGranted() {
        return limits.wrapUpGranted
      },
    }
  }

  private requestSent(request: SentRequest): number {
    this.host.observeRequest?.(this.recorder.runId, request)
    if (request.repairs.length > 0) {
      const { model, profile, repairs } = request
      this.outbox.put({ type: 'repair', model, profile, repairs })
    }
    const cuts = [...(this.loadCut ? [this.loadCut] : []), ...(request.cuts ?? [])]
    const stored = this.stored ? { stored: this.stored } : {}
    const step = this.recorder.saveRequest({ ...request, ...stored, cuts })
    this.reader.modelCalled(request.model, step)
    return step
  }

  private modelUsed(request: object, step: number, model: string, usage: RunUsage): void {
    // The run's own requests report their usage with ADK's event.
    if (!this.plugin.owns(request)) this.outbox.put(this.reader.nestedUsage(model, step, usage))
  }
}
