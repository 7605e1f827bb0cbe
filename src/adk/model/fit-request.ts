import type {
  ModelInfo,
  ProviderMessage,
  ProviderPart,
  ToolDeclaration,
  ToolResultPart,
} from '../../provider/provider.js'
import { effectiveLimits } from '../../session/budget.js'
import { type BudgetLens, fitToBudget } from '../../session/fit-to-budget.js'
import type { HistoryCut, ShortenedOutput } from '../../session/message.js'
import { shortenOutput } from '../../session/shorten-output.js'
import {
  CALL_TOKENS,
  countTextTokens,
  estimateTokens,
  MEDIA_TOKENS,
  MESSAGE_TOKENS,
} from '../../session/tokens.js'
import { isTurnStart } from '../../session/turn.js'

export interface RequestParts {
  system: ProviderMessage | undefined
  messages: readonly ProviderMessage[]
  tools: readonly ToolDeclaration[]
  maxOutputTokens?: number | undefined
}

export interface RequestBudget {
  budgetTokens: number | 'off' | undefined
  model: ModelInfo
  /** How many real tokens an estimated one was, learnt from reported usage. 1 until something is known. */
  scale: number
  /** The history is that of a session which was opened by estimated tokens: there is not more of it. */
  isStored?: boolean | undefined
}

export interface FittedRequest {
  messages: ProviderMessage[]
  /** The index of the first message that is sent. */
  start: number
  /** By call: the limits that its output was shortened to, in order. */
  shortened: ReadonlyMap<string, readonly number[]>
  /** The calls that were left out after the beginning. */
  omitted: string[]
  cut?: HistoryCut
  /** The history before it was fitted. */
  given: { messages: number; tokens: number }
  /** Estimates of the history that is sent, and of the request as a whole. */
  historyTokens: number
  requestTokens: number
}

/**
 * Fits to that many estimated tokens of history: pairs stay whole and the current question stays in, whatever the run
 * has called since. ADK loads a session once per run, so this happens before every model call. `hold` is the index of
 * the message that the request before began with; without one, the cut moves in steps of a quarter of the budget.
 */
export function fitTo(request: RequestParts, budgetTokens: number, hold?: number): FittedRequest {
  const { messages } = request
  const tokens = countAll(messages)
  const shortened = new Map<string, readonly number[]>()
  const lens: BudgetLens<ProviderMessage> = {
    ...lensFor(messages),
    shorten: (message, limitTokens) => shorten(message, limitTokens, shortened),
  }
  const fit = fitToBudget(messages, { budgetTokens, steady: true, hold, dropWithinTurn: true }, lens)
  const historyTokens = countAll(fit.items)
  return {
    messages: fit.items,
    start: fit.start,
    shortened,
    omitted: omittedCalls(messages.slice(fit.start), fit.items),
    given: { messages: messages.length, tokens },
    ...(fit.cut ? { cut: fit.cut } : {}),
    historyTokens,
    requestTokens: historyTokens + overheadTokens(request),
  }
}

function omittedCalls(given: readonly ProviderMessage[], kept: readonly ProviderMessage[]): string[] {
  if (given.length === kept.length) return []
  const callsOf = ({ parts }: ProviderMessage) =>
    parts.flatMap(part => (part.type === 'tool-call' ? [part.id] : []))
  const left = new Set(kept.flatMap(callsOf))
  return given.flatMap(callsOf).filter(id => !left.has(id))
}

/** The budget, but never more than the window has room for next to answer, instruction and tools. */
export function historyBudget(request: RequestParts, budget: RequestBudget): number {
  const { budgetTokens, model, scale, isStored = false } = budget
  const wanted = effectiveLimits(budgetTokens, undefined).budgetTokens
  const answer = Math.min(
    request.maxOutputTokens ?? model.outputLimit,
    model.outputLimit,
    model.contextWindow / 2,
  )
  const room = (model.contextWindow - answer) / scale - overheadTokens(request)
  return Math.max(1, Math.floor(Math.min(wanted / (isStored ? Math.max(1, scale) : scale), room)))
}

function overheadTokens({ system, tools }: RequestParts): number {
  return (system ? countProviderTokens(system) : 0) + countToolTokens(tools)
}

function countAll(messages: readonly ProviderMessage[]): number {
  return messages.reduce((all, message) => all + countProviderTokens(message), 0)
}

/** The lens for a history. Where no message is known to be the user's, every one in the user's role counts as such. */
export function lensFor(messages: readonly ProviderMessage[]): BudgetLens<ProviderMessage> {
  if (messages.some(startsTurn)) return providerMessageLens
  return {
    ...providerMessageLens,
    startsTurn: message => isTurnStart({ role: message.role, byProgram: false, speaks: hasWords(message) }),
  }
}

/** How a budget sees a neutral message: the same costs as those of stored messages. */
const providerMessageLens: BudgetLens<ProviderMessage> = {
  tokens: countProviderTokens,
  startsTurn,
  calls: message => message.parts.filter(part => part.type === 'tool-call'),
  answers: message => message.parts.filter(part => part.type === 'tool-result'),
  outputTokens: message =>
    message.parts.flatMap(part => (part.type === 'tool-result' ? [resultTokens(part)] : [])),
  shorten,
}

/** A message by the user: much that has the user's role was written by programs. */
function startsTurn(message: ProviderMessage): boolean {
  return isTurnStart({
    role: message.role,
    byProgram: message.writtenBy === 'program',
    speaks: hasWords(message),
  })
}

function hasWords({ parts }: ProviderMessage): boolean {
  return parts.some(part => part.type === 'text' || part.type === 'media')
}

/** A fit asks for the same messages several times; they are never changed in place. */
const counted = new WeakMap<ProviderMessage, number>()

/** What a message will roughly cost: its texts, and a little for the message and each call. */
function countProviderTokens(message: ProviderMessage): number {
  const known = counted.get(message)
  if (known !== undefined) return known
  const tokens = messageTokens(message)
  counted.set(message, tokens)
  return tokens
}

function messageTokens(message: ProviderMessage): number {
  let tokens = 0
  let fixed = MESSAGE_TOKENS
  for (const part of message.parts) {
    tokens += partTokens(part)
    if (part.type === 'tool-call' || part.type === 'tool-result') fixed += CALL_TOKENS
    if (part.type === 'media') fixed += MEDIA_TOKENS
    if (part.type === 'tool-result') fixed += MEDIA_TOKENS * (part.media?.length ?? 0)
  }
  return fixed + Math.ceil(tokens)
}

/** What the declarations of tools will roughly cost. */
function countToolTokens(tools: readonly ToolDeclaration[]): number {
  const costOf = ({ gemini: _twin, ...tool }: ToolDeclaration) => countTextTokens(JSON.stringify(tool))
  return tools.reduce((all, tool) => all + CALL_TOKENS + costOf(tool), 0)
}

function partTokens(part: ProviderPart): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'vendor':
      return estimateTokens(part.text)
    case 'tool-call':
      return estimateTokens(part.name) + estimateTokens(JSON.stringify(part.args) ?? '')
    case 'tool-result':
      return estimateTokens(part.name) + estimateTokens(jsonOf(part))
    case 'media':
      return 0
  }
}

function resultTokens(part: ToolResultPart): number {
  return CALL_TOKENS + countTextTokens(jsonOf(part))
}

/** A fit asks for the same result several times, and results are the bulk of a long run. */
const jsonTexts = new WeakMap<ToolResultPart, string>()

function jsonOf(part: ToolResultPart): string {
  const known = jsonTexts.get(part)
  if (known !== undefined) return known
  const text = JSON.stringify(part.result) ?? ''
  jsonTexts.set(part, text)
  return text
}

function shorten(
  message: ProviderMessage,
  limitTokens: number,
  limits = new Map<string, readonly number[]>(),
): { item: ProviderMessage; shortened: ShortenedOutput[] } {
  const shortened: ShortenedOutput[] = []
  const parts = message.parts.map(part => {
    if (part.type !== 'tool-result') return part
    const shorter = shortenResult(part, limitTokens)
    if (shorter === part) return part
    const [fromTokens, toTokens] = [countTextTokens(jsonOf(part)), countTextTokens(jsonOf(shorter))]
    shortened.push({ callId: part.id, name: part.name, fromTokens, toTokens })
    limits.set(part.id, [...(limits.get(part.id) ?? []), limitTokens])
    return shorter
  })
  return { item: { ...message, parts }, shortened }
}

/** A result that costs at most so many tokens; the same one when it does already. */
export function shortenResult(part: ToolResultPart, limitTokens: number): ToolResultPart {
  const before = jsonOf(part)
  const after = shortenOutput(before, limitTokens - CALL_TOKENS)
  return after === before ? part : { ...part, result: JSON.parse(after) as unknown }
}

/** What a provider counted in a request that was too long, and how much it may be. Either may be unknown. */
export interface OverflowCounts {
  counted?: number
  limit?: number
}

const NUMBER = '([\\d,]+)'
/** By vendor's wording: the places of the count, the limit, and what the answer takes of it. */
const OVERFLOW_TEXTS: readonly (readonly [RegExp, { counted?: number; limit?: number; answer?: number }])[] =
  [
    [
      new RegExp(
        `context length is ${NUMBER} tokens.*?\\(${NUMBER} (?:in|of) [^,]*, ${NUMBER} (?:in|for) the completion`,
        's',
      ),
      { limit: 1, counted: 2, answer: 3 },
    ],
    [
      new RegExp(
        `context length is ${NUMBER} tokens.*?(?:resulted in|requested|has|contains)[a-z ]* ${NUMBER} (?:input )?tokens`,
        's',
      ),
      { limit: 1, counted: 2 },
    ],
    [
      new RegExp(`token count \\(?${NUMBER}\\)? exceeds the maximum number of tokens allowed \\(?${NUMBER}`),
      { counted: 1, limit: 2 },
    ],
    [new RegExp(`too long: ${NUMBER} tokens > ${NUMBER} maximum`), { counted: 1, limit: 2 }],
    [
      new RegExp(`exceed context limit: ${NUMBER} \\+ ${NUMBER} > ${NUMBER}`),
      { counted: 1, answer: 2, limit: 3 },
    ],
    [
      new RegExp(`contains ${NUMBER} tokens.*?too large for model with ${NUMBER} maximum`),
      { counted: 1, limit: 2 },
    ],
    [
      new RegExp(`request \\(${NUMBER} tokens\\) exceeds the available context size \\(${NUMBER}`),
      { counted: 1, limit: 2 },
    ],
    [
      new RegExp(`(?:context size \\(|context length of only |maximum context length is )${NUMBER}`),
      { limit: 1 },
    ],
  ]

/** Reads the counts in the error text of a request that was too long. */
export function overflowCounts(message: string): OverflowCounts {
  const start = message.slice(0, 2000)
  for (const [pattern, places] of OVERFLOW_TEXTS) {
    const match = pattern.exec(start)
    if (!match) continue
    const read = (place: number | undefined) =>
      place === undefined ? 0 : Number((match[place] ?? '').replaceAll(',', ''))
    const [counted, limit] = [read(places.counted), read(places.limit) - read(places.answer)]
    return { ...(counted > 0 ? { counted } : {}), ...(limit > 0 ? { limit } : {}) }
  }
  return {}
}

/**
 * How much history is tried after a request was too long, in estimated tokens: what the provider's own counts leave
 * room for, and without them seven tenths of what was sent.
 */
export function refitTokens(fitted: FittedRequest, { counted, limit }: OverflowCounts): number {
  const { historyTokens, requestTokens } = fitted
  const blind = historyTokens * OVERFLOW_SHARE
  if (limit === undefined) return blind
  const overhead = requestTokens - historyTokens
  const scale = counted === undefined ? 1 : counted / Math.max(1, requestTokens)
  const room = (limit * REFIT_SHARE) / Math.max(scale, 0.1) - overhead
  const most = counted !== undefined && counted > limit ? historyTokens * 0.95 : blind
  return Math.max(1, Math.min(most, room))
}

const OVERFLOW_SHARE = 0.7
/** Estimates of parts err more than those of the whole, and the provider's limit may not count the answer. */
const REFIT_SHARE = 0.9
