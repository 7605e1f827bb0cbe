import { parseJson } from '../../session/json.js'
import type { Message } from '../../session/message.js'
import { normalizeRole } from '../../session/message.js'
import type { CallItem } from '../../session/pair-calls.js'
import { startsTurn } from '../../session/token-budget-truncate.js'
import { type Identified, identifyCalls } from '../call-id.js'
import type { Part } from '../sdk.js'

/** A stored message with its parts as its row has them. */
export interface PartsOfMessage {
  message: Message
  parts: readonly Part[]
  /** Who speaks if the parts hold calls. */
  author: string
}

/** The parts of one message with their ids. */
export interface PairedParts {
  parts: Part[]
  /** Who made the call that the first answer among the parts belongs to. */
  callAuthor?: string | undefined
}

/**
 * Gives calls and answers their ids: every call another id, every answer the id and, where it has none, the
 * name of its call. `faithful`: doubled ids stay doubled, and arguments and results are whatever their JSON says.
 */
export function pairParts(
  rows: readonly PartsOfMessage[],
  { faithful = false }: { faithful?: boolean } = {},
): PairedParts[] {
  const references = referencesOf(rows)
  const ids: PartIds[] = rows.map(() => [])
  for (const [index, identified] of identifyCalls(references, { unique: !faithful }).entries()) {
    const { at, place } = references[index] as Reference
    ;(ids[at] as PartIds)[place] = identified
  }
  return rows.map((row, index) => toPaired(row, ids[index] ?? [], faithful))
}

/** A call or an answer, who made it, and the place of its part; a bare result has the first place. */
type Reference = CallItem & { author: string; place: number }

type PartIds = (Identified<Reference> | undefined)[]

function referencesOf(rows: readonly PartsOfMessage[]): Reference[] {
  const found: Reference[] = []
  let turn = 0
  rows.forEach(({ message, parts, author }, at) => {
    if (startsTurn(message)) turn += 1
    if (isLegacyResult(message)) {
      found.push({ kind: 'answer', author, at, turn, place: 0 })
      return
    }
    for (const [place, { functionCall, functionResponse }] of parts.entries()) {
      const reference = functionCall ?? functionResponse
      if (!reference) continue
      const { id, name } = reference
      found.push({ kind: functionCall ? 'call' : 'answer', id, name, author, at, turn, place })
    }
  })
  return found
}

function toPaired({ message, parts }: PartsOfMessage, ids: PartIds, faithful: boolean): PairedParts {
  if (isLegacyResult(message)) return pairLegacy(message, ids[0], faithful)
  let callAuthor: string | undefined
  const paired = parts.map((part, place): Part => {
    const { id = '', call } = ids[place] ?? {}
    if (part.functionCall) {
      const { functionCall } = part
      const args = faithful ? {} : objectArgs(functionCall.args)
      return { ...part, functionCall: { ...withId(functionCall, id), ...args } }
    }
    if (!part.functionResponse) return part
    const { name, response } = part.functionResponse
    callAuthor ??= call?.author
    const named = { ...part.functionResponse, ...(name || !call ? {} : { name: call.name ?? '' }) }
    return { ...part, functionResponse: { ...withId(named, id), ...toResponse(response, faithful) } }
  })
  return { parts: paired, callAuthor }
}

/** Rows from before results had metadata: the answer belongs to the next open call before it. */
function pairLegacy(
  message: Message,
  identified: Identified<Reference> | undefined,
  faithful: boolean,
): PairedParts {
  const { id = '', call } = identified ?? {}
  if (!call) return { parts: message.content === '' ? [] : [{ text: message.content }] }
  const response = toResponse(parseJson(message.content), faithful)
  return {
    parts: [{ functionResponse: { id, name: call.name ?? '', ...response } }],
    callAuthor: call.author,
  }
}

function toResponse(response: unknown, faithful: boolean): { response?: Record<string, unknown> } {
  return faithful ? { response: response as Record<string, unknown> } : objectResponse(response)
}

/** A tool's result of which nothing but the text is known. */
export function isLegacyResult(message: Message): boolean {
  if (normalizeRole(message.role) !== 'tool' || (message.toolCalls ?? []).length > 0) return false
  return message.extra?.parts === undefined
}

/** Sets the id: where it stood, or first. */
function withId<Fields extends { id?: string }>(fields: Fields, id: string): Fields {
  return fields.id === undefined ? Object.assign({ id }, fields, { id }) : { ...fields, id }
}

/** ADK and the wires want objects. Whatever else a row holds is kept inside one. */
function objectArgs(args: unknown): { args?: Record<string, unknown> } {
  if (args === undefined || args === null) return {}
  return { args: isObject(args) ? args : { input: args } }
}

function objectResponse(response: unknown): { response?: Record<string, unknown> } {
  if (response === undefined) return {}
  if (isObject(response)) return { response }
  return { response: Array.isArray(response) ? { results: response } : { result: response } }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
