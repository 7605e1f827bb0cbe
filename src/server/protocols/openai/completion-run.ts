/** A run as a completion: run events in, the steps of an answer out; and the sessions of requests without one. */

import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../../../errors.js'
import type { Message, SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import { sumUsage } from '../../../session/usage.js'
import type { Problem, RunEvent, RunUsage, StartedRun } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { forgetRun } from '../repeated-request.js'
import {
  type ModelFinish,
  modelFinish,
  runProblem,
  streamTruncated,
  type WaitingRun,
  waitingRun,
} from '../start-run.js'

/** What a completion consists of. `busy`: the agent works, and the client receives nothing. */
export type CompletionStep =
  | { type: 'text' | 'reasoning'; text: string }
  | { type: 'busy' }
  /** So many characters of the texts before are void: the model writes the answer of its last step again. */
  | { type: 'restart'; text: number; reasoning: number }
  /** The run waits for a person. */
  | { type: 'waiting'; run: WaitingRun; usage: RunUsage }
  | { type: 'end'; finish: CompletionFinish; usage: RunUsage }
  | { type: 'problem'; problem: Problem }

export type CompletionFinish = 'stop' | 'length' | 'content_filter'

export interface CompletionRunParts {
  key: SessionKey
  started: StartedRun
  /** The session is deleted after the run, and a caller that disconnects and does not come back stops the run. */
  isThrowaway: boolean
  /** The request has a key: its session is kept for a day. */
  isKeyed: boolean
}

/** One run on behalf of one request. */
export class CompletionRun {
  /** Why the model ended. Resolves when the run has ended. */
  readonly #over: Promise<ModelFinish>
  readonly #context: ServerContext
  readonly #parts: CompletionRunParts
  readonly #gone = new AbortController()
  readonly #paragraphs = new Paragraphs()
  /** The characters of steps that are not complete. */
  #draft = { text: 0, reasoning: 0 }
  readonly #used: RunUsage[] = []
  #model = ''
  #hasEnded = false
  readonly #delivery: Promise<boolean>
  #deliver: (delivery: Promise<boolean>) => void = () => {}

  constructor(context: ServerContext, parts: CompletionRunParts) {
    this.#context = context
    this.#parts = parts
    this.#delivery = new Promise(resolve => {
      this.#deliver = resolve
    })
    this.#over = this.#whenOver()
  }

  /** The model that answers, once the run has begun. */
  get model(): string {
    return this.#model
  }

  get started(): StartedRun {
    return this.#parts.started
  }

  get isThrowaway(): boolean {
    return this.#parts.isThrowaway
  }

  /** The promise resolves when the response is over: whether the caller got all of it. */
  deliveredBy(delivery: Promise<boolean>): void {
    this.#deliver(delivery)
  }

  /** The signal fires when the caller disconnects. */
  leaveOn(signal: AbortSignal): void {
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', () => this.#leave(), { once: true })
  }

  async *steps(): AsyncGenerator<CompletionStep> {
    const { hub } = this.#context
    const follow = { signal: this.#gone.signal, withoutVoid: true, untilWaiting: true }
    for await (const event of hub.follow(this.started.runId, follow)) {
      if (event.type === 'run-start') this.#model = event.model
      const step = await this.#stepOf(event)
      if (step) yield step
      if (step?.type === 'end' || step?.type === 'problem') return
    }
    if (this.#gone.signal.aborted) return
    const run = await waitingRun(this.#context, this.started.runId)
    yield run
      ? { type: 'waiting', run, usage: sumUsage(this.#used) }
      : { type: 'problem', problem: streamTruncated() }
  }

  async #stepOf(event: RunEvent): Promise<CompletionStep | undefined> {
    switch (event.type) {
      case 'text-delta':
        return this.#said(event.text)
      case 'reasoning-delta':
        this.#draft.reasoning += event.text.length
        return { type: 'reasoning', text: event.text }
      case 'tool-call':
      case 'agent-transfer':
        this.#complete()
        this.#paragraphs.pause()
        return { type: 'busy' }
      case 'error':
        // Sent at once: the run-finish that follows adds nothing.
        return { type: 'problem', problem: runProblem(event.error) }
      case 'run-finish': {
        const finish = await this.#over
        // Of a request without a session nobody else reads the answer: a part of it must not pass for all of it.
        if (event.finishReason === 'aborted' && this.isThrowaway)
          return { type: 'problem', problem: runProblem(stopped()) }
        return { type: 'end', finish: finishOf(event.finishReason, finish), usage: event.usage }
      }
      case 'usage':
        this.#used.push(event.usage)
        this.#complete()
        return undefined
      case 'step-restart':
        return this.#restart()
      case 'run-queued':
      case 'run-start':
      case 'run-resumed':
      case 'tool-unknown':
      case 'sources':
      case 'code':
      case 'tool-result':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'history-cut':
      case 'approval-request':
      case 'approval-answer':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  #said(delta: string): CompletionStep {
    const text = this.#paragraphs.next(delta)
    this.#draft.text += text.length
    return { type: 'text', text }
  }

  #complete(): void {
    this.#draft = { text: 0, reasoning: 0 }
    this.#paragraphs.keep()
  }

  #restart(): CompletionStep {
    const draft = this.#draft
    this.#draft = { text: 0, reasoning: 0 }
    this.#paragraphs.back()
    return { type: 'restart', ...draft }
  }

  /** Follows the run to its end. Without a session nobody can approve a call, so it is refused. */
  async #whenOver(): Promise<ModelFinish> {
    const { hub } = this.#context
    const { key, started, isThrowaway } = this.#parts
    let isAnswered = false
    try {
      for await (const event of hub.follow(started.runId, { untilWaiting: !isThrowaway })) {
        if (isThrowaway && event.type === 'approval-request')
          await hub.approve(started.runId, event.id, 'no').catch(() => {})
        if (isThrowaway && event.type === 'tool-unknown' && event.asks)
          await hub.approve(started.runId, event.id, 'leave').catch(() => {})
        if (event.type === 'run-finish')
          isAnswered = event.finishReason !== 'error' && event.finishReason !== 'aborted'
      }
      return await modelFinish(this.#context, key, started.runId)
    } catch {
      return 'stop'
    } finally {
      this.#hasEnded = true
      if (isThrowaway) void this.#discard(isAnswered)
    }
  }

  /** Deletes the session of the request: once its caller has the answer, otherwise when it is not repeated. */
  async #discard(isAnswered: boolean): Promise<void> {
    const { key, isKeyed } = this.#parts
    const isDelivered = await this.#delivery
    const isOver = isAnswered && isDelivered && !(await wasRepeated(this.#context, key).catch(() => true))
    const laterMs = isOver ? 0 : this.#context.limits.retryMs
    await throwAway(this.#context, key, isKeyed ? KEYED_MS : laterMs)
  }

  /** A caller that disconnects may repeat its request in a moment. */
  #leave(): void {
    if (this.#gone.signal.aborted) return
    this.#gone.abort()
    if (!this.isThrowaway || this.#hasEnded) return
    const stop = async () => {
      if (!(await wasRepeated(this.#context, this.#parts.key)))
        await this.#context.hub.stop(this.started.runId)
    }
    setTimeout(() => void stop().catch(() => {}), this.#context.limits.retryMs * STOP_SHARE).unref()
  }
}

/** OpenAI's client repeats a request after 8 s at most, LangChain and the AI SDK after 2 s. */
const STOP_SHARE = 0.25
/** How long the answer to a request with a key is kept. */
const KEYED_MS = 24 * 60 * 60 * 1000

function stopped(): AgentError {
  const message =
    'The run of this request was stopped. Send the request with a change, or later, to start anew.'
  return new AgentError('aborted', message)
}

/** A completion is one text: what the agent writes between tool calls becomes paragraphs. */
class Paragraphs {
  #hasText = false
  #isPaused = false
  #kept = { hasText: false, isPaused: false }

  next(text: string): string {
    const gap = this.#hasText && this.#isPaused ? '\n\n' : ''
    this.#hasText = true
    this.#isPaused = false
    return `${gap}${text}`
  }

  pause(): void {
    this.#isPaused = true
    this.keep()
  }

  /** What was written so far stays. */
  keep(): void {
    this.#kept = { hasText: this.#hasText, isPaused: this.#isPaused }
  }

  /** What was written since `keep` is written again. */
  back(): void {
    this.#hasText = this.#kept.hasText
    this.#isPaused = this.#kept.isPaused
  }
}

/** A stream cannot take text back: it ends, and the request returns the whole answer when it is repeated. */
export function restarted(): Problem {
  const message =
    'The run was resumed by another process, and its model writes this answer again. Repeat the request: it returns the whole answer and starts no second run.'
  return runProblem(new AgentError('run-interrupted', message, { retryable: true }))
}

function finishOf(reason: string, finish: ModelFinish): CompletionFinish {
  if (reason === 'turn-limit') return 'length'
  return finish === 'content-filter' ? 'content_filter' : finish
}

/** Sessions of one request: created, used once, and deleted. */
const PREFIX = 'throwaway-'
const TITLE = 'A request without a session'
/** The title tells every process that a caller came back for the answer. */
const REPEATED_TITLE = 'A request without a session, repeated'
/** Far longer than a request takes, and no shorter than an answer is kept. */
const OLD_MS = KEYED_MS

/** The session of a request without one: that of its run alone. */
export function throwawayId(runId: string): string {
  return `${PREFIX}${runId}`
}

/** Creates a session with these messages; `false` when it exists. */
export async function fillSession(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
): Promise<boolean> {
  try {
    await store.createSession(key, {}, { title: TITLE })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-exists') return false
    throw error
  }
  await appendAll(store, key, messages)
  return true
}

/** Notes that the request of a session was repeated; `false` when the session is deleted already. */
export async function noteRepeat({ runtime: { store } }: ServerContext, key: SessionKey): Promise<boolean> {
  try {
    await store.renameSession(key, REPEATED_TITLE)
    return true
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-not-found') return false
    throw error
  }
}

async function wasRepeated({ runtime: { store } }: ServerContext, key: SessionKey): Promise<boolean> {
  return (await store.describeSession(key))?.title === REPEATED_TITLE
}

/**
 * Waits for the run of a session that another request has created and is filling. A session that stays without a run
 * is that of a crashed process: it is deleted.
 */
export async function awaitFilling(context: ServerContext, key: SessionKey, runId: string): Promise<void> {
  for (let attempt = 0; attempt < FILLING_MS / FILLING_PAUSE_MS; attempt++) {
    if (await context.hub.find(runId)) return
    await sleep(FILLING_PAUSE_MS)
  }
  await throwAway(context, key)
}

const FILLING_MS = 5000
const FILLING_PAUSE_MS = 50

/** Deletes a session after its only run. Never fails: `sweepThrowaways` deletes what remains. */
export async function throwAway(context: ServerContext, key: SessionKey, laterMs = 0): Promise<void> {
  const { runtime, logger } = context
  if (laterMs > 0) {
    setTimeout(() => void (context.isClosing() || throwAway(context, key)), laterMs).unref()
    return
  }
  forgetRun(key.sessionId.slice(PREFIX.length))
  try {
    await runtime.store.deleteSession(key)
  } catch (error) {
    logger.warn('A throwaway session could not be deleted', { ...key, error: messageOf(error) })
  }
}

/** Deletes the throwaway sessions of crashed processes. Those that are in use are younger than the limit. */
export async function sweepThrowaways({ runtime: { store }, info, logger }: ServerContext): Promise<void> {
  try {
    const { sessions } = await store.listSessions({ appName: info.app, search: PREFIX, limit: 1000 })
    const before = Date.now() - OLD_MS
    for (const { key, title, updatedAt } of sessions) {
      // A session that a user has renamed is kept.
      const isOurs = key.sessionId.startsWith(PREFIX) && (title === TITLE || title === REPEATED_TITLE)
      if (isOurs && updatedAt < before) await store.deleteSession(key)
    }
  } catch (error) {
    logger.warn('Old throwaway sessions could not be deleted', { error: messageOf(error) })
  }
}
