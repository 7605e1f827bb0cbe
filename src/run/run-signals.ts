/** How a run is stopped and answered: in this process by its loop, in another one by signals through the store. */
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { within } from '../base/pause.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionKey } from '../session/message.js'
import type { RunSignal, RunStore, RunSummary } from '../session/run-store.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import type { RunAnswer } from '../tool.js'
import { answerUnknown } from './close-calls.js'
import { numbered } from './event-numbers.js'
import { storedEvents } from './interrupted-runs.js'
import { OpenQuestions, type RunQuestion } from './open-questions.js'
import {
  askPerson,
  type GivenOutcome,
  isApproval,
  isOutcome,
  type OnApproval,
  outcomeIn,
} from './run-approvals.js'
import type { RunEvent } from './run-event.js'
import { unknownRun } from './run-follower.js'
import type { RunHost, RunInput } from './run-host.js'
import type { RunLoop } from './run-loop.js'
import { abortedFinish } from './run-opening.js'

interface WatchedRun {
  signals: SignalPoller
  key: SessionKey
  lease: Lease
  input: RunInput
}

/** Stops the run when its caller aborts, its lease is lost, or another process sends a signal. Returns the end of watching. */
export function watchEnds(loop: RunLoop, { signals, key, lease, input }: WatchedRun): () => void {
  const { signal } = input
  const abort = () => {
    const reason: unknown = signal?.reason
    // An abort by the user is no failure; an interruption by the server names its error as the reason.
    const graceMs = isInterruption(reason) ? reason.details.graceMs : undefined
    if (typeof graceMs === 'number' && loop.isResumable) void loop.handOver(graceMs)
    else loop.stop(isInterruption(reason) ? reason : undefined)
  }
  // Another process may have the run already: then that one reports its end.
  const lose = () =>
    loop.isResumable ? void loop.leave('lost') : loop.stop(leaseLost(key, lease.lost.reason))
  const receive = (received: RunSignal) =>
    received.type === 'stop' ? loop.stop() : loop.receive(received.callId, answerIn(received))
  const stopPolling = signals.watch(loop.runId, receive)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  lease.lost.addEventListener('abort', lose, { once: true })
  return () => {
    stopPolling()
    signal?.removeEventListener('abort', abort)
    lease.lost.removeEventListener('abort', lose)
  }
}

function answerIn(signal: Exclude<RunSignal, { type: 'stop' }>): RunAnswer {
  if (signal.type === 'response') return signal.response
  if (signal.type === 'approval' || signal.result === undefined) return signal.answer
  return { happened: true, result: signal.result }
}

/** Whether a run is to be ended because of its process, and not because anybody wants it to stop. */
export function isInterruption(reason: unknown): reason is AgentError {
  return reason instanceof AgentError && reason.code === 'run-interrupted'
}

/** The reason of a run that ends because its process does. Tools that have effects may end within that time. */
function processEnds(graceMs: number): AgentError {
  const message = 'The process was shut down during this run. Send a message to continue.'
  return new AgentError('run-interrupted', message, { retryable: true, details: { graceMs } })
}

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
    await within(ERASE_STOP_MS, Promise.all(own.map(({ ended }) => ended)))
  }
}

/** How long `erase` waits for runs that it stopped. */
const ERASE_STOP_MS = 5000

function erasedDuringRun(): AgentError {
  return new AgentError('run-interrupted', 'The data of the user was erased during this run.')
}

/** How long a tool that has an effect may take to end before its run is handed over. */
const HANDOVER_GRACE_MS = 8000

/** The same in a process that has so long to close: storing the handover and closing the store need some of it. */
export function handoverGrace(withinMs = Number.POSITIVE_INFINITY): number {
  return Math.min(HANDOVER_GRACE_MS, Math.max(0, withinMs - CLOSING_MS))
}

const CLOSING_MS = 1500

function leaseLost(key: SessionKey, cause: unknown): AgentError {
  const reason = messageOf(cause ?? 'it could not be renewed')
  return new AgentError('lease-lost', `The run lost its session "${key.sessionId}": ${reason}`, {
    retryable: true,
  })
}

/** Reads the signals that other processes send to the runs of a host: one look for all of them. */
export class SignalPoller {
  readonly #store: SessionStore
  readonly #logger: Logger
  readonly #receivers = new Map<string, (signal: RunSignal) => void>()
  /** The signals that runs of this process have got and that are still in the store, by run. */
  readonly #delivered = new Map<string, ReadonlySet<number>>()
  #timer: NodeJS.Timeout | undefined

  constructor({ store, logger }: Pick<RunHost, 'store' | 'logger'>) {
    this.#store = store
    this.#logger = logger
  }

  /** Passes on the signals of a run until the returned function is called. */
  watch(runId: string, receive: (signal: RunSignal) => void): () => void {
    this.#receivers.set(runId, receive)
    this.#schedule()
    return () => {
      this.#receivers.delete(runId)
      this.#delivered.delete(runId)
    }
  }

  #schedule(): void {
    if (this.#receivers.size === 0) return
    // Polling alone keeps no process alive.
    this.#timer ??= setTimeout(() => void this.#look(), POLL_MS).unref()
  }

  async #look(): Promise<void> {
    const { runs } = this.#store
    try {
      const runIds = [...this.#receivers.keys()]
      for (const runId of await runs.signalled(runIds)) {
        for (const signal of await this.#new(runId)) this.#receivers.get(runId)?.(signal)
      }
    } catch (error) {
      this.#logger.debug('The signals of runs could not be read', { error: messageOf(error) })
    }
    this.#timer = undefined
    this.#schedule()
  }

  /** Signals that the run has not got yet. */
  async #new(runId: string): Promise<readonly RunSignal[]> {
    const pending = await this.#store.runs.readSignals(runId)
    const known = this.#delivered.get(runId)
    if (this.#receivers.has(runId)) this.#delivered.set(runId, new Set(pending.map(({ id }) => id)))
    return pending.flatMap(({ id, signal }) => (known?.has(id) ? [] : signal))
  }
}

const POLL_MS = 250

/** Whether a run has a signal that it has not recorded, such as the answer that it waits for. */
export async function isSignalled({ runs }: SessionStore, runId: string): Promise<boolean> {
  return (await runs.signalled([runId])).length > 0
}

/** Stops a run of any process: a queued one ends at once, a running one by a signal. */
export async function stopStored(store: SessionStore, runId: string): Promise<void> {
  const { runs } = store
  const run = await runs.findRun(runId)
  if (!run) throw unknownRun(runId)
  if (run.finished) return
  const isOutside = run.state === 'queued' || run.state === 'scheduled'
  if (isOutside && (await endQueued(store, run))) return
  await runs.sendSignal(runId, { type: 'stop' })
}

function endQueued({ runs }: SessionStore, { runId, key, lastSeq }: RunSummary): Promise<boolean> {
  const events = numbered([abortedFinish()], { sessionId: key.sessionId, runId }, lastSeq)
  return runs.endQueued(
    runId,
    events.map(event => ({ ...event })),
  )
}

/** Answers a call that waits in a run of another process. Fails when none waits under that id. */
export async function answerStored(
  store: SessionStore,
  runId: string,
  callId: string,
  answer: RunAnswer,
): Promise<void> {
  const { runs } = store
  const questions = await openQuestions(runs, runId)
  const asked = questions.find(callId)
  const run = isOutcome(answer) && asked === undefined ? await runs.findRun(runId) : undefined
  if (run?.finished && isOutcome(answer) && (await answerUnknown(store, run, callId, answer))) return
  if (asked === undefined) throw nothingWaits(runId, callId, questions.list)
  const kind = asked.about === undefined ? asked.asks : 'confirmation'
  if (!FITS[kind](answer)) throw otherAnswer(callId, kind)
  if (kind === 'outcome') await checkResult(asked, outcomeIn(answer))
  await runs.sendSignal(runId, signalOf(asked, answer))
}

/** Refuses a confirmation without the output that another node of the workflow uses, or with one of another form. */
async function checkResult(
  { callId, tool, needsResult, resultSchema }: RunQuestion,
  given: GivenOutcome | undefined,
): Promise<void> {
  if (given?.answer !== 'happened') return
  const details = { callId, tool, ...defined({ resultSchema }) }
  if (given.result === undefined) {
    if (!needsResult) return
    const message = `The output of "${tool}" is used by the workflow. Answer { happened: true, result } with what it returned, or run or leave.`
    throw new AgentError('invalid-argument', message, { details })
  }
  if (!resultSchema) return
  const { z } = await import('zod')
  const schema = z.fromJSONSchema(resultSchema as Parameters<typeof z.fromJSONSchema>[0])
  const { error } = schema.safeParse(given.result)
  if (!error) return
  const message = `The result does not satisfy the output schema of "${tool}": ${z.prettifyError(error)}`
  throw new AgentError('invalid-argument', message, { details })
}

function signalOf({ callId, asks }: RunQuestion, answer: RunAnswer): RunSignal {
  if (isApproval(answer)) return { type: 'approval', callId, answer }
  if (isOutcome(answer)) return { type: 'outcome', callId, answer }
  const outcome = asks === 'outcome' ? outcomeIn(answer) : undefined
  return outcome ? { type: 'outcome', callId, ...outcome } : { type: 'response', callId, response: answer }
}

/** What a call may wait for. A confirmation of ADK's is an approval that may carry a payload. */
type AskedKind = RunQuestion['asks'] | 'confirmation'

const FITS: Readonly<Record<AskedKind, (answer: RunAnswer) => boolean>> = {
  approval: isApproval,
  confirmation: answer => isApproval(answer) || typeof answer === 'object',
  outcome: answer => outcomeIn(answer) !== undefined,
  result: answer => typeof answer === 'object',
}

/**
 * Answers a call of a run that this process may execute. The answer is stored first: the process may end before the run
 * has recorded it. Returns whether the run got it here.
 */
export async function answerKept(
  store: SessionStore,
  loop: RunLoop | undefined,
  { runId, callId, answer }: { runId: string; callId: string; answer: RunAnswer },
): Promise<boolean> {
  try {
    await answerStored(store, runId, callId, answer)
  } catch (error) {
    // The question itself may not be stored yet. An answer that the store did not take is not acknowledged: the process
    // may end before the run has recorded it.
    const isUnasked = error instanceof AgentError && error.code === 'run-not-found'
    if (!isUnasked || !loop?.answer(callId, answer)) throw error
    return true
  }
  return loop?.answer(callId, answer) ?? false
}

/** A run that this process executes, until `over`. */
interface LeftRun {
  readonly loop?: RunLoop
  readonly over?: Promise<void>
}

/** Hands over runs because the process ends, after `drained`. Where that is not possible they may end within `graceMs`. */
export async function leaveToOthers(
  drained: Promise<void> | undefined,
  others: () => readonly LeftRun[],
  graceMs: number,
): Promise<void> {
  await within(Math.min(STOP_MS, graceMs), Promise.resolve(drained))
  for (const { loop } of others()) if (loop?.isResumable) void loop.handOver(graceMs)
  await within(graceMs, Promise.all(others().map(({ over }) => over)))
  const left = others()
  // One that was taken over meanwhile, or whose tool takes long, is given back as it is.
  for (const { loop } of left) if (loop) giveBack(loop)
  await within(STOP_MS, Promise.all(left.map(({ over }) => over)))
}

/** How long beginning a run, or leaving one, may take when the process ends. */
const STOP_MS = 3000

/** Stops working on a run because the process ends. */
function giveBack(loop: RunLoop): void {
  if (loop.isResumable) void loop.leave('handover')
  else loop.stop(processEnds(0))
}

/** Asks for the approvals that a run of another process requests, and sends the answers there. */
export function answerElsewhere(
  events: readonly RunEvent[],
  onApproval: OnApproval,
  { store, logger }: Pick<RunHost, 'store' | 'logger'>,
): void {
  for (const event of events) {
    if (event.type !== 'approval-request') continue
    const { id, name, args, sessionId, runId } = event
    void askPerson(onApproval, { id, name, args, sessionId, runId })
      .then(answer => answerStored(store, runId, id, answer))
      .catch(error => {
        logger.debug('An approval had no effect', { runId, error: messageOf(error) })
      })
  }
}

/** What the run waits for, from its stored events. */
async function openQuestions(runs: RunStore, runId: string): Promise<OpenQuestions> {
  const questions = new OpenQuestions()
  for await (const event of storedEvents(runs, runId)) questions.add(event)
  return questions
}

function otherAnswer(callId: string, asked: AskedKind): AgentError {
  const expected: Readonly<Record<AskedKind, string>> = {
    approval: 'an approval: once, always or no',
    confirmation: 'a confirmation: once, no, or an object such as { confirmed: true, payload }',
    outcome: 'an outcome: happened, run, leave, or { happened: true, result }',
    result: 'its result: an object',
  }
  return new AgentError('invalid-argument', `The call "${callId}" waits for ${expected[asked]}.`)
}

/** Refuses what is no answer: it would count as a no. */
export function checkAnswer(answer: unknown): void {
  const known: readonly unknown[] = ['once', 'always', 'no', 'happened', 'run', 'leave']
  if (known.includes(answer) || isRecord(answer)) return
  throw new AgentError(
    'invalid-argument',
    'The answer must be once, always or no for an approval, happened, run, leave or { happened: true, result } for an unknown outcome, and an object for the result of a long-running tool.',
  )
}

function nothingWaits(runId: string, callId: string, open: readonly RunQuestion[]): AgentError {
  const waitsFor = open.map(({ callId: id, tool, asks }) => ({ callId: id, tool, asks }))
  const waiting = waitsFor.map(({ callId: id, tool, asks }) => `"${id}" (${asks} of ${tool})`).join(', ')
  const why = waiting === '' ? 'it was answered before, or the run has ended' : `the run waits for ${waiting}`
  return new AgentError(
    'run-not-found',
    `No call "${callId}" of run "${runId}" waits for an answer: ${why}.`,
    {
      details: { waitsFor },
    },
  )
}
