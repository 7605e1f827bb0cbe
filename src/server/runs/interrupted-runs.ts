/**
 * A run whose process died cannot say so. Whoever finds it does: when the session's lease can be had and the
 * run has still not ended, nobody works on it any more, and its last two events are written in its place.
 */
import { AgentError } from '../../errors.js'
import type { RunEvent, RunEventBody } from '../../run/run-event.js'
import { runEventPages } from '../../session/session-pages.js'
import type { RunEventRecord, RunSummary, SessionStore } from '../../session/session-store.js'
import { emptyUsage, type RunUsage, sumUsage } from '../../session/usage.js'

/** Marks a run as interrupted if its process is gone. Returns whether it did. */
export async function markIfInterrupted(store: SessionStore, run: RunSummary): Promise<boolean> {
  if (run.finished) return false
  const lease = await freeLease(store, run)
  if (!lease && !(await hasSuccessor(store, run))) return false
  try {
    // It may have ended between the look and the lease.
    const now = await store.runs.findRun(run.runId)
    if (!now || now.finished) return false
    await store.runs.appendEvents(run.key, run.runId, await lastWords(store, now))
    return true
  } finally {
    await lease?.release().catch(() => {})
  }
}

/** Runs of a session come one after the other: when a later one has begun, this one has no lease any more. */
async function hasSuccessor(store: SessionStore, run: RunSummary): Promise<boolean> {
  const [newest] = await store.runs.listRuns(run.key, { limit: 1 })
  return newest !== undefined && newest.runId !== run.runId && newest.startedAt > run.startedAt
}

async function freeLease(store: SessionStore, { key }: RunSummary) {
  try {
    return await store.acquireLease(key, { waitMs: 0 })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-busy') return undefined
    throw error
  }
}

async function lastWords(store: SessionStore, run: RunSummary): Promise<RunEventRecord[]> {
  const identity = { sessionId: run.key.sessionId, runId: run.runId }
  const message = 'The process that worked on this run ended before the run did. Send a message to go on.'
  const error: RunEventBody = {
    type: 'error',
    error: new AgentError('run-interrupted', message, { retryable: true }).toJSON(),
  }
  const finish: RunEventBody = {
    type: 'run-finish',
    finishReason: 'error',
    ...(await soFar(store, run.runId)),
  }
  return [
    { ...error, ...identity, seq: run.lastSeq + 1 },
    { ...finish, ...identity, seq: run.lastSeq + 2 },
  ]
}

/** What the run had come to, as far as its events tell. */
async function soFar(store: SessionStore, runId: string) {
  const sum = { text: '', turns: 0, delegations: 0 }
  const steps: RunUsage[] = []
  let before = ''
  for await (const event of storedEvents(store, runId)) {
    if (event.type === 'text-delta') sum.text += event.text
    if (event.type === 'tool-call') {
      sum.text = ''
      if (before !== 'tool-call') sum.turns += 1
    }
    if (event.type === 'agent-transfer') sum.delegations += 1
    if (event.type === 'usage') steps.push(event.usage)
    before = event.type
  }
  return { ...sum, usage: steps.length === 0 ? emptyUsage() : sumUsage(steps) }
}

async function* storedEvents(store: SessionStore, runId: string): AsyncGenerator<RunEvent> {
  // The recorder of runs wrote them; a store returns what it was given.
  for await (const page of runEventPages(store.runs, runId)) yield* page as unknown as readonly RunEvent[]
}
