/**
 * What a session has decided about its requests stays decided, so that each request extends the one before it:
 *
 * - instruction and tools are sent as they were sent first; a changed instruction is appended, where the model takes a
 *   system message there, and stays where it was appended;
 * - the history begins where the request before began, until the budget is exceeded;
 * - notes about the messages before that beginning are those that it was decided with;
 * - an output that was shortened, and a call that was left out of a long turn, stay so in later turns;
 * - what the provider has refused stays out.
 *
 * When the beginning moves, all of it is lost to caches anyway: then instruction and tools are those of now.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type {
  PrefixBreakReason,
  ProviderMessage,
  ProviderPart,
  ToolDeclaration,
} from '../../provider/provider.js'
import { NOTHING_REFUSED, type Refused } from '../../provider/refused.js'
import { MEMORY_SHARE } from '../../session/budget.js'
import { countTextTokens, MESSAGE_TOKENS } from '../../session/tokens.js'
import { storedNumber } from './convert-messages.js'
import {
  type FittedRequest,
  fitTo,
  historyBudget,
  lensFor,
  type RequestBudget,
  type RequestParts,
  shortenResult,
} from './fit-request.js'
import type { SentPrefix } from './sent-prefix.js'

/** The requests of one agent on one branch of a session to one model. */
export interface RequestLane {
  /** The last one; `undefined` before the first. */
  readonly last?: LastSent | undefined
  /** The last request of the same agent and branch to another model, if that is the newest one. */
  readonly otherModel?: SentPrefix | undefined
  /** Notes about the stored messages up to a number, for requests that leave them out. */
  readonly memory?: ((throughSeq: number) => Promise<string | undefined>) | undefined
  /** What the model has refused anywhere in the session. */
  readonly refused?: Refused | undefined
}

/** What the next request of a lane extends. */
export interface LastSent {
  readonly decided: Decided
  readonly prefix: SentPrefix
}

/** What was decided about the requests of a lane. Plain JSON data. */
export interface Decided {
  readonly instruction: string
  readonly tools: readonly ToolDeclaration[]
  /** Changes of the instruction, and the number of messages that come before each. */
  readonly notes: readonly { readonly at: number; readonly text: string }[]
  /** The notes that stand before the history. */
  readonly memory?: string | undefined
  /** How many messages were left out at the beginning, and digests of the first ones that were sent. */
  readonly dropped: number
  readonly head: readonly string[]
  /** By call: the limits that its output was shortened to, in order. */
  readonly shortened: readonly (readonly [string, readonly number[]])[]
  /** Calls that were left out of a long turn. */
  readonly omitted: readonly string[]
  /** Digests of the reasoning whose prefix has changed since it was made. */
  readonly broken: readonly string[]
  /** What the provider has refused: it stays out. */
  readonly refused?: Refused | undefined
}

export interface PlannedRequest {
  system: ProviderMessage | undefined
  tools: readonly ToolDeclaration[]
  /** With the changes of the instruction. */
  messages: readonly ProviderMessage[]
  fitted: FittedRequest
  decided: Decided
  /** Why the request may not extend the one before it. */
  reason?: PrefixBreakReason | undefined
  /** Set when the beginning was decided anew: stored messages up to this number are left out. */
  leftOutSeq?: number | undefined
}

export interface PlanOptions extends RequestBudget {
  /** Instead of the budget: so many estimated tokens of history. */
  historyTokens?: number | undefined
  /** Keeps a part of the budget for notes about messages that are left out. */
  hasMemory?: boolean | undefined
  /** What the model has refused so far. */
  refused?: Refused | undefined
}

/** Fits a request to its budget. `last`: what the lane has decided so far. */
export function planRequest(
  current: RequestParts,
  last: Decided | undefined,
  options: PlanOptions,
): PlannedRequest {
  const fixed = last ? { ...current, system: systemOf(last.instruction), tools: last.tools } : current
  const shorter = last
    ? asDecided(current.messages, last)
    : { messages: current.messages, shortened: new Map() }
  const noted = last ? sum(last.notes.map(note => countTextTokens(note.text))) : 0
  const limit = options.historyTokens ?? Math.max(1, historyBudget(fixed, options) - noted)
  const hold = last ? holdOf(shorter.messages, last) : undefined
  const given = { ...fixed, messages: shorter.messages }
  const held = fitTo(given, Math.max(1, limit - memoryTokens(last?.memory)), hold)
  const hasMoved =
    last !== undefined && (hold === undefined || held.start !== hold || !isHead(shorter.messages, last, hold))
  const isDecidedAnew = hasMoved || last === undefined
  const fitted = isDecidedAnew && options.hasMemory ? fitBeside(given, limit) : held
  const announced = hasMoved || !last ? undefined : tell(current, last, fitted, { options, limit })
  const kept: Pick<Decided, 'instruction' | 'tools' | 'notes'> = announced ?? {
    instruction: textOf(current.system),
    tools: last && !hasMoved ? inSentOrder(last.tools, current.tools) : current.tools,
    notes: [],
  }
  const { shortened, omitted } = mergeShortened(shorter, fitted, last)
  const decided: Decided = {
    ...kept,
    ...(isDecidedAnew || last.memory === undefined ? {} : { memory: last.memory }),
    dropped: fitted.start,
    head: headOf(shorter.messages, fitted.start),
    shortened,
    omitted,
    broken: last?.broken ?? [],
    ...(options.refused === undefined || options.refused === NOTHING_REFUSED
      ? {}
      : { refused: options.refused }),
  }
  const isShorter =
    last !== undefined &&
    (!isDeepStrictEqual(shortened, last.shortened) || !isDeepStrictEqual(omitted, last.omitted))
  const planned: PlannedRequest = {
    system: announced ? fixed.system : current.system,
    tools: kept.tools,
    messages: withNotes(fitted.messages, kept.notes),
    fitted,
    decided,
    reason: hasMoved || isShorter ? 'budget' : undefined,
  }
  if (!isDecidedAnew) return last.memory === undefined ? planned : withMemory(planned, last.memory)
  return options.hasMemory ? { ...planned, leftOutSeq: leftOut(shorter.messages, fitted.start) } : planned
}

/** A history that does not fit whole leaves room for notes about what is left out. */
function fitBeside(request: RequestParts, limit: number): FittedRequest {
  const whole = fitTo(request, limit)
  const isWhole = whole.start === 0 && leftOut(request.messages, 0) === undefined
  return isWhole ? whole : fitTo(request, Math.max(1, Math.floor(limit * (1 - MEMORY_SHARE))))
}

/** The number of the last stored message before the beginning; `undefined` when there is none. */
function leftOut(messages: readonly ProviderMessage[], start: number): number | undefined {
  const first = messages.slice(start).find(message => storedNumber(message) !== undefined)
  const number = first && storedNumber(first)
  return number === undefined || number <= 1 ? undefined : number - 1
}

/** The request with notes before its history. */
export function withMemory(planned: PlannedRequest, text: string): PlannedRequest {
  const { fitted, decided, messages } = planned
  const note: ProviderMessage = { role: 'user', parts: [{ type: 'text', text }], writtenBy: 'program' }
  const tokens = memoryTokens(text)
  return {
    ...planned,
    messages: [note, ...messages],
    fitted: {
      ...fitted,
      historyTokens: fitted.historyTokens + tokens,
      requestTokens: fitted.requestTokens + tokens,
    },
    decided: { ...decided, memory: text },
  }
}

function memoryTokens(text: string | undefined): number {
  return text === undefined ? 0 : MESSAGE_TOKENS + countTextTokens(text)
}

const HEAD = 4

/** A note may not take more than this share of the history together with those before it. */
const NOTES_SHARE = 0.25

/** Instruction, tools and notes that extend the request before; `undefined` when they must be sent anew. */
function tell(
  current: RequestParts,
  last: Decided,
  fitted: FittedRequest,
  { options, limit }: { options: PlanOptions; limit: number },
): Pick<Decided, 'instruction' | 'tools' | 'notes'> | undefined {
  const { instruction, tools, notes } = last
  if (!areSameTools(tools, current.tools)) return undefined
  const text = textOf(current.system)
  const newest = notes.at(-1)
  const known = newest ? newest.text : instruction
  if (known === (newest ? noteText(text) : text)) return last
  const at = fitted.messages.length
  const isFree = newest?.at !== at && fitted.messages.at(-1)?.role !== 'assistant'
  const size = sum([...notes.map(note => note.text), text].map(countTextTokens))
  if (!options.model.takesLaterSystem || at === 0 || !isFree || text === '' || size > limit * NOTES_SHARE)
    return undefined
  return { instruction, tools, notes: [...notes, { at, text: noteText(text) }] }
}

function noteText(instruction: string): string {
  return `[Your instruction has changed. From here on it is the following, instead of every earlier one.]\n\n${instruction}`
}

/** The order of declarations says nothing: servers of tools may list them in any. */
function areSameTools(before: readonly ToolDeclaration[], now: readonly ToolDeclaration[]): boolean {
  const byName = (tools: readonly ToolDeclaration[]) => new Map(tools.map(tool => [tool.name, tool]))
  return before.length === now.length && isDeepStrictEqual(byName(before), byName(now))
}

/** Tools that were sent before keep their order, and new ones come last. */
function inSentOrder(
  before: readonly ToolDeclaration[],
  now: readonly ToolDeclaration[],
): readonly ToolDeclaration[] {
  const rest = new Map(now.map(tool => [tool.name, tool]))
  const known = before.flatMap(({ name }) => {
    const tool = rest.get(name)
    rest.delete(name)
    return tool ? [tool] : []
  })
  return [...known, ...rest.values()]
}

/** Puts notes where they were appended; never between a call and its results. */
function withNotes(
  messages: readonly ProviderMessage[],
  notes: Decided['notes'],
): readonly ProviderMessage[] {
  if (notes.length === 0) return messages
  const all: ProviderMessage[] = []
  let next = 0
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') {
      for (; next < notes.length && (notes[next]?.at ?? 0) <= index; next++) all.push(...noteAt(notes, next))
    }
    all.push(message)
  }
  for (; next < notes.length; next++) all.push(...noteAt(notes, next))
  return all
}

function noteAt(notes: Decided['notes'], index: number): ProviderMessage[] {
  const system = systemOf(notes[index]?.text ?? '')
  return system ? [system] : []
}

/** Where the request before began, among the messages of now. */
function holdOf(messages: readonly ProviderMessage[], last: Decided): number | undefined {
  if (last.dropped === 0) return 0
  if (isHead(messages, last, last.dropped)) return last.dropped
  // Opening the session may have left out more, or less, than before.
  for (let at = messages.length - 1; at >= 0; at--) if (isHead(messages, last, at)) return at
  return undefined
}

function isHead(messages: readonly ProviderMessage[], { head }: Decided, at: number): boolean {
  return head.every((digest, index) => {
    const message = messages[at + index]
    return message !== undefined && digestOf(message) === digest
  })
}

function headOf(messages: readonly ProviderMessage[], start: number): string[] {
  return messages.slice(start, start + HEAD).map(digestOf)
}

const digests = new WeakMap<ProviderMessage, string>()

function digestOf(message: ProviderMessage): string {
  const known = digests.get(message)
  if (known !== undefined) return known
  const digest = shortDigest(JSON.stringify(message))
  digests.set(message, digest)
  return digest
}

function shortDigest(text: string): string {
  return createHash('sha1').update(text).digest('base64').slice(0, 12)
}

interface AsDecided {
  messages: readonly ProviderMessage[]
  /** By call: the limits of outputs that were shortened again as before. */
  shortened: Map<string, readonly number[]>
}

/** Earlier turns as they were sent: without the calls that were left out, outputs as short as they were. */
function asDecided(given: readonly ProviderMessage[], { shortened, omitted }: Decided): AsDecided {
  if (omitted.length + shortened.length === 0) return { messages: given, shortened: new Map() }
  const { startsTurn } = lensFor(given)
  const turn = given.findLastIndex(message => startsTurn(message))
  const isOut = new Set(omitted)
  const limitsOf = new Map(shortened)
  const again = new Map<string, readonly number[]>()
  const messages = given.flatMap((message, index) => {
    // The current turn is fitted as a whole: what it needs follows from its length.
    if (index >= turn) return [message]
    if (message.parts.some(part => isPartOf(part, isOut))) return []
    const parts = message.parts.map(part => {
      const limits = part.type === 'tool-result' ? limitsOf.get(part.id) : undefined
      if (part.type !== 'tool-result' || !limits) return part
      again.set(part.id, limits)
      return limits.reduce(shortenResult, part)
    })
    return [parts.some((part, place) => part !== message.parts[place]) ? { ...message, parts } : message]
  })
  return { messages, shortened: again }
}

function isPartOf(part: ProviderPart, calls: ReadonlySet<string>): boolean {
  return (part.type === 'tool-call' || part.type === 'tool-result') && calls.has(part.id)
}

/** What is shortened and left out now. */
function mergeShortened(
  { shortened: again }: AsDecided,
  { shortened: fresh, omitted: fromTurn }: FittedRequest,
  last: Decided | undefined,
): Pick<Decided, 'shortened' | 'omitted'> {
  const shortened = new Map(again)
  for (const [id, limits] of fresh) shortened.set(id, [...(again.get(id) ?? []), ...limits])
  const omitted = [...new Set([...(last?.omitted ?? []), ...fromTurn])]
  return { shortened: [...shortened], omitted }
}

/** The messages with the reasoning marked that is bound to an earlier form of the history. */
export function markBroken(
  messages: readonly ProviderMessage[],
  broken: ReadonlySet<string>,
): readonly ProviderMessage[] {
  if (broken.size === 0) return messages
  return messages.map(message => {
    if (!message.parts.some(part => isBroken(part, broken))) return message
    const parts = message.parts.map(part =>
      part.type === 'reasoning' && isBroken(part, broken) ? { ...part, prefixBroken: true as const } : part,
    )
    return { ...message, parts }
  })
}

function isBroken(part: ProviderPart, broken: ReadonlySet<string>): boolean {
  return part.type === 'reasoning' && broken.has(reasoningId(part))
}

/** The reasoning in the messages that does not stand in the part of the body that is as it was. */
export function brokenReasoning(
  messages: readonly ProviderMessage[],
  unchanged: readonly unknown[],
): string[] {
  const text = JSON.stringify(unchanged)
  return messages.flatMap(({ parts }) =>
    parts.flatMap(part => {
      if (part.type !== 'reasoning') return []
      const isUnchanged = Boolean(part.signature) && text.includes(JSON.stringify(part.signature))
      return isUnchanged ? [] : [reasoningId(part)]
    }),
  )
}

function reasoningId(part: Extract<ProviderPart, { type: 'reasoning' }>): string {
  return shortDigest(part.signature || part.text)
}

function systemOf(text: string): ProviderMessage | undefined {
  return text === '' ? undefined : { role: 'system', parts: [{ type: 'text', text }] }
}

function textOf(system: ProviderMessage | undefined): string {
  return (system?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('\n')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}
