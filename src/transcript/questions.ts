/** What a run waits for: calls that a person must answer before it continues. */
import { CONFIRMATION_TOOL, INPUT_TOOL } from '../base/names.js'
import type { RunEvent } from '../run/run-event.js'

export interface RunQuestion {
  /** An answer names the run and this id. */
  callId: string
  tool: string
  args: Readonly<Record<string, unknown>>
  /** `approval`: once, always or no. `outcome`: happened, run or leave. `result`: an object, of a long-running tool. */
  asks: 'approval' | 'outcome' | 'result'
  reason?: string
}

/** The open questions of a run, from its events in order. */
export class OpenQuestions {
  readonly #open = new Map<string, RunQuestion>()

  add(event: RunEvent): void {
    if (event.type === 'tool-call' && event.pending && event.name !== CONFIRMATION_TOOL) {
      const { id: callId, name: tool, args, inside = [] } = event
      for (const call of inside) this.#open.delete(call)
      this.#open.set(callId, { callId, tool, args, asks: 'result' })
    } else if (event.type === 'approval-request') {
      const { id: callId, name: tool, args, reason } = event
      this.#open.set(callId, { callId, tool, args, asks: 'approval', ...(reason ? { reason } : {}) })
    } else if (event.type === 'tool-unknown') {
      const { id: callId, name: tool, args, asks, answer } = event
      if (asks && answer === undefined) this.#open.set(callId, { callId, tool, args, asks: 'outcome' })
      else this.#open.delete(callId)
    } else if (event.type === 'approval-answer' || event.type === 'tool-result') this.#open.delete(event.id)
    else if (event.type === 'run-finish' && event.finishReason !== 'waiting') this.#open.clear()
  }

  /** Oldest first. */
  get list(): RunQuestion[] {
    return [...this.#open.values()]
  }
}

/** A question as people read it, without the arguments of its call. */
export function questionText({ tool, args, asks, reason }: RunQuestion): string {
  if (asks === 'result') {
    const asked = tool === INPUT_TOOL && args.message
    return typeof asked === 'string' && asked !== ''
      ? `the workflow asks: ${asked}`
      : `${tool} waits for its result (an object)`
  }
  return asks === 'approval'
    ? `${reason === undefined ? '' : `${reason} `}${tool} needs approval (once, always or no)`
    : `it is not known whether ${tool} took effect (happened, run or leave)`
}

/** An answer as an example. */
export function answerExample({ tool, asks }: RunQuestion): string {
  const result = tool === INPUT_TOOL ? `'{"result":"…"}'` : `'{"status":"done"}'`
  return { approval: 'once', outcome: 'happened', result }[asks]
}
