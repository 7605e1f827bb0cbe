import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { timerMs } from '../base/timer-ms.js'
import { AgentError } from '../errors.js'
import type { ApprovalAnswer, ApprovalOutcome, CallResponse, OutcomeAnswer, RunAnswer } from '../tool.js'
import type { RunEventBody } from './run-event.js'

/** A tool call that needs a person's approval, as `onApproval` gets it. */
export interface ApprovalAsk {
  /** The call's id; an answer names it. */
  id: string
  name: string
  args: Readonly<Record<string, unknown>>
  sessionId: string
  runId: string
  /** Why the tool asks, where it says so. */
  reason?: string | undefined
  /** A confirmation of ADK's: `always` counts as `once`. */
  onceOnly?: boolean | undefined
}

/** Answers an approval request. `true` means once, `false` means no; an object is the answer to a form. */
export type OnApproval = (
  ask: ApprovalAsk,
) =>
  | ApprovalAnswer
  | boolean
  | CallResponse
  | Promise<ApprovalAnswer>
  | Promise<boolean>
  | Promise<ApprovalAnswer | boolean>
  | Promise<ApprovalAnswer | boolean | CallResponse>

/** A request of an earlier attempt of the run, and the answer to it. */
export interface EarlierApproval {
  readonly tool: string
  readonly answer?: ApprovalOutcome | undefined
}

export interface RunDeskOptions {
  /** Requests of earlier attempts of the run, and the answers to them. */
  earlier?: ReadonlyMap<string, EarlierApproval> | undefined
  timeoutMs: number | undefined
  identity: { sessionId: string; runId: string }
  onApproval: OnApproval | undefined
  /** Emits an event of the run; it is stored with the run's events. */
  emit(body: RunEventBody): void
}

/**
 * The approvals of one run. A request is an event of the run; the answer comes from the caller's `onApproval` or
 * as a signal from another process, whichever is first. Both are stored with the run's events.
 */
export function openApprovalDesk(options: RunDeskOptions): ApprovalDesk {
  const { timeoutMs, identity, onApproval, earlier, emit } = options
  const unanswered = new Map([...(earlier ?? [])].filter(([, { answer }]) => answer === undefined))
  const desk = new ApprovalDesk({
    timeoutMs,
    given: earlier,
    onRequest: ({ callId: id, tool: name, args, ...more }) => {
      const isEmitted = unanswered.get(id)?.tool === name && unanswered.delete(id)
      if (!isEmitted) emit({ type: 'approval-request', id, name, args: { ...args }, ...more })
      if (!onApproval) return
      void askPerson(onApproval, { id, name, args, ...more, ...identity }).then(answer =>
        desk.answer(id, answer),
      )
    },
    onOutcome: ({ callId, tool }, outcome) =>
      emit({ type: 'approval-answer', id: callId, name: tool, answer: outcome }),
  })
  return desk
}

/** Whether an answer is about an unknown outcome. */
export function isOutcome(answer: RunAnswer): answer is OutcomeAnswer {
  return answer === 'happened' || answer === 'run' || answer === 'leave'
}

/** True if an answer is one of the words for an approval. */
export function isApproval(answer: RunAnswer): answer is ApprovalAnswer {
  return typeof answer === 'string' && !isOutcome(answer)
}

/** What a person says about an unknown outcome, and the result of the call if they give it. */
export interface GivenOutcome {
  readonly answer: OutcomeAnswer
  readonly result?: unknown
}

/** An answer as far as it is about an unknown outcome. */
export function outcomeIn(answer: RunAnswer): GivenOutcome | undefined {
  if (typeof answer === 'string') return isOutcome(answer) ? { answer } : undefined
  if (answer.happened !== true) return undefined
  return { answer: 'happened', ...defined({ result: answer.result }) }
}

/** The answer of a caller's callback. One that fails has not approved. */
export async function askPerson(onApproval: OnApproval, ask: ApprovalAsk): Promise<ApprovalAnswer> {
  const answer = await askForm(onApproval, ask)
  return typeof answer === 'string' ? answer : 'once'
}

/** As `askPerson`, for a question whose answer may be an object. */
async function askForm(onApproval: OnApproval, ask: ApprovalAsk): Promise<ApprovalAnswer | CallResponse> {
  try {
    const answer = await onApproval(ask)
    if (typeof answer === 'string' || isRecord(answer)) return answer
    return answer ? 'once' : 'no'
  } catch {
    return 'no'
  }
}

/** A call that needs a person's approval. */
export interface PendingApproval {
  readonly callId: string
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
  readonly reason?: string
}

export interface ApprovalDeskOptions {
  /** How long a request waits for an answer. Default: without end. */
  timeoutMs?: number | undefined
  /** Answers that were given before the calls ask for them. */
  given?: ReadonlyMap<string, EarlierApproval> | undefined
  /** What an earlier instance for the session exported (`toJSON`). Anything else is ignored. */
  remembered?: unknown
  /** A call needs a person's approval. Not called for tools that are approved for the session. */
  onRequest?: ((request: PendingApproval) => void) | undefined
  /** A request has ended. `always` also ends the other waiting calls of the tool. */
  onOutcome?: ((request: PendingApproval, outcome: ApprovalOutcome) => void) | undefined
}

/**
 * Calls that wait for approval. Each request gets one outcome: the answer, a timeout, or an abort. An answer
 * counts once and only while its call waits: a second click and a late answer change nothing.
 */
export class ApprovalDesk {
  readonly #waiting = new Map<string, { request: PendingApproval; end: (outcome: ApprovalOutcome) => void }>()
  readonly #always: Set<string>
  readonly #options: ApprovalDeskOptions
  /** Requests of earlier attempts whose calls have not come again. Ids may repeat, so each counts once. */
  readonly #given: Map<string, EarlierApproval>
  /** Answers that came before their calls asked. */
  readonly #early = new Map<string, ApprovalAnswer>()

  constructor(options: ApprovalDeskOptions = {}) {
    this.#options = options
    this.#given = new Map(options.given)
    this.#always = new Set(namesIn(options.remembered))
  }

  /** Waits for an answer to this call. A tool that is approved for the session needs none. */
  request(request: PendingApproval, signal?: AbortSignal): Promise<ApprovalOutcome> {
    if (this.#always.has(request.tool)) return Promise.resolve('always')
    if (signal?.aborted) return Promise.resolve('aborted')
    if (this.#waiting.has(request.callId)) return Promise.reject(alreadyWaiting(request.callId))
    const given = this.#takeGiven(request)
    if (given === 'always') this.#always.add(request.tool)
    if (given !== undefined && given !== 'aborted') return Promise.resolve(given)
    return new Promise(resolve => {
      const abort = () => end('aborted')
      const timer = startTimer(() => end('timeout'), this.#options.timeoutMs)
      const end = (outcome: ApprovalOutcome) => {
        if (!this.#waiting.delete(request.callId)) return
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#options.onOutcome?.(request, outcome)
        resolve(outcome)
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiting.set(request.callId, { request, end })
      this.#options.onRequest?.(request)
      const early = this.#early.get(request.callId)
      this.#early.delete(request.callId)
      if (early !== undefined) this.answer(request.callId, early)
    })
  }

  /** Answers a call that waits, or that has asked in an earlier attempt and will ask again. */
  expect(callId: string, answer: ApprovalAnswer): void {
    const given = this.#given.get(callId)
    if (!this.answer(callId, answer) && given && given.answer === undefined) this.#early.set(callId, answer)
  }

  /** Answers a waiting call. False when no call with this id waits: it was answered or has ended. */
  answer(callId: string, answer: ApprovalAnswer): boolean {
    const waiting = this.#waiting.get(callId)
    if (!waiting) return false
    if (answer === 'always') this.#approveForSession(waiting.request.tool)
    // A signal from another process may hold any value: everything but an approval is a refusal.
    else waiting.end(answer === 'once' ? 'once' : 'no')
    return true
  }

  /** The calls that wait, oldest first. */
  get pending(): readonly PendingApproval[] {
    return [...this.#waiting.values()].map(({ request }) => request)
  }

  /** Aborts every waiting call. */
  close(): void {
    for (const { end } of [...this.#waiting.values()]) end('aborted')
  }

  /** The tools that are approved for the session, as its state keeps them. */
  toJSON(): string[] {
    return [...this.#always].sort()
  }

  /** The answer that an earlier attempt got for this call. */
  #takeGiven({ callId, tool }: PendingApproval): ApprovalOutcome | undefined {
    const given = this.#given.get(callId)
    if (given?.tool !== tool) return undefined
    this.#given.delete(callId)
    return given.answer
  }

  #approveForSession(tool: string): void {
    this.#always.add(tool)
    for (const { request, end } of [...this.#waiting.values()]) if (request.tool === tool) end('always')
  }
}

export function startTimer(end: () => void, timeoutMs: number | undefined): NodeJS.Timeout | undefined {
  return timeoutMs === undefined ? undefined : setTimeout(end, timerMs(timeoutMs))
}

/** What a tool asks a person while it is executed. */
export interface PendingQuestion {
  readonly callId: string
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
  /** The question in words. */
  readonly reason: string
}

/** The answer to a question; `response` where it is more than a yes or a no. */
export interface QuestionOutcome {
  readonly answer: ApprovalOutcome
  readonly response?: CallResponse
}

/**
 * Calls that need a person's answer in the middle of their work. They exist in this process alone: a question ends with
 * its call.
 */
export class QuestionDesk {
  readonly #waiting = new Map<string, { callId: string; end: (outcome: QuestionOutcome) => void }>()
  readonly #options: RunDeskOptions
  #asked = 0

  constructor(options: RunDeskOptions) {
    this.#options = options
  }

  ask({ callId, tool: name, args, reason }: PendingQuestion, signal: AbortSignal): Promise<QuestionOutcome> {
    if (signal.aborted) return Promise.resolve({ answer: 'aborted' })
    const { emit, timeoutMs, onApproval, identity } = this.#options
    this.#asked += 1
    const id = `${callId}/question-${this.#asked}`
    return new Promise(resolve => {
      const abort = () => end({ answer: 'aborted' })
      const timer = startTimer(() => end({ answer: 'timeout' }), timeoutMs)
      const end = (outcome: QuestionOutcome) => {
        if (!this.#waiting.delete(id)) return
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        emit({ type: 'approval-answer', id, name, callId, ...outcome })
        resolve(outcome)
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.set(id, { callId, end })
      emit({ type: 'approval-request', id, name, args: { ...args }, reason, callId })
      if (!onApproval) return
      const asked = { id, name, args, reason, onceOnly: true, ...identity }
      void askForm(onApproval, asked).then(answer => this.answer(id, answer))
    })
  }

  /** Answers a question by its id or that of its call. False when none waits. */
  answer(id: string, answer: RunAnswer): boolean {
    const waiting = this.#waiting.get(id) ?? [...this.#waiting.values()].find(({ callId }) => callId === id)
    if (!waiting || (typeof answer === 'string' && isOutcome(answer))) return false
    if (typeof answer !== 'string') waiting.end({ answer: 'once', response: answer })
    else waiting.end({ answer: answer === 'no' ? 'no' : 'once' })
    return true
  }

  close(): void {
    for (const { end } of [...this.#waiting.values()]) end({ answer: 'aborted' })
  }
}

function namesIn(remembered: unknown): string[] {
  return Array.isArray(remembered) ? remembered.filter(name => typeof name === 'string') : []
}

function alreadyWaiting(callId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `The call "${callId}" already waits for approval. Give every call its own id.`,
  )
}
