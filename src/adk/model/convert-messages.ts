import { splitMedia, toInlineParts } from '../../base/tool-media.js'
import { checkArgument } from '../../errors.js'
import {
  type MediaPart,
  openSignature,
  type ProviderMessage,
  type ProviderPart,
} from '../../provider/provider.js'
import { isToolError } from '../../session/message.js'
import { type CallItem, type Identified, identifyCalls } from '../../session/pair-calls.js'
import { isTurnStart } from '../../session/turn.js'
import { type AnswerMark, answerMarkOf, isAccountByAdk, numberOf, writtenBy } from '../adk-quirks.js'
import type { Content, FunctionCall, FunctionResponse, Part } from '../sdk.js'

/**
 * ADK's contents as neutral messages. Nothing is repaired here: what goes in malformed comes out malformed,
 * so that repair can say what it did. Only missing ids are given, because ADK takes its own ids out of every
 * request; a call and its answer get the same one.
 *
 * ```ts
 * import { convertMessages } from 'lango/adk'
 *
 * const [message] = convertMessages([{ role: 'user', parts: [{ text: 'Hello' }] }])
 * console.log(message?.role, message?.parts)
 * ```
 *
 * @spec convertMessages
 */
export function convertMessages(contents: readonly Content[]): ProviderMessage[] {
  checkArgument(Array.isArray(contents), 'convertMessages', 'needs a list of contents')
  return convertContents(contents, content => (content.role === 'model' ? 'assistant' : 'user'))
}

/** As `convertMessages`, but what is neither a call nor a result has the role that the caller says. */
export function convertContents(
  contents: readonly Content[],
  roleOf: (content: Content, index: number) => string,
): ProviderMessage[] {
  const ids = identifyParts(contents, roleOf)
  return contents.flatMap((content, index) => {
    if (!content) return []
    const role = roleOf(content, index)
    const isReport = role === 'user' && isAccountByAdk(content)
    const { account, model } = answerMarkOf(content) ?? UNKNOWN
    const parts = (content.parts ?? []).flatMap((part, place) => {
      // ADK's account of another agent's event holds a copy of that agent's private thoughts.
      if (isReport && (part.thought || onlySigned(part))) return []
      const converted = convertPart(part, ids[index]?.[place])
      return account === undefined ? converted : converted.map(one => withAccount(one, account))
    })
    const messages = toMessages(parts, role).map(message =>
      role === 'user' && message.role === 'user' && writtenBy(content) === 'program'
        ? { ...message, writtenBy: 'program' as const }
        : message,
    )
    const number = numberOf(content)
    if (number !== undefined) for (const message of messages) numbers.set(message, number)
    if (model !== undefined) for (const message of messages) models.set(message, model)
    return messages
  })
}

const UNKNOWN: AnswerMark = {}

const numbers = new WeakMap<ProviderMessage, number>()

/** The number of the stored message that a converted one comes from, where it is known. */
export function storedNumber(message: ProviderMessage): number | undefined {
  return numbers.get(message)
}

const models = new WeakMap<ProviderMessage, string>()

/** How many messages, from the first, a model (`provider/model`) was sent before one that it answered with. */
export function answeredMessages(messages: readonly ProviderMessage[], model: string): number {
  return Math.max(
    0,
    messages.findLastIndex(message => models.get(message) === model),
  )
}

/**
 * Neighbouring messages of one side as one, so that no model gets two turns of one side in a row: never results, never what
 * the user wrote with what a program wrote in the user's role, never a part that carries a signature.
 *
 * @spec EventsAdapter.All (merging)
 */
export function joinNeighbours(messages: readonly ProviderMessage[]): ProviderMessage[] {
  const joined: ProviderMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last && mayJoin(last, message))
      joined[joined.length - 1] = { ...last, parts: [...last.parts, ...message.parts] }
    else joined.push(message)
  }
  return joined
}

function mayJoin(first: ProviderMessage, second: ProviderMessage): boolean {
  if (first.role !== second.role || first.writtenBy !== second.writtenBy) return false
  if (first.role !== 'user' && first.role !== 'assistant') return false
  return first.parts.length > 0 && ![...first.parts, ...second.parts].some(isSigned)
}

function isSigned(part: ProviderPart): boolean {
  return part.type !== 'tool-result' && (part.signature !== undefined || part.origin !== undefined)
}

type PartId = Identified<CallItem> | undefined

/** By content and part the ids of calls and results. */
function identifyParts(
  contents: readonly Content[],
  roleOf: (content: Content, index: number) => string,
): PartId[][] {
  const found: (CallItem & { place: number })[] = []
  let turn = 0
  contents.forEach((content, at) => {
    if (!content) return
    const parts = content.parts ?? []
    const byProgram = writtenBy(content) === 'program'
    if (isTurnStart({ role: roleOf(content, at), byProgram, speaks: parts.some(isWords) })) turn += 1
    for (const [place, part] of parts.entries()) {
      const { id, name } = part.functionCall ?? part.functionResponse ?? orphanOf(part) ?? {}
      if (!holdsCall(part)) continue
      found.push({ kind: part.functionCall ? 'call' : 'answer', id, name, at, turn, place })
    }
  })
  const ids: PartId[][] = contents.map(() => [])
  for (const [index, identified] of identifyCalls(found).entries()) {
    const { at, place } = found[index] as (typeof found)[number]
    ;(ids[at] as PartId[])[place] = identified
  }
  return ids
}

function holdsCall(part: Part): boolean {
  return Boolean(part.functionCall ?? part.functionResponse ?? orphanOf(part))
}

function isWords(part: Part): boolean {
  return !holdsCall(part) && Boolean(part.text || part.inlineData || part.fileData)
}

function onlySigned(part: Part): boolean {
  return Object.keys(part).every(key => key === 'thoughtSignature' || key === 'text') && !part.text
}

/** Results make a message of their own, and calls are the assistant's wherever they stand. */
function toMessages(parts: readonly ProviderPart[], role: string): ProviderMessage[] {
  const messages: { role: string; parts: ProviderPart[] }[] = []
  for (const part of parts) {
    const own = part.type === 'tool-result' ? 'tool' : part.type === 'tool-call' ? 'assistant' : role
    const last = messages.at(-1)
    if (last?.role === own) last.parts.push(part)
    else messages.push({ role: own, parts: [part] })
  }
  return messages.length > 0 ? messages : [{ role, parts: [] }]
}

function convertPart(part: Part, identified: PartId): ProviderPart[] {
  const signed = signatureOf(part)
  const { functionCall, functionResponse, inlineData, fileData, executableCode, codeExecutionResult } = part
  if (functionCall) return [{ ...toCall(functionCall, identified), ...signed }]
  if (functionResponse) return [toResult(functionResponse, identified)]
  const orphan = orphanOf(part)
  if (orphan) return [toResult(orphan, identified)]
  const foreign = vendorOf(part)
  if (foreign) return [{ type: 'vendor', ...foreign, text: part.text ?? '', ...signed }]
  if (part.thought) return [{ type: 'reasoning', text: part.text ?? '', ...signed, ...redactedOf(part) }]
  if (inlineData || fileData)
    return toMedia(part).map(media => ({ ...media, ...furtherFields(part), ...signed }))
  const { thoughtSignature: _signature, ...value } = part
  if (executableCode || codeExecutionResult)
    return [{ type: 'vendor', vendor: 'gemini', value, text: codeAsText(part), ...signed }]
  if (typeof part.text === 'string' || (part.thoughtSignature && isBare(value)))
    return [{ type: 'text', text: part.text ?? '', ...signed }]
  if (isBare(value)) return []
  return [{ type: 'vendor', vendor: 'gemini', value, text: JSON.stringify(value), ...signed }]
}

function isBare(fields: object): boolean {
  return Object.values(fields).every(value => value === undefined)
}

/** What Gemini's part says of its media besides the media. */
function furtherFields(part: Part): Pick<MediaPart, 'gemini'> {
  const { inlineData: _inline, fileData: _file, thoughtSignature: _signature, text: _text, ...rest } = part
  return isBare(rest) ? {} : { gemini: rest as Record<string, unknown> }
}

/** What another vendor than Gemini made travels through ADK as metadata of a text. */
function vendorOf(part: Part): { vendor: string; value: unknown } | undefined {
  const own = part.partMetadata?.lango as { vendor?: unknown; value?: unknown } | undefined
  return typeof own?.vendor === 'string' ? { vendor: own.vendor, value: own.value } : undefined
}

/** A result without its call travels through ADK as a text. */
function orphanOf(part: Part): FunctionResponse | undefined {
  const own = part.partMetadata?.lango as { orphan?: FunctionResponse } | undefined
  return own?.orphan
}

/** The part with the account that has sealed it. */
function withAccount(part: ProviderPart, account: string): ProviderPart {
  if (part.type === 'tool-result' || !part.origin) return part
  return { ...part, origin: { ...part.origin, account } }
}

type Signed = Pick<Extract<ProviderPart, { type: 'text' }>, 'signature' | 'origin'>

function signatureOf(part: Part): Signed {
  if (!part.thoughtSignature) return {}
  const { signature, origin } = openSignature(part.thoughtSignature)
  return { ...(signature === undefined ? {} : { signature }), origin }
}

function redactedOf(part: Part): { redacted?: true } {
  return part.thoughtSignature && openSignature(part.thoughtSignature).redacted ? { redacted: true } : {}
}

function toCall(call: FunctionCall, identified: PartId) {
  const name = call.name ?? ''
  const args: unknown = call.args ?? {}
  return { type: 'tool-call' as const, id: identified?.id ?? '', name, args }
}

function toResult(response: FunctionResponse, identified: PartId): ProviderPart {
  // Where another session service keeps the events, media are still in the result.
  const { result, media: unsplit } = splitMedia<unknown>(response.response ?? {})
  const media = [...(response.parts ?? []), ...toInlineParts(unsplit)].flatMap(part => toMedia(part as Part))
  return {
    type: 'tool-result',
    id: identified?.id ?? '',
    name: response.name || (identified?.call?.name ?? ''),
    result,
    ...(isToolError(result) ? { isError: true } : {}),
    ...(media.length > 0 ? { media } : {}),
  }
}

function toMedia(part: Part): MediaPart[] {
  const { inlineData, fileData } = part
  const name = inlineData?.displayName ?? fileData?.displayName
  const named = name === undefined ? {} : { name }
  if (inlineData) {
    const mimeType = inlineData.mimeType ?? 'application/octet-stream'
    return [{ type: 'media', mimeType, data: inlineData.data ?? '', ...named }]
  }
  if (!fileData) return []
  const mimeType = fileData.mimeType ?? 'application/octet-stream'
  return [{ type: 'media', mimeType, url: fileData.fileUri ?? '', ...named }]
}

function codeAsText({ executableCode, codeExecutionResult }: Part): string {
  if (executableCode) {
    const language = (executableCode.language ?? '').toLowerCase()
    return `\`\`\`${language}\n${executableCode.code ?? ''}\n\`\`\``
  }
  return `[${codeExecutionResult?.outcome ?? 'OUTCOME_UNKNOWN'}]\n${codeExecutionResult?.output ?? ''}`
}
