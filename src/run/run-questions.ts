/** What a run asks of people: approvals, unknown outcomes, and what ADK asks between two rounds. */
import type { Content } from '../adk/sdk.js'
import { messageOf } from '../errors.js'
import type { ApprovalOutcome, RunAnswer } from '../tool.js'
import type { OpenCall, PendingCalls } from './pending-calls.js'
import type { RunProgress } from './resumed-run.js'
import { RoundQuestions, waitEntry } from './round-questions.js'
import {
  type ApprovalDesk,
  type GivenOutcome,
  isApproval,
  type OnApproval,
  openApprovalDesk,
  outcomeIn,
  type PendingApproval,
  type PendingQuestion,
  QuestionDesk,
  type QuestionOutcome,
  type RunDeskOptions,
} from './run-approvals.js'
import type { RunEventBody } from './run-event.js'
import type { RunHost } from './run-host.js'
import type { RunRecorder } from './run-recorder.js'

export interface QuestionParts {
  host: Pick<RunHost, 'approvalTimeoutMs' | 'waitingGraceMs' | 'logger'>
  identity: RunDeskOptions['identity']
  /** What the events of earlier attempts say. */
  earlier: RunProgress | undefined
  /** A round of an earlier attempt is over, and waits for answers. */
  isBetween: boolean
  onApproval: OnApproval | undefined
  /** Asks about unknown outcomes. */
  ledger: OutcomeQuestions
  pending: PendingCalls
  recorder: RunRecorder
  /** Whether the run can be left to another attempt. */
  canLeave: boolean
  /** Whether the run does anything else. */
  isBusy(): boolean
  /** Leaves the run until a person has answered. */
  leave(): Promise<void>
  signal: AbortSignal
  emit(body: RunEventBody): void
  /** An event that the next write stores. */
  prepare(body: RunEventBody): void
}

interface OutcomeQuestions {
  readonly isAsking: boolean
  resultOf(id: string): unknown
  isUnsettled(id: string): boolean
  answer(callId: string, given: GivenOutcome): boolean
  expect(callId: string, given: GivenOutcome): void
}

/** What a run asks of people. A run that waits for them and does nothing else is left after a while. */
export class RunQuestions {
  readonly #parts: QuestionParts
  readonly #desk: ApprovalDesk
  readonly #questions: QuestionDesk
  readonly #between: RoundQuestions
  #timer: NodeJS.Timeout | undefined
  /** The round that is over was executed here, so that another attempt can repeat it. */
  #isReplayed: boolean

  constructor(parts: QuestionParts) {
    this.#parts = parts
    const { identity, onApproval, emit, prepare, pending, recorder, ledger } = parts
    const timeoutMs = parts.host.approvalTimeoutMs
    const earlier = parts.earlier?.approvals
    const options = { identity, earlier, onApproval, emit, timeoutMs }
    this.#desk = openApprovalDesk(options)
    this.#questions = new QuestionDesk(options)
    const nameOf = ({ messageId, id }: OpenCall) => `${messageId}/${id}`
    const resultOf = (call: OpenCall) => ledger.resultOf(nameOf(call))
    const isUnsettled = (call: OpenCall) => ledger.isUnsettled(nameOf(call))
    this.#between = new RoundQuestions({
      pending,
      recorder,
      identity,
      earlier: parts.earlier,
      onApproval,
      prepare,
      resultOf,
      isUnsettled,
    })
    this.#isReplayed = !parts.isBetween
  }

  /** The message that opens the next round, if ADK has asked anything in this one. `lost`: the store has failed. */
  async answers(round: number): Promise<Content | 'missing' | 'lost' | undefined> {
    const { canLeave, isBetween, signal, host } = this.#parts
    const { logger, waitingGraceMs = WAITING_GRACE_MS } = host
    if (!canLeave || !this.#between.hasAny) return undefined
    const isLost = this.#isReplayed && this.#between.hasUnsettled
    this.#isReplayed = true
    if (isLost) return 'lost'
    try {
      await this.#between.keepResults(waitEntry(round))
    } catch (error) {
      // Whether it was stored is not known here; another attempt reads it.
      logger.warn('The results of a run that waits could not be stored', { error: messageOf(error) })
      return 'lost'
    }
    if (!this.#between.hasAny) return undefined
    await this.#between.askCaller()
    // Nothing is in memory that an answer would need; one that comes later continues the run.
    await this.#between.settled(isBetween ? waitingGraceMs : 0, signal)
    return this.#between.message() ?? 'missing'
  }

  approve(call: PendingApproval, signal: AbortSignal): Promise<ApprovalOutcome> {
    const asked = this.#desk.request(call, signal)
    this.watch()
    return asked
  }

  /** Asks what a call needs to know while it is executed. */
  ask(question: PendingQuestion, signal: AbortSignal): Promise<QuestionOutcome> {
    return this.#questions.ask(question, signal)
  }

  /** Answers a call that waits; `false` when none waits under that id. */
  answer(callId: string, answer: RunAnswer): boolean {
    if (this.#questions.answer(callId, answer)) return true
    if (this.#between.take(callId, answer)) return true
    const outcome = outcomeIn(answer)
    if (outcome) return this.#parts.ledger.answer(callId, outcome)
    return isApproval(answer) && this.#desk.answer(callId, answer)
  }

  /** Answers a call that waits, or that will ask. */
  expect(callId: string, answer: RunAnswer): void {
    if (this.#questions.answer(callId, answer)) return
    if (this.#between.take(callId, answer)) return
    const outcome = outcomeIn(answer)
    if (outcome) this.#parts.ledger.expect(callId, outcome)
    else if (isApproval(answer)) this.#desk.expect(callId, answer)
  }

  /** Leaves the run when it has waited for a while. A caller that is asked, and a limit of time, need the run in memory. */
  watch(): void {
    const { canLeave, onApproval, host } = this.#parts
    const { approvalTimeoutMs, waitingGraceMs = WAITING_GRACE_MS } = host
    if (!canLeave || onApproval || approvalTimeoutMs !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#check(), waitingGraceMs)
  }

  stopWatching(): void {
    clearTimeout(this.#timer)
  }

  /** Aborts every waiting call. */
  close(): void {
    this.stopWatching()
    this.#desk.close()
    this.#questions.close()
  }

  #check(): void {
    const { ledger, isBusy, leave } = this.#parts
    if (this.#desk.pending.length === 0 && !ledger.isAsking) return
    if (isBusy()) this.watch()
    else void leave()
  }
}

/** How long a run that waits stays in memory. */
const WAITING_GRACE_MS = 2000
