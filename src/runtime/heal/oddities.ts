/**
 * What is odd in a stored message although Lango itself sends it right: the bridge reads old roles, gives lost
 * ids and separates results from words on every send. A client that sends the rows unchanged would be rejected, so
 * the doctor names these too, and the copy has them in order.
 */
import type { FindingCode } from '../../provider/repair/finding.js'
import { type Message, normalizeRole, toolCallKind } from '../../session/message.js'
import type { View } from './view.js'

/** One thing that healing changes, and what it does about it. */
export interface Change {
  code: FindingCode
  /** Place of the stored message, from 0. */
  index: number
  /** What is wrong. */
  problem: string
  /** What the copy has instead. */
  remedy: string
  /** The vendor on whose own wire it would be right. */
  nativeTo?: string
}

/** The oddities of all messages, in order. */
export function odditiesOf(messages: readonly Message[], view: View): Change[] {
  const pieces = new Map<number, number>()
  for (const index of view.origins) pieces.set(index, (pieces.get(index) ?? 0) + 1)
  return messages.flatMap((message, index) => {
    const shown = pieces.get(index)
    if (shown === undefined) return []
    return [
      ...roleOddity(message, index),
      ...callOddities(message, index),
      ...partOddities(index, shown, view),
      ...nameOddity(message, index, view),
    ]
  })
}

function roleOddity({ role }: Message, index: number): Change[] {
  const known = normalizeRole(role)
  if (known === undefined || known === role) return []
  const problem = `The role "${role}" is one vendor's name for ${known}.`
  const nativeTo = role === 'model' ? 'gemini' : 'openai'
  return [{ code: 'unknown-role', index, problem, remedy: `The role is written as ${known}.`, nativeTo }]
}

function callOddities(message: Message, index: number): Change[] {
  const changes: Change[] = []
  const calls = message.toolCalls ?? []
  if (normalizeRole(message.role) === 'tool' && calls.length === 0 && message.content !== '') {
    const problem = 'A result does not name its call.'
    changes.push({ code: 'lost-result-id', index, problem, remedy: 'It is bound to the call before it.' })
  }
  for (const call of calls) {
    const kind = toolCallKind(call, message.role)
    if (!call.id) {
      const code = kind === 'response' ? 'lost-result-id' : 'missing-id'
      const problem = `A ${kind === 'response' ? 'result' : 'call'} of ${call.name || 'a tool'} has no id.`
      changes.push({ code, index, problem, remedy: 'Call and result get one id.' })
    }
  }
  return changes
}

function partOddities(index: number, shown: number, view: View): Change[] {
  const changes: Change[] = []
  if (shown > 1) {
    const problem = 'Parts of different roles stand in one message.'
    const remedy = 'Each becomes a message of its own.'
    changes.push({ code: 'misplaced-part', index, problem, remedy })
  }
  const parts = view.contents[index]?.parts ?? []
  if (parts.some(part => Object.values(part).every(value => value === undefined))) {
    const problem = 'A part holds nothing.'
    changes.push({ code: 'unreadable-part', index, problem, remedy: 'It is left out.' })
  }
  return changes
}

/** Only where the call has a name to give. */
function nameOddity({ toolCalls = [], role }: Message, index: number, view: View): Change[] {
  const stored = toolCalls.filter(call => toolCallKind(call, role) !== 'call' && !call.name)
  if (stored.length === 0) return []
  const parts = view.contents[index]?.parts ?? []
  const unnamed = parts.filter(part => part.functionResponse && !part.functionResponse.name)
  if (unnamed.length >= stored.length) return []
  const problem = 'A result does not name its tool.'
  return [{ code: 'unnamed-result', index, problem, remedy: 'It is named after its call.' }]
}
