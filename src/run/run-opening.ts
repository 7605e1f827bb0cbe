/** What a run is opened with: its message, its first events, and its input as the store keeps it. */
import { randomUUID } from 'node:crypto'
import type { Content, Part } from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { readDueTime } from '../base/due-time.js'
import { titleOfMessage } from '../base/title.js'
import type { RunTrace } from '../base/trace-context.js'
import { AgentError } from '../errors.js'
import type { Message, SessionKey, State } from '../session/message.js'
import type { CheckedOutput, ModelOptions } from '../session/model-options.js'
import type { QueuedRun, RunInputRecord, RunOpening } from '../session/run-store.js'
import { type Budget, emptyUsage, hasLimits } from '../session/usage.js'
import { numbered } from './event-numbers.js'
import type { RunEvent, RunEventBody } from './run-event.js'
import type { EventLists, RunHost, RunInput } from './run-host.js'

/** A run that is to be accepted, or was: its input, its message as ADK gets it, and as it is stored. */
export interface PreparedRun {
  key: SessionKey
  runId: string
  input: RunInput
  content: Content
  message: Message
  invocationId: string
  /** The schema of the run's own for its answer. */
  output?: CheckedOutput | undefined
  trace?: RunTrace | undefined
}

/** A run that was accepted: it is on disk. */
export interface StartedRun {
  runId: string
  sessionId: string
}

/** Checks the input of a run and prepares what is stored of it. */
export function prepareRun(host: RunHost, input: RunInput): PreparedRun {
  const content = userMessage(input)
  if (input.model !== undefined) host.models.check(input.model)
  for (const reference of input.fallback ?? []) host.models.check(reference)
  host.models.checkAgents(input.model, input)
  const budget = budgetOf(host, input)
  const unpriced = budget && budget.unknownPrice !== 'ignore' && host.models.unpricedAgent(input.model)
  if (unpriced) throw unknownPrice(unpriced)
  const key: SessionKey = {
    appName: host.appName,
    userId: input.userId ?? 'user',
    sessionId: input.sessionId ?? randomUUID(),
  }
  const runId = (input.runId ?? randomUUID()).toLowerCase()
  const output = input.outputSchema && host.checkOutput(input.outputSchema)
  const trace = host.tracing?.accept(input.trace) ?? input.trace
  return { key, runId, input, content, ...host.openingMessage(content), output, trace }
}

/** The budget of a run; `undefined` when nothing is limited. */
export function budgetOf({ budget: own }: Pick<RunHost, 'budget'>, input: RunInput): Budget | undefined {
  if (!own && !input.budget) return undefined
  const budget = { ...own, ...defined({ ...input.budget }) }
  return hasLimits(budget) ? budget : undefined
}

function unknownPrice({ agent, model = 'a model that was made in code' }: { agent: string; model?: string }) {
  return new AgentError(
    'invalid-config',
    `The run has a budget, and the price of ${model}, which agent "${agent}" uses, is not known. Set it as ` +
      '`providers.NAME.models.MODEL.price`, or set `budget.unknownPrice` to "ignore" to call it uncounted.',
    { details: { agent, model } },
  )
}

/**
 * A queued run as another process accepted it. Throws when its model is not known here, unless it is overdue: then it
 * begins, and fails with that error.
 */
export function preparedFrom(
  host: RunHost,
  { key, runId, message, input }: QueuedRun,
  isOverdue: boolean,
): PreparedRun {
  const { model, state, options = {}, ...given } = input as Partial<StoredInput>
  const { request, clientTools, generation, note, budget, trace } = given
  if (model !== undefined && !isOverdue) host.models.check(model)
  const stateDelta = state && {
    ...state.set,
    ...Object.fromEntries(state.removed.map(name => [name, undefined])),
  }
  return {
    key,
    runId,
    input: {
      ...{ ...key, ...options },
      ...defined({ model, stateDelta, budget, request, clientTools, generation, note }),
    },
    content: host.contentOf(message),
    message,
    invocationId: message.invocationId ?? '',
    output: options.outputSchema && host.checkOutput(options.outputSchema),
    trace,
  }
}

/** `undefined` removes a key of the state, and JSON has none. */
interface StoredInput extends Pick<RunInput, 'request' | 'clientTools' | 'generation' | 'note' | 'budget'> {
  model?: string
  state?: { set: State; removed: readonly string[] }
  /** The schema of the answer is stored as JSON schema. */
  options?: ModelOptions
  trace?: RunTrace
}

function storedInput({ input, output, trace }: PreparedRun): RunInputRecord {
  const entries = Object.entries(input.stateDelta ?? {})
  const set = Object.fromEntries(entries.filter(([, value]) => value !== undefined))
  const removed = entries.flatMap(([name, value]) => (value === undefined ? [name] : []))
  const state = entries.length > 0 ? { set, removed } : undefined
  const { model, request, clientTools, generation, note, budget } = input
  const { thinking, temperature, maxOutputTokens, fallback } = input
  const outputSchema = output?.jsonSchema
  const given = defined({ thinking, temperature, maxOutputTokens, fallback, outputSchema })
  const options = Object.keys(given).length > 0 ? given : undefined
  return defined({ model, request, clientTools, generation, note, budget, state, options, trace })
}

/** What the store is given to open or queue the run. */
export function openingOf(host: RunHost, run: PreparedRun, orQueue: boolean): RunOpening {
  const { key, runId, input, message } = run
  const dueAt = readDueTime(input.at)
  const accepted = { userId: key.userId, ...defined({ request: input.request }) }
  const later: RunEventBody =
    dueAt === undefined
      ? { type: 'run-queued', ...accepted, place: 1 }
      : { type: 'run-scheduled', ...accepted, dueAt }
  const queued = eventOf(run, 1, later)
  return {
    key,
    runId,
    title: titleOfMessage(input.text),
    message,
    events: [{ ...startEvent(host, run, 1) }],
    input: storedInput(run),
    ...(orQueue ? { orQueue: { events: [{ ...queued }] } } : {}),
    ...defined({ dueAt }),
  }
}

export function startEvent(host: RunHost, run: PreparedRun, seq: number): RunEvent {
  const model = run.input.model ?? host.models.rootReference
  return eventOf(run, seq, {
    type: 'run-start',
    userId: run.key.userId,
    agent: host.rootAgent.name,
    model,
    ...(model.startsWith('demo/') ? { demo: true } : {}),
    ...defined({ request: run.input.request, note: run.input.note }),
  })
}

/** The events of a run that this process works on from now, for those who trace it. */
export function tracedEvents(
  host: RunHost,
  run: PreparedRun,
  events: EventLists,
  isResumed: boolean,
): EventLists {
  const { key, runId, input, message, trace } = run
  const { name: agent, description } = host.rootAgent
  const model = input.model ?? host.models.rootReference
  const about = { agent, description, model, trace, isResumed, text: message.content }
  return host.tracing?.follow({ runId, sessionId: key.sessionId, ...about }, events) ?? events
}

function eventOf({ key, runId }: PreparedRun, seq: number, body: RunEventBody): RunEvent {
  return { ...body, sessionId: key.sessionId, runId, seq }
}

/** A run whose signal was aborted before it was accepted: it ends as any aborted run does, and stores nothing. */
export async function* stoppedBeforeStart(host: RunHost, run: PreparedRun): EventLists {
  yield [startEvent(host, run, 1), eventOf(run, 2, abortedFinish())]
}

/** The error of a run that was not accepted, because its caller aborted it or the process ends. */
export function abortedBefore({ reason }: AbortSignal): AgentError {
  const isInterrupted = reason instanceof AgentError && reason.code === 'run-interrupted'
  const cause = isInterrupted ? 'The runtime was closed' : 'The signal was aborted'
  return new AgentError('aborted', `${cause} before the run was accepted. Nothing was stored.`, {
    retryable: isInterrupted,
  })
}

/** The end of a run that was stopped before it began. */
export function abortedFinish(finishReason: 'aborted' | 'error' = 'aborted'): RunEventBody {
  const nothing = { text: '', turns: 0, delegations: 0, usage: emptyUsage() }
  return { type: 'run-finish', finishReason, ...nothing }
}

/** The end of a run that was deleted with its session while it worked: nothing is left of it to be continued. */
export function deletedRun(run: PreparedRun, lastSeq: number): RunEvent[] {
  const message = `The run lost its session "${run.key.sessionId}": the session was deleted`
  const error = new AgentError('lease-lost', message, { retryable: true })
  const identity = { sessionId: run.key.sessionId, runId: run.runId }
  return numbered([{ type: 'error', error }, abortedFinish('error')], identity, lastSeq)
}

function userMessage({ text, parts }: RunInput): Content {
  const all: Part[] = [...(text === undefined || text === '' ? [] : [{ text }]), ...(parts ?? [])]
  if (all.length === 0) {
    throw new AgentError('invalid-argument', 'The run has no message. Pass `text`, `parts`, or both.')
  }
  return { role: 'user', parts: all }
}
