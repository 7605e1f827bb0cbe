/**
 * Runs, apart from the connections that watch them. A run is started here and goes on whoever leaves; whoever
 * comes follows it from any event number, whichever process runs it, because every event is read from the
 * store or was stored before it is handed out.
 */
import type { RunInput } from '../runtime/runtime.js'
import type { SessionKey } from '../session/message.js'
import type { RunEvent, RunItem, StartedRun } from './chat-protocol.js'
import type { EventBatch } from './runs/event-batch.js'

export interface RunHub {
  /** Starts a run and resolves once its first event is stored. Throws what `runtime.run` throws before that. */
  start(input: RunInput & { userId: string }): Promise<StartedRun>
  /** The events after number `after`, stored ones first, then live ones as they are stored. Ends after `run-finish`. */
  follow(
    runId: string,
    options?: { after?: number; signal?: AbortSignal },
  ): AsyncGenerator<RunEvent, void, undefined>
  /** As `follow`, several events at a time, as they were stored, with their bytes on the wire. */
  followBatches(
    runId: string,
    options?: { after?: number; signal?: AbortSignal },
  ): AsyncGenerator<EventBatch, void, undefined>
  /** Asks a run to stop, in whichever process it is. */
  stop(runId: string): Promise<void>
  /** Answers a tool that waits for a word. Fails with `not-found` when nothing waits under that id. */
  approve(runId: string, callId: string, answer: 'once' | 'always' | 'no'): Promise<void>
  /** The run and whose it is. A run whose process died is first marked as interrupted. */
  find(runId: string): Promise<{ item: RunItem; key: SessionKey } | undefined>
  /** Newest first. */
  list(key: SessionKey, limit?: number): Promise<RunItem[]>
  /** The sessions of a user in which a run goes on, as far as this process knows: nothing is read for it. */
  runningSessions(appName: string, userId: string): ReadonlySet<string>
  /** How many runs go on in this process, and for one user. */
  running(userId?: string): number
  /** Refuses new runs, waits for running ones up to `graceMs`, and tells followers to come back. */
  close(graceMs: number): Promise<void>
}
