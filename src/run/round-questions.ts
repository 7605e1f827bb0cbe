/**
 * What the tools of ADK ask between two rounds of a run. ADK ends an invocation when a tool wants a confirmation or
 * answers later; the run waits, and the answers are the message of its next round. Nothing has to stay in memory for it.
 */
import type { Content } from '../adk/sdk.js'
import { isRecord } from '../base/is-record.js'
import { CONFIRMATION_TOOL } from '../base/names.js'
import { isToolError } from '../session/message.js'
import type { JournalEntry } from '../session/run-store.js'
import type { CallResponse, RunAnswer } from '../tool.js'
import { answerMessage, seenIn } from './close-calls.js'
import type { OpenCall, OpenRequest, PendingCalls } from './pending-calls.js'
import type { RunProgress } from './resumed-run.js'
import { type ApprovalAsk, askPerson, isOutcome, type OnApproval } from './run-approvals.js'
import type { RunEventBody } from './run-event.js'
import type { RunRecorder } from './run-recorder.js'

/** One call of ADK's runner. */
export interface Round {
  message: Content
  /** The run itself has written the message. */
  isSynthetic: boolean
}

export interface RoundQuestionParts {
  pending: PendingCalls
  recorder: RunRecorder
  identity: Pick<ApprovalAsk, 'sessionId' | 'runId'>
  /** What the events of earlier attempts say. */
  earlier: RunProgress | undefined
  onApproval: OnApproval | undefined
  /** The result of a call that has ended. */
  resultOf(call: OpenCall): unknown
  /** Whether a call has begun and has no end. */
  isUnsettled(call: OpenCall): boolean
  /** An event that the next write stores. */
  prepare(body: RunEventBody): void
}

export class RoundQuestions {
  readonly #parts: RoundQuestionParts
  readonly #answers = new Map<string, CallResponse>()
  #changed: () => void = () => {}

  constructor(parts: RoundQuestionParts) {
    this.#parts = parts
    for (const { id } of parts.pending.requests()) {
      const given = parts.earlier?.responses.get(id)
      if (given) this.#answers.set(id, given)
    }
  }

  /** Takes an answer, under the id of the request or of the call that it is about; `false` when it answers nothing. */
  take(callId: string, answer: RunAnswer): boolean {
    const request = this.#open().find(({ id, about }) => id === callId || about?.id === callId)
    const response = request && responseTo(request, answer)
    if (!request || !response) return false
    this.#answers.set(request.id, response)
    this.#parts.prepare(eventOf(request, answer, response))
    this.#changed()
    return true
  }

  /** Whether ADK has left anything to be answered. */
  get hasAny(): boolean {
    return this.#parts.pending.requests().length > 0
  }

  /** Whether a call beside those that ask has begun and has no end: what it did is not known, and it must be settled first. */
  get hasUnsettled(): boolean {
    let isFound = false
    this.#parts.pending.answers(call => {
      isFound ||= this.#parts.isUnsettled(call)
      return undefined
    })
    return isFound
  }

  /** The message of the next round, once everything is answered. */
  message(): Content | undefined {
    const requests = this.#parts.pending.requests()
    if (requests.length === 0 || this.#open().length > 0) return undefined
    const parts = requests.map(({ id, name }) => ({
      functionResponse: { id, name, response: { ...this.#answers.get(id) } },
    }))
    for (const { id } of requests) this.#answers.delete(id)
    return { role: 'user', parts }
  }

  /** Asks the caller for the confirmations. A long-running tool is answered with its result. */
  async askCaller(): Promise<void> {
    const { onApproval, identity } = this.#parts
    if (!onApproval) return
    const asked = this.#open().flatMap(({ id, about }) => (about ? [{ id, about }] : []))
    const ask = async ({ id, about: { name, args, reason } }: (typeof asked)[number]) =>
      this.take(id, await askPerson(onApproval, { id, name, args, reason, onceOnly: true, ...identity }))
    await Promise.all(asked.map(ask))
  }

  /** Resolves when everything is answered, or after that time. */
  async settled(graceMs: number, signal: AbortSignal): Promise<void> {
    if (graceMs === 0 || this.#open().length === 0 || signal.aborted) return
    await new Promise<void>(resolve => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, graceMs)
      signal.addEventListener('abort', end, { once: true })
      this.#changed = () => {
        if (this.#open().length === 0) end()
      }
    })
  }

  /**
   * Stores the results that ADK drops: those of calls beside one that needs a confirmation. The round is over with the
   * first of them.
   */
  async keepResults(wait: JournalEntry): Promise<void> {
    const { pending, recorder, resultOf, prepare } = this.#parts
    // A long-running call has none, unless it failed or nobody knows whether it took effect.
    for (const kept of pending.answers(call => resultOf(call) ?? undefined)) {
      const message = answerMessage(kept)
      const { author, branch = '' } = kept
      for (const { id, name, response } of kept.answers)
        prepare({ type: 'tool-result', author, id, name, result: response, isError: isToolError(response) })
      const entry: JournalEntry = { id: message.id ?? '', kind: 'event', scope: '', author, branch }
      await recorder.append({ message, journal: [wait, entry] })
      pending.observe(seenIn(message))
    }
  }

  #open(): OpenRequest[] {
    return this.#parts.pending.requests().filter(({ id }) => !this.#answers.has(id))
  }
}

/** Stored when a round is over and the run waits: it is continued with the answers, and not replayed. */
export function waitEntry(round: number): JournalEntry {
  return { id: `wait:${round}`, kind: 'wait', scope: '', author: '', branch: '' }
}

/** The response that ADK gets; `undefined` when the answer does not fit the request. */
function responseTo({ name }: OpenRequest, answer: RunAnswer): CallResponse | undefined {
  if (isRecord(answer)) return answer
  if (name !== CONFIRMATION_TOOL || typeof answer !== 'string' || isOutcome(answer)) return undefined
  // ADK knows no approval for a whole session.
  return { confirmed: answer === 'once' || answer === 'always' }
}

function eventOf({ id, name, about }: OpenRequest, answer: RunAnswer, response: CallResponse): RunEventBody {
  if (!about)
    return { type: 'tool-result', author: 'user', id, name, result: response, isError: false, given: true }
  return {
    type: 'approval-answer',
    id,
    name: about.name,
    answer: response.confirmed === true ? 'once' : 'no',
    callId: about.id,
    ...(isRecord(answer) ? { response } : {}),
  }
}
