import { AgentError } from '../errors.js'
import type { HistoryCut } from '../session/message.js'
import type { RunUsage } from '../session/usage.js'
import type { RunEvent, RunFinishReason, RunRepair } from './run-event.js'

/** A finished run. */
export interface RunResult {
  /** Everything that the last author who said anything said in the run, in order; steps are paragraphs. */
  text: string
  /** The last step of `text`: without what was said before tool calls. */
  lastText: string
  sessionId: string
  runId: string
  finishReason: Exclude<RunFinishReason, 'error'>
  turns: number
  delegations: number
  /** Every change that was made to the history before it was sent, in order. */
  repairs: RunRepair[]
  /** What the token budget left out, in order. */
  cuts: HistoryCut[]
  usage: RunUsage
}

/**
 * A run, collected. Throws the run's `AgentError` when it ended in one.
 *
 * @spec RunAndCollect
 */
export async function runAndCollect(lists: AsyncIterable<readonly RunEvent[]>): Promise<RunResult> {
  const repairs: RunRepair[] = []
  const cuts: HistoryCut[] = []
  let failure: AgentError | undefined
  for await (const events of lists) {
    for (const event of events) {
      if (event.type === 'repair') repairs.push(...event.repairs)
      if (event.type === 'history-cut') cuts.push(event.cut)
      if (event.type === 'error') failure = asAgentError(event.error)
      if (event.type === 'run-finish') {
        if (event.finishReason === 'error') throw failure ?? unfinished()
        const { text, lastText = text, sessionId, runId, finishReason, turns, delegations, usage } = event
        return { text, lastText, sessionId, runId, finishReason, turns, delegations, repairs, cuts, usage }
      }
    }
  }
  throw failure ?? unfinished()
}

function asAgentError(error: Extract<RunEvent, { type: 'error' }>['error']): AgentError {
  return error instanceof AgentError ? error : new AgentError(error.code, error.message, error)
}

function unfinished(): AgentError {
  return new AgentError('run-interrupted', 'The run ended without its last event.', { retryable: true })
}
