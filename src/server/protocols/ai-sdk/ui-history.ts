/** Stored messages as the AI SDK's messages, for a chat that is opened again. */
import type { ChatMessage, ChatPart } from '../../chat-protocol.js'
import { errorText } from './error-text.js'

/** A message of the AI SDK, as far as Lango writes one. */
export interface UiHistoryMessage {
  id: string
  role: 'user' | 'assistant'
  parts: UiHistoryPart[]
}

export interface UiHistoryPart {
  type: string
  [field: string]: unknown
}

/**
 * What a person and the agent have said. All that the agent did between two messages of the user is one message,
 * as it was when it was streamed; a history that begins in the middle of one begins with the next.
 */
export function toUiMessages(messages: readonly ChatMessage[]): UiHistoryMessage[] {
  const history: UiHistoryMessage[] = []
  for (const message of messages) {
    if (message.synthetic || message.role === 'system') continue
    const last = history.at(-1)
    if (message.role === 'user') history.push({ id: idOf(message), role: 'user', parts: said(message) })
    else if (message.role === 'tool') answer(last?.parts ?? [], message.parts)
    else if (last?.role === 'assistant') last.parts.push({ type: 'step-start' }, ...said(message))
    else if (last) {
      const parts = [{ type: 'step-start' }, ...said(message)]
      history.push({ id: idOf(message), role: 'assistant', parts })
    }
  }
  return history
}

function idOf({ seq }: ChatMessage): string {
  return `message-${seq}`
}

function said({ parts }: ChatMessage): UiHistoryPart[] {
  return parts.flatMap(toParts)
}

function toParts(part: ChatPart): UiHistoryPart[] {
  switch (part.type) {
    case 'text':
    case 'other':
      return [{ type: 'text', text: part.text, state: 'done' }]
    case 'reasoning':
      return part.text === '' ? [] : [{ type: 'reasoning', text: part.text, state: 'done' }]
    case 'media':
      return [fileOf(part)]
    case 'tool-call': {
      const facts = { toolCallId: part.id, toolName: part.name, input: part.args, providerExecuted: true }
      return [{ type: 'dynamic-tool', ...facts, state: 'output-error', errorText: 'There is no result.' }]
    }
    case 'tool-result':
      return []
  }
}

function fileOf({ mimeType, name, data, url }: Extract<ChatPart, { type: 'media' }>): UiHistoryPart {
  const place = url ?? `data:${mimeType};base64,${data ?? ''}`
  return { type: 'file', mediaType: mimeType, url: place, ...(name === undefined ? {} : { filename: name }) }
}

/** Gives each call its result. The newest call of an id is meant: ids come back in long chats. */
function answer(calls: UiHistoryPart[], results: readonly ChatPart[]): void {
  for (const result of results) {
    if (result.type !== 'tool-result') continue
    const call = calls.findLast(part => part.type === 'dynamic-tool' && part.toolCallId === result.id)
    if (!call) continue
    if (result.isError) call.errorText = errorText(result.result)
    else {
      delete call.errorText
      call.state = 'output-available'
      call.output = result.result
    }
  }
}
