/** The messages of a chat completion as Lango stores them, and the models that a request may name. */

import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { parseJson, toJson } from '../../../base/json.js'
import { createPause } from '../../../base/pause.js'
import { titleOfMessage } from '../../../base/title.js'
import type { ModelChoice, RuntimeInfo } from '../../../runtime/info.js'
import type { Message, ToolCall } from '../../../session/message.js'
import type { ServerContext } from '../../server-context.js'
import { badField, type InputPart, mediaPart } from '../read-body.js'
import { type ClientResult, digestOf, parsePartId } from './client-calls.js'

const TextParts = [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
] as const

const MediaParts = [
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string().min(1) }) }),
  z.object({
    type: z.literal('input_audio'),
    input_audio: z.object({ data: z.base64(), format: z.string().regex(/^[\w-]{1,20}$/) }),
  }),
  z.object({
    type: z.literal('file'),
    file: z.object({ file_data: z.string().min(1), filename: z.string().max(255).optional() }),
  }),
] as const

const Text = z.union([z.string(), z.array(z.discriminatedUnion('type', [...TextParts]))])
const Anything = z.union([z.string(), z.array(z.discriminatedUnion('type', [...TextParts, ...MediaParts]))])

const Call = z.object({
  id: z.string(),
  type: z.literal('function').optional(),
  function: z.object({ name: z.string(), arguments: z.string() }),
})

/** A message of a request. */
export const ChatMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: Text }),
  z.object({ role: z.literal('developer'), content: Text }),
  z.object({ role: z.literal('user'), content: Anything }),
  z.object({
    role: z.literal('assistant'),
    content: Text.nullish(),
    refusal: z.string().nullish(),
    tool_calls: z.array(Call).nullish(),
    function_call: z.object({ name: z.string(), arguments: z.string() }).nullish(),
  }),
  z.object({ role: z.literal('tool'), content: Text, tool_call_id: z.string() }),
  z.object({ role: z.literal('function'), content: Text.nullish(), name: z.string() }),
])

/** A message of a request. Other protocols give the parts of a user's message as a run gets them. */
export type CompletionMessage =
  | Exclude<z.infer<typeof ChatMessage>, { role: 'user' }>
  | { role: 'user'; content: string | (Exclude<z.infer<typeof Anything>, string>[number] | ReadyPart)[] }
interface ReadyPart {
  type: 'ready'
  part: InputPart
}
export type TextContent = z.infer<typeof Text>

/** The model of the run: `undefined` for the names of the agent itself. */
export function modelOf(
  { model = '' }: { model?: string | undefined },
  info: RuntimeInfo,
): string | undefined {
  return agentNames(info).includes(model) || model === '' ? undefined : model
}

/** Names of the agent with its own model. */
function agentNames({ agent, app }: RuntimeInfo): string[] {
  return [...new Set(['lango', agent, app])]
}

/** The messages of a request, divided into stored ones and new ones. */
export interface SortedMessages {
  /** Earlier messages, to be stored in a new session. */
  earlier: Message[]
  /** Instructions that were sent with the new message. */
  instructions: Message[]
  /** The new message. */
  parts: InputPart[]
  /** Results of the client's tools after the last answer. */
  results: ClientResult[]
  /** A digest of what was sent before the answers of the run that the results belong to, or of everything. */
  history: string
}

/**
 * Divides the messages of a request. Those after the last answer are new: results of the client's tools, messages of the
 * user, and instructions.
 */
export async function sortMessages(given: readonly CompletionMessage[]): Promise<SortedMessages> {
  const messages = withCallIds(given)
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  const names = callNames(messages)
  const fresh = messages.slice(lastAnswer + 1)
  const instructions = fresh.flatMap(message => (isInstruction(message) ? [instruction(message)] : []))
  const results = fresh.flatMap(message => (message.role === 'tool' ? [resultOf(message)] : []))
  const parts = fresh.flatMap((message, index) =>
    message.role === 'user' ? userParts(message, `messages.${lastAnswer + 1 + index}`) : [],
  )
  if (parts.length === 0 && results.length === 0) {
    throw badField(
      'messages',
      'The last message must be the user’s, or a result of a tool: there is nothing new to answer.',
    )
  }
  const pause = createPause()
  const earlier: Message[] = []
  // Beside a new message of the user's, results are a part of the history.
  const old =
    parts.length > 0
      ? messages.filter((each, index) => index <= lastAnswer || each.role === 'tool')
      : messages.slice(0, lastAnswer + 1)
  for (const [index, message] of old.entries()) {
    earlier.push(stored(message, names, index))
    await pause()
  }
  return { earlier, instructions, parts, results, history: historyOf(messages, results) }
}

/** What a run that waits for results was sent first; the answers since then are its own. */
function historyOf(messages: readonly CalledMessage[], [result]: readonly ClientResult[]): string {
  const runId = result && parsePartId('call', result.callId)?.runId
  const isOwn = ({ id }: { id: string }) => parsePartId('call', id)?.runId === runId
  const first = messages.findIndex(
    message => message.role === 'assistant' && message.tool_calls?.some(isOwn) === true,
  )
  if (runId === undefined || first < 0) return digestOf(messages)
  const isContinued = messages.slice(first).every(({ role }) => role === 'assistant' || role === 'tool')
  return isContinued ? digestOf(messages.slice(0, first)) : ''
}

/** A message without the forms of before there were tools. */
type CalledMessage = Exclude<CompletionMessage, { role: 'function' }>

/** Calls of `functions` have no ids: a result belongs to the last call of its function. */
function withCallIds(messages: readonly CompletionMessage[]): CalledMessage[] {
  const last = new Map<string, string>()
  return messages.map((message, index): CalledMessage => {
    if (message.role === 'function') {
      const { name, content } = message
      return { role: 'tool', content: content ?? '', tool_call_id: last.get(name) ?? `function_${index}` }
    }
    if (message.role !== 'assistant' || !message.function_call) return message
    const { function_call: called, ...others } = message
    const id = `function_${index}`
    last.set(called.name, id)
    return { ...others, tool_calls: [{ id, type: 'function', function: called }] }
  })
}

function resultOf({ tool_call_id, content }: Extract<CalledMessage, { role: 'tool' }>): ClientResult {
  return { callId: tool_call_id, response: responseOf(flat(content)) }
}

/** The title of a session that these parts open. */
export function titleOf(parts: readonly InputPart[]): string {
  return titleOfMessage(parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join(' '))
}

type Instruction = Extract<CompletionMessage, { role: 'system' | 'developer' }>

function isInstruction(message: CalledMessage): message is Instruction {
  return message.role === 'system' || message.role === 'developer'
}

/**
 * An agent has its own instruction. Those of a client are stored at their position in the history, marked so that
 * no model reads them as the user's.
 */
function instruction({ content }: Instruction): Message {
  const text = `[System: ${flat(content)}]`
  return { role: 'system', author: 'user', content: text, timestamp: Date.now() }
}

function stored(message: CalledMessage, names: ReadonlyMap<string, string>, index: number): Message {
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
        output: toJson(responseOf(content)),
        kind: 'response',
      }
      return { role: 'tool', content: call.output ?? '', toolCalls: [call], timestamp }
    }
  }
}

/** A result is an object in every vendor's shape but this one. */
function responseOf(content: string): Record<string, unknown> {
  const value = parseJson(content)
  return isRecord(value) ? value : { result: value }
}

/** A result names its call by id alone. */
function callNames(messages: readonly CalledMessage[]): Map<string, string> {
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
    case 'ready':
      return part.part
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

/** Parts as a message stores them: the text, and the positions of the other parts in it. */
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

interface ModelLine {
  id: string
  object: 'model'
  created: number
  owned_by: string
  /** Tokens; absent where they are not known. */
  context_window?: number
  max_output_tokens?: number
}

/** The models that a client may name: the agent first, with its own model, then every model with a key. */
export async function modelLines({ runtime, info }: ServerContext): Promise<ModelLine[]> {
  const models = (await runtime.models()).filter(({ keyPresent }) => keyPresent)
  const own = models.find(({ reference }) => reference === info.model)
  return [
    ...agentNames(info).map(id => line(id, 'lango', own)),
    ...models.map(model => line(model.reference, model.provider, model)),
  ]
}

function line(id: string, owner: string, model: ModelChoice | undefined): ModelLine {
  const sizes = model?.known && { context_window: model.contextWindow, max_output_tokens: model.outputLimit }
  return { id, object: 'model', created: 0, owned_by: owner, ...sizes }
}
