/**
 * The typed client of Lango's server: fetch only, for browsers and Node. Every method throws a `ClientError`
 * that carries the server's problem document.
 */
import type {
  ApprovalReply,
  ForkRequest,
  MessagePage,
  ModelList,
  NewSession,
  RunEvent,
  RunInspection,
  RunItem,
  RunList,
  RunRequest,
  ServerInfo,
  SessionDetail,
  SessionItem,
  SessionLint,
  SessionList,
  StartedRun,
} from '../server/chat-protocol.js'

export interface ClientOptions {
  /** Where the server is. Default: the page's own origin. */
  baseUrl?: string
  /** A bearer token, when the server asks for one and there is no cookie. */
  token?: string
  fetch?: typeof globalThis.fetch
}

export interface LangoClient {
  info(): Promise<ServerInfo>
  models(): Promise<ModelList>
  sessions(query?: { search?: string; cursor?: string; limit?: number }): Promise<SessionList>
  createSession(session?: NewSession): Promise<SessionItem>
  session(sessionId: string): Promise<SessionDetail>
  renameSession(sessionId: string, title: string): Promise<SessionItem>
  deleteSession(sessionId: string): Promise<void>
  messages(
    sessionId: string,
    range?: { beforeSeq?: number; afterSeq?: number; limit?: number },
  ): Promise<MessagePage>
  fork(sessionId: string, request?: ForkRequest): Promise<SessionItem>
  lint(sessionId: string, profile?: string): Promise<SessionLint>
  runs(sessionId: string, query?: { limit?: number }): Promise<RunList>
  run(runId: string): Promise<RunItem>
  inspect(runId: string): Promise<RunInspection>
  start(sessionId: string, request: RunRequest): Promise<StartedRun>
  /**
   * The events of a run after number `after` (default 0: from the beginning). Reconnects by itself, with
   * growing pauses, without a gap or a double, until `run-finish` or until the signal is aborted.
   */
  follow(runId: string, options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>
  stop(runId: string): Promise<void>
  approve(runId: string, callId: string, answer: ApprovalReply['answer']): Promise<void>
}

export interface FollowOptions {
  after?: number
  signal?: AbortSignal
  /** Hears when the connection is lost and when it is back. */
  onConnection?: (state: 'open' | 'lost') => void
}
