import { randomUUID } from 'node:crypto'
import { availableParallelism, totalmem } from 'node:os'
import type { Content, Part } from '../adk/sdk.js'
import { AgentError, messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { RunSignal } from '../session/run-store.js'
import type { Lease, LeaseOptions, SessionStore } from '../session/session-store.js'
import { emptyUsage } from '../session/usage.js'
import type { RunEvent } from './run-event.js'
import type { RunHost, RunInput } from './run-host.js'
import { type EventLists, RunLoop, type RunOpened } from './run-loop.js'
import { runScope } from './run-scope.js'

/** Runs one message; see `createRuns`. */
export type Run = (input: RunInput, onEnd?: () => void) => Promise<EventLists>

/**
 * The runs of a host. Each run waits for its session, holds the session's lease, and is stopped by its caller's
 * signal, by a lost lease, or by a signal from another process.
 *
 * Everything that can fail before the run exists (bad input, a busy session, an unreachable store) is thrown;
 * afterwards failures are events. The events must be read at once: the run holds its session. Leaving the loop early
 * is an abort. `onEnd` is called when the run has ended completely, also when it was stopped and its last events are
 * not read.
 */
export function createRuns(host: RunHost): Run {
  const queue = new SessionQueue()
  const slots = new RunSlots(host.maxRunning ?? defaultMaxRunning())
  return (input, onEnd = () => {}) => run({ host, queue, slots }, input, onEnd)
}

/** What the runs of one host share. */
interface Shared {
  host: RunHost
  queue: SessionQueue
  slots: RunSlots
}

async function run({ host, queue, slots }: Shared, input: RunInput, onEnd: () => void): Promise<EventLists> {
  const message = userMessage(input)
  if (input.model !== undefined) host.models.check(input.model)
  const key: SessionKey = {
    appName: host.appName,
    userId: input.userId ?? 'user',
    sessionId: input.sessionId ?? randomUUID(),
  }
  const whenBusy = input.whenBusy ?? 'queue'
  if (input.signal?.aborted) return stoppedBeforeStart(host, key, input)
  const leaveQueue = await queue.enter(key, whenBusy, input.signal)
  const leaveSlot = await slots.enter(input.signal).catch(error => {
    leaveQueue()
    throw error
  })
  let lease: Lease | undefined
  let stopWatching = () => {}
  const end = async () => {
    stopWatching()
    await lease?.release().catch(error => {
      // The lease expires by itself and the answer is stored, so the run does not fail.
      host.logger.warn('A lease could not be released', { ...key, error: messageOf(error) })
    })
    leaveSlot()
    leaveQueue()
    onEnd()
  }
  try {
    const start = startEvent(host, key, input)
    const waiting = {
      waitMs: whenBusy === 'queue' ? WAIT_FOR_SESSION_MS : 0,
      ...(input.signal ? { signal: input.signal } : {}),
    }
    const opened = await openRun(host, { key, input, message, start, waiting })
    lease = opened.lease
    const loop = new RunLoop({ host, key, lease, input, start, opening: opened.opening, end })
    stopWatching = watchEnds(loop, { host, key, lease, input })
    return loop.events(message)
  } catch (error) {
    await end()
    throw error
  }
}

interface Beginning {
  key: SessionKey
  input: RunInput
  message: Content
  start: RunEvent
  waiting: LeaseOptions
}

/** Opens the run: in one write where the store can do so. */
async function openRun(
  host: RunHost,
  beginning: Beginning,
): Promise<{ lease: Lease; opening: RunOpened | undefined }> {
  const { key, input, start, waiting } = beginning
  const { store } = host
  const title = (input.text ?? '').slice(0, TITLE_LENGTH)
  if (!store.openRun) return { lease: await openInSteps(store, beginning, title), opening: undefined }
  const { message, invocationId } = host.openingMessage(beginning.message)
  const opened = await store.openRun(
    { key, runId: start.runId, title, message, events: [{ ...start }] },
    waiting,
  )
  if ('known' in opened) throw knownRun(start.runId)
  return { lease: opened.lease, opening: { message, invocationId, seq: opened.seq } }
}

/** As `openRun`, for a store that has single writes only. */
async function openInSteps(
  store: SessionStore,
  { key, input, start, waiting }: Beginning,
  title: string,
): Promise<Lease> {
  const lease = await store.acquireLease(key, waiting)
  try {
    if (input.runId !== undefined && (await store.runs.findRun(input.runId))) throw knownRun(input.runId)
    await ensureSession(store, key, lease.fence, title)
    await store.runs.appendEvents(key, start.runId, [{ ...start }])
    return lease
  } catch (error) {
    await lease.release().catch(() => {})
    throw error
  }
}

function startEvent(host: RunHost, key: SessionKey, input: RunInput): RunEvent {
  const model = input.model ?? host.models.rootReference
  return {
    type: 'run-start',
    userId: key.userId,
    agent: host.rootAgent.name,
    model,
    ...(model.startsWith('demo/') ? { demo: true } : {}),
    sessionId: key.sessionId,
    runId: input.runId ?? randomUUID(),
    seq: 1,
  }
}

/** How long a message waits for a session that another process is busy with. */
const WAIT_FOR_SESSION_MS = 600_000

/** A run whose signal was aborted before it began: it ends as any aborted run does, and stores nothing. */
async function* stoppedBeforeStart(host: RunHost, key: SessionKey, input: RunInput): EventLists {
  const start = startEvent(host, key, input)
  const identity = { sessionId: key.sessionId, runId: start.runId }
  const nothing = { text: '', turns: 0, delegations: 0, usage: emptyUsage() }
  yield [start, { type: 'run-finish', finishReason: 'aborted', ...nothing, ...identity, seq: 2 }]
}

function userMessage({ text, parts }: RunInput): Content {
  const all: Part[] = [...(text === undefined || text === '' ? [] : [{ text }]), ...(parts ?? [])]
  if (all.length === 0) {
    throw new AgentError('invalid-argument', 'The run has no message. Pass `text`, `parts`, or both.')
  }
  return { role: 'user', parts: all }
}

/** Runs are found by their ids across sessions, so an id may be used once. */
function knownRun(runId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `Run "${runId}" already exists. Omit \`runId\` or use a new UUID.`,
  )
}

/** The title of a session that a message opens is the beginning of that message. */
async function ensureSession(
  store: SessionStore,
  key: SessionKey,
  fence: number,
  title: string,
): Promise<void> {
  try {
    await store.createSession(key, {}, { title, fence })
  } catch (error) {
    if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
  }
}

const TITLE_LENGTH = 80

interface WatchedRun {
  host: RunHost
  key: SessionKey
  lease: Lease
  input: RunInput
}

/** Stops the run when its caller aborts, its lease is lost, or another process sends a signal. Returns the end of watching. */
function watchEnds(loop: RunLoop, { host, key, lease, input }: WatchedRun): () => void {
  const { signal } = input
  const abort = () => {
    const reason: unknown = signal?.reason
    // An abort by the user is no failure; an interruption by the server names its error as the reason.
    loop.stop(reason instanceof AgentError && reason.code === 'run-interrupted' ? reason : undefined)
  }
  const lose = () => loop.stop(leaseLost(key, lease.lost.reason))
  const receive = (received: RunSignal) =>
    received.type === 'stop' ? loop.stop() : void loop.answer(received.callId, received.answer)
  const stopPolling = pollSignals(host, loop.runId, receive)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  lease.lost.addEventListener('abort', lose, { once: true })
  return () => {
    stopPolling()
    signal?.removeEventListener('abort', abort)
    lease.lost.removeEventListener('abort', lose)
  }
}

function leaseLost(key: SessionKey, cause: unknown): AgentError {
  const reason = messageOf(cause ?? 'it could not be renewed')
  return new AgentError('lease-lost', `The run lost its session "${key.sessionId}": ${reason}`, {
    retryable: true,
  })
}

/** Reads the signals that other processes send to a run, until the returned function is called. */
function pollSignals(
  { store, logger }: RunHost,
  runId: string,
  receive: (signal: RunSignal) => void,
): () => void {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const read = async () => {
    try {
      for (const signal of await store.runs.takeSignals(runId)) receive(signal)
    } catch (error) {
      logger.debug('The signals of a run could not be read', { runId, error: messageOf(error) })
    }
    schedule()
  }
  const schedule = () => {
    if (stopped) return
    timer = setTimeout(() => void read(), POLL_MS)
    // Polling alone keeps no process alive.
    timer.unref()
  }
  schedule()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

const POLL_MS = 250

/** Gives the turn to the next in the queue. */
export type Leave = () => void

/**
 * One run per session within this process: first come, first served. The lease in the store does this across
 * processes; the queue avoids polling for it within one.
 */
export class SessionQueue {
  /** The sessions that have a run, and the runs that wait for them. */
  readonly #lines = new Map<string, Set<() => void>>()

  /** Waits for the turn of this session. With `reject`, fails at once when another run is queued. */
  async enter(key: SessionKey, whenBusy: 'queue' | 'reject', signal?: AbortSignal): Promise<Leave> {
    if (signal?.aborted) throw aborted()
    const name = `${key.appName}\0${key.userId}\0${key.sessionId}`
    const line = this.#lines.get(name)
    if (line && whenBusy === 'reject') throw busy(key)
    if (line) await turnIn(line, signal, () => this.#pass(name))
    else this.#lines.set(name, new Set())
    return once(() => this.#pass(name))
  }

  #pass(name: string): void {
    const [next] = this.#lines.get(name) ?? []
    if (next) next()
    else this.#lines.delete(name)
  }
}

function once(leave: Leave): Leave {
  let isLeft = false
  return () => {
    if (!isLeft) leave()
    isLeft = true
  }
}

/** How many runs of this process may work at once; the others wait, first come, first served. */
export class RunSlots {
  readonly #waiting = new Set<() => void>()
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** A run that a tool of another run starts does not wait: the two would wait for each other. */
  async enter(signal: AbortSignal | undefined): Promise<Leave> {
    if (runScope.getStore()) return () => {}
    if (this.#free > 0) this.#free -= 1
    else await turnIn(this.#waiting, signal, () => this.#pass())
    return once(() => this.#pass())
  }

  /** A slot that becomes free is passed on, so that no later run takes it first. */
  #pass(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#free += 1
  }
}

/** Waits in a line until it is called, or until the signal fires. */
async function turnIn(line: Set<() => void>, signal: AbortSignal | undefined, pass: Leave): Promise<void> {
  let called = () => {}
  const turn = new Promise<void>(resolve => {
    called = resolve
  })
  const next = () => {
    line.delete(next)
    called()
  }
  line.add(next)
  try {
    await raceAbort(turn, signal)
  } catch (error) {
    // A turn that was passed on in the same moment is passed further.
    if (!line.delete(next)) pass()
    throw error
  }
}

/** Runs mostly wait for their models: many per core, as long as there is memory for what they hold. */
function defaultMaxRunning(): number {
  const byMemory = Math.floor(totalmem() / 2 / MEMORY_PER_RUN)
  return Math.max(LEAST_RUNNING, Math.min(availableParallelism() * RUNS_PER_CORE, byMemory))
}

const RUNS_PER_CORE = 128
const MEMORY_PER_RUN = 8 * 1024 * 1024
const LEAST_RUNNING = 8

function busy(key: SessionKey): AgentError {
  return new AgentError(
    'session-busy',
    `Session "${key.sessionId}" is busy with another run. Wait for it to finish, or run with whenBusy: 'queue'.`,
    { retryable: true, details: { ...key } },
  )
}

async function raceAbort(waiting: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw aborted()
  if (!signal) return waiting
  let stop = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(aborted())
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    await Promise.race([waiting, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function aborted(): AgentError {
  return new AgentError('aborted', 'The run was stopped while it waited for its session.')
}
