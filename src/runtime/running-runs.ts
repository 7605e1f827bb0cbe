import { within } from '../base/pause.js'
import { AgentError } from '../errors.js'
import { processEnds } from '../run/run-signals.js'

/** Each run has a signal of its own: listeners of many runs on one signal would look like a leak. */
interface RunningRun {
  userId: string
  abort: AbortController
  ended: Promise<void>
  /** Accepted by `start`: when the process ends it is handed over, and stays queued if it has not begun. */
  isDetached: boolean
}

/** The runs that a runtime has accepted, until they end: `close` and `erase` stop them and wait for them. */
export class RunningRuns {
  readonly #runs = new Set<RunningRun>()

  add(userId: string, isDetached: boolean): { abort: AbortController; done: () => void } {
    let resolve = () => {}
    const ended = new Promise<void>(resolved => {
      resolve = resolved
    })
    const running = { userId, abort: new AbortController(), ended, isDetached }
    this.#runs.add(running)
    const done = () => {
      this.#runs.delete(running)
      resolve()
    }
    return { abort: running.abort, done }
  }

  /** The process ends: detached runs are handed over, and their tools with effects may end within that time. */
  async close(graceMs: number): Promise<void> {
    for (const { abort, isDetached } of this.#runs) abort.abort(isDetached ? processEnds(graceMs) : undefined)
    await Promise.all(Array.from(this.#runs, ({ ended }) => ended))
  }

  /** Stops the runs of a user whose data is erased. A run that does not end in time is refused by the store. */
  async stopOf(userId: string): Promise<void> {
    const own = [...this.#runs].filter(run => run.userId === userId)
    for (const { abort } of own) abort.abort(erasedDuringRun())
    await within(STOP_MS, Promise.all(own.map(({ ended }) => ended)))
  }
}

/** How long `erase` waits for runs that it stopped. */
const STOP_MS = 5000

function erasedDuringRun(): AgentError {
  return new AgentError('run-interrupted', 'The data of the user was erased during this run.')
}
