/** A run as a completion: run events in, the steps of an answer out; and the sessions of requests without one. */

import { randomUUID } from 'node:crypto'
import { messageOf } from '../../../errors.js'
import type { Message, SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import type { Problem, RunEvent, RunUsage, StartedRun } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { type ModelFinish, modelFinish, runProblem, streamTruncated } from '../start-run.js'

/** What a completion consists of. `busy`: the agent works, and the client receives nothing. */
export type CompletionStep =
  | { type: 'text' | 'reasoning'; text: string }
  | { type: 'busy' }
  | { type: 'end'; finish: CompletionFinish; usage: RunUsage }
  | { type: 'problem'; problem: Problem }

export type CompletionFinish = 'stop' | 'length' | 'content_filter'

export interface CompletionRunParts {
  key: SessionKey
  started: StartedRun
  /** The session is deleted after the run, and a caller that disconnects stops the run. */
  isThrowaway: boolean
}

/** One run on behalf of one request. */
export class CompletionRun {
  /** Why the model ended. Resolves when the run has ended and a throwaway session is deleted. */
  readonly #over: Promise<ModelFinish>
  readonly #context: ServerContext
  readonly #parts: CompletionRunParts
  readonly #gone = new AbortController()
  readonly #paragraphs = new Paragraphs()
  #model = ''
  #hasEnded = false

  constructor(context: ServerContext, parts: CompletionRunParts) {
    this.#context = context
    this.#parts = parts
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

  /** The signal fires when the caller disconnects. */
  leaveOn(signal: AbortSignal): void {
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', () => this.#leave(), { once: true })
  }

  async *steps(): AsyncGenerator<CompletionStep> {
    const { hub } = this.#context
    for await (const event of hub.follow(this.started.runId, { signal: this.#gone.signal })) {
      if (event.type === 'run-start') this.#model = event.model
      const step = await this.#stepOf(event)
      if (step) yield step
      if (step?.type === 'end' || step?.type === 'problem') return
    }
    if (!this.#gone.signal.aborted) yield { type: 'problem', problem: streamTruncated() }
  }

  async #stepOf(event: RunEvent): Promise<CompletionStep | undefined> {
    switch (event.type) {
      case 'text-delta':
        return { type: 'text', text: this.#paragraphs.next(event.text) }
      case 'reasoning-delta':
        return { type: 'reasoning', text: event.text }
      case 'tool-call':
      case 'agent-transfer':
        this.#paragraphs.pause()
        return { type: 'busy' }
      case 'error':
        // Sent at once: the run-finish that follows adds nothing.
        return { type: 'problem', problem: runProblem(event.error) }
      case 'run-finish': {
        const finish = await this.#over
        return { type: 'end', finish: finishOf(event.finishReason, finish), usage: event.usage }
      }
      case 'run-queued':
      case 'run-start':
      case 'tool-unknown':
      case 'tool-result':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'history-cut':
      case 'approval-request':
      case 'approval-answer':
      case 'usage':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  /** Follows the run to its end. Without a session nobody can approve a call, so it is refused. */
  async #whenOver(): Promise<ModelFinish> {
    const { hub } = this.#context
    const { key, started, isThrowaway } = this.#parts
    try {
      for await (const event of hub.follow(started.runId)) {
        if (isThrowaway && event.type === 'approval-request') {
          await hub.approve(started.runId, event.id, 'no').catch(() => {})
        }
      }
      return await modelFinish(this.#context, key)
    } catch {
      return 'stop'
    } finally {
      this.#hasEnded = true
      if (isThrowaway) await throwAway(this.#context, key)
    }
  }

  #leave(): void {
    this.#gone.abort()
    if (!this.isThrowaway || this.#hasEnded) return
    void this.#context.hub.stop(this.started.runId).catch(() => {})
  }
}

/** A completion is one text: what the agent writes between tool calls becomes paragraphs. */
class Paragraphs {
  #hasText = false
  #isPaused = false

  next(text: string): string {
    const gap = this.#hasText && this.#isPaused ? '\n\n' : ''
    this.#hasText = true
    this.#isPaused = false
    return `${gap}${text}`
  }

  pause(): void {
    this.#isPaused = true
  }
}

function finishOf(reason: string, finish: ModelFinish): CompletionFinish {
  if (reason === 'turn-limit') return 'length'
  return finish === 'content-filter' ? 'content_filter' : finish
}

/** Sessions of one request: created, used once, and deleted. */
const PREFIX = 'throwaway-'
const TITLE = 'A request without a session'
/** Far longer than a request takes. */
const OLD_MS = 6 * 60 * 60 * 1000

/** An id for the session of one request. */
export function throwawayId(): string {
  return `${PREFIX}${randomUUID()}`
}

/** Creates a session with these messages. */
export async function fillSession(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
): Promise<void> {
  await store.createSession(key, {}, { title: TITLE })
  await appendAll(store, key, messages)
}

/** Deletes a session after its only run. Never fails: `sweepThrowaways` deletes what remains. */
export async function throwAway({ runtime, logger }: ServerContext, key: SessionKey): Promise<void> {
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
      const isOurs = key.sessionId.startsWith(PREFIX) && title === TITLE
      if (isOurs && updatedAt < before) await store.deleteSession(key)
    }
  } catch (error) {
    logger.warn('Old throwaway sessions could not be deleted', { error: messageOf(error) })
  }
}
