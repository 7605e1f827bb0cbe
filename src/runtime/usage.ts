/** What model calls have cost, and how a run goes on that ended at its budget. */
import { AgentError } from '../errors.js'
import type { RunInput } from '../run/run-host.js'
import type { RunSummary } from '../session/run-store.js'
import type { SessionStore } from '../session/session-store.js'
import type { UsageLine, UsageQuery } from '../session/spending.js'
import { BUDGET_RULE, type Budget, isBudget } from '../session/usage.js'

export interface ResumeOptions {
  /** For a run that ended at its budget: what the run that goes on may cost. */
  budget?: Budget | undefined
}

export async function readUsageByDay({ spending }: SessionStore, query: UsageQuery): Promise<UsageLine[]> {
  if (!spending)
    throw new AgentError(
      'unsupported',
      'The store does not count what model calls cost. Use a store of Lango.',
    )
  return spending.usage(query)
}

/** The run that goes on where another one ended at its budget. */
export async function goOn(
  { runs }: SessionStore,
  run: RunSummary | undefined,
  runId: string,
  budget: Budget,
): Promise<RunInput> {
  if (!isBudget(budget)) throw new AgentError('invalid-argument', `\`budget\` must be ${BUDGET_RULE}.`)
  if (!run) throw new AgentError('run-not-found', `There is no run "${runId}".`)
  if (run.finishReason !== 'budget') {
    const state = run.finished ? `it ended with "${run.finishReason}"` : 'it has not ended'
    throw new AgentError(
      'invalid-argument',
      `Run "${runId}" did not end at its budget: ${state}. Resume it without a budget, or send a message.`,
    )
  }
  const start = (await runs.readEvents(runId, { limit: 2 })).find(({ type }) => type === 'run-start')
  const { sessionId, userId } = run.key
  const model = typeof start?.model === 'string' && start.model !== '' ? { model: start.model } : {}
  return { sessionId, userId, text: GO_ON, budget, ...model }
}

const GO_ON = 'The budget was raised. Go on where you stopped.'
