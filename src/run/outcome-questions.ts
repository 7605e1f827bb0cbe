/** Questions to a person about calls whose outcome is unknown, and what an answer means for the call. */
import { defined } from '../base/defined.js'
import type { CallBegin } from '../session/tool-calls.js'
import { asAnswer, type OutcomeReport, type ReportedOutcome } from './ledger-entry.js'
import { type GivenOutcome, startTimer } from './run-approvals.js'

interface Asking {
  request(): Promise<GivenOutcome>
  report(report: OutcomeReport): void
}

/**
 * Asks about a call, unless an earlier attempt of the run has the answer. Where an answer lacks the output that is needed
 * with it, the question is asked again.
 */
export async function askOutcome(
  call: CallBegin,
  earlier: ReportedOutcome | undefined,
  { request, report }: Asking,
): Promise<GivenOutcome> {
  const { answer, result } = earlier ?? {}
  const known = answer && { answer, ...defined({ result }) }
  if (known && !lacksOutput(call, known)) return known
  if (!earlier?.asks || known) report(questionAbout(call))
  for (;;) {
    const given = await request()
    report(given)
    if (!lacksOutput(call, given)) return given
    report(questionAbout(call))
  }
}

function questionAbout({ output }: CallBegin): OutcomeReport {
  const { isUsed = false, schema } = output?.() ?? {}
  return { asks: true, ...(isUsed ? { needsResult: true, ...defined({ resultSchema: schema }) } : {}) }
}

/** True if an answer confirms the effect of a node without the output that the workflow needs. */
export function lacksOutput({ output }: CallBegin, { answer, result }: GivenOutcome): boolean {
  return answer === 'happened' && result === undefined && output?.().isUsed === true
}

/** The answer of a call that took effect, as a person has said. */
export function confirmedAnswer(call: CallBegin, { result }: GivenOutcome): Record<string, unknown> {
  if (call.output) return { confirmed: result === undefined ? CONFIRMED : result }
  return asAnswer(result === undefined ? CONFIRMED : result)
}

const CONFIRMED = 'A person has confirmed that this call took effect. It was not run again.'

/** Calls that wait for a person's word about an unknown outcome. Without one, in time, it stays unknown. */
export class OutcomeDesk {
  readonly #waiting = new Map<string, (given: GivenOutcome) => void>()
  /** Answers that came before their calls asked. */
  readonly #early = new Map<string, GivenOutcome>()

  get isWaiting(): boolean {
    return this.#waiting.size > 0
  }

  request(callId: string, signal: AbortSignal, timeoutMs?: number): Promise<GivenOutcome> {
    if (signal.aborted || this.#waiting.has(callId)) return Promise.resolve({ answer: 'leave' })
    const early = this.#early.get(callId)
    this.#early.delete(callId)
    if (early !== undefined) return Promise.resolve(early)
    return new Promise(resolve => {
      const leave = () => end({ answer: 'leave' })
      const timer = startTimer(leave, timeoutMs)
      const end = (given: GivenOutcome) => {
        this.#waiting.delete(callId)
        clearTimeout(timer)
        signal.removeEventListener('abort', leave)
        resolve(given)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.set(callId, end)
    })
  }

  /** Answers a waiting call. False when no call with this id waits. */
  answer(callId: string, given: GivenOutcome): boolean {
    const end = this.#waiting.get(callId)
    // A signal from another process may hold any value: only the two plain words change anything.
    end?.(given.answer === 'happened' || given.answer === 'run' ? given : { answer: 'leave' })
    return end !== undefined
  }

  /** Answers a call that waits, or that will ask. */
  expect(callId: string, given: GivenOutcome): void {
    if (!this.answer(callId, given)) this.#early.set(callId, given)
  }

  close(): void {
    for (const end of [...this.#waiting.values()]) end({ answer: 'leave' })
  }
}
