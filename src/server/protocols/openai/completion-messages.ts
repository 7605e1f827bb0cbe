/** The messages of a request: which are new, and how the others are stored. */
import { parseJson, toJson } from '../../../session/json.js'
import type { Message, ToolCall } from '../../../session/message.js'
import { type InputPart, mediaPart } from '../media-part.js'
import { badField } from '../read-body.js'
import type { CompletionMessage, TextContent } from './completion-request.js'

export interface SortedMessages {
  /** What was said before, to be stored in a new session. */
  earlier: Message[]
  /** Instructions that came with the new message. */
  instructions: Message[]
  /** The new message. */
  parts: InputPart[]
}

/**
 * Takes the messages of a request apart. What follows the last answer is new and must be the user's; instructions
 * among it are new as well.
 */
export function sortMessages(messages: readonly CompletionMessage[]): SortedMessages {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  const names = callNames(messages)
  const fresh = messages.slice(lastAnswer + 1)
  const instructions = fresh.flatMap(message => (isInstruction(message) ? [instruction(message)] : []))
  const parts = fresh.flatMap((message, index) =>
    message.role === 'user' ? userParts(message, `messages.${lastAnswer + 1 + index}`) : [],
  )
  if (parts.length === 0) {
    throw badField('messages', 'The last message must be the user’s: there is nothing new to answer.')
  }
  const earlier = messages.slice(0, lastAnswer + 1).map((message, index) => stored(message, names, index))
  return { earlier, instructions, parts }
}

/** The words of the user, for the title of a session. */
export function textOf(parts: readonly InputPart[]): string {
  return parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join(' ')
}

type Instruction = Extract<CompletionMessage, { role: 'system' | 'developer' }>

function isInstruction(message: CompletionMessage): message is Instruction {
  return message.role === 'system' || message.role === 'developer'
}

/**
 * An agent has one instruction, its own. Those of a client are kept in the history, where they stand, in words
 * that no model takes for the user's.
 */
function instruction({ content }: Instruction): Message {
  const text = `[System: ${flat(content)}]`
  return { role: 'system', author: 'user', content: text, timestamp: Date.now() }
}

function stored(message: CompletionMessage, names: ReadonlyMap<string, string>, index: number): Message {
  const timestamp = Date.now()
  switch (message.role) {
    case 'system':
    case 'developer':
      return instruction(message)
    case 'user':
      return { role: 'user', author: 'user', timestamp, ...fields(userParts(message, `messages.${index}`)) }
    case 'assistant': {
      const toolCalls = (message.tool_calls ?? []).map(
        ({ id, function: { name, arguments: input } }): ToolCall => ({ id, name, input, kind: 'call' }),
      )
      const content = flat(message.content ?? '') || (message.refusal ?? '')
      return { role: 'assistant', content, timestamp, ...(toolCalls.length > 0 ? { toolCalls } : {}) }
    }
    case 'tool': {
      const id = message.tool_call_id
      const content = flat(message.content)
      const call: ToolCall = {
        id,
        name: names.get(id) ?? 'tool',
        output: outputOf(content),
        kind: 'response',
      }
      return { role: 'tool', content: call.output ?? '', toolCalls: [call], timestamp }
    }
  }
}

/** A result is an object in every vendor's shape but this one. */
function outputOf(content: string): string {
  const value = parseJson(content)
  return toJson(
    typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { result: value },
  )
}

/** A result names its call by id alone. */
function callNames(messages: readonly CompletionMessage[]): Map<string, string> {
  const calls = messages.flatMap(message => (message.role === 'assistant' ? (message.tool_calls ?? []) : []))
  return new Map(calls.map(call => [call.id, call.function.name]))
}

type UserMessage = Extract<CompletionMessage, { role: 'user' }>

function userParts({ content }: UserMessage, field: string): InputPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  return content.map((part, index) => toPart(part, `${field}.content.${index}`))
}

function toPart(part: Exclude<UserMessage['content'], string>[number], field: string): InputPart {
  switch (part.type) {
    case 'text':
      return { text: part.text }
    case 'refusal':
      return { text: part.refusal }
    case 'image_url':
      return mediaPart({ url: part.image_url.url, mimeType: 'image/*', field: `${field}.image_url.url` })
    case 'input_audio': {
      const { data, format } = part.input_audio
      return { inlineData: { mimeType: `audio/${format}`, data } }
    }
    case 'file': {
      const { file_data: url, filename: name } = part.file
      return mediaPart({ url, mimeType: 'application/pdf', name, field: `${field}.file.file_data` })
    }
  }
}

/** Parts as a stored message keeps them: the words to read, and where the rest stands among them. */
function fields(parts: readonly InputPart[]): Pick<Message, 'content' | 'extra'> {
  const content = parts.map(({ text = '' }) => text).join('')
  if (parts.length === 1 && parts[0]?.text !== undefined) return { content }
  const layout = parts.map(part => (part.text === undefined ? { part: { ...part } } : part.text.length))
  return { content, extra: { parts: layout } }
}

function flat(content: TextContent): string {
  if (typeof content === 'string') return content
  return content.map(part => (part.type === 'text' ? part.text : part.refusal)).join('\n')
}
