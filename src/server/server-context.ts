/**
 * What every route of the server is given. Routes take what they need from here and keep nothing themselves:
 * runs live in the hub, sessions in the store, counts in the gates.
 */

import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { Logger } from '../logger.js'
import type { RuntimeInfo } from '../runtime/info.js'
import type { RunInput, Runtime } from '../runtime/runtime.js'
import type { SessionKey } from '../session/message.js'
import type { RunEvent, RunItem, StartedRun } from './chat-protocol.js'
import type { Metrics } from './metrics.js'
import type { EventBatch } from './runs/event-batch.js'
import type { StreamGate } from './stream-gate.js'

/** What hono carries through a request. */
export interface ServerEnv {
  Bindings: HttpBindings
  Variables: {
    /** Who the caller is. Set before any route that needs it is reached. */
    user: string
  }
}

export interface ServerContext {
  readonly runtime: Runtime
  readonly hub: RunHub
  /** What is served; asked once, when the server starts. */
  readonly info: RuntimeInfo
  /** Who the caller is: routes look up sessions under this name and no other. */
  userOf(c: Context<ServerEnv>): string
  /** A session of the caller's own. */
  keyOf(c: Context<ServerEnv>, sessionId: string): SessionKey
  readonly limits: ServerLimits
  readonly logger: Logger
  readonly version: string
  /** Counts open streams; `sse.ts` enters and leaves it. */
  readonly streams: StreamGate
  readonly metrics: Metrics
  /** True from the moment at which the server was asked to end. */
  isClosing(): boolean
}

/** What a caller may use. A limit that is reached is answered with 429 and a time to come back, or with 413. */
export interface ServerLimits {
  /** The largest request body. */
  maxBodyBytes: number
  /** Runs of one user that go on in this process at the same time. */
  runsPerUser: number
  /** Event streams of one user that are open at the same time. */
  streamsPerUser: number
  /** Different wrong tokens of one address within a window; then the address waits for one window. */
  attemptsPerAddress: number
  attemptWindowMs: number
  /** A comment is sent on a silent stream this often, so that proxies keep it open. */
  heartbeatMs: number
  /** A stream whose client takes nothing for so long is closed. */
  stalledMs: number
  /** How long the headers, and the whole of a request, may take to arrive. */
  headersMs: number
  requestMs: number
}

/** What holds unless `serve` is told otherwise. */
export const DEFAULT_LIMITS: ServerLimits = {
  maxBodyBytes: 10 * 1024 * 1024,
  runsPerUser: 8,
  streamsPerUser: 32,
  attemptsPerAddress: 10,
  attemptWindowMs: 60_000,
  heartbeatMs: 15_000,
  stalledMs: 60_000,
  headersMs: 10_000,
  requestMs: 60_000,
}

/**
 * Runs, apart from the connections that watch them. A run is started here and goes on whoever leaves; whoever
 * comes follows it from any event number, whichever process runs it, because every event is read from the
 * store or was stored before it is handed out.
 */
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
