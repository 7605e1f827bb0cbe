import { AgentError } from '../errors.js'
import type { ApprovalAnswer, ApprovalOutcome } from '../tool.js'
import { timerMs } from './timer-ms.js'

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
