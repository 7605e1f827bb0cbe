/**
 * What OpenAI demands of a chat: content where it is needed, text only in tool messages, and every call
 * answered by the tool messages that directly follow it, one per id. Consecutive roles, a leading or a
 * trailing assistant message are accepted.
 */
import { estimateTokens, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import { hasCalls, type ReadMessage, readMessages } from './messages.js'
import { refuse } from './words.js'

/** C9. */
export const imagesFromUser: Rule = body =>
  firstOf(readMessages(body), message => {
    if (message.role === 'user') return undefined
    const image = listOf(message.content).some(part => objectOf(part).type === 'image_url')
    if (!image) return undefined
    return refuse(
      'C9',
      `Invalid 'messages[${message.index}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${textOf(message.role)}' contains an image URL.`,
      `messages[${message.index}]`,
      'invalid_value',
    )
  })

/** C6. */
export const contentPresent: Rule = body =>
  firstOf(readMessages(body), message => {
    if (message.content !== undefined && message.content !== null) return undefined
    const { refusal, audio, function_call: functionCall } = message.raw
    const stands = hasCalls(message) || [refusal, audio, functionCall].some(value => value != null)
    if (message.role === 'assistant' && stands) return undefined
    return refuse(
      'C6',
      "Invalid value for 'content': expected a string, got null.",
      `messages.[${message.index}].content`,
    )
  })

/** C3. */
export const toolMessagesNamed: Rule = body =>
  firstOf(readMessages(body), message => {
    if (message.role !== 'tool' || textOf(message.raw.tool_call_id) !== '') return undefined
    return refuse(
      'C3',
      "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
      `messages.[${message.index}].tool_call_id`,
    )
  })

/** What is wrong with the pairing of calls and answers, wherever it is first noticed. */
export interface PairingFault {
  readonly kind: 'unanswered' | 'orphan'
  /** The message at which it shows. */
  readonly at: number
  readonly ids: readonly string[]
}

/** C1 and C2 in OpenAI's words. */
export const callsPaired: Rule = (body, context) => {
  const fault = pairingFault(readMessages(body), context)
  if (fault === undefined) return undefined
  const param = `messages.[${fault.at}].role`
  if (fault.kind === 'orphan') {
    return refuse(
      'C2',
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      param,
    )
  }
  return refuse(
    'C1',
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${fault.ids.join(', ')}`,
    param,
  )
}

export function pairingFault(
  messages: readonly ReadMessage[],
  context: JudgeContext,
): PairingFault | undefined {
  let open: string[] | undefined
  let pending: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = textOf(message.raw.tool_call_id)
      const at = pending.indexOf(id)
      const repeated = context.reading === 'lenient' && open?.includes(id) === true
      if (at === -1 && !repeated) return { kind: 'orphan', at: message.index, ids: [id] }
      if (at !== -1) pending = pending.toSpliced(at, 1)
    } else {
      if (pending.length > 0) return { kind: 'unanswered', at: message.index, ids: pending }
      open = hasCalls(message) ? message.calls.map(call => textOf(call.id)) : undefined
      pending = open ?? []
    }
  }
  if (pending.length === 0) return undefined
  return { kind: 'unanswered', at: messages.length - 1, ids: pending }
}

/** C10. */
export const fitsWindow: Rule = (body, context): Violation | undefined => {
  const tokens = estimateTokens(body)
  if (tokens <= context.contextWindow) return undefined
  return overflow(tokens, context.contextWindow)
}

export function overflow(tokens: number, window: number): Violation {
  return refuse(
    'C10',
    `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
    'messages',
    'context_length_exceeded',
  )
}
