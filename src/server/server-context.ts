/**
 * What every route of the server receives. Routes hold no state: runs are in the hub, sessions in the store, counts
 * in the gate and the metrics.
 */

import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { Logger } from '../logger.js'
import type { Gallery } from '../runtime/gallery.js'
import type { RuntimeInfo } from '../runtime/info.js'
import type { Runtime } from '../runtime/runtime.js'
import type { SessionKey } from '../session/message.js'
import type { Metrics } from './metrics.js'
import type { RunHub } from './runs/run-hub.js'
import type { StreamGate } from './stream-gate.js'

/** What hono carries through a request. */
export interface ServerEnv {
  Bindings: HttpBindings
  Variables: {
    /** The caller. Set by `userGuard`, before any route that reads it. */
    user: string
    /** The server's limits. Set by `bodyGuard`, before any route that reads a body. */
    limits: ServerLimits
  }
}

export interface ServerContext {
  readonly runtime: Runtime
  readonly hub: RunHub
  /** What is served; read once, when the server starts. */
  readonly info: RuntimeInfo
  /** The caller: routes look up sessions of this user only. */
  userOf(c: Context<ServerEnv>): string
  /** A session of the caller's own. */
  keyOf(c: Context<ServerEnv>, sessionId: string): SessionKey
  readonly limits: ServerLimits
  readonly logger: Logger
  readonly version: string
  /** Counts open streams; `sse.ts` enters and leaves it. */
  readonly streams: StreamGate
  readonly metrics: Metrics
  /** Broken sessions to try; loaded when they are first asked for. */
  gallery(): Promise<Gallery>
  /** True once the server was asked to close. */
  isClosing(): boolean
}

/** What a caller may use. Beyond a limit the answer is 429 with Retry-After, 413 (too much) or 422 (too complex). */
export interface ServerLimits {
  /** The largest request body. */
  maxBodyBytes: number
  /** Messages in one request. */
  maxMessages: number
  /** Keys of the state that one request sets. */
  maxStateKeys: number
  /** Parts of one message of a request. */
  maxParts: number
  /** Levels of nested JSON in a body, and JSON values in it: both are counted before it is parsed. */
  maxDepth: number
  maxValues: number
  /** Concurrent runs of one user in this process. */
  runsPerUser: number
  /** Open event streams of one user. */
  streamsPerUser: number
  /** Different wrong tokens of one address within a window; then the address waits for one window. */
  attemptsPerAddress: number
  attemptWindowMs: number
  /** Interval of comments on a stream without events, so that proxies keep it open. */
  heartbeatMs: number
  /** A stream whose client reads nothing for this long is closed. */
  stalledMs: number
  /**
   * How long after its end a failed run is the answer to a repeated request, and how long a session of one request is
   * kept for that.
   */
  retryMs: number
  /** A session of MCP without an open request or stream is closed after this long. */
  mcpIdleMs: number
  /** How long the headers, and the whole of a request, may take to arrive. */
  headersMs: number
  requestMs: number
}

/** The limits that `serve` uses where none are given. */
export const DEFAULT_LIMITS: ServerLimits = {
  maxBodyBytes: 10 * 1024 * 1024,
  maxMessages: 10_000,
  maxStateKeys: 5000,
  maxParts: 1000,
  maxDepth: 50,
  maxValues: 100_000,
  runsPerUser: 8,
  streamsPerUser: 32,
  attemptsPerAddress: 10,
  attemptWindowMs: 60_000,
  heartbeatMs: 15_000,
  stalledMs: 60_000,
  retryMs: 60_000,
  mcpIdleMs: 30 * 60_000,
  headersMs: 10_000,
  requestMs: 60_000,
}
