/** How a run recovers from an unknown agent and an abort, and how its failures are reported. */

import { adkFailure } from '../adk/adk-quirks.js'
import { type Content, type Event, isBaseAgent, type RunnableRoot } from '../adk/sdk.js'
import { type FailureOrigin, originOf } from '../base/failure-origin.js'
import { ABORTED_MARKER } from '../base/markers.js'
import { AgentError, messageOf } from '../errors.js'
import type { CheckedOutput } from '../session/model-options.js'
import { type NamedAgent, subAgentNames } from './event-reader.js'
import type { StoredNote } from './run-host.js'
import { transferTarget } from './run-limits.js'

/**
 * The correction that a model gets when it names an agent that does not exist. The text is the specification's.
 *
 * @spec RunAndCollect hallucination retry
 */
function agentNameCorrection(name: string, validNames: readonly string[]): string {
  return (
    `[System: Agent "${name}" does not exist. Valid agents: ${validNames.join(', ')}. ` +
    'Please retry using one of the valid agent names listed above.]'
  )
}

/** The failure of a run: the first one. An unknown agent is kept apart, because it may be corrected once. */
export class RunFailures {
  #failure: AgentError | undefined
  #unknownAgent: AgentError | undefined
  /** The unknown agent that was corrected. */
  #corrected: AgentError | undefined
  /** A name is corrected once in a run. */
  readonly #agentNames: ReadonlySet<string>
  #mayCorrect: boolean

  constructor(agentNames: ReadonlySet<string>, isCorrected = false) {
    this.#agentNames = agentNames
    this.#mayCorrect = !isCorrected
  }

  get failure(): AgentError | undefined {
    return this.#failure
  }

  keep(failure: AgentError | undefined): void {
    this.#failure ??= failure
  }

  /** Any value that was thrown inside the run, and the event that reports it, if one does. */
  add(error: unknown, event?: Event): void {
    const message = typeof error === 'string' ? error : messageOf(error)
    const reason = adkFailure(message, { whole: error instanceof AgentError })
    if (reason.kind === 'unknown-agent') this.#unknownAgent ??= agentNotFound(reason.name)
    else this.keep(asAgentError(error, originOf(error) ?? (event && reporterOf(event, this.#agentNames))))
  }

  /** Whether a model hands over although there is no other agent: that is the failure. */
  missesTarget(root: RunnableRoot, event: Event): boolean {
    const name = isBaseAgent(root) && root.subAgents.length === 0 ? transferTarget(event) : undefined
    if (name !== undefined) this.keep(agentNotFound(name))
    return name !== undefined
  }

  /** The correction of an unknown agent's name; without other agents the run fails. */
  correction(root: NamedAgent): Content | undefined {
    const unknown = this.#unknownAgent
    if (!unknown || !this.#mayCorrect) return undefined
    const valid = subAgentNames(root)
    if (valid.length === 0) return undefined
    this.#corrected = unknown
    this.#mayCorrect = false
    this.#unknownAgent = undefined
    return asUser(agentNameCorrection(String(unknown.details.name), valid))
  }

  /** The rounds are over: what is left of an unknown agent is the failure. */
  judge(): void {
    const again = this.#unknownAgent ?? this.#failure
    if (again) this.#failure = this.#corrected ? withCause(again, this.#corrected) : again
  }
}

/** What the answer of a run is, as far as its form goes. */
interface SpokenAnswer {
  readonly author: string
  readonly lastText: string
}

/** The last answer of a run as data of a schema. The model gets one correction. */
export class AnswerForm {
  /** The answer, once it was checked. */
  output: unknown
  readonly #outputs: ReadonlyMap<string, CheckedOutput>
  readonly #ofRun: CheckedOutput | undefined
  #mayCorrect: boolean

  /** `outputs`: the schemas of agents; `ofRun`: that of the run, which comes before them. */
  constructor(
    outputs: ReadonlyMap<string, CheckedOutput>,
    ofRun: CheckedOutput | undefined,
    isCorrected = false,
  ) {
    this.#outputs = outputs
    this.#ofRun = ofRun
    this.#mayCorrect = !isCorrected
  }

  /** The schema of an agent's answer. */
  schemaOf(agent: string): CheckedOutput | undefined {
    return this.#ofRun ?? this.#outputs.get(agent)
  }

  /** The round that corrects the answer. An answer that a limit has ended is taken as it is. */
  async nextRound(
    { author, lastText }: SpokenAnswer,
    failures: RunFailures,
    isComplete: boolean,
  ): Promise<{ message: Content; isSynthetic: true } | undefined> {
    const schema = this.schemaOf(author)
    if (!schema || failures.failure) return undefined
    const read = readAnswer(lastText)
    const problem = 'problem' in read ? read.problem : await problemOf(schema, read.value)
    if (problem === undefined) this.output = 'value' in read ? read.value : undefined
    if (problem === undefined || !isComplete) return undefined
    if (!this.#mayCorrect) {
      failures.keep(invalidOutput(author, problem))
      return undefined
    }
    this.#mayCorrect = false
    return { message: asUser(outputCorrection(problem)), isSynthetic: true }
  }
}

/** The JSON of an answer. Models that have no such mode like to put it into a block of code. */
function readAnswer(text: string): { value: unknown } | { problem: string } {
  const [, fenced] = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text.trim()) ?? []
  try {
    return { value: JSON.parse(fenced ?? text) }
  } catch (error) {
    return { problem: text.trim() === '' ? 'it is empty' : `it is not JSON (${messageOf(error)})` }
  }
}

async function problemOf(schema: CheckedOutput, value: unknown): Promise<string | undefined> {
  const checked = await schema.validate(value)
  return 'problem' in checked ? checked.problem : undefined
}

function outputCorrection(problem: string): string {
  return (
    `[System: The answer does not satisfy the required schema: ${problem}. ` +
    'Answer again with JSON that satisfies it, and nothing else.]'
  )
}

function invalidOutput(author: string, problem: string): AgentError {
  return new AgentError(
    'output-invalid',
    `The answer of "${author}" does not satisfy \`outputSchema\`, also after a correction: ${problem}. Make the schema simpler, describe it in the instruction, or use another model.`,
    { details: { author, problem } },
  )
}

/** A text by Lango as a message in the user's role. */
function asUser(text: string): Content {
  return { role: 'user', parts: [{ text }] }
}

/** The marker of an aborted run: by the agent that spoke last, so that turns alternate and the same agent continues. */
export function abortMarker(root: NamedAgent, lastAuthor: string | undefined): StoredNote {
  const customMetadata = { lango: { synthetic: true } }
  const author = lastAuthor ?? (root.subAgents?.length ? undefined : root.name)
  if (author === undefined) return { author: 'user', content: asUser(ABORTED_MARKER), customMetadata }
  return { author, content: { role: 'model', parts: [{ text: ABORTED_MARKER }] }, customMetadata }
}

/** The model named an agent that does not exist. */
function agentNotFound(name: string): AgentError {
  return new AgentError(
    'agent-not-found',
    `The model requested a transfer to the agent "${name}", which does not exist. Check the names and descriptions of the agents.`,
    { details: { name } },
  )
}

/** The node of a workflow, or the agent, whose error ADK reports as an event. */
function reporterOf({ nodeInfo, author }: Event, agentNames: ReadonlySet<string>): FailureOrigin | undefined {
  const name = nodeInfo?.path?.split('.').at(-1)?.replace(/@.*/, '') || author
  if (!name) return undefined
  return agentNames.has(name) ? { agent: name } : { node: name }
}

/** Any value that was thrown inside a run, as an `AgentError`. */
function asAgentError(error: unknown, origin: FailureOrigin | undefined): AgentError {
  if (error instanceof AgentError) return error
  const message = typeof error === 'string' ? error : messageOf(error)
  const [[part, name] = []] = Object.entries(origin ?? {})
  if (origin) {
    const where = part === 'tool' ? `A callback of the tool "${name}"` : `The ${part} "${name}"`
    return new AgentError('agent-failed', `${where} failed: ${message}`, { details: origin, cause: error })
  }
  return new AgentError('internal', `The run failed inside ADK: ${message}`, { cause: error })
}

/** The error of the retry, with the error that led to the retry as its cause. */
function withCause(error: AgentError, cause: AgentError): AgentError {
  const { retryable, details } = error
  return new AgentError(error.code, error.message, { retryable, details, cause })
}
