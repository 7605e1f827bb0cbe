/**
 * Where the rooms are joined. Importing this file loads neither ADK nor a vendor's SDK: `host.ts`,
 * which needs ADK, is loaded by the first run or by `ready()`.
 */

import type { Event } from '../adk/sdk.js'
import { unknownKeyText } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import { silentLogger } from '../logger.js'
import { inspectRun, type RunInspection } from '../observe/inspect.js'
import { createRegistry } from '../provider/provider-registry.js'
import { type RunResult, runAndCollect } from '../run/run-and-collect.js'
import type { RunEvent } from '../run/run-event.js'
import type { RunInput } from '../run/run-host.js'
import type { EventLists } from '../run/run-loop.js'
import type { ChatMessage } from '../session/chat-message.js'
import type { SessionKey } from '../session/message.js'
import type { EraseOptions, EraseReceipt, ReadOptions, SessionStore } from '../session/session-store.js'
import type { ModelPrice, RunUsage } from '../session/usage.js'
import { within } from '../store/hold-lease.js'
import { openStore } from '../store/open-store.js'
import { unsupported } from '../store/store-errors.js'
import type { EventOptions } from './chat-view.js'
import type { HostParts, RuntimeHost } from './host.js'
import { describeRuntime, type ModelChoice, type RuntimeInfo, type SessionLint } from './info.js'
import type { RuntimeOptions } from './options.js'
import { DAY_MS, startRetention } from './retention.js'

export type { RunInput }

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
   * One message, as its answer. Throws the `AgentError` of a run that failed.
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
  runAndCollect(input: RunInput): Promise<RunResult>
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
  /** The agent, its model and the kind of store. Loads ADK when the agent was made in code. */
  info(): Promise<RuntimeInfo>
  /** Models that `run` can be given, those with a key first. */
  models(): Promise<ModelChoice[]>
  /** Messages as people read them; without a bound, the newest 50. */
  messages(key: SessionKey, options?: ReadOptions): Promise<ChatMessage[]>
  /** Messages as the ADK events that were stored, all of them unless bounded. */
  events(key: SessionKey, options?: EventOptions): Promise<Event[]>
  /** What a session has used, over all stored answers. */
  usage(key: SessionKey): Promise<RunUsage>
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
  /** Stops running runs, waits for them, and closes the store if the runtime opened it. */
  close(): Promise<void>
}

/**
 * Opens the store and checks the options. ADK is loaded by the first run or by `ready()`.
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
  const opened = typeof store === 'string' ? await openStore(store) : store
  if (options.retention?.sessionsDays !== undefined && !opened.expire)
    throw unsupported('expire', 'Add it to the store, or omit retention.sessionsDays')
  const parts = { options, registry, store: opened, logger: options.logger ?? silentLogger }
  return new LangoRuntime(parts, () => import('./host.js').then(module => module.createHost(parts)))
}

/** A signal of its own for each run: listeners of many runs on one signal would look like a leak. */
interface RunningRun {
  userId: string
  abort: AbortController
  ended: Promise<void>
}

class LangoRuntime implements Runtime {
  #host: Promise<RuntimeHost> | undefined
  #isClosing = false
  readonly #running = new Set<RunningRun>()

  readonly store: SessionStore

  readonly #parts: HostParts
  readonly #createHost: () => Promise<RuntimeHost>
  readonly #stopRetention: () => Promise<void>

  constructor(parts: HostParts, createHost: () => Promise<RuntimeHost>) {
    this.#parts = parts
    this.#createHost = createHost
    this.store = parts.store
    this.#stopRetention = retain(parts)
  }

  async ready(): Promise<void> {
    const host = await this.#load()
    await Promise.all([
      host.load(),
      this.store.check?.(),
      import('./chat-view.js'),
      import('./lint.js'),
      import('./models.js'),
    ])
  }

  async *run(input: RunInput): AsyncGenerator<RunEvent, void, undefined> {
    const { lists, done } = await this.#open(input)
    try {
      for await (const events of lists) for (const event of events) yield event
    } finally {
      done()
    }
  }

  async runAndCollect(input: RunInput): Promise<RunResult> {
    const { lists, done } = await this.#open(input)
    try {
      return await runAndCollect(lists)
    } finally {
      done()
    }
  }

  async #open(input: RunInput): Promise<{ lists: EventLists; done: () => void }> {
    checkRunInput(input, this.#parts.options.app ?? 'lango')
    if (this.#isClosing) throw closed()
    const { abort, done } = this.#register(input.userId ?? 'user')
    try {
      const host = await this.#load()
      const signal = input.signal ? AbortSignal.any([abort.signal, input.signal]) : abort.signal
      const model = input.model ?? this.#parts.options.model
      return { lists: await host.run({ ...input, signal, model }, done), done }
    } catch (error) {
      done()
      throw error
    }
  }

  inspect(runId: string): Promise<RunInspection | undefined> {
    return inspectRun(this.store, runId)
  }

  async info(): Promise<RuntimeInfo> {
    const { options } = this.#parts
    const found = options.rootAgent ? await this.#load() : undefined
    return describeRuntime(options, found?.agentName, found?.model)
  }

  async models(): Promise<ModelChoice[]> {
    const { listModels } = await import('./models.js')
    const models = listModels({ providers: this.#parts.options.providers ?? {}, env: process.env })
    return models.sort((one, other) => Number(other.keyPresent) - Number(one.keyPresent))
  }

  async messages(key: SessionKey, options: ReadOptions = {}): Promise<ChatMessage[]> {
    const { readChat } = await import('./chat-view.js')
    return readChat(this.store, key, options, reference => this.#priceOf(reference))
  }

  async events(key: SessionKey, options: EventOptions = {}): Promise<Event[]> {
    const { readAdkEvents } = await import('./chat-view.js')
    return readAdkEvents(this.store, key, options, (await this.info()).agent)
  }

  async usage(key: SessionKey): Promise<RunUsage> {
    const { readUsage } = await import('./chat-view.js')
    return readUsage(this.store, key, reference => this.#priceOf(reference))
  }

  async lint(key: SessionKey, options: { profiles?: readonly string[] } = {}): Promise<SessionLint> {
    const { lintSession } = await import('./lint.js')
    return lintSession(this.store, key, options)
  }

  async erase(userId: string, options: EraseOptions = {}): Promise<EraseReceipt> {
    if (!this.store.erase) throw unsupported('erase')
    const own = [...this.#running].filter(run => run.userId === userId)
    for (const { abort } of own) abort.abort(erasedDuringRun())
    // A run that does not end in time is refused by the store.
    await within(STOP_MS, Promise.all(own.map(({ ended }) => ended)))
    return this.store.erase({ appName: this.#parts.options.app ?? 'lango', userId }, options)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await this.#stopRetention()
    for (const { abort } of this.#running) abort.abort()
    await Promise.all(Array.from(this.#running, ({ ended }) => ended))
    await (await this.#host?.catch(() => undefined))?.close()
    // A store that was handed in is closed by its owner.
    if (typeof this.#parts.options.store !== 'object') await this.store.close()
  }

  /** The price of a model that a stored answer names; its provider may no longer be configured. */
  #priceOf(reference: string): ModelPrice | undefined {
    try {
      const { provider, model } = this.#parts.registry.resolve(reference)
      return provider.describeModel(model).price
    } catch {
      return undefined
    }
  }

  async #load(): Promise<RuntimeHost> {
    this.#host ??= this.#createHost()
    try {
      return await this.#host
    } catch (error) {
      this.#host = undefined
      throw error
    }
  }

  /** Registers a run until it ends, so that `close` and `erase` can stop it and wait for it. */
  #register(userId: string): { abort: AbortController; done: () => void } {
    let resolve = () => {}
    const ended = new Promise<void>(resolved => {
      resolve = resolved
    })
    const running = { userId, abort: new AbortController(), ended }
    this.#running.add(running)
    const done = () => {
      this.#running.delete(running)
      resolve()
    }
    return { abort: running.abort, done }
  }
}

/** How long `erase` waits for runs that it stopped. */
const STOP_MS = 5000

function erasedDuringRun(): AgentError {
  return new AgentError('run-interrupted', 'The data of the user was erased during this run.')
}

function retain({ options, store, logger }: HostParts): () => Promise<void> {
  const { sessionsDays, runsDays } = options.retention ?? {}
  if (sessionsDays === undefined && runsDays === undefined) return async () => {}
  return startRetention({
    store,
    appName: options.app ?? 'lango',
    sessionsMs: sessionsDays === undefined ? undefined : sessionsDays * DAY_MS,
    runsMs: runsDays === undefined ? undefined : runsDays * DAY_MS,
    logger,
  })
}

function closed(): AgentError {
  return new AgentError('invalid-argument', 'The runtime is closed. Create a new one.')
}

/**
 * Refuses what a run cannot take, unknown keys included. Values are not shown: they may be prompts. The key of a
 * session may be spread into the input, so `appName` is taken if it is that of the runtime.
 */
function checkRunInput(input: RunInput, appName: string): void {
  const problems = problemsOf(input, appName)
  if (problems.length === 0) return
  const text = problems.map(({ message }) => message).join(' ')
  throw new AgentError('invalid-argument', `The input of the run is not valid: ${text}`, {
    details: { problems },
  })
}

interface InputProblem {
  path: string
  message: string
}

function problemsOf(input: unknown, appName: string): InputProblem[] {
  if (input === undefined) return [{ path: '', message: 'It is missing. Pass an object such as { text }.' }]
  if (!isObject(input)) return [{ path: '', message: 'It must be an object such as { text }.' }]
  const given = Object.entries(input).filter(([, value]) => value !== undefined)
  return given.flatMap(([path, value]) => {
    if (path === 'appName') return value === appName ? [] : [{ path, message: otherApp(appName) }]
    if (!isKey(path)) return [{ path, message: unknownKeyText(path, KEYS) }]
    const [isRight, expected] = RULES[path]
    return isRight(value) ? [] : [{ path, message: `\`${path}\` must be ${expected}.` }]
  })
}

type Rule = readonly [isRight: (value: unknown) => boolean, expected: string]

const TEXT: Rule = [value => typeof value === 'string', 'a string']
const FUNCTION: Rule = [value => typeof value === 'function', 'a function']
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const RULES: Readonly<Record<keyof RunInput, Rule>> = {
  sessionId: TEXT,
  userId: TEXT,
  text: TEXT,
  parts: [
    value => Array.isArray(value) && value.every(part => isObject(part) && Object.keys(part).length > 0),
    'a list of parts such as { text } or { inlineData }',
  ],
  model: TEXT,
  stateDelta: [isObject, 'an object'],
  onApproval: FUNCTION,
  whenBusy: [value => value === 'queue' || value === 'reject', '`queue` or `reject`'],
  signal: [value => value instanceof AbortSignal, 'an AbortSignal'],
  runId: [value => typeof value === 'string' && UUID.test(value), 'a UUID'],
  request: TEXT,
  onStored: FUNCTION,
}

const KEYS = Object.keys(RULES)

function isKey(key: string): key is keyof RunInput {
  return Object.hasOwn(RULES, key)
}

function otherApp(appName: string): string {
  return `\`appName\` is not the app of this runtime, which is "${appName}". Omit it, or set \`app\` in createRuntime.`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
