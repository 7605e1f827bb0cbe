/**
 * What a run waits for, from its events. Everything outside the run uses this: `runAndCollect`, `runtime.answer`, the server
 * and its protocols, the page, the commands. It runs in browsers.
 */
import { defined } from '../base/defined.js'
import { CONFIRMATION_TOOL } from '../base/names.js'
import type { RunEvent } from './run-event.js'

/** A call that a person must answer before its run continues. */
export interface RunQuestion {
  /** An answer names the run and this id. */
  callId: string
  tool: string
  args: Readonly<Record<string, unknown>>
  /** `approval`: once, always or no. `outcome`: happened, run or leave. `result`: an object, of a long-running tool. */
  asks: 'approval' | 'outcome' | 'result'
  reason?: string
  /** Of an outcome: `happened` needs the result, `{ happened: true, result }`, because a node of a workflow uses it. */
  needsResult?: boolean
  /** The JSON schema of that result, if there is one. */
  resultSchema?: Readonly<Record<string, unknown>>
}

/** A question, and the call that it is about if it has an id of its own: a confirmation, or what a tool asks while it works. */
export interface OpenQuestion extends RunQuestion {
  about?: string
}

/** The open questions of a run after one more event, oldest first. */
export function questionsAfter(open: readonly OpenQuestion[], event: RunEvent): readonly OpenQuestion[] {
  if (event.type === 'run-finish') return event.finishReason === 'waiting' ? open : []
  const question = questionIn(event)
  // The call of a node as a tool waits for the answer to what the node asks, and for no result of its own.
  const settled = event.type === 'tool-call' ? [...(event.inside ?? [])] : []
  if (question) settled.push(question.callId)
  else if (isAnswer(event)) settled.push(event.id)
  if (settled.length === 0) return open
  const others = open.filter(({ callId }) => !settled.includes(callId))
  return question ? [...others, question] : others
}

/** The question that an event asks. */
export function questionIn(event: RunEvent): OpenQuestion | undefined {
  if (event.type === 'tool-call') {
    // A confirmation is followed by a request for approval, which has its id.
    return event.pending && event.name !== CONFIRMATION_TOOL ? asked(event, 'result') : undefined
  }
  if (event.type === 'approval-request') {
    const { reason, callId: about } = event
    return { ...asked(event, 'approval'), ...(reason ? { reason } : {}), ...defined({ about }) }
  }
  if (event.type !== 'tool-unknown' || !event.asks || event.answer !== undefined) return undefined
  const { needsResult, resultSchema } = event
  return { ...asked(event, 'outcome'), ...defined({ needsResult, resultSchema }) }
}

function asked(
  { id, name, args }: { id: string; name: string; args: Record<string, unknown> },
  asks: RunQuestion['asks'],
): OpenQuestion {
  return { callId: id, tool: name, args, asks }
}

/** True if an event ends the question with its id. */
export function isAnswer(
  event: RunEvent,
): event is Extract<RunEvent, { type: 'approval-answer' | 'tool-result' | 'tool-unknown' }> {
  if (event.type === 'tool-unknown') return !event.asks || event.answer !== undefined
  return event.type === 'approval-answer' || event.type === 'tool-result'
}

/** The open questions of a run, from its events in order. */
export class OpenQuestions {
  #open: readonly OpenQuestion[] = []

  add(event: RunEvent): void {
    this.#open = questionsAfter(this.#open, event)
  }

  /** The question with this id, or about the call with this id. */
  find(id: string): OpenQuestion | undefined {
    return this.#open.find(({ callId }) => callId === id) ?? this.#open.find(({ about }) => about === id)
  }

  /** Oldest first. */
  get list(): RunQuestion[] {
    return this.#open.map(({ about: _about, ...question }) => question)
  }
}
