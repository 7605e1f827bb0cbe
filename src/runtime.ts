/**
 * Where the rooms are joined. Importing this file loads neither ADK nor a vendor's SDK: `runtime-host.ts`,
 * which needs ADK, is loaded by the first run or by `ready()`.
 */
import { checkModels, checkOptions } from './check-options.js'
import { AgentError } from './errors.js'
import { inspectRun, type RunInspection } from './inspect.js'
import { silentLogger } from './logger.js'
import { createRegistry } from './provider/provider-registry.js'
import { type RunResult, runAndCollect } from './run/run-and-collect.js'
import type { RunEvent } from './run/run-event.js'
import type { RunInput } from './run/run-host.js'

export type { RunInput }

import type { RuntimeHost } from './runtime-host.js'
import type { RuntimeOptions } from './runtime-options.js'
import type { SessionStore } from './session/session-store.js'
import { openStore } from './store/open-store.js'

export interface Runtime {
  /** The store behind the runtime, for listing, reading and deleting sessions. */
  readonly store: SessionStore
  /** Loads ADK and builds the agents now instead of with the first run. */
  ready(): Promise<void>
  /** One message, as a stream of events. Throws only before `run-start`; leaving the loop early is an abort. */
  run(input: RunInput): AsyncGenerator<RunEvent, void, undefined>
  /** One message, as its answer. Throws the `AgentError` of a run that failed. */
  runAndCollect(input: RunInput): Promise<RunResult>
  /** What became of a run: per model call what was stored, cut, repaired and sent. */
  inspect(runId: string): Promise<RunInspection | undefined>
  /** Stops running runs, waits for them, and closes the store if the runtime opened it. */
  close(): Promise<void>
}

/** Opens the store and checks the options. Nothing of ADK is loaded yet. */
export async function createRuntime(options: RuntimeOptions): Promise<Runtime> {
  checkOptions(options)
  const registry = createRegistry(options.providers ?? {})
  checkModels(options, registry)
  const { store = 'sqlite:./lango.db' } = options
  const opened = typeof store === 'string' ? await openStore(store) : store
  return new LangoRuntime(opened, typeof store === 'string', () =>
    import('./runtime-host.js').then(module =>
      module.createHost({ options, registry, store: opened, logger: options.logger ?? silentLogger }),
    ),
  )
}

class LangoRuntime implements Runtime {
  private host: Promise<RuntimeHost> | undefined
  private readonly closing = new AbortController()
  private readonly running = new Set<Promise<void>>()

  constructor(
    readonly store: SessionStore,
    private readonly ownsStore: boolean,
    private readonly createHost: () => Promise<RuntimeHost>,
  ) {}

  async ready(): Promise<void> {
    await this.load()
  }

  async *run(input: RunInput): AsyncGenerator<RunEvent, void, undefined> {
    if (this.closing.signal.aborted) throw closed()
    const done = this.register()
    try {
      const host = await this.load()
      // A signal of its own for each run: listeners of many runs on one signal would look like a leak.
      const signal = AbortSignal.any([this.closing.signal, ...(input.signal ? [input.signal] : [])])
      yield* host.run({ ...input, signal }, done)
    } finally {
      done()
    }
  }

  runAndCollect(input: RunInput): Promise<RunResult> {
    return runAndCollect(this.run(input))
  }

  inspect(runId: string): Promise<RunInspection | undefined> {
    return inspectRun(this.store, runId)
  }

  async close(): Promise<void> {
    this.closing.abort()
    await Promise.all(this.running)
    await (await this.host?.catch(() => undefined))?.close()
    if (this.ownsStore) await this.store.close()
  }

  private async load(): Promise<RuntimeHost> {
    this.host ??= this.createHost()
    try {
      return await this.host
    } catch (error) {
      this.host = undefined
      throw error
    }
  }

  /** Remembers a run until it ends, so that `close` can wait for it. */
  private register(): () => void {
    let done = () => {}
    const ended = new Promise<void>(resolve => {
      done = resolve
    })
    this.running.add(ended)
    return () => {
      this.running.delete(ended)
      done()
    }
  }
}

function closed(): AgentError {
  return new AgentError('invalid-argument', 'The runtime is closed. Create a new one to go on.')
}
