import type { Event } from '../adk/sdk.js'
import type { Outbox } from './event-reader.js'
import type { RunEventBody } from './run-event.js'
import { type RunScope, runScope } from './run-scope.js'

/** ADK's events one at a time, inside the run's scope. Each that arrives wakes the outbox, so that one wait serves both. */
export class AdkEvents {
  readonly #events: AsyncGenerator<Event, void, undefined>
  readonly #scope: RunScope
  readonly #outbox: Outbox<RunEventBody>
  #arrived: IteratorResult<Event, void> | undefined
  #failure: { error: unknown } | undefined
  #isDone = false

  constructor(events: AsyncGenerator<Event, void, undefined>, scope: RunScope, outbox: Outbox<RunEventBody>) {
    this.#events = events
    this.#scope = scope
    this.#outbox = outbox
  }

  start(): void {
    const next = runScope.run(this.#scope, () => this.#events.next())
    next.then(
      result => {
        this.#arrived = result
        this.#isDone = result.done === true
        this.#outbox.wakeUp()
      },
      error => {
        this.#failure = { error }
        this.#isDone = true
        this.#outbox.wakeUp()
      },
    )
  }

  get hasArrived(): boolean {
    return this.#arrived !== undefined || this.#failure !== undefined
  }

  /** What has arrived, once. Throws what ADK threw. */
  take(): IteratorResult<Event, void> | undefined {
    if (this.#failure) throw this.#failure.error
    const arrived = this.#arrived
    this.#arrived = undefined
    return arrived
  }

  /** Not awaited: `return()` blocks until a tool that ignores its signal finishes. */
  leave(): void {
    if (!this.#isDone) this.#events.return(undefined).catch(() => {})
  }
}
