/**
 * The typed client of Lango's server: fetch only, for browsers and Node. Every method throws a `ClientError`
 * with the server's problem document.
 */
import type { TraceContext } from '../base/trace-context.js'
import type {
  ApprovalReply,
  BrokenHistories,
  CheckedText,
  CheckRequest,
  EraseReceipt,
  ForkRequest,
  FoundMessages,
  ImportedFile,
  ImportRequest,
  MemoryPage,
  MessagePage,
  ModelList,
  NewSession,
  RunEvent,
  RunInspection,
  RunItem,
  RunList,
  RunRequest,
  SentAsItIs,
  ServerInfo,
  SessionDetail,
  SessionItem,
  SessionLint,
  SessionList,
  StartedRun,
  UsageList,
  VariantList,
} from '../server/chat-protocol.js'

export interface ClientOptions {
  /** The server's address. Default: the page's own origin. */
  baseUrl?: string
  /** A bearer token, when the server requires one and there is no cookie. */
  token?: string
  /** Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The trace that requests belong to, asked for each. Default: that of the active span of OpenTelemetry, if there is one. */
  trace?: () => TraceContext | undefined
}

export interface LangoClient {
  /**
   * What is served, and the caller's user name.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { agent, model, user } = await client.info()
   * console.log(`${agent} (${model}) for ${user}`)
   * ```
   */
  info(): Promise<ServerInfo>
  /**
   * The models for runs, those with a key first.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { models } = await client.models()
   * console.log(models.map(({ reference }) => reference))
   * ```
   */
  models(): Promise<ModelList>
  /**
   * A page of the caller's sessions, newest first. `nextCursor` is the `cursor` of the next page.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const page = await client.sessions({ search: 'trip', limit: 20 })
   * for (const { sessionId, title } of page.sessions) console.log(sessionId, title)
   * ```
   */
  sessions(query?: { search?: string; cursor?: string; limit?: number }): Promise<SessionList>
  /**
   * Creates an empty session. Without a `sessionId` the server chooses one.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { sessionId } = await client.createSession({ title: 'A trip to the sea' })
   * console.log(sessionId)
   * ```
   */
  createSession(session?: NewSession): Promise<SessionItem>
  /**
   * A session with its usage, its active run (running, waiting for an answer, or the next queued one) and its newest run.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { usage, activeRun } = await client.session('trip')
   * console.log(usage.totalTokens, activeRun?.runId)
   * ```
   */
  session(sessionId: string): Promise<SessionDetail>
  /**
   * Changes the title of a session.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * await client.renameSession('trip', 'A trip to the hills')
   * ```
   */
  renameSession(sessionId: string, title: string): Promise<SessionItem>
  /**
   * Deletes a session with its messages. A running run is stopped first.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * await client.deleteSession('trip')
   * ```
   */
  deleteSession(sessionId: string): Promise<void>
  /**
   * Erases everything that the server stores about the caller, whose user name `info` returns. Running runs are stopped.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { user } = await client.info()
   * const { sessions } = await client.eraseUser(user)
   * console.log(`${sessions} sessions were deleted`)
   * ```
   */
  eraseUser(userId: string): Promise<EraseReceipt>
  /**
   * Messages in order; without a bound, the newest. `beforeSeq` and `afterSeq` select older and newer ones.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { messages } = await client.messages('trip', { limit: 50 })
   * const oldest = messages[0]
   * if (oldest) console.log(await client.messages('trip', { beforeSeq: oldest.seq, limit: 50 }))
   * ```
   */
  messages(
    sessionId: string,
    range?: { beforeSeq?: number; afterSeq?: number; limit?: number },
  ): Promise<MessagePage>
  /**
   * Copies a session up to and including message `throughSeq`; without it, the whole session.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const copy = await client.fork('trip', { throughSeq: 4, title: 'Another way' })
   * console.log(copy.sessionId)
   * ```
   */
  fork(sessionId: string, request?: ForkRequest): Promise<SessionItem>
  /**
   * The variants of a chat, oldest first, and how many messages each shares with this session.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { variants } = await client.variants('trip')
   * console.log(variants.map(({ sessionId }) => sessionId))
   * ```
   */
  variants(sessionId: string): Promise<VariantList>
  /**
   * Makes a session the listed variant of the chat that session `of` belongs to: a fork in which a question is answered
   * again, or an earlier variant that is chosen again.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const copy = await client.fork('trip', { throughSeq: 4 })
   * await client.start(copy.sessionId, { text: 'And by train?' })
   * await client.showVariant(copy.sessionId, 'trip')
   * ```
   */
  showVariant(sessionId: string, of: string): Promise<SessionItem>
  /**
   * Messages that hold all words of `text`, newest first: in all sessions of the caller, or in one.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { found } = await client.search({ text: 'quiet beach' })
   * for (const { sessionId, seq, before, match, after } of found) console.log(sessionId, seq, before + match + after)
   * ```
   */
  search(query: { text: string; sessionId?: string; cursor?: string; limit?: number }): Promise<FoundMessages>
  /** A session without loss, as lines of JSON that `importFile` and `lango sessions import` read. */
  exportSession(sessionId: string): Promise<string>
  /**
   * A session as JSON in the form of another framework or vendor, by the names of `lango sessions export --to`.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { text, leftOut } = await client.exportSessionAs('trip', 'langchain')
   * console.log(JSON.parse(text), leftOut)
   * ```
   */
  exportSessionAs(sessionId: string, format: string): Promise<ExportedSession>
  /** Stores the sessions of a file of any format that `lango sessions import` reads; `dryRun` only reads it. */
  importFile(request: ImportRequest): Promise<ImportedFile>
  /** What the caller's model calls have used, by day, model and kind. Days are as `2026-11-17`. */
  usage(query?: { model?: string; from?: string; to?: string }): Promise<UsageList>
  /** Goes on where a run ended at its budget, with a new run. */
  goOn(runId: string, budget: { perRunUsd: number }): Promise<StartedRun>
  /**
   * What is noted about a session, with sources, and how far memory has got. Default 100 notes, at most 1,000.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { notes } = await client.memory('trip')
   * for (const { number, text, fromSeq, toSeq } of notes) console.log(number, text, fromSeq, toSeq)
   * ```
   */
  memory(sessionId: string, range?: { afterNumber?: number; limit?: number }): Promise<MemoryPage>
  /**
   * Replaces a note by one in your own words, with the same sources; returns the new one.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { number } = await client.editNote('trip', 12, 'The hotel is in Porto.')
   * console.log(number)
   * ```
   */
  editNote(sessionId: string, number: number, text: string): Promise<MemoryPage['notes'][number]>
  /**
   * Forgets a note and those that it replaced; without a number, every note of the session.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { forgotten } = await client.forget('trip', 12)
   * console.log(forgotten)
   * ```
   */
  forget(sessionId: string, number?: number): Promise<{ forgotten: number }>
  /**
   * Histories that broke in practice, to try what becomes of them.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { histories } = await client.brokenHistories()
   * for (const { id, title, story } of histories) console.log(id, title, story)
   * ```
   */
  brokenHistories(): Promise<BrokenHistories>
  /**
   * Stores a broken history as a session of the caller.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { sessionId } = await client.openBroken('lost-ids')
   * console.log(sessionId)
   * ```
   */
  openBroken(id: string): Promise<{ sessionId: string }>
  /**
   * Sends a broken history as it is to a fake provider that enforces the real rules, and returns its error.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { status, message } = await client.sendBroken('lost-ids')
   * console.log(status, message)
   * ```
   */
  sendBroken(id: string): Promise<SentAsItIs>
  /**
   * Sends the next message of a broken history that was opened, through Lango: a run like any other.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { sessionId } = await client.openBroken('lost-ids')
   * const { runId } = await client.healBroken(sessionId)
   * for await (const event of client.follow(runId)) console.log(event.type)
   * ```
   */
  healBroken(sessionId: string, runId?: string): Promise<StartedRun>
  /**
   * What providers reject in a history of your own, given as text: its format, each problem with its cause, the
   * provider's error and the cure, and the healed file. Nothing is stored.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const body = { messages: [{ role: 'tool', tool_call_id: 'a', content: 'ok' }] }
   * const { histories } = await client.check({ text: JSON.stringify(body), format: 'openai-chat' })
   * console.log(histories[0]?.problems, histories[0]?.healed?.text)
   * ```
   */
  check(request: CheckRequest): Promise<CheckedText>
  /**
   * What each provider would reject if the history were sent unrepaired. `profile`: one or several, with commas.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { profiles } = await client.lint('trip', 'anthropic')
   * console.log(profiles.map(({ findings }) => findings.length))
   * ```
   */
  lint(sessionId: string, profile?: string): Promise<SessionLint>
  /**
   * The runs of a session, newest first. Default 50, at most 500.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runs } = await client.runs('trip', { limit: 5 })
   * console.log(runs.map(({ runId, status }) => `${runId} ${status}`))
   * ```
   */
  runs(sessionId: string, query?: { limit?: number }): Promise<RunList>
  /**
   * A run: its status, and the number of its newest stored event.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runs } = await client.runs('trip')
   * if (runs[0]) console.log((await client.run(runs[0].runId)).status)
   * ```
   */
  run(runId: string): Promise<RunItem>
  /**
   * Inspects a run: per model call what was stored, truncated, repaired and sent.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runs } = await client.runs('trip')
   * if (runs[0]) console.log((await client.inspect(runs[0].runId)).steps.length)
   * ```
   */
  inspect(runId: string): Promise<RunInspection>
  /**
   * Starts a run with a message and returns once it has begun or is queued. The session is created if it does not exist.
   * The run continues when the client disconnects. With a `runId`, sending the request again does not start a second run.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runId } = await client.start('trip', { text: 'Find me a quiet beach.', whenBusy: 'queue' })
   * console.log(runId)
   * ```
   */
  start(sessionId: string, request: RunRequest): Promise<StartedRun>
  /**
   * The events of a run after number `after` (default 0: from the beginning). Reconnects with increasing pauses, without
   * missing or repeated events, until `run-finish` or until the signal is aborted.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runId } = await client.start('trip', { text: 'Find me a quiet beach.' })
   * for await (const event of client.follow(runId)) {
   *   if (event.type === 'text-delta') console.log(event.text)
   * }
   * ```
   */
  follow(runId: string, options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>
  /**
   * Requests a run to stop, in whichever process it is. Its `run-finish` has the reason `aborted`.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { activeRun } = await client.session('trip')
   * if (activeRun) await client.stop(activeRun.runId)
   * ```
   */
  stop(runId: string): Promise<void>
  /**
   * Continues a run that no process works on, as servers do by themselves. Fails when the run has ended.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { activeRun } = await client.session('trip')
   * if (activeRun) await client.resume(activeRun.runId)
   * ```
   */
  resume(runId: string): Promise<StartedRun>
  /**
   * Answers the approval request of a tool call (`once`, `always`, `no`), or says whether a call with an unknown outcome
   * took effect (`happened`, `run`, `leave`, or `{ happened: true, result }` with the output of a workflow's node); the
   * words also after the run has ended. Another object is the result of a long-running tool.
   *
   * ```ts no-run: needs a running server
   * import { createClient } from 'lango/client'
   * const client = createClient({ baseUrl: 'http://127.0.0.1:18789' })
   * const { runId } = await client.start('trip', { text: 'Book it.' })
   * for await (const event of client.follow(runId)) {
   *   if (event.type === 'approval-request') await client.approve(runId, event.id, 'once')
   * }
   * ```
   */
  approve(runId: string, callId: string, answer: ApprovalReply['answer']): Promise<void>
}

/** A session in the form of another framework. */
export interface ExportedSession {
  /** As JSON. */
  text: string
  /** What of the session the form has no place for, by names of fields. */
  leftOut: string[]
  notes: string[]
}

export interface FollowOptions {
  /** The number of the last event that the caller has. */
  after?: number
  signal?: AbortSignal
  /** Called when the connection is lost and when it is open again. */
  onConnection?: (state: 'open' | 'lost') => void
}
