/** A run in a SQLite store that waits for a person, and has no process. */
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from '@photostructure/sqlite'
import { onTestFinished } from 'vitest'
import { lastSeqBeforeAttempt, numbered } from '../../src/run/event-numbers.js'
import type { RunEventBody } from '../../src/run/run-event.js'
import type { RunEventRecord } from '../../src/session/run-store.js'
import { openStore } from '../../src/store/open-store.js'

export interface WaitingRunOptions {
  sessionId?: string
  userId?: string
  /** What it reported after its beginning. Default: a letter that needs approval. */
  events?: readonly RunEventBody[]
  state?: 'waiting' | 'running'
}

/** Stores the run as its process would have left it. The lease is held, so that nobody takes the run. */
export async function storeWaitingRun(url: string, options: WaitingRunOptions = {}): Promise<string> {
  const { sessionId = 's1', userId = 'user', events = LETTER, state = 'waiting' } = options
  const key = { appName: 'lango', userId, sessionId }
  const runId = randomUUID()
  const store = await openStore(url)
  const start: RunEventBody = { type: 'run-start', userId, agent: 'root', model: 'play/model' }
  const stored = records([start, ...events], { sessionId, runId }, 0)
  const message = { role: 'user' as const, author: 'user', content: 'Write to Ada.', timestamp: Date.now() }
  const opened = await store.openRun({ key, runId, message, events: stored }, { ttlMs: 600_000 })
  if (!('lease' in opened)) throw new Error(`The run was not opened: ${JSON.stringify(opened)}`)
  onTestFinished(() => store.close())
  setState(url, runId, state)
  return runId
}

/** Says where a run is, as the process that stops working on it would. */
export function setState(url: string, runId: string, state: 'waiting' | 'running'): void {
  const database = new DatabaseSync(url.slice('sqlite:'.length))
  database.prepare('UPDATE lango_runs SET state = ? WHERE run_id = ?').run(state, runId)
  database.close()
}

/** Stores further events of a run, as the process that continues it would. */
export async function continueRun(
  url: string,
  runId: string,
  bodies: readonly RunEventBody[],
): Promise<void> {
  const store = await openStore(url)
  const run = await store.runs.findRun(runId)
  if (!run) throw new Error(`There is no run ${runId}.`)
  const { key, lastSeq } = run
  const isAttempt = bodies[0]?.type === 'run-resumed'
  const identity = { sessionId: key.sessionId, runId }
  const events = records(bodies, identity, isAttempt ? lastSeqBeforeAttempt(lastSeq) : lastSeq)
  await store.runs.appendEvents(key, runId, events)
  await store.close()
}

function records(...numbering: Parameters<typeof numbered>): RunEventRecord[] {
  return numbered(...numbering).map(event => ({ ...event }))
}

const args = { to: 'Ada' }

const LETTER: readonly RunEventBody[] = [
  { type: 'text-delta', author: 'root', text: 'I will write to Ada.' },
  { type: 'tool-call', author: 'root', id: 'call-1', name: 'send_letter', args },
  { type: 'approval-request', id: 'call-1', name: 'send_letter', args, reason: 'It leaves the building.' },
]
