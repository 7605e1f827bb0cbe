/**
 * Where the rooms are joined. Importing this file loads neither ADK nor a vendor's SDK: `host.ts`, which needs ADK, is
 * loaded by the first run, by `ready()`, or by a stored run that no process works on.
 */

import type { Event } from '../adk/sdk.js'
import { within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import { silentLogger } from '../logger.js'
import { inspectRun, type RunInspection } from '../observe/inspect.js'
import { type ModelCall, RunListeners } from '../observe/model-calls.js'
import { createRegistry } from '../provider/provider-registry.js'
import { callKey } from '../run/call-key.js'
import { checkRunInput } from '../run/check-run-input.js'
import type { ActiveRun } from '../run/run.js'
import { type RunResult, runAndCollect } from '../run/run-and-collect.js'
import type { RunEvent } from '../run/run-event.js'
import type { EventList } from '../run/run-feed.js'
import { type FollowOptions, RunFollower } from '../run/run-follower.js'
import type { EventLists, RunInput } from '../run/run-host.js'
import type { StartedRun } from '../run/run-opening.js'
import { answerStored, checkAnswer, handoverGrace, RunningRuns, stopStored } from '../run/run-signals.js'
import { followRun } from '../run/until-waiting.js'
import type { ChatMessage } from '../session/chat-message.js'
import type { SessionKey } from '../session/message.js'
import type { RunSummary } from '../session/run-store.js'
import type { EraseOptions, EraseReceipt, ReadOptions, SessionStore } from '../session/session-store.js'
import type { UsageLine, UsageQuery } from '../session/spending.js'
import type { RunUsage } from '../session/usage.js'
import { openStore } from '../store/open-store.js'
import type { RunAnswer } from '../tool.js'
import { placeArtifacts } from './artifact-place.js'
import type { EventOptions, ResumeOptions } from './chat-view.js'
import type { HostParts, RuntimeHost } from './host.js'
import { describeRuntime, type ModelChoice, type RuntimeInfo, type SessionLint } from './info.js'
import { LazyHost } from './lazy-host.js'
import type { RuntimeOptions } from './options.js'
import { retain } from './retention.js'
import type { RuntimeSchedules, Schedules } from './schedules.js'

export type { ResumeOptions, RunInput, StartedRun }

export interface Runtime {
  /** The runtime's store, for listing, reading and deleting sessions. */
  readonly store: SessionStore
  /** Loads ADK, the SDKs of the agents' models and what reads sessions, and builds the agents, now instead of at first use. */
  ready(): Promise<void>
  /**
   * One message, as a stream of events. Throws only before `run-start`; leaving the loop early is an abort.
   *
   * ```ts
   * import type { Runtime } from 'lango'
   *
   * export async function print(runtime: Runtime, sessionId: string, text: string): Promise<void> {
   *   for await (const event of runtime.run({ sessionId, text })) {
   *     if (event.type === 'text-delta') process.stdout.write(event.text)
   *     if (event.type === 'error') console.error(event.error.code, event.error.message)
   *   }
   * }
   * ```
   */
  run(input: RunInput): AsyncGenerator<RunEvent, void, undefined>
  /**
   * One message, as its answer. Throws the `AgentError` of a run that failed. Without `onApproval`, a run that waits for a
   * person is returned with the finish reason `waiting` and its `pending` calls.
   *
   * ```ts
   * import { AgentError, type Runtime } from 'lango'
   *
   * export async function ask(runtime: Runtime, text: string): Promise<string> {
   *   try {
   *     return (await runtime.runAndCollect({ sessionId: 'support-1', text })).text
   *   } catch (error) {
   *     if (error instanceof AgentError && error.retryable) return 'Please try again in a moment.'
   *     throw error
   *   }
   * }
   * ```
   */
  runAndCollect<Output = unknown>(input: RunInput<Output>): Promise<RunResult<Output>>
  /**
   * Accepts a run and executes it in the background. Resolves when the run is on disk: from then on it survives the
   * process, and other processes on the store may execute it. Throws when the run was not accepted. A `runId` that is
   * known is the run that has it.
   *
   * ```ts
   * import type { Runtime } from 'lango'
   *
   * export async function inBackground(runtime: Runtime, sessionId: string, text: string): Promise<string> {
   *   const { runId } = await runtime.start({ sessionId, text })
   *   for await (const event of runtime.follow(runId)) if (event.type === 'run-finish') return event.text
   *   return ''
   * }
   * ```
   */
  start(input: RunInput): Promise<StartedRun>
  /**
   * The events of a run of any process: stored ones, then live ones as they are stored, to the end. A run that no process
   * works on is continued here. `run-not-found`.
   */
  follow(runId: string, options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>
  /** As `follow`, in the lists in which the events were stored. Followers in one process get the same lists. */
  followLists(runId: string, options?: FollowOptions): AsyncGenerator<EventList, void, undefined>
  /** Stops a run of any process; a queued one ends without having begun. `run-not-found`. */
  stop(runId: string): Promise<void>
  /**
   * Answers a call that waits for a person, in a run of any process: an approval, an unknown outcome, or with an object the
   * result of a long-running tool of ADK's. A run that no process works on is continued here. `run-not-found` when
   * that call does not wait; the error lists those that do.
   */
  answer(runId: string, callId: string, answer: RunAnswer): Promise<void>
  /**
   * Continues a run that no process works on. Resolves when it has begun, or when another process works on it. Unlike
   * `follow`, it throws when the agent cannot be loaded, and begins a scheduled run before its time. `run-not-found`;
   * `invalid-argument` when the run has ended.
   *
   * With a `budget`, a run that ended at its budget goes on: a new run of the session, with the same model,
   * continues where the first one stopped. Its id is returned.
   *
   * ```ts
   * import type { Runtime } from 'lango'
   *
   * export async function finish(runtime: Runtime, runId: string): Promise<void> {
   *   await runtime.resume(runId)
   *   for await (const event of runtime.follow(runId)) console.log(event.type)
   * }
   * ```
   */
  resume(runId: string, options?: ResumeOptions): Promise<StartedRun>
  /** A run as the store has it. One that no process works on is continued here. */
  findRun(runId: string): Promise<RunSummary | undefined>
  /** The schedules of the app: where they are, and their messages to send now. */
  schedules(): Promise<RuntimeSchedules>
  /** The runs of a session, newest first; those that no process works on are continued here. Default limit 50. */
  listRuns(key: SessionKey, options?: { limit?: number }): Promise<RunSummary[]>
  /**
   * Calls the listener with every event of the runs that this process executes, and `onCall` at the end of each of their
   * model calls (tokens, cost, latency, time to the first part of the answer), until the returned function is called.
   */
  observe(listener: (event: RunEvent) => void, onCall?: (call: ModelCall) => void): () => void
  /** The runs that this process executes or has accepted, and that have not ended. */
  active(): readonly ActiveRun[]
  /** The sessions of runs that are followed here and executed elsewhere. */
  watchedSessions(): readonly SessionKey[]
  /**
   * Inspects a run: per model call what was stored, cut, repaired and sent. `undefined` for an unknown run.
   *
   * ```ts
   * import type { Runtime } from 'lango'
   *
   * export async function requestSizes(runtime: Runtime, runId: string): Promise<number[]> {
   *   const inspection = await runtime.inspect(runId)
   *   return inspection?.steps.map(step => step.sent.bytes) ?? []
   * }
   * ```
   */
  inspect(runId: string): Promise<RunInspection | undefined>
  /** The agent, its model and the kind of store. Loads ADK when the agent was made in code or `agents` are asked for. */
  info(options?: { agents?: boolean }): Promise<RuntimeInfo>
  /** Models that `run` can be given, those with a key first. */
  models(): Promise<ModelChoice[]>
  /** Messages as people read them; without a bound, the newest 50. */
  messages(key: SessionKey, options?: ReadOptions): Promise<ChatMessage[]>
  /** Messages as the ADK events that were stored, all of them unless bounded. */
  events(key: SessionKey, options?: EventOptions): Promise<Event[]>
  /** What a session has used, over all stored answers. */
  usage(key: SessionKey): Promise<RunUsage>
  /** What model calls of the app have used, by day, user, model and kind, oldest day first. */
  usageByDay(query?: Omit<UsageQuery, 'appName'>): Promise<UsageLine[]>
  /** What each provider would refuse in a stored session if it were sent without repair. */
  lint(key: SessionKey, options?: { profiles?: readonly string[] }): Promise<SessionLint>
  /**
   * Erases everything that is stored about a user of the app, and returns what was deleted. Runs of the user are
   * stopped first and end with `run-interrupted`; in other processes they lose their lease and can store nothing.
   *
   * ```ts
   * import type { Runtime } from 'lango'
   *
   * export async function forget(runtime: Runtime, userId: string): Promise<string> {
   *   const receipt = await runtime.erase(userId)
   *   return `${receipt.sessions} sessions and ${receipt.messages} messages were deleted`
   * }
   * ```
   */
  erase(userId: string, options?: EraseOptions): Promise<EraseReceipt>
  /**
   * Ends the runs of `run` and `runAndCollect`, hands over those of `start`, and closes the store if the runtime opened it.
   * With `withinMs` it resolves after that time at the latest: what is left then, such as a tool that does not end or a
   * database that does not answer, keeps the process alive, so the caller exits. Runs that could not be handed over are
   * found by the next process.
   */
  close(options?: { withinMs?: number }): Promise<void>
}

/**
 * Opens the store and checks the options. ADK is loaded by the first run, by `ready()`, or by a stored run that no process
 * works on.
 *
 * ```ts
 * import { createRuntime } from 'lango'
 *
 * const runtime = await createRuntime({
 *   store: 'sqlite:./lango.db',
 *   agent: { model: 'demo/demo', instruction: 'Answer in one sentence.' },
 * })
 * const { text, sessionId } = await runtime.runAndCollect({ text: 'What is a lease?' })
 * console.log(sessionId, text)
 * await runtime.close()
 * ```
 */
export async function createRuntime(given: RuntimeOptions): Promise<Runtime> {
  const { checkModels, checkOptions } = await import('./check-options.js')
  const options = checkOptions(given)
  const registry = createRegistry(options.providers ?? {})
  checkModels(options, registry)
  const { store = 'sqlite:./lango.db' } = options
  const opened = await placeArtifacts(typeof store === 'string' ? await openStore(store) : store, options)
  return new LangoRuntime({ options, registry, store: opened, logger: options.logger ?? silentLogger })
}

class LangoRuntime implements Runtime {
  #isClosing = false
  #sweeper: NodeJS.Timeout | undefined
  #schedules: Promise<Schedules> | undefined
  readonly #running = new RunningRuns()

  readonly store: SessionStore

  readonly #parts: HostParts
  readonly #host: LazyHost
  readonly #follower: RunFollower
  readonly #stopRetention: () => Promise<void>

  constructor(parts: Omit<HostParts, 'follower' | 'listeners'>) {
    this.store = parts.store
    this.#follower = new RunFollower({
      store: parts.store,
      logger: parts.logger,
      checkLife: async run => void (await this.#checkLife(run)),
    })
    this.#parts = { ...parts, follower: this.#follower, listeners: new RunListeners() }
    this.#host = new LazyHost(this.#parts)
    this.#stopRetention = retain(this.#parts)
  }

  async ready(): Promise<void> {
    const host = await this.#host.load()
    await Promise.all([
      host.load(),
      this.store.check(),
      import('./chat-view.js'),
      import('./lint.js'),
      import('./models.js'),
    ])
    this.#sweep(host)
    if (this.#parts.options.schedules && !this.#isClosing) void (await this.schedules()).begin()
  }

  async *run(input: RunInput): AsyncGenerator<RunEvent, void, undefined> {
    const { lists, done } = await this.#open(input)
    try {
      for await (const events of lists) for (const event of events) yield event
    } finally {
      done()
    }
  }

  async runAndCollect<Output = unknown>(input: RunInput<Output>): Promise<RunResult<Output>> {
    const { lists, done } = await this.#open(input, true)
    try {
      return await runAndCollect(lists, input.outputSchema)
    } finally {
      done()
    }
  }

  async start(input: RunInput): Promise<StartedRun> {
    const { host, accepted, done } = await this.#accept(input, true)
    try {
      const started = await host.runs.start(accepted, done)
      this.#sweep(host)
      return started
    } catch (error) {
      done()
      throw error
    }
  }

  async *follow(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    for await (const events of this.followLists(runId, options)) yield* events
  }

  followLists(runId: string, options: FollowOptions = {}): AsyncGenerator<EventList, void, undefined> {
    return followRun({ follower: this.#follower, runs: this.store.runs, runId }, options)
  }

  observe(...given: Parameters<Runtime['observe']>): () => void {
    return this.#parts.listeners.add(...given)
  }

  async stop(runId: string): Promise<void> {
    const host = await this.#host.loaded()
    await (host ? host.runs.stop(runId) : stopStored(this.store, runId))
  }

  async answer(runId: string, callId: string, answer: RunAnswer): Promise<void> {
    checkAnswer(answer)
    const host = await this.#host.loaded()
    if (host) return host.runs.answer(runId, callId, answer)
    await answerStored(this.store, runId, callId, answer)
    // The run is continued here unless another process works on it.
    await this.findRun(runId)
  }

  async resume(runId: string, { budget }: ResumeOptions = {}): Promise<StartedRun> {
    if (budget === undefined) return (await this.#host.load()).runs.resume(runId)
    const { goOn } = await import('./chat-view.js')
    return this.start(await goOn(this.store, await this.findRun(runId), runId, budget))
  }

  async findRun(runId: string): Promise<RunSummary | undefined> {
    const run = await this.store.runs.findRun(runId)
    return run && this.#checkLife(run)
  }

  async listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    const runs = await this.store.runs.listRuns(key, options)
    const checked: RunSummary[] = []
    for (const run of runs) checked.push(await this.#checkLife(run))
    return checked
  }

  schedules(): Promise<Schedules> {
    this.#schedules ??= import('./schedules.js').then(({ createSchedules }) =>
      createSchedules(this.#parts, input => this.start(input)),
    )
    return this.#schedules
  }

  active(): readonly ActiveRun[] {
    return this.#host.runs?.active() ?? []
  }

  watchedSessions(): readonly SessionKey[] {
    return this.#follower.watchedKeys()
  }

  async #open(input: RunInput, isCollected = false): Promise<{ lists: EventLists; done: () => void }> {
    const { host, accepted, done } = await this.#accept(input, false)
    try {
      const untilWaiting = isCollected && accepted.onApproval === undefined
      return { lists: await host.runs.run(accepted, done, untilWaiting), done }
    } catch (error) {
      done()
      throw error
    }
  }

  /** Checks the input and registers the run, so that `close` and `erase` stop it. */
  async #accept(
    input: RunInput,
    isDetached: boolean,
  ): Promise<{ host: RuntimeHost; accepted: RunInput; done: () => void }> {
    checkRunInput(input, this.#parts.options.app)
    if (this.#isClosing) throw closed()
    const { abort, done } = this.#running.add(input.userId ?? 'user', isDetached)
    try {
      const host = await this.#host.load()
      await host.check(input)
      const signal = input.signal ? AbortSignal.any([abort.signal, input.signal]) : abort.signal
      return { host, accepted: { ...input, signal, model: input.model ?? this.#parts.options.model }, done }
    } catch (error) {
      done()
      throw error
    }
  }

  /** The current state of a run. One that no process works on is continued, or ended, first. */
  async #checkLife(run: RunSummary): Promise<RunSummary> {
    if (run.finished || this.#isClosing) return run
    try {
      const host = await this.#host.loadFor(run)
      if (this.#isClosing || !(await host?.runs.checkLife(run))) return run
      return (await this.store.runs.findRun(run.runId)) ?? run
    } catch (error) {
      this.#parts.logger.warn('A run could not be looked after', {
        runId: run.runId,
        error: messageOf(error),
      })
      return run
    }
  }

  /** Looks for runs that no process works on, now and from time to time. */
  #sweep(host: RuntimeHost): void {
    if (this.#sweeper || this.#isClosing) return
    this.#sweeper = setInterval(() => void host.runs.sweep(), SWEEP_MS).unref()
    void host.runs.sweep()
  }

  inspect(runId: string): Promise<RunInspection | undefined> {
    return inspectRun(this.store, runId, callKey)
  }

  async info({ agents = false } = {}): Promise<RuntimeInfo> {
    const { options } = this.#parts
    const found = options.rootAgent || agents ? await this.#host.load() : undefined
    return { ...describeRuntime(options, found), ...(agents && found ? { agents: found.agents } : {}) }
  }

  async models(): Promise<ModelChoice[]> {
    const { listModels } = await import('./models.js')
    const models = listModels({ providers: this.#parts.options.providers ?? {}, env: process.env })
    return models.sort((one, other) => Number(other.keyPresent) - Number(one.keyPresent))
  }

  async messages(key: SessionKey, options: ReadOptions = {}): Promise<ChatMessage[]> {
    const { pricesOf, readChat } = await import('./chat-view.js')
    return readChat(this.store, key, options, pricesOf(this.#parts.registry))
  }

  async events(key: SessionKey, options: EventOptions = {}): Promise<Event[]> {
    const { readAdkEvents } = await import('./chat-view.js')
    return readAdkEvents(this.store, key, options, (await this.info()).agent)
  }

  async usage(key: SessionKey): Promise<RunUsage> {
    const { pricesOf, readUsage } = await import('./chat-view.js')
    return readUsage(this.store, key, pricesOf(this.#parts.registry))
  }

  async usageByDay(query: Omit<UsageQuery, 'appName'> = {}): Promise<UsageLine[]> {
    return this.store.spending.usage({ ...query, appName: this.#parts.options.app })
  }

  async lint(key: SessionKey, options: { profiles?: readonly string[] } = {}): Promise<SessionLint> {
    const { lintSession } = await import('./lint.js')
    return lintSession(this.store, key, options)
  }

  async erase(userId: string, options: EraseOptions = {}): Promise<EraseReceipt> {
    await this.#running.stopOf(userId)
    const receipt = await this.store.erase({ appName: this.#parts.options.app, userId }, options)
    return (await import('./engine.js')).eraseFromEngine(this.#parts, userId, receipt)
  }

  async close({ withinMs }: { withinMs?: number } = {}): Promise<void> {
    this.#isClosing = true
    clearInterval(this.#sweeper)
    const closed = this.#close(handoverGrace(withinMs))
    await (withinMs === undefined ? closed : within(withinMs, closed))
  }

  /** Runs come first: what follows may wait for a database that does not answer. */
  async #close(graceMs: number): Promise<void> {
    const schedules = this.#schedules?.then(each => each.close())
    const runs = [this.#running.close(graceMs), this.#host.runs?.close(graceMs)]
    await Promise.all([...runs, schedules, this.#stopRetention()])
    this.#follower.endAll()
    await this.#host.close()
    // A store that was handed in is closed by its owner.
    if (typeof this.#parts.options.store !== 'object') await this.store.close()
  }
}

const SWEEP_MS = 5000

function closed(): AgentError {
  return new AgentError('invalid-argument', 'The runtime is closed. Create a new one.')
}
