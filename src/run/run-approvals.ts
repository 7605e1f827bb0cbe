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
