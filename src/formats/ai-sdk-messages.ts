/**
 * Messages of the AI SDK (versions 4 to 7) and of Mastra, which stores a variant of them, as neutral messages.
 *
 * - UI messages hold calls and results in one list of parts, in steps. Each step becomes an assistant message and,
 *   when it has results, a tool message after it, as the AI SDK itself converts them for a model.
 * - Model messages have a role per message; results are in messages of the role `tool`.
 * - Signatures of reasoning and calls are in the metadata of the provider that made them.
 */

import { isRecord } from '../base/is-record.js'
import type { MediaPart, Origin, ProviderPart, ToolResultPart } from '../provider/provider.js'
import {
  type Fields,
  foreignPart,
  listOf,
  mediaFrom,
  reasoningFrom,
  recordsOf,
  text,
  textOr,
  timeOf,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

const AI_SDK = 'ai-sdk'

/** Reads UI messages, as `useChat` sends and stores them. */
export function readUiMessages(messages: readonly Fields[]): WireMessage[] {
  return messages.flatMap((message, index) => {
    const place = `messages[${index}]`
    const time = timeOf(message.createdAt)
    return inSteps(String(message.role ?? ''), uiParts(message)).map(step => ({ ...step, place, ...time }))
  })
}

/** Reads Mastra's stored messages: `content.parts` of format 2 and 3, or model messages of format 1. */
export function readMastraMessages(messages: readonly Fields[]): WireMessage[] {
  return messages.flatMap((message, index) => {
    const place = `messages[${index}]`
    const time = timeOf(message.createdAt)
    const content = isRecord(message.content) ? message.content : undefined
    if (!content) return [{ ...modelMessage(message), place, ...time }]
    return inSteps(String(message.role ?? ''), uiParts({ ...content, role: message.role })).map(step => ({
      ...step,
      place,
      ...time,
    }))
  })
}

/** Reads model messages (`ModelMessage`, before version 5 `CoreMessage`). */
export function readModelMessages(messages: readonly Fields[]): WireMessage[] {
  const settled = settleApprovals(messages)
  return settled.flatMap((message, index) => {
    const read = { ...modelMessage(message), place: `messages[${index}]` }
    const isSettled = message !== messages[index] && read.parts.length === 0
    return isSettled ? [] : [read]
  })
}

/**
 * Questions to a person and the answers are no parts that a model gets. A refusal that has no result yet becomes the
 * result of its call.
 */
function settleApprovals(messages: readonly Fields[]): Fields[] {
  const parts = messages.flatMap(({ content }) => recordsOf(content))
  const asked = new Map(
    parts.flatMap(part =>
      part.type === 'tool-approval-request' ? [[part.approvalId, part.toolCallId]] : [],
    ),
  )
  if (!parts.some(isApproval)) return [...messages]
  const names = new Map(
    parts.flatMap(part => (part.type === 'tool-call' ? [[part.toolCallId, part.toolName]] : [])),
  )
  const answered = new Set(parts.flatMap(part => (part.type === 'tool-result' ? [part.toolCallId] : [])))
  return messages.map(message => {
    const content = recordsOf(message.content)
    if (!content.some(isApproval)) return message
    const kept = content.flatMap((part): Fields[] => {
      if (!isApproval(part)) return [part]
      const toolCallId = asked.get(part.approvalId)
      if (part.approved !== false || toolCallId === undefined || answered.has(toolCallId)) return []
      const output = { type: 'execution-denied', reason: part.reason }
      return [{ type: 'tool-result', toolCallId, toolName: names.get(toolCallId), output }]
    })
    return { ...message, content: kept }
  })
}

function isApproval({ type }: Fields): boolean {
  return type === 'tool-approval-request' || type === 'tool-approval-response'
}

function modelMessage(message: Fields): { role: string; parts: ProviderPart[] } {
  const { content } = message
  const role = String(message.role ?? '')
  if (typeof content === 'string') return { role, parts: [{ type: 'text', text: content }] }
  const read = role === 'assistant' ? answerPart : modelPart
  return { role, parts: recordsOf(content).map(read) }
}

/** The provider itself ran the tool whose result is part of the answer: for any other it is no tool of the history. */
function answerPart(part: Fields): ProviderPart {
  const isServed =
    part.type === 'tool-result' || (part.type === 'tool-call' && part.providerExecuted === true)
  return isServed ? foreignPart(AI_SDK, part) : modelPart(part)
}

function modelPart(part: Fields): ProviderPart {
  const metadata = part.providerOptions ?? part.providerMetadata
  switch (part.type) {
    case 'text':
      return { type: 'text', text: text(part.text), ...signatureIn(metadata) }
    case 'reasoning':
      return thought(text(part.text), metadata, textOr(part.signature))
    case 'redacted-reasoning':
      return { ...reasoningFrom('', textOr(part.data), { vendor: 'anthropic' }), redacted: true }
    case 'image':
      return fileOf(part.image, text(part.mediaType ?? part.mimeType) || 'image/png', part.filename)
    case 'file':
    case 'media':
    case 'image-data':
    case 'image-url':
    case 'file-data':
    case 'file-url':
      return fileOf(part.data ?? part.url, mimeTypeOf(part), part.filename)
    case 'tool-call':
      return {
        type: 'tool-call',
        id: text(part.toolCallId),
        name: text(part.toolName),
        args: part.input ?? part.args,
        ...signatureIn(metadata),
      }
    case 'tool-result':
      return modelResult(part)
    default:
      return foreignPart(AI_SDK, part)
  }
}

/** `output` says of what kind its value is; before version 5 `result` was the value itself. */
function modelResult(part: Fields): ToolResultPart {
  const id = text(part.toolCallId)
  const name = text(part.toolName)
  const failed = part.isError === true ? { isError: true } : {}
  const { output } = part
  if (!isRecord(output) || typeof output.type !== 'string') {
    return { type: 'tool-result', id, name, result: part.result ?? output ?? '', ...failed }
  }
  switch (output.type) {
    case 'content':
      return { ...toolResult(id, name, output.value, modelPart), ...failed }
    case 'execution-denied':
      return deniedResult(id, name, output)
    default: {
      const isError = output.type.startsWith('error') ? { isError: true } : failed
      return { type: 'tool-result', id, name, result: output.value ?? '', ...isError }
    }
  }
}

/** A part of a UI message, or the end of a step. */
type UiPart = ProviderPart | 'step'

function uiParts(message: Fields): UiPart[] {
  const parts = recordsOf(message.parts).flatMap(uiPart)
  if (Array.isArray(message.parts) && parts.length > 0) return parts
  // Before version 4.2 the text and the calls were fields of the message.
  const calls = recordsOf(message.toolInvocations).flatMap(invocation => invocationParts(invocation))
  const words = text(message.content)
  return [...calls, ...(words === '' ? [] : [{ type: 'text' as const, text: words }])]
}

function uiPart(part: Fields): UiPart[] {
  const type = text(part.type)
  const metadata = part.providerMetadata
  switch (type) {
    case 'step-start':
      return ['step']
    case 'text':
      return [{ type: 'text', text: text(part.text), ...signatureIn(metadata) }]
    case 'reasoning':
      return reasoningParts(part)
    case 'file':
      return [fileOf(part.url ?? part.data, mimeTypeOf(part), part.filename)]
    case 'tool-invocation':
      return isRecord(part.toolInvocation) ? invocationParts(part.toolInvocation, metadata) : []
    case 'dynamic-tool':
      return callParts(part, text(part.toolName))
    default:
      return type.startsWith('tool-')
        ? callParts(part, type.slice('tool-'.length))
        : [foreignPart(AI_SDK, part)]
  }
}

/** Version 4 and Mastra keep the signed pieces of one thought in `details`. */
function reasoningParts(part: Fields): ProviderPart[] {
  const details = recordsOf(part.details)
  if (details.length === 0)
    return [thought(text(part.text ?? part.reasoning), part.providerMetadata, textOr(part.signature))]
  return details.map(detail =>
    detail.type === 'redacted'
      ? { ...reasoningFrom('', textOr(detail.data), { vendor: 'anthropic' }), redacted: true }
      : thought(text(detail.text), part.providerMetadata, textOr(detail.signature)),
  )
}

function callParts(part: Fields, name: string): ProviderPart[] {
  if (part.providerExecuted === true) return [foreignPart(AI_SDK, part)]
  const id = text(part.toolCallId)
  const args = part.input ?? part.rawInput
  const call: ProviderPart = {
    type: 'tool-call',
    id,
    name,
    args,
    ...signatureIn(part.callProviderMetadata ?? part.providerMetadata),
  }
  switch (part.state) {
    case 'output-available':
      return [call, { type: 'tool-result', id, name, result: part.output ?? '' }]
    case 'output-error':
      return [call, { type: 'tool-result', id, name, result: text(part.errorText), isError: true }]
    default:
      return isDenied(part) ? [call, deniedResult(id, name, part.approval)] : [call]
  }
}

function isDenied({ state, approval }: Fields): boolean {
  return state === 'output-denied' || (isRecord(approval) && approval.approved === false)
}

function deniedResult(id: string, name: string, approval: unknown): ToolResultPart {
  const reason = isRecord(approval) ? approval.reason : undefined
  const result = { denied: true, ...(reason === undefined ? {} : { reason }) }
  return { type: 'tool-result', id, name, result, isError: true }
}

function invocationParts(invocation: Fields, metadata?: unknown): ProviderPart[] {
  const { toolCallId, toolName, args, state, result, errorText } = invocation
  const id = text(toolCallId)
  const name = text(toolName)
  const call: ProviderPart = { type: 'tool-call', id, name, args, ...signatureIn(metadata) }
  // Mastra names the failure of a tool as the AI SDK does.
  if (typeof errorText === 'string')
    return [call, { type: 'tool-result', id, name, result: errorText, isError: true }]
  if (isDenied(invocation)) return [call, deniedResult(id, name, invocation.approval)]
  return state === 'result' ? [call, { type: 'tool-result', id, name, result: result ?? '' }] : [call]
}

/** An assistant's parts by steps: what the model said, then the results of its calls. */
function inSteps(role: string, parts: readonly UiPart[]): { role: string; parts: ProviderPart[] }[] {
  const steps: { said: ProviderPart[]; results: ProviderPart[] }[] = []
  let isOpen = false
  for (const part of parts) {
    if (part === 'step') {
      isOpen = false
      continue
    }
    const last = steps.at(-1)
    const isResult = part.type === 'tool-result'
    // Whatever the model says after results belongs to its next answer; calls made together come with their results.
    const continues = isOpen && last && (isResult || last.results.length === 0 || part.type === 'tool-call')
    const step = continues ? last : { said: [], results: [] }
    if (!continues) steps.push(step)
    isOpen = true
    if (isResult) step.results.push(part)
    else step.said.push(part)
  }
  const messages = steps.flatMap(({ said, results }) => [
    ...(said.length > 0 ? [{ role, parts: said }] : []),
    ...(results.length > 0 ? [{ role: 'tool', parts: results }] : []),
  ])
  return messages.length > 0 ? messages : [{ role, parts: [] }]
}

function thought(words: string, metadata: unknown, own: string | undefined): ProviderPart {
  const { signature, origin, redacted } = signatureIn(metadata)
  const found = own === undefined ? { signature, origin } : { signature: own, origin: ANTHROPIC }
  return { ...reasoningFrom(words, found.signature, found.origin), ...(redacted ? { redacted } : {}) }
}

const ANTHROPIC: Origin = { vendor: 'anthropic' }

interface Signed {
  signature?: string
  origin?: Origin
  redacted?: true
}

/** Where the providers of the AI SDK put what their vendor has signed. */
function signatureIn(metadata: unknown): Signed {
  if (!isRecord(metadata)) return {}
  const { anthropic, bedrock, google, vertex, openai } = metadata
  const claude = isRecord(anthropic) ? anthropic : bedrock
  if (isRecord(claude)) {
    if (typeof claude.signature === 'string') return { signature: claude.signature, origin: ANTHROPIC }
    if (typeof claude.redactedData === 'string')
      return { signature: claude.redactedData, origin: ANTHROPIC, redacted: true }
  }
  const gemini = isRecord(google) ? google : vertex
  if (isRecord(gemini) && typeof gemini.thoughtSignature === 'string')
    return { signature: gemini.thoughtSignature, origin: { vendor: 'gemini' } }
  if (isRecord(openai) && typeof openai.reasoningEncryptedContent === 'string')
    return { signature: openai.reasoningEncryptedContent, origin: { vendor: 'openai' } }
  return {}
}

function mimeTypeOf(part: Fields): string {
  return text(part.mediaType ?? part.mimeType) || 'application/octet-stream'
}

/** A file as an address, a data URL, base64, or bytes as JSON writes them; since version 7 it says which. */
function fileOf(given: unknown, mimeType: string, filename: unknown): MediaPart {
  const data = isRecord(given) && typeof given.type === 'string' ? taggedData(given) : given
  const name = typeof filename === 'string' ? { name: filename } : {}
  if (typeof data === 'string') {
    const isAddress = /^(?:data|https?|gs|file|blob):/.test(data)
    return isAddress ? { ...mediaFrom(data, mimeType), ...name } : { type: 'media', mimeType, data, ...name }
  }
  return { type: 'media', mimeType, data: bytesOf(data), ...name }
}

function taggedData(given: Fields): unknown {
  if (given.type === 'text') return Buffer.from(text(given.text)).toString('base64')
  if (given.type === 'Buffer') return given
  // What a provider keeps under a name of its own has no address that others can read.
  return given.data ?? given.url ?? JSON.stringify(given.reference ?? given)
}

function bytesOf(value: unknown): string {
  const bytes = isRecord(value) ? (value.type === 'Buffer' ? value.data : Object.values(value)) : value
  return Buffer.from(listOf(bytes).map(Number)).toString('base64')
}
