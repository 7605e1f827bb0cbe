/** Who reads runs, and for how long. */
import { orTimeout } from '../../base/pause.js'
import { messageOf } from '../../errors.js'
import type { SessionKey } from '../../session/message.js'
import type { RunItem } from '../chat-protocol.js'
import type { EventBatch } from '../runs/event-batch.js'
import type { RunHub } from '../runs/run-hub.js'
import type { ServerContext } from '../server-context.js'

/** The streams of each run that clients have open: a new message looks whether the answer before it is still read. */
export class RunReaders {
  readonly #open = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()
  /** The newest runs that were read, oldest first. */
  readonly #known = new Set<string>()

  enter(runId: string): void {
    this.#open.set(runId, (this.#open.get(runId) ?? 0) + 1)
    this.#known.delete(runId)
    this.#known.add(runId)
    const [oldest] = this.#known
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }

  leave(runId: string): void {
    const left = (this.#open.get(runId) ?? 1) - 1
    if (left > 0) {
      this.#open.set(runId, left)
      return
    }
    this.#open.delete(runId)
    for (const resolve of this.#waiting.get(runId) ?? []) resolve()
    this.#waiting.delete(runId)
  }

  /** Whether a client has read the run here, to its end or not. */
  knows(runId: string): boolean {
    return this.#known.has(runId)
  }

  /** Resolves as soon as no client reads the run. */
  gone(runId: string): Promise<void> {
    if (!this.#open.has(runId)) return Promise.resolve()
    return new Promise(resolve => {
      this.#waiting.set(runId, [...(this.#waiting.get(runId) ?? []), resolve])
    })
  }
}

const MOST_KNOWN = 10_000

/** Among as many of the newest runs those are looked for that have not ended. */
const UNFINISHED = 25

/** Newest first. */
export async function unfinishedIn({ hub }: ServerContext, key: SessionKey): Promise<RunItem[]> {
  return (await hub.list(key, UNFINISHED)).filter(({ status }) => status !== 'finished')
}

/** Stops a run that its client has left behind, as soon as no stream of it is open. Does not wait for that. */
export function stopWhenLeft({ hub, logger }: ServerContext, runId: string, readers: RunReaders): void {
  const stopped = readers.gone(runId).then(() => hub.stop(runId))
  stopped.catch(error => {
    logger.warn('A run that a client has left could not be stopped', { runId, reason: messageOf(error) })
  })
}

/**
 * The events of a run to its end or until it waits. One that asks a person keeps its memory for a while: as soon as nothing
 * more comes of it, the person is asked.
 */
export async function* followUntilAsked(
  hub: RunHub,
  runId: string,
  { signal, isAsking }: { signal?: AbortSignal | undefined; isAsking(): boolean },
): AsyncGenerator<EventBatch, void, undefined> {
  const ended = new AbortController()
  const batches = hub.followBatches(runId, {
    signal: signal ? AbortSignal.any([signal, ended.signal]) : ended.signal,
    withoutVoid: true,
    untilWaiting: true,
  })
  try {
    for (;;) {
      const waiting = batches.next()
      const next = isAsking() ? await orTimeout(waiting, QUIET_MS) : await waiting
      if (next === 'timeout') return void waiting.catch(() => {})
      if (next.done) return
      yield next.value
    }
  } finally {
    ended.abort()
  }
}

/** Parallel calls request approval one after the other; nothing follows when there was no event for so long. */
const QUIET_MS = 300
