/** The request of a chat completion: its schema, what is refused, and its messages as Lango stores them. */

import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { parseJson, toJson } from '../../../base/json.js'
import { createPause } from '../../../base/pause.js'
import { AgentError } from '../../../errors.js'
import type { RuntimeInfo } from '../../../runtime/info.js'
import type { Message, ToolCall } from '../../../session/message.js'
import type { ServerContext } from '../../server-context.js'
import { badField, type InputPart, mediaPart } from '../read-body.js'

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
  }),
  z.object({ role: z.literal('tool'), content: Text, tool_call_id: z.string() }),
])

/** The body of `POST /v1/chat/completions`. Fields that are not named here are ignored. */
export const CompletionRequest = z.object({
  model: z.string().max(256).optional(),
  /** Checked one by one, as `ChatMessage`. */
  messages: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().int().nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  response_format: z.object({ type: z.string() }).nullish(),
  logprobs: z.boolean().nullish(),
  modalities: z.array(z.string()).nullish(),
})

export type CompletionRequest = z.infer<typeof CompletionRequest>
export type CompletionMessage = z.infer<typeof ChatMessage>
export type TextContent = z.infer<typeof Text>

/** Refuses options that would have no effect. */
export function refuseUnsupported(request: CompletionRequest): void {
  for (const field of ['tools', 'functions'] as const) {
    if ((request[field]?.length ?? 0) > 0) {
      const advice = 'The agent runs its own tools; add them to the configuration of the server.'
      throw unsupported(field, `Tools of the client are not supported. ${advice}`)
    }
  }
  if ((request.n ?? 1) !== 1) throw unsupported('n', 'Only one answer is supported: omit `n`, or send 1.')
  const format = request.response_format?.type ?? 'text'
  if (format !== 'text') {
    throw unsupported('response_format', 'The agent answers with text: omit `response_format`.')
  }
  if (request.logprobs) throw unsupported('logprobs', 'Log probabilities are not supported: omit `logprobs`.')
  if (request.modalities?.some(modality => modality !== 'text')) {
    throw unsupported('modalities', 'The agent answers with text: omit `modalities`.')
  }
}

function unsupported(field: string, message: string): AgentError {
  const details = { field, openaiCode: 'unsupported_parameter' }
  return new AgentError('invalid-argument', message, { details })
}

/** The model of the run: `undefined` for the names of the agent itself. */
export function modelOf({ model = '' }: CompletionRequest, info: RuntimeInfo): string | undefined {
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
}

/**
 * Divides the messages of a request. Those after the last answer are new, and one of them must be the user's;
 * instructions among them are new as well.
 */
export async function sortMessages(messages: readonly CompletionMessage[]): Promise<SortedMessages> {
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
  const pause = createPause()
  const earlier: Message[] = []
  for (const [index, message] of messages.slice(0, lastAnswer + 1).entries()) {
    earlier.push(stored(message, names, index))
    await pause()
  }
  return { earlier, instructions, parts }
}

/** The text of the parts, for the title of a session. */
export function titleOf(parts: readonly InputPart[]): string {
  return parts.flatMap(({ text }) => (text === undefined ? [] : [text])).join(' ')
}

type Instruction = Extract<CompletionMessage, { role: 'system' | 'developer' }>

function isInstruction(message: CompletionMessage): message is Instruction {
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
  return toJson(isRecord(value) ? value : { result: value })
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
}

/** The models that a client may name: the agent first, then every model with a key. */
export async function modelLines({ runtime, info }: ServerContext): Promise<ModelLine[]> {
  const models = (await runtime.models()).filter(({ keyPresent }) => keyPresent)
  return [
    ...agentNames(info).map(id => line(id, 'lango')),
    ...models.map(({ reference, provider }) => line(reference, provider)),
  ]
}

function line(id: string, owner: string): ModelLine {
  return { id, object: 'model', created: 0, owned_by: owner }
}
