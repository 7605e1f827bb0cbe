/** The host of a runtime, loaded with ADK when it is first needed. */
import { messageOf } from '../errors.js'
import { isAbandoned } from '../run/interrupted-runs.js'
import type { Runs } from '../run/run.js'
import type { RunSummary } from '../session/run-store.js'
import type { HostParts, RuntimeHost } from './host.js'

export class LazyHost {
  readonly #parts: HostParts
  #loading: Promise<RuntimeHost> | undefined
  /** The runs of the host; absent until it is loaded. */
  runs: Runs | undefined
  #isClosed = false
  /** Why the host could not be loaded for a run, as it was last logged. */
  #problem: string | undefined

  constructor(parts: HostParts) {
    this.#parts = parts
  }

  /** Loads the host. A failure is not kept: the next call tries again. */
  async load(): Promise<RuntimeHost> {
    this.#loading ??= import('./host.js').then(module => module.createHost(this.#parts))
    try {
      const host = await this.#loading
      this.runs = host.runs
      return host
    } catch (error) {
      this.#loading = undefined
      throw error
    }
  }

  /** The host if it was loaded, or is being loaded. */
  async loaded(): Promise<RuntimeHost | undefined> {
    return this.#loading?.catch(() => undefined)
  }

  /** Closes the host if it was loaded. It is not loaded for stored runs any more: it would never be closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.loaded())?.close()
  }

  /** The host to look after a stored run. It is loaded for a run that no process works on, and not for others. */
  async loadFor(run: RunSummary): Promise<RuntimeHost | undefined> {
    const { store, options, logger } = this.#parts
    const loaded = await this.loaded()
    if (loaded) return loaded
    if (!(await isAbandoned(store, options.app, run)) || this.#isClosed) return undefined
    try {
      return await this.load()
    } catch (error) {
      const problem = messageOf(error)
      // A run that is followed is checked every few seconds.
      if (this.#problem !== problem) {
        const message = 'This process cannot continue a run, because its agent could not be loaded'
        logger.warn(message, { runId: run.runId, error: problem })
      }
      this.#problem = problem
      return undefined
    }
  }
}
