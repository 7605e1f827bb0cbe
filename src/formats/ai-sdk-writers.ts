/**
 * Neutral messages as the AI SDK (5 and later) and Mastra store them. A part that the form has no place for becomes the
 * text that other models get; the writer of the file compares it with what was given and names the difference.
 */

import { isRecord } from '../base/is-record.js'
import { type MediaPart, mediaUrl, type ProviderPart, type ToolResultPart } from '../provider/provider.js'
import { bareResult, type Fields, type SourceMessage, text } from './wire-parts.js'

/** UI messages, as `useChat` takes them: calls with their results, in steps. */
export function writeUiMessages(messages: readonly SourceMessage[]): Fields[] {
  return joinedAnswers(messages, UI).map(({ id, role, timestamp, parts }) => ({
    id,
    role,
    metadata: { createdAt: new Date(timestamp).toISOString() },
    parts,
  }))
}

/** Messages of a thread of Mastra, in its format 2. */
export function writeMastraMessages(
  messages: readonly SourceMessage[],
  thread: { threadId: string; resourceId: string },
): Fields[] {
  return joinedAnswers(messages, MASTRA).map(({ id, role, timestamp, parts }) => ({
    id,
    role,
    createdAt: new Date(timestamp).toISOString(),
    ...thread,
    type: 'text',
    content: { format: 2, parts },
  }))
}

/** How one of the two writes its parts. */
interface Forms {
  reasoning: (part: ProviderPart & { type: 'reasoning' }) => Fields
  file: (part: MediaPart) => Fields
  call: (part: ProviderPart & { type: 'tool-call' }) => Fields
  /** Adds the result to the part of its call. */
  answer: (call: Fields, result: ToolResultPart) => void
}

const UI: Forms = {
  reasoning: part => ({ type: 'reasoning', text: part.text, state: 'done', ...metadataOf(part) }),
  file: part => ({ type: 'file', mediaType: part.mimeType, url: mediaUrl(part), ...fileName(part) }),
  call: part => ({
    type: 'dynamic-tool',
    toolName: part.name,
    toolCallId: part.id,
    state: 'input-available',
    input: part.args ?? {},
    ...metadataOf(part, 'callProviderMetadata'),
  }),
  answer: (call, part) => {
    const { result, isError } = bareResult(part)
    if (isError) Object.assign(call, { state: 'output-error', errorText: asText(result) })
    else Object.assign(call, { state: 'output-available', output: result })
  },
}

const MASTRA: Forms = {
  reasoning: part => {
    const { signature, origin, redacted } = part
    const own = origin?.vendor === 'anthropic' && signature !== undefined ? { signature } : {}
    const detail = redacted
      ? { type: 'redacted', data: signature ?? '' }
      : { type: 'text', text: part.text, ...own }
    const metadata = 'signature' in own ? {} : metadataOf(part)
    return { type: 'reasoning', reasoning: part.text, details: [detail], ...metadata }
  },
  file: part => ({
    type: 'file',
    mimeType: part.mimeType,
    data: part.data ?? part.url ?? '',
    ...fileName(part),
  }),
  call: part => ({
    type: 'tool-invocation',
    toolInvocation: { state: 'call', toolCallId: part.id, toolName: part.name, args: part.args ?? {} },
    ...metadataOf(part),
  }),
  answer: (call, part) => {
    const { result, isError } = bareResult(part)
    const { toolInvocation } = call
    if (!isRecord(toolInvocation)) return
    if (isError) Object.assign(toolInvocation, { state: 'output-error', errorText: asText(result) })
    else Object.assign(toolInvocation, { state: 'result', result })
  },
}

interface Joined extends Omit<SourceMessage, 'parts'> {
  parts: Fields[]
}

/** What agent and tools said between two messages of the user is one message; each answer of the model is a step of it. */
function joinedAnswers(messages: readonly SourceMessage[], forms: Forms): Joined[] {
  const written: Joined[] = []
  const open = new Map<string, Fields[]>()
  for (const { parts, ...message } of messages) {
    if (message.role === 'tool') {
      for (const part of parts) if (part.type === 'tool-result') answer(open, part, forms)
      continue
    }
    const isAnswer = message.role === 'assistant'
    const role = isAnswer || message.role === 'system' ? message.role : 'user'
    const last = written.at(-1)
    const continues = isAnswer && last?.role === 'assistant'
    const target = continues ? last : { ...message, role, parts: [] }
    const said = parts.map(part => uiPart(part, forms))
    if (said.length === 0) continue
    if (!continues) written.push(target)
    target.parts.push(...(isAnswer ? [{ type: 'step-start' }] : []), ...said)
    for (const [index, part] of parts.entries()) {
      const call = said[index]
      if (part.type === 'tool-call' && call) open.set(part.id, [...(open.get(part.id) ?? []), call])
    }
  }
  return written
}

/** A result without an open call has no place. */
function answer(open: Map<string, Fields[]>, part: ToolResultPart, forms: Forms): void {
  const [call, ...others] = open.get(part.id) ?? []
  if (!call) return
  open.set(part.id, others)
  forms.answer(call, part)
}

function uiPart(part: ProviderPart, forms: Forms): Fields {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, ...metadataOf(part) }
    case 'reasoning':
      return forms.reasoning(part)
    case 'media':
      return forms.file(part)
    case 'tool-call':
      return forms.call(part)
    case 'vendor':
      return isUiValue(part.value) ? part.value : { type: 'text', text: part.text }
    case 'tool-result':
      return { type: 'text', text: JSON.stringify(part) }
    default:
      return part satisfies never
  }
}

/** A part of the AI SDK's own that was imported from UI messages. */
function isUiValue(value: unknown): value is Fields {
  if (!isRecord(value)) return false
  if (/^(source-url|source-document|data-.+)$/.test(text(value.type))) return true
  return /^(dynamic-tool|tool-.+)$/.test(text(value.type)) && typeof value.state === 'string'
}

/** Model messages (`ModelMessage`), as `generateText` takes them. */
export function writeModelMessages(messages: readonly SourceMessage[]): Fields[] {
  return messages.flatMap(({ role, parts }): Fields[] => {
    if (parts.length === 0) return []
    if (role === 'system') return [{ role, content: parts.map(words).join('\n') }]
    const own = role === 'assistant' || role === 'tool' ? role : 'user'
    return [{ role: own, content: parts.map(modelPart) }]
  })
}

function words(part: ProviderPart): string {
  return 'text' in part && typeof part.text === 'string' ? part.text : JSON.stringify(part)
}

function modelPart(part: ProviderPart): Fields {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, text: part.text, ...metadataOf(part, 'providerOptions') }
    case 'media':
      return { type: 'file', data: part.data ?? part.url, mediaType: part.mimeType, ...fileName(part) }
    case 'tool-call': {
      const { id: toolCallId, name: toolName, args: input = {} } = part
      return { type: 'tool-call', toolCallId, toolName, input, ...metadataOf(part, 'providerOptions') }
    }
    case 'tool-result':
      return { type: 'tool-result', toolCallId: part.id, toolName: part.name, output: outputOf(part) }
    case 'vendor':
      return isModelValue(part.value) ? part.value : { type: 'text', text: part.text }
    default:
      part satisfies never
      return { type: 'text', text: JSON.stringify(part) }
  }
}

/** A tool that the provider itself ran, as model messages hold it. */
function isModelValue(value: unknown): value is Fields {
  return isRecord(value) && /^tool-(call|result)$/.test(text(value.type)) && !('state' in value)
}

function outputOf(part: ToolResultPart): Fields {
  const { result, isError } = bareResult(part)
  const isText = typeof result === 'string'
  if (part.media === undefined || part.media.length === 0 || isError)
    return { type: `${isError ? 'error-' : ''}${isText ? 'text' : 'json'}`, value: result ?? null }
  const files = part.media.map(({ mimeType, data, url }) => ({
    type: 'media',
    mediaType: mimeType,
    data: data ?? url ?? '',
  }))
  return { type: 'content', value: [{ type: 'text', text: asText(result) }, ...files] }
}

function fileName({ name }: MediaPart): { filename?: string } {
  return name === undefined ? {} : { filename: name }
}

function asText(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}

type Signed = Exclude<ProviderPart, ToolResultPart>

/** Where the AI SDK's provider of that vendor looks for what it has signed. */
function metadataOf(part: Signed, field = 'providerMetadata'): Fields {
  const { signature, origin } = part
  if (signature === undefined) return {}
  const isRedacted = part.type === 'reasoning' && part.redacted === true
  switch (origin?.vendor ?? 'gemini') {
    case 'anthropic':
      return { [field]: { anthropic: isRedacted ? { redactedData: signature } : { signature } } }
    case 'gemini':
      return { [field]: { google: { thoughtSignature: signature } } }
    case 'openai':
      return part.type === 'reasoning'
        ? { [field]: { openai: { reasoningEncryptedContent: signature } } }
        : {}
    default:
      return {}
  }
}
