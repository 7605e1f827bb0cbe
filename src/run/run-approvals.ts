import { timerMs } from '../base/timer-ms.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunSignal, RunStore } from '../session/session-store.js'
import type { ApprovalAnswer, ApprovalOutcome } from '../tool.js'
import type { RunEventBody } from './run-event.js'

/** A tool call that somebody must allow. */
export interface ApprovalAsk {
  /** The call's id; an answer names it. */
  id: string
  name: string
  args: Readonly<Record<string, unknown>>
  sessionId: string
  runId: string
}

/** Answers an approval request. `true` means once, `false` means no. */
export type OnApproval = (
  ask: ApprovalAsk,
) => ApprovalAnswer | boolean | Promise<ApprovalAnswer> | Promise<boolean> | Promise<ApprovalAnswer | boolean>

/** Where calls wait for a person's word. */
export interface ApprovalDeskLike {
  request(
    request: { callId: string; tool: string; args: Readonly<Record<string, unknown>> },
    signal?: AbortSignal,
  ): Promise<ApprovalOutcome>
  answer(callId: string, answer: ApprovalAnswer): boolean
  close(): void
}

/** Makes a desk that tells when somebody has to be asked, and how it ended. */
export type CreateDesk = (hooks: {
  onRequest(request: { callId: string; tool: string; args: Readonly<Record<string, unknown>> }): void
  onOutcome(request: { callId: string; tool: string }, outcome: ApprovalOutcome): void
}) => ApprovalDeskLike

export interface RunApprovalsOptions {
  createDesk: CreateDesk
  identity: { sessionId: string; runId: string }
  onApproval: OnApproval | undefined
  /** Tells the run's listeners; what is told is stored with the run's events. */
  tell(body: RunEventBody): void
}

/**
 * The approvals of one run. A request is an event; the answer comes from the caller's `onApproval`, or as a
 * signal from another process, whichever is first. Both are kept with the run's events.
 */
export class RunApprovals {
  readonly desk: ApprovalDeskLike
  readonly #options: RunApprovalsOptions

  constructor(options: RunApprovalsOptions) {
    this.#options = options
    this.desk = options.createDesk({
      onRequest: ({ callId, tool, args }) => this.#ask(callId, tool, args),
      onOutcome: ({ callId, tool }, outcome) =>
        options.tell({ type: 'approval-answer', id: callId, name: tool, answer: outcome }),
    })
  }

  #ask(callId: string, name: string, args: Readonly<Record<string, unknown>>): void {
    const { identity, onApproval, tell } = this.#options
    tell({ type: 'approval-request', id: callId, name, args: { ...args } })
    if (!onApproval) return
    void Promise.resolve()
      .then(() => onApproval({ id: callId, name, args, ...identity }))
      .then(
        answer => this.desk.answer(callId, answerOf(answer)),
        // A caller that fails to ask has not said yes.
        () => this.desk.answer(callId, 'no'),
      )
  }
}

function answerOf(answer: ApprovalAnswer | boolean): ApprovalAnswer {
  if (typeof answer === 'string') return answer
  return answer ? 'once' : 'no'
}

const POLL_MS = 250

/** Listens for what other processes say to a run: stop, or an answer to an approval request. */
export function watchSignals(
  runs: RunStore,
  runId: string,
  hear: (signal: RunSignal) => void,
  logger: Logger,
): () => void {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const listen = async () => {
    try {
      for (const signal of await runs.takeSignals(runId)) hear(signal)
    } catch (error) {
      logger.debug('The signals of a run could not be read', { runId, error: messageOf(error) })
    }
    schedule()
  }
  const schedule = () => {
    if (stopped) return
    timer = setTimeout(() => void listen(), POLL_MS)
    // Listening alone keeps no process alive.
    timer.unref()
  }
  schedule()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** A call that somebody must allow. */
export interface PendingApproval {
  readonly callId: string
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface ApprovalDeskOptions {
  /** How long a request waits for an answer. Default 300,000. */
  timeoutMs?: number | undefined
  /** What an earlier desk of the session exported (`toJSON`). Anything else is ignored. */
  remembered?: unknown
  /** A person has to be asked. Not called for tools that are allowed for good. */
  onRequest?: ((request: PendingApproval) => void) | undefined
  /** A request is over. `always` is also said of a call that waited while its tool was allowed for good. */
  onOutcome?: ((request: PendingApproval, outcome: ApprovalOutcome) => void) | undefined
}

/**
 * Where calls wait for a person's word. Whoever asks gets one outcome: the answer, or that nobody answered in
 * time, or that the asking was called off. An answer counts once, and only while its call waits: a second click
 * and a late answer change nothing.
 */
export class ApprovalDesk {
  readonly #waiting = new Map<string, { request: PendingApproval; end: (outcome: ApprovalOutcome) => void }>()
  readonly #always: Set<string>
  readonly #options: ApprovalDeskOptions

  constructor(options: ApprovalDeskOptions = {}) {
    this.#options = options
    this.#always = new Set(namesIn(options.remembered))
  }

  /** Waits for an answer to this call. A tool that is allowed for good is not asked about. */
  request(request: PendingApproval, signal?: AbortSignal): Promise<ApprovalOutcome> {
    if (this.#always.has(request.tool)) return Promise.resolve('always')
    if (signal?.aborted) return Promise.resolve('aborted')
    if (this.#waiting.has(request.callId)) return Promise.reject(alreadyWaiting(request.callId))
    return new Promise(resolve => {
      const callOff = () => end('aborted')
      const timer = setTimeout(() => end('timeout'), timerMs(this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS))
      const end = (outcome: ApprovalOutcome) => {
        if (!this.#waiting.delete(request.callId)) return
        clearTimeout(timer)
        signal?.removeEventListener('abort', callOff)
        this.#options.onOutcome?.(request, outcome)
        resolve(outcome)
      }
      signal?.addEventListener('abort', callOff, { once: true })
      this.#waiting.set(request.callId, { request, end })
      this.#options.onRequest?.(request)
    })
  }

  /** Answers a call that waits. False when none does under this id: it was answered, or is over. */
  answer(callId: string, answer: ApprovalAnswer): boolean {
    const waiting = this.#waiting.get(callId)
    if (!waiting) return false
    if (answer === 'always') this.#allowForGood(waiting.request.tool)
    // What comes from another process may be anything: all that is not a yes is a no.
    else waiting.end(answer === 'once' ? 'once' : 'no')
    return true
  }

  /** The calls that wait, oldest first. */
  get pending(): readonly PendingApproval[] {
    return [...this.#waiting.values()].map(({ request }) => request)
  }

  /** Calls off whatever still waits. */
  close(): void {
    for (const { end } of [...this.#waiting.values()]) end('aborted')
  }

  /** The tools that are allowed for good, as the session's state keeps them. */
  toJSON(): string[] {
    return [...this.#always].sort()
  }

  #allowForGood(tool: string): void {
    this.#always.add(tool)
    for (const { request, end } of [...this.#waiting.values()]) if (request.tool === tool) end('always')
  }
}

const DEFAULT_TIMEOUT_MS = 300_000

function namesIn(remembered: unknown): string[] {
  return Array.isArray(remembered) ? remembered.filter(name => typeof name === 'string') : []
}

function alreadyWaiting(callId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `The call "${callId}" waits for approval already. Give every call an id of its own.`,
  )
}
