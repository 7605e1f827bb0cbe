/** The model of a simulation. What it says depends on the request alone, so that any process gets the same answer. */
import { paidIn } from '../chaos/orders.js'
import { isRecord } from '../src/base/is-record.js'
import { CONFIRMATION_TOOL } from '../src/base/names.js'
import { AgentError } from '../src/errors.js'
import type { GenerateRequest, ModelInfo, Provider, ProviderMessage } from '../src/provider/provider.js'
import type { StreamEvent } from '../src/provider/stream-event.js'
import { ANSWERED_LATER } from './bank.js'
import { type PlannedCall, stepsIn } from './plan.js'
import type { SimulatedProcess } from './process.js'

/** How often one order is asked for: in one turn, in one turn that insists, in a session. */
const MOST_CALLS = { turn: 1, insisting: 2, session: 5 }

export class SimulatedModel implements Provider {
  readonly id = 'play'
  readonly #process: SimulatedProcess
  /** Requests that no provider would take. */
  readonly #refuse: (detail: string) => void

  constructor(process: SimulatedProcess, refuse: (detail: string) => void) {
    this.#process = process
    this.#refuse = refuse
  }

  describeModel(id: string): ModelInfo {
    return { id, contextWindow: 1_000_000, outputLimit: 64_000, profile: 'openai-chat', known: true }
  }

  async *generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const { model, messages } = request
    const profile = 'openai-chat'
    const problem = illegalIn(messages)
    if (problem !== undefined) this.#refuse(problem)
    yield { type: 'request', model, profile, repairs: [], mappedIds: {}, body: { count: messages.length } }
    try {
      await this.#process.reach('model:before')
      const calls = nextCalls(request)
      yield { type: 'text-delta', text: calls.length > 0 ? 'Let me ' : 'All of it ' }
      await this.#process.reach('model:middle')
      if (signal?.aborted) throw new AgentError('aborted', 'The model call was aborted.')
      yield { type: 'text-delta', text: calls.length > 0 ? 'see to that.' : 'is done.' }
      for (const call of calls) yield { type: 'tool-call', id: '', ...call }
      yield { type: 'usage', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }
      await this.#process.reach('model:after')
      yield { type: 'done', finishReason: calls.length > 0 ? 'tool-calls' : 'stop' }
    } catch (error) {
      const failed =
        error instanceof AgentError ? error : new AgentError('provider-unavailable', 'The model failed.')
      yield { type: 'error', error: failed }
    }
  }
}

interface Call {
  name: string
  args: Record<string, unknown>
}

/** The calls that the model makes next; none when it is done. */
function nextCalls({ messages, tools = [] }: GenerateRequest): Call[] {
  if (tools.length === 0) return []
  const turn = messages.findLastIndex(message => isAsk(message))
  const ask = turn < 0 ? '' : textOf(messages[turn])
  const inTurn = messages.slice(turn + 1)
  const most = ask.includes('[insist]') ? MOST_CALLS.insisting : MOST_CALLS.turn
  const paid = paidOrders(messages)
  const open = ({ tool, order }: PlannedCall) => {
    if (paid.has(order) || callsOf(order, inTurn) >= most) return false
    // Its result is still to come, or nobody knows whether it was paid.
    if (tool === 'pay_later' && callsOf(order, messages) > 0) return false
    return callsOf(order, messages) < MOST_CALLS.session
  }
  const asked = ask.includes('[all]') ? messages.filter(isAsk).map(textOf).join(' ') : ask
  for (const step of stepsIn(asked)) {
    if (step === 'transfer') {
      if (!inTurn.some(message => textOf(message).includes('transfer_to_agent'))) return transfer(messages)
      continue
    }
    const calls = step.filter(open)
    if (calls.length > 0) return calls.map(({ tool, order }) => ({ name: tool, args: { order } }))
  }
  return []
}

/** The orders that a result reports as paid, by the bank or by a person. */
function paidOrders(messages: readonly ProviderMessage[]): Set<string> {
  const paid = new Set(messages.flatMap(message => paidIn(textOf(message))))
  const orders = new Map<string, string>()
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === 'tool-call' && isRecord(part.args)) orders.set(part.id, String(part.args.order))
      if (part.type === 'tool-result' && textOf({ role: 'tool', parts: [part] }).includes(CONFIRMED))
        paid.add(orders.get(part.id) ?? '')
      // What another agent did appears without the ids of its calls: any of them may be meant.
      if (part.type === 'text' && part.text.includes(CONFIRMED))
        for (const [, order = ''] of JSON.stringify(messages).matchAll(/order[\\"]+:[\\"]+([\w-]+)/g))
          paid.add(order)
    }
  }
  return paid
}

const CONFIRMED = 'has confirmed that this call took effect'

/** To the agent that is not asked now. */
function transfer(messages: readonly ProviderMessage[]): Call[] {
  const isRoot = messages.some(({ role, parts }) => role === 'system' && JSON.stringify(parts).includes(ROOT))
  return [{ name: 'transfer_to_agent', args: { agentName: isRoot ? 'teller' : 'clerk' } }]
}

/** In the instruction of the root agent. */
export const ROOT = 'You are the clerk.'

function isAsk({ role, parts, writtenBy }: ProviderMessage): boolean {
  if (role !== 'user' || writtenBy === 'program') return false
  return parts.some(part => part.type === 'text' && part.text.startsWith('[message '))
}

/** Everything that a message says, as one text; what another agent called appears as text. */
function textOf(message: ProviderMessage | undefined): string {
  const texts = message?.parts.map(part => {
    if (part.type === 'text') return part.text
    if (part.type === 'tool-call') return `called ${part.name} ${JSON.stringify(part.args)}`
    return part.type === 'tool-result' ? JSON.stringify(part.result) : ''
  })
  return texts?.join('\n') ?? ''
}

function callsOf(order: string, messages: readonly ProviderMessage[]): number {
  return messages
    .filter(message => !isAsk(message))
    .reduce((all, { parts }) => all + parts.filter(part => isCallOf(order, part)).length, 0)
}

function isCallOf(order: string, part: ProviderMessage['parts'][number]): boolean {
  if (part.type === 'tool-call') return isRecord(part.args) && part.args.order === order
  return part.type === 'text' && part.text.includes('called tool') && part.text.includes(`"${order}"`)
}

/** Whether a person answers calls of a tool, perhaps after other messages. */
export function isAnsweredLater(name: string): boolean {
  return name === CONFIRMATION_TOOL || ANSWERED_LATER.some(tool => tool === name)
}

/** A result without a call, or a call without a result. */
function illegalIn(messages: readonly ProviderMessage[]): string | undefined {
  const open = new Map<string, string>()
  for (const { role, parts } of messages) {
    for (const part of parts) {
      if (part.type === 'tool-call') open.set(part.id, part.name)
      if (part.type !== 'tool-result' || open.delete(part.id)) continue
      // The call of another agent is described in words; repair makes a note of a person's answer to it.
      if (!isAnsweredLater(part.name)) return `a result of ${part.name} has no call`
    }
    const isAnswer = role === 'user' && !parts.some(part => part.type === 'tool-result')
    const unanswered = [...open.values()].filter(name => !isAnsweredLater(name))
    if (isAnswer && unanswered.length > 0) return `calls have no result: ${unanswered.join(', ')}`
  }
  return undefined
}
