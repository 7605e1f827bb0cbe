import type { Event, FunctionCall } from '../adk/sdk.js'
import { AgentError, messageOf } from '../errors.js'
import { type CallItem, pairCalls } from '../session/pair-calls.js'
import { TRANSFER_TOOL } from './run-limits.js'

/**
 * What the model is told when it names an agent that does not exist. The words are the specification's.
 *
 * @spec RunAndCollect hallucination retry
 */
export function agentNameCorrection(name: string, validNames: readonly string[]): string {
  return (
    `[System: Agent "${name}" does not exist. Valid agents: ${validNames.join(', ')}. ` +
    'Please retry using one of the valid agent names listed above.]'
  )
}

/** An agent as far as its place in the tree goes. */
export interface NamedAgent {
  readonly name: string
  readonly subAgents?: readonly NamedAgent[] | undefined
}

/** The names of all agents below this one, depth first. */
export function subAgentNames(agent: NamedAgent): string[] {
  return (agent.subAgents ?? []).flatMap(child => [child.name, ...subAgentNames(child)])
}

/** The little of an event that a transfer is known by. */
interface TransferEvent {
  partial?: boolean | undefined
  content?:
    | {
        parts?:
          | readonly { functionCall?: { name?: string; args?: Record<string, unknown> } | undefined }[]
          | undefined
      }
    | undefined
}

/** The agent that a model wants to hand over to, if the event asks for that. */
export function transferTarget(event: TransferEvent): string | undefined {
  const parts = event.partial ? [] : (event.content?.parts ?? [])
  const call = parts.find(part => part.functionCall?.name === TRANSFER_TOOL)?.functionCall
  return call && String(call.args?.agentName ?? call.args?.agent_name ?? '')
}

/** The model named an agent that is not there. */
export function agentNotFound(name: string): AgentError {
  return new AgentError(
    'agent-not-found',
    `The model asked for the agent "${name}", which does not exist. Check the agents' names and descriptions.`,
    { details: { name } },
  )
}

/** Whatever was thrown inside a run, as our error. */
export function asAgentError(error: unknown): AgentError {
  if (error instanceof AgentError) return error
  const message = typeof error === 'string' ? error : messageOf(error)
  return new AgentError('internal', `The run failed inside ADK: ${message}`, { cause: error })
}

/** The retry error wins; what led to it is its cause. */
export function withCause(error: AgentError, cause: AgentError): AgentError {
  return new AgentError(error.code, error.message, {
    retryable: error.retryable,
    details: error.details,
    cause,
  })
}

/** A call or an answer, and who made it. */
type SeenItem = CallItem & { identity: Identity }

interface Identity {
  author: string
  invocationId: string
  branch?: string
}

/** What a call is answered with when its run ends before the tool does. */
const INTERRUPTED = '[no response available]'

/** The parts that answer the open calls of one agent in one branch. */
interface ClosingAnswer {
  author: string
  invocationId: string
  branch?: string
  parts: { functionResponse: { id: string; name: string; response: Record<string, unknown> } }[]
}

/** Remembers which calls of a run have no answer yet, so that a run never ends with an open call. */
export class PendingCalls {
  /** Agents that work side by side may use the same ids, so calls are paired within their branch. */
  readonly #branches = new Map<string, SeenItem[]>()
  /** Calls that are answered after the run: by a long-running tool, or by a person. */
  readonly #waiting = new Set<CallItem>()
  #events = 0

  observe(event: Event): void {
    if (event.partial) return
    const { author = '', invocationId, branch, content } = event
    const identity = { author, invocationId, ...(branch === undefined ? {} : { branch }) }
    const longRunning = new Set(event.longRunningToolIds ?? [])
    const seen = this.#branches.get(branch ?? '') ?? []
    this.#branches.set(branch ?? '', seen)
    this.#events += 1
    for (const { functionCall, functionResponse } of content?.parts ?? []) {
      const { id, name } = functionCall ?? functionResponse ?? {}
      if (id === undefined) continue
      const waiting = functionCall && waitingCall(functionCall)
      const asked = seen.findLast(item => item.kind === 'call' && item.id === waiting)
      if (asked) this.#waiting.add(asked)
      const item: SeenItem = {
        kind: functionCall ? 'call' : 'answer',
        id,
        name,
        at: this.#events,
        turn: 0,
        identity,
      }
      seen.push(item)
      if (functionCall && longRunning.has(id)) this.#waiting.add(item)
    }
  }

  /** Answers to every open call: one per agent, invocation and branch, as ADK would have written them. */
  close(reason: string): ClosingAnswer[] {
    const answers = new Map<string, ClosingAnswer>()
    for (const { id = '', name = '', identity } of this.#open()) {
      const group = JSON.stringify(identity)
      const answer = answers.get(group) ?? { ...identity, parts: [] }
      answer.parts.push({ functionResponse: { id, name, response: { error: `${INTERRUPTED} ${reason}` } } })
      answers.set(group, answer)
    }
    this.#branches.clear()
    this.#waiting.clear()
    return [...answers.values()]
  }

  #open(): SeenItem[] {
    return [...this.#branches.values()].flatMap(seen => {
      const answered = new Set(pairCalls(seen).map(pair => pair?.call))
      return seen.filter(
        (item, index) => item.kind === 'call' && !answered.has(index) && !this.#waiting.has(item),
      )
    })
  }
}

/** ADK's questions to a person name the call that waits for the answer: it is run by the next message, not closed. */
function waitingCall({ name, args }: FunctionCall): string | undefined {
  if (!name?.startsWith('adk_request_')) return undefined
  const original = args?.originalFunctionCall
  const id =
    typeof original === 'object' && original !== null
      ? Reflect.get(original, 'id')
      : (args?.function_call_id ?? args?.functionCallId)
  return typeof id === 'string' ? id : undefined
}
