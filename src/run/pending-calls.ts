/** The calls of a run that have no answer: those that a person answers later, and those that must not stay open. */
import type { FunctionCall } from '../adk/sdk.js'
import { CONFIRMATION_TOOL, isRequestTool } from '../base/names.js'
import { type CallItem, pairCalls } from '../session/pair-calls.js'
import type { ConfirmationArgs } from './event-reader.js'

/** An event of a session as far as its calls go; a stored message has the same. */
export interface SeenEvent {
  id?: string | undefined
  author?: string | undefined
  invocationId?: string | undefined
  branch?: string | undefined
  partial?: boolean | undefined
  longRunningToolIds?: readonly string[] | undefined
  content?: { parts?: readonly SeenPart[] | undefined } | undefined
}

interface SeenPart {
  functionCall?: FunctionCall | undefined
  functionResponse?: { id?: string | undefined; name?: string | undefined } | undefined
}

/** A call or an answer, and who made it. */
type SeenItem = CallItem & { identity: Identity; isPending?: boolean; about?: ConfirmedCall | undefined }

interface Identity {
  author: string
  invocationId: string
  branch?: string
  /** The message that holds the call. */
  messageId: string
}

/** A call that has no answer. */
export interface OpenCall {
  messageId: string
  id: string
  /** A long-running tool has it: its answer may come after the run. */
  isPending: boolean
}

/** A request of ADK's to a person, or a long-running call without a result: answered between two rounds. */
export interface OpenRequest {
  id: string
  name: string
  /** The call that a confirmation is about. */
  about?: ConfirmedCall | undefined
}

export interface ConfirmedCall {
  id: string
  name: string
  args: Readonly<Record<string, unknown>>
  reason?: string | undefined
}

/** The answers to the open calls of one message. */
export interface ClosingAnswer extends Omit<Identity, 'messageId'> {
  answers: { id: string; name: string; response: unknown }[]
}

/** The calls of a run that have no answer yet, so that no run ends with an open call. */
export class PendingCalls {
  /** Parallel agents may use the same ids, so calls are paired within their branch. */
  readonly #branches = new Map<string, SeenItem[]>()
  /** Calls that wait for the answer to a request, by the id of the request. */
  readonly #asked = new Map<string, CallItem>()
  #events = 0

  observe(event: SeenEvent): void {
    if (event.partial) return
    const { id: messageId = '', author = '', invocationId = '', branch, content } = event
    const identity = { author, invocationId, ...(branch === undefined ? {} : { branch }), messageId }
    const longRunning = new Set(event.longRunningToolIds ?? [])
    const seen = this.#branches.get(branch ?? '') ?? []
    this.#branches.set(branch ?? '', seen)
    this.#events += 1
    for (const { functionCall, functionResponse } of content?.parts ?? []) {
      const { id, name } = functionCall ?? functionResponse ?? {}
      if (id === undefined) continue
      if (functionCall) this.#noteRequest(id, functionCall, seen)
      else this.#asked.delete(id)
      const isPending = functionCall !== undefined && longRunning.has(id)
      const kind = functionCall ? 'call' : 'answer'
      const about = functionCall && confirmedCall(functionCall)
      const lane = functionResponse && author === 'user' ? this.#askedIn(id, seen) : seen
      lane.push({ kind, id, name, at: this.#events, turn: 0, identity, isPending, about })
    }
  }

  /** Where a person's answer belongs: it comes without the branch on which a node as a tool has asked. */
  #askedIn(id: string, own: SeenItem[]): SeenItem[] {
    const asks = (seen: SeenItem[]) => seen.some(item => item.kind === 'call' && item.id === id)
    return asks(own) ? own : ([...this.#branches.values()].find(asks) ?? own)
  }

  #noteRequest(requestId: string, call: FunctionCall, seen: readonly SeenItem[]): void {
    const waiting = waitingCall(call)
    if (waiting === undefined) return
    const asked = seen.findLast(item => item.kind === 'call' && item.id === waiting)
    if (asked) this.#asked.set(requestId, asked)
  }

  /** What ADK leaves for the next round: requests to people, and long-running calls without a result. */
  requests(): OpenRequest[] {
    return this.#open().flatMap(({ id = '', name = '', isPending, about }) =>
      isPending ? [{ id, name, about }] : [],
    )
  }

  /**
   * Answers to the open calls: one list per message that holds calls, as ADK would have written them. `answerOf` gives
   * the response of a call; without one the call stays open.
   */
  close(answerOf: (call: OpenCall) => unknown): ClosingAnswer[] {
    const closing = this.answers(answerOf)
    this.#branches.clear()
    this.#asked.clear()
    return closing
  }

  /** As `close`, of a run that does not end. */
  answers(answerOf: (call: OpenCall) => unknown): ClosingAnswer[] {
    const closing = new Map<string, ClosingAnswer>()
    for (const { id = '', name = '', identity, isPending = false } of this.#open()) {
      const { messageId, ...owner } = identity
      const response = answerOf({ messageId, id, isPending })
      if (response === undefined) continue
      const group = JSON.stringify(identity)
      const answer = closing.get(group) ?? { ...owner, answers: [] }
      answer.answers.push({ id, name, response })
      closing.set(group, answer)
    }
    return [...closing.values()]
  }

  #open(): SeenItem[] {
    const asked = new Set(this.#asked.values())
    const open = [...this.#branches.values()].flatMap(seen => {
      const answered = new Set(pairCalls(seen).map(pair => pair?.call))
      return seen.filter((item, index) => item.kind === 'call' && !answered.has(index) && !asked.has(item))
    })
    // A node as a tool asks on a branch of its call: the answer goes to the node, whose output is the result of the call.
    const asking = open
      .filter(({ name }) => isRequestTool(name))
      .map(({ identity }) => `.${identity.branch}.`)
    return open.filter(({ name, id }) => !asking.some(branch => branch.includes(`.${name}@${id}.`)))
  }
}

/** The call that a request for confirmation is about. */
function confirmedCall({ name, args }: FunctionCall): ConfirmedCall | undefined {
  const { originalFunctionCall: original, toolConfirmation } = (args ?? {}) as ConfirmationArgs
  if (name !== CONFIRMATION_TOOL || !original) return undefined
  const reason = toolConfirmation?.hint
  return { id: original.id ?? '', name: original.name ?? '', args: original.args ?? {}, reason }
}

/** ADK's request to a person names the call that waits for the answer: the next message runs it, so it is not closed. */
function waitingCall({ name, args }: FunctionCall): string | undefined {
  if (!isRequestTool(name)) return undefined
  const original = args?.originalFunctionCall
  const id =
    typeof original === 'object' && original !== null
      ? Reflect.get(original, 'id')
      : (args?.function_call_id ?? args?.functionCallId)
  return typeof id === 'string' ? id : undefined
}
