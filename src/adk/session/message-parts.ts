/**
 * The parts of a content as a message's fields, and back. What a person reads (`content`, `toolCalls`) holds
 * the common shapes alone:
 *
 * - a text, calls, or a text and then calls;
 * - tool results and nothing else.
 *
 * Anything beyond them is kept in a layout: the parts in their order, texts as lengths into `content` and
 * calls by their turn in `toolCalls`, so that nothing is stored twice. Thoughts, media and code have no named
 * field and stand in the layout whole.
 */

import { parseJson, toJson } from '../../base/json.js'
import { type Message, type ToolCall, toolCallKind } from '../../session/message.js'
import { idsWithin } from '../../session/pair-calls.js'
import type { Part } from '../sdk.js'

/** One part: a text of that many characters, the next entry of `toolCalls`, or a part with more to it. */
export type LayoutEntry = number | 'call' | DetailedEntry

interface DetailedEntry {
  /** The keys of the call or response in their order, when that is not id, name, arguments. */
  order?: string[]
  /** Length of the text in `content`. */
  text?: number
  /** Fields of the call or response besides id, name and arguments: the part is the next of `toolCalls`. */
  call?: Record<string, unknown>
  /** Fields of the part besides the text or the call; without either, the whole part. */
  part?: Record<string, unknown>
}

export interface PartFields {
  content: string
  toolCalls?: ToolCall[]
  /** Absent for the common shapes. */
  layout?: LayoutEntry[]
}

/** Takes parts apart. */
export function partsToFields(parts: readonly Part[]): PartFields {
  const callIds = parts.some(part => part.functionCall)
    ? idsWithin(parts.flatMap(part => part.functionCall ?? []))
    : []
  const responseIds = parts.some(part => part.functionResponse)
    ? idsWithin(parts.flatMap(part => part.functionResponse ?? []))
    : []
  const toolCalls: ToolCall[] = []
  const layout: LayoutEntry[] = []
  let text = ''
  for (const part of parts) {
    if (part.functionCall) {
      const { id: _id, name, args, ...more } = part.functionCall
      const { functionCall: _call, thoughtSignature, ...rest } = part
      toolCalls.push(callEntry(callIds.shift() ?? '', name ?? '', args, thoughtSignature))
      layout.push(callLayout(part.functionCall, name === undefined ? { ...more, name: null } : more, rest))
    } else if (part.functionResponse) {
      const { id: _id, name, response, ...more } = part.functionResponse
      const { functionResponse: _response, ...rest } = part
      toolCalls.push(responseEntry(responseIds.shift() ?? '', name ?? '', response))
      layout.push(
        callLayout(part.functionResponse, name === undefined ? { ...more, name: null } : more, rest),
      )
    } else if (typeof part.text === 'string' && !part.thought) {
      const { text: own, ...rest } = part
      text += own
      layout.push(isEmpty(rest) ? part.text.length : { text: part.text.length, part: rest })
    } else {
      layout.push({ part: { ...part } })
    }
  }
  const common = isCommonShape(layout, toolCalls)
  const outputs = toolCalls.length > 0 && toolCalls.every(call => call.kind === 'response') && text === ''
  return {
    content: outputs ? outputsOf(toolCalls) : text,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(common ? {} : { layout }),
  }
}

/** Puts parts together again. Arguments and results are what their JSON says, objects or not. */
export function fieldsToParts(message: Message, layout?: readonly LayoutEntry[]): Part[] {
  const calls = (message.toolCalls ?? []).map(call => toPart(call, message))
  // In rows from elsewhere a call may hold its answer as well.
  const answers = (message.toolCalls ?? [])
    .filter(call => toolCallKind(call, message.role) === 'both')
    .map(toResponsePart)
  if (layout) return [...fromLayout(message, calls, layout), ...answers]
  const answersOnly = calls.length > 0 && calls.every(part => part.functionResponse)
  const text = hasOwnText(message) ? [{ text: message.content }] : []
  return answersOnly ? [...calls, ...text] : [...text, ...calls, ...answers]
}

/** The outputs of a message as its `content` shows them. */
function outputsOf(toolCalls: readonly ToolCall[]): string {
  return toolCalls.flatMap(call => (call.output === undefined ? [] : [call.output])).join('\n')
}

/** False when `content` is empty or only repeats the outputs. */
function hasOwnText(message: Message): boolean {
  const { content, toolCalls = [] } = message
  if (content === '') return false
  if (toolCalls.length === 0) return true
  const outputs = outputsOf(toolCalls.filter(call => toolCallKind(call, message.role) !== 'call'))
  if (content === outputs || answersByContent(message)) return false
  return outputs === '' || sameJson(content, outputs) === false
}

/** A result that has no output of its own has it in `content`, as OpenAI's messages do. */
function answersByContent(message: Message): boolean {
  const { role, toolCalls = [] } = message
  const [only] = toolCalls
  return toolCalls.length === 1 && only !== undefined && only.kind === undefined && !only.output
    ? toolCallKind(only, role) === 'response'
    : false
}

function toPart(call: ToolCall, message: Message): Part {
  if (toolCallKind(call, message.role) !== 'response') return toCallPart(call)
  return toResponsePart(answersByContent(message) ? { ...call, output: message.content } : call)
}

function toCallPart(call: ToolCall): Part {
  const functionCall: NonNullable<Part['functionCall']> = {}
  if (call.id) functionCall.id = call.id
  functionCall.name = call.name
  if (call.input !== undefined) functionCall.args = parseJson(call.input) as Record<string, unknown>
  return call.signature === undefined ? { functionCall } : { functionCall, thoughtSignature: call.signature }
}

function toResponsePart(call: ToolCall): Part {
  const functionResponse: NonNullable<Part['functionResponse']> = {}
  if (call.id) functionResponse.id = call.id
  functionResponse.name = call.name
  if (call.output !== undefined) functionResponse.response = parseJson(call.output) as Record<string, unknown>
  return { functionResponse }
}

/** Follows the layout. What it forgets, because somebody changed the row, comes last instead of being lost. */
function fromLayout(message: Message, calls: readonly Part[], layout: readonly LayoutEntry[]): Part[] {
  let position = 0
  let next = 0
  const takeText = (length: number) => {
    position += length
    return message.content.slice(position - length, position)
  }
  const parts = layout.flatMap((entry): Part[] => {
    if (typeof entry === 'number') return [{ text: takeText(entry) }]
    if (entry === 'call' || entry?.call) {
      const part = calls[next]
      next += 1
      return part ? [withDetails(part, entry === 'call' ? {} : entry)] : []
    }
    if (typeof entry?.text === 'number') return [{ text: takeText(entry.text), ...entry.part }]
    return entry?.part ? [{ ...entry.part }] : []
  })
  const forgotten = hasOwnText(message) ? message.content.slice(position) : ''
  return [...parts, ...calls.slice(next), ...(forgotten === '' ? [] : [{ text: forgotten }])]
}

function withDetails(part: Part, { call = {}, part: rest = {}, order }: DetailedEntry): Part {
  const { name, ...more } = call
  const complete = <Kind extends object>(value: Kind): Kind => {
    const result = { ...value, ...more } as Kind & { name?: unknown }
    if (name === null) delete result.name
    return order ? inOrder(result, order) : result
  }
  if (part.functionCall) return { ...part, functionCall: complete(part.functionCall), ...rest }
  if (part.functionResponse) return { ...part, functionResponse: complete(part.functionResponse), ...rest }
  return part
}

function callEntry(id: string, name: string, args: unknown, signature: string | undefined): ToolCall {
  return {
    id,
    name,
    ...(args === undefined ? {} : { input: toJson(args) }),
    ...(signature === undefined ? {} : { signature }),
    kind: 'call',
  }
}

function responseEntry(id: string, name: string, response: unknown): ToolCall {
  return { id, name, ...(response === undefined ? {} : { output: toJson(response) }), kind: 'response' }
}

function callLayout(
  original: object,
  call: Record<string, unknown>,
  part: Record<string, unknown>,
): LayoutEntry {
  const order = unusualOrder(original)
  if (isEmpty(call) && isEmpty(part) && !order) return 'call'
  return { call, ...(isEmpty(part) ? {} : { part }), ...(order ? { order } : {}) }
}

/**
 * The order of keys changes no meaning, but it changes the bytes of a request, and with them what a
 * provider's cache recognises. Ids that ADK made do not count: ADK takes them out again before sending.
 */
function unusualOrder(call: object): string[] | undefined {
  const fields = Object.entries(call).filter(([, value]) => value !== undefined)
  let last = 0
  for (const [key, value] of fields) {
    if (key === 'id' && typeof value === 'string' && value.startsWith('adk-')) continue
    const place = USUAL_ORDER.indexOf(key)
    // Fields without a place come after those that have one.
    if (place !== -1 && place < last) return fields.map(([name]) => name)
    last = place === -1 ? USUAL_ORDER.length : place
  }
  return undefined
}

const USUAL_ORDER = ['id', 'name', 'args', 'response']

/** The same fields, those that `order` names first and in that order. */
function inOrder<Fields extends object>(fields: Fields, order: readonly string[]): Fields {
  const known = Object.entries(fields)
  const rank = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  return Object.fromEntries(known.sort(([left], [right]) => rank(left) - rank(right))) as Fields
}

/** What `fieldsToParts` rebuilds without a layout. */
function isCommonShape(layout: readonly LayoutEntry[], toolCalls: readonly ToolCall[]): boolean {
  if (layout.length === 0) return false
  const [first, ...others] = layout
  const afterText = typeof first === 'number' && first > 0 ? others : layout
  if (!afterText.every(entry => entry === 'call')) return false
  if (toolCalls.every(call => call.kind === 'call')) return true
  return afterText === layout && toolCalls.every(call => call.kind === 'response')
}

function sameJson(left: string, right: string): boolean {
  try {
    return JSON.stringify(JSON.parse(left)) === JSON.stringify(JSON.parse(right))
  } catch {
    return false
  }
}

function isEmpty(value: Record<string, unknown>): boolean {
  return Object.values(value).every(field => field === undefined)
}
