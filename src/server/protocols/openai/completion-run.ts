/** A run as a completion: what of its events a client of OpenAI's hears. */

import { randomUUID } from 'node:crypto'
import { messageOf } from '../../../errors.js'
import type { Message, SessionKey } from '../../../session/message.js'
import type { Problem, RunEvent, RunUsage, StartedRun } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { brokenOff, type ModelFinish, modelFinish, runProblem } from '../start-run.js'

/** What a completion is made of. `busy` says that something happens of which a client hears nothing. */
export type CompletionStep =
  | { type: 'text' | 'reasoning'; text: string }
  | { type: 'busy' }
  | { type: 'end'; finish: CompletionFinish; usage: RunUsage }
  | { type: 'problem'; problem: Problem }

export type CompletionFinish = 'stop' | 'length' | 'content_filter'

export interface CompletionRunParts {
  key: SessionKey
  started: StartedRun
  /** Nobody can come back to the session: a caller who leaves stops the run, and the session goes with it. */
  isThrowaway: boolean
}

/** One run on behalf of one request. */
export class CompletionRun {
  /** Why the model ended; known when the run is over. A throwaway session is gone by then. */
  readonly #over: Promise<ModelFinish>
  readonly #gone = new AbortController()
  readonly #speech = new Speech()
  #model = ''
  #hasEnded = false

  constructor(
    private readonly context: ServerContext,
    private readonly parts: CompletionRunParts,
  ) {
    this.#over = this.#whenOver()
  }

  /** The model that answers, once the run has begun. */
  get model(): string {
    return this.#model
  }

  get started(): StartedRun {
    return this.parts.started
  }

  get isThrowaway(): boolean {
    return this.parts.isThrowaway
  }

  /** The caller has left, or will when this signal fires. */
  leaveOn(signal: AbortSignal): void {
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', () => this.#leave(), { once: true })
  }

  async *steps(): AsyncGenerator<CompletionStep> {
    const { hub } = this.context
    for await (const event of hub.follow(this.started.runId, { signal: this.#gone.signal })) {
      if (event.type === 'run-start') this.#model = event.model
      const step = await this.#stepOf(event)
      if (step) yield step
      if (step?.type === 'end' || step?.type === 'problem') return
    }
    if (!this.#gone.signal.aborted) yield { type: 'problem', problem: brokenOff() }
  }

  async #stepOf(event: RunEvent): Promise<CompletionStep | undefined> {
    switch (event.type) {
      case 'text-delta':
        return { type: 'text', text: this.#speech.next(event.text) }
      case 'reasoning-delta':
        return { type: 'reasoning', text: event.text }
      case 'tool-call':
      case 'agent-transfer':
        this.#speech.pause()
        return { type: 'busy' }
      case 'error':
        // What broke off a run is told at once; its last event would only repeat that it ended.
        return { type: 'problem', problem: runProblem(event.error) }
      case 'run-finish': {
        const finish = await this.#over
        return { type: 'end', finish: finishOf(event.finishReason, finish), usage: event.usage }
      }
      case 'run-start':
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

  /** Watches the run to its end, whoever listens; answers for those who are not there to be asked. */
  async #whenOver(): Promise<ModelFinish> {
    const { hub } = this.context
    const { key, started, isThrowaway } = this.parts
    try {
      for await (const event of hub.follow(started.runId)) {
        if (isThrowaway && event.type === 'approval-request') {
          await hub.approve(started.runId, event.id, 'no').catch(() => {})
        }
      }
      return await modelFinish(this.context, key)
    } catch {
      return 'stop'
    } finally {
      this.#hasEnded = true
      if (isThrowaway) await throwAway(this.context, key)
    }
  }

  #leave(): void {
    this.#gone.abort()
    if (!this.isThrowaway || this.#hasEnded) return
    void this.context.hub.stop(this.started.runId).catch(() => {})
  }
}

/** What an agent says between its tool calls is one text to a client of OpenAI's: paragraphs keep it readable. */
class Speech {
  #hasSpoken = false
  #isPaused = false

  next(text: string): string {
    const gap = this.#hasSpoken && this.#isPaused ? '\n\n' : ''
    this.#hasSpoken = true
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

/** Sessions for one request: made, used once, and thrown away. */
const PREFIX = 'throwaway-'
const TITLE = 'A request without a session'
/** Far longer than a request lives. */
const OLD_MS = 6 * 60 * 60 * 1000

/** A name for a session that nobody will come back to. */
export function throwawayId(): string {
  return `${PREFIX}${randomUUID()}`
}

/** Makes a session that begins with these messages. */
export async function fillSession(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
): Promise<void> {
  await store.createSession(key, {}, { title: TITLE })
  for (const message of messages) await store.appendMessage(key, message)
}

/** Removes a session after its one run. Never fails: it is nobody's any more, and is swept away later. */
export async function throwAway({ runtime, logger }: ServerContext, key: SessionKey): Promise<void> {
  try {
    await runtime.store.deleteSession(key)
  } catch (error) {
    logger.warn('A throwaway session could not be removed', { ...key, error: messageOf(error) })
  }
}

/** Removes what a process that died has left. Those of other processes are young. */
export async function sweepThrowaways({ runtime: { store }, info, logger }: ServerContext): Promise<void> {
  try {
    const { sessions } = await store.listSessions({ appName: info.app, search: PREFIX, limit: 1000 })
    const before = Date.now() - OLD_MS
    for (const { key, title, updatedAt } of sessions) {
      // A session that a person has named is nobody's to remove.
      const isOurs = key.sessionId.startsWith(PREFIX) && title === TITLE
      if (isOurs && updatedAt < before) await store.deleteSession(key)
    }
  } catch (error) {
    logger.warn('Old throwaway sessions could not be removed', { error: messageOf(error) })
  }
}
