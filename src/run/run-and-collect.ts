import { breaksIn } from '../base/prefix-break.js'
import { AgentError } from '../errors.js'
import type { HistoryCut } from '../session/message.js'
import type { OutputSchema } from '../session/model-options.js'
import { emptyUsage, type RunUsage, sumUsage } from '../session/usage.js'
import type { StandardSchema } from '../tool.js'
import { numbered } from './event-numbers.js'
import { SaidInEvents } from './event-reader.js'
import { OpenQuestions } from './open-questions.js'
import type { RunEvent, RunEventBody, RunFinishReason, RunRepair } from './run-event.js'
import type { EventLists } from './run-host.js'

/** A tool call that a run waits for a person to answer with `runtime.answer`. */
export interface WaitingCall {
  id: string
  name: string
  args: Record<string, unknown>
  /** Whether the call may run, whether a call whose outcome is unknown took effect, or what a long-running call returns. */
  question: 'approval' | 'outcome' | 'result'
}

/** A finished run, or one that waits for a person. */
export interface RunResult<Output = unknown> {
  /** Everything that the last author who said anything said in the run, in order; steps are paragraphs. */
  text: string
  /** The last step of `text`: without what was said before tool calls. */
  lastText: string
  /** The answer as data, where there is an `outputSchema`. Absent when a limit ended the run before the answer was complete. */
  output?: Output
  sessionId: string
  runId: string
  finishReason: Exclude<RunFinishReason, 'error'>
  /** With the finish reason `waiting`: the calls that a person has to answer. The run continues when they are answered. */
  pending?: readonly WaitingCall[]
  turns: number
  delegations: number
  /**
   * Every change that was made to the history before it was sent, in order. In this release the breaks are here, too; that
   * is deprecated: read them from `breaks`.
   */
  repairs: RunRepair[]
  /** Requests that do not extend the one before them, so that a prompt cache has to read them again: why, and how much. */
  breaks: RunRepair[]
  /** What the token budget left out, in order. */
  cuts: HistoryCut[]
  usage: RunUsage
}

/**
 * A run, collected. Throws the run's `AgentError` when it ended in one.
 *
 * @spec RunAndCollect
 */
export async function runAndCollect<Output = unknown>(
  lists: AsyncIterable<readonly RunEvent[]>,
  schema?: OutputSchema<Output>,
): Promise<RunResult<Output>> {
  const collected = new Collected()
  for await (const events of lists) {
    for (const event of events) {
      collected.add(event)
      if (event.type === 'run-finish') return withOutput(collected.end(event), schema)
    }
  }
  const { output: _none, ...waiting } = collected.wait()
  return waiting
}

/** The answer as the caller's schema returns it, with its defaults and transformations. */
async function withOutput<Output>(
  { output, ...result }: RunResult,
  schema: OutputSchema<Output> | undefined,
): Promise<RunResult<Output>> {
  if (output === undefined) return result
  // Without a schema that returns something else, the answer itself is what was asked for.
  if (!schema || !('~standard' in schema)) return { ...result, output: output as Output }
  const checked = await (schema as StandardSchema<Output>)['~standard'].validate(output)
  if (!checked.issues) return { ...result, output: checked.value }
  const problem = checked.issues.map(({ message }) => message).join('; ')
  throw new AgentError(
    'output-invalid',
    `The answer of run ${result.runId} does not satisfy \`outputSchema\`: ${problem}. The run was started with another schema.`,
  )
}

/**
 * The lists of a generator, and then those that `follow` returns for the number of its last event. Not a generator itself:
 * that would cost every list several promises.
 */
export function continued(
  first: EventLists,
  follow: (lastSeq: number) => EventLists | undefined,
): EventLists {
  let current = first
  let lastSeq = 0
  let mayFollow = true
  const seen = (result: IteratorResult<readonly RunEvent[], void>): Awaitable<typeof result> => {
    if (!result.done) lastSeq = result.value.at(-1)?.seq ?? lastSeq
    const next = result.done && mayFollow ? follow(lastSeq) : undefined
    if (result.done) mayFollow = false
    if (next) current = next
    return next ? next.next() : result
  }
  return {
    next: () => (mayFollow ? current.next().then(seen) : current.next()),
    return: value => {
      mayFollow = false
      return current.return(value)
    },
    throw: error => {
      mayFollow = false
      return current.throw(error)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

type Awaitable<T> = T | Promise<T>

/** The events of a run. Where it waits between two rounds, they end with one that says so; it is not stored. */
export async function* endedByWaiting(
  lists: AsyncIterable<readonly RunEvent[]>,
): AsyncGenerator<readonly RunEvent[], void, undefined> {
  const collected = new Collected()
  let last: RunEvent | undefined
  for await (const events of lists) {
    for (const event of events) collected.add(event)
    last = events.at(-1) ?? last
    yield events
  }
  if (!last || last.type === 'run-finish' || !collected.isWaiting) return
  const { text, lastText, finishReason, turns, delegations, usage } = collected.wait()
  const { sessionId, runId, seq } = last
  const end: RunEventBody = { type: 'run-finish', finishReason, text, lastText, turns, delegations, usage }
  yield numbered([end], { sessionId, runId }, seq)
}

/** What the events of a run add up to. */
class Collected {
  readonly #repairs: RunRepair[] = []
  readonly #cuts: HistoryCut[] = []
  readonly #questions = new OpenQuestions()
  readonly #said = new SaidInEvents()
  readonly #usage: RunUsage[] = []
  #identity: { sessionId: string; runId: string } | undefined
  #failure: AgentError | undefined

  add(event: RunEvent): void {
    const { sessionId, runId } = event
    this.#identity = { sessionId, runId }
    this.#said.add(event)
    if (event.type === 'repair') this.#repairs.push(...event.repairs)
    if (event.type === 'history-cut') this.#cuts.push(event.cut)
    if (event.type === 'usage') this.#usage.push(event.usage)
    if (event.type === 'error') this.#failure = asAgentError(event.error)
    this.#questions.add(event)
  }

  end(event: Extract<RunEvent, { type: 'run-finish' }>): RunResult {
    if (event.finishReason === 'error') throw this.#failure ?? unfinished()
    const { text, lastText = text, output, sessionId, runId, finishReason, turns, delegations, usage } = event
    const [repairs, breaks, cuts] = [this.#repairs, breaksIn(this.#repairs), this.#cuts]
    const result = {
      text,
      lastText,
      sessionId,
      runId,
      finishReason,
      turns,
      delegations,
      repairs,
      breaks,
      cuts,
      usage,
    }
    return output === undefined ? result : { ...result, output }
  }

  get isWaiting(): boolean {
    return this.#questions.list.length > 0
  }

  /** The events ended before the run did: it waits for a person, or its process ends. */
  wait(): RunResult {
    if (!this.isWaiting || !this.#identity) throw this.#failure ?? unfinished()
    const pending = this.#questions.list.map(({ callId: id, tool: name, args, asks: question }) => ({
      id,
      name,
      args: { ...args },
      question,
    }))
    return {
      ...this.#said.end(),
      ...this.#identity,
      finishReason: 'waiting',
      pending,
      turns: 0,
      delegations: 0,
      repairs: this.#repairs,
      breaks: breaksIn(this.#repairs),
      cuts: this.#cuts,
      usage: this.#usage.length === 0 ? emptyUsage() : sumUsage(this.#usage),
    }
  }
}

function asAgentError(error: Extract<RunEvent, { type: 'error' }>['error']): AgentError {
  return error instanceof AgentError ? error : new AgentError(error.code, error.message, error)
}

function unfinished(): AgentError {
  return new AgentError('run-interrupted', 'The run ended without its last event.', { retryable: true })
}
