/**
 * A run whose process crashed has no end in the store. The next process that reads it writes one: when the
 * session's lease is free and the run has still not ended, no process works on it.
 */
import { AgentError, type AgentErrorJson } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunStore, RunSummary } from '../session/run-store.js'
import { runEventPages } from '../session/session-pages.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { LedgerTools } from '../session/tool-calls.js'
import { emptyUsage, type RunUsage, sumUsage } from '../session/usage.js'
import { endEvents, settleInterrupted } from './close-calls.js'
import { SaidInEvents } from './event-reader.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { RunEnding } from './run-journal.js'

export interface Settling {
  /** Of the session of the run, when the caller holds it. */
  held?: Lease | undefined
  /** Tools that can be asked whether a call took effect. */
  tools?: LedgerTools | undefined
  logger?: Logger | undefined
  /** Why the run is not continued, as far as it is not its process alone. */
  reason?: string | undefined
  /** How the run was about to end. */
  ending?: RunEnding | undefined
}

/** Ends a run as interrupted if its process is gone, and answers its open calls. Returns whether it did. */
export async function markIfInterrupted(
  store: SessionStore,
  run: RunSummary,
  { held, tools, logger, reason, ending }: Settling = {},
): Promise<boolean> {
  if (run.finished || run.state === 'queued' || run.state === 'scheduled') return false
  const lease = held ? undefined : await freeLease(store, run)
  if (!held && !lease && !(await hasSuccessor(store, run))) return false
  try {
    // It may have ended after `run` was read and before the lease was acquired.
    const now = await store.runs.findRun(run.runId)
    if (!now || now.finished) return false
    const end = await endOf(store.runs, now, { reason, ending })
    const owner = held ?? lease
    if (owner) await settleInterrupted({ store, run: now, lease: owner, end, tools, logger })
    else await store.runs.appendEvents(run.key, run.runId, endEvents(now, end))
    return true
  } finally {
    await lease?.release().catch(() => {})
  }
}

/** All stored events of a run, in order. */
export async function* storedEvents(runs: RunStore, runId: string): AsyncGenerator<RunEvent> {
  // The recorder of runs wrote them; a store returns what it was given.
  for await (const page of runEventPages(runs, runId)) yield* page as unknown as readonly RunEvent[]
}

/** True if a process of the app has to continue or end the run. Reads only, so that ADK is not loaded to find out. */
export async function isAbandoned(
  { runs }: SessionStore,
  appName: string,
  run: RunSummary,
): Promise<boolean> {
  const { key, state, dueAt = 0 } = run
  if (key.appName !== appName) return false
  if (state === 'scheduled') return dueAt <= Date.now()
  // The first ones of a long queue are enough: whichever process executes them executes the others.
  return (await runs.listUnfinished({ appName, key, abandoned: true })).length > 0
}

/** The lease of the run's session, if nobody holds it. */
export async function freeLease(store: SessionStore, { key }: RunSummary) {
  try {
    return await store.acquireLease(key, { waitMs: 0 })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-busy') return undefined
    throw error
  }
}

/** Runs of a session are sequential: when a later one is running, this one no longer holds the lease. */
export async function hasSuccessor(store: SessionStore, run: RunSummary): Promise<boolean> {
  const [newest] = await store.runs.listRuns(run.key, { limit: 1 })
  return newest?.state === 'running' && newest.runId !== run.runId && newest.startedAt > run.startedAt
}

async function endOf(
  runs: RunStore,
  run: RunSummary,
  { reason, ending }: Pick<Settling, 'reason' | 'ending'>,
): Promise<RunEventBody[]> {
  const { finishReason, error = interruption(reason) } = ending ?? { finishReason: 'error' as const }
  const failure: RunEventBody[] = finishReason === 'error' ? [{ type: 'error', error }] : []
  const finish: RunEventBody = { type: 'run-finish', finishReason, ...(await totalsOf(runs, run.runId)) }
  return [...failure, finish]
}

function interruption(reason: string | undefined): AgentErrorJson {
  const why = ['The process of this run ended before the run did.', ...(reason ? [reason] : [])]
  const message = `${why.join(' ')} Send a message to continue.`
  return new AgentError('run-interrupted', message, { retryable: true }).toJSON()
}

/** Text, turns and usage of the run, as far as its stored events contain them. */
async function totalsOf(runs: RunStore, runId: string) {
  const totals = { turns: 0, delegations: 0 }
  const said = new SaidInEvents()
  const steps: RunUsage[] = []
  let before: RunEvent['type'] | undefined
  for await (const event of storedEvents(runs, runId)) {
    said.add(event)
    if (event.type === 'tool-call' && before !== 'tool-call') totals.turns += 1
    if (event.type === 'agent-transfer') totals.delegations += 1
    if (event.type === 'usage') steps.push(event.usage)
    before = event.type
  }
  return { ...said.end(), ...totals, usage: steps.length === 0 ? emptyUsage() : sumUsage(steps) }
}
