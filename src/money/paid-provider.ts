/**
 * Model calls that are paid for. Before a call is sent, its worst case is reserved in the store; afterwards the
 * reservation is replaced by what the provider reports. So money that is spent and reserved never exceeds a limit,
 * regardless of the caller: agents, agents inside tools, repeated and replaced calls, the observer of memory.
 *
 * - The worst case is the calibrated estimate of the input, with a margin, at its highest price, and the output limit.
 * - What does not fit gets a lower output limit. An ordinary answer waits for the calls of others instead, because
 *   most of what they have reserved comes back.
 * - A call that was sent and whose usage was not reported counts as its worst case, unless the provider refused it. Sent
 *   again, it needs another reservation.
 */
import { randomUUID } from 'node:crypto'
import { AgentError } from '../errors.js'
import {
  type GenerateRequest,
  type GenerationOptions,
  type ModelInfo,
  type Provider,
  withGenerate,
} from '../provider/provider.js'
import type { StreamEvent } from '../provider/stream-event.js'
import type { SessionKey } from '../session/message.js'
import {
  type SpendingAsk,
  type SpendingGrant,
  type SpendingStore,
  spendingLimits,
  toNanos,
  toUsd,
} from '../session/spending.js'
import { type Budget, completeUsage, costOf, isFree, type ModelPrice, priceFor } from '../session/usage.js'
import { countRequest } from './count-request.js'

/** Who pays for a call. */
export interface Payer {
  readonly key: SessionKey
  readonly runId: string
  readonly budget: Budget
  /** The run has called tools: it ends with an answer while that can be paid for. */
  readonly hasActed: boolean
  /** The call is the last one of its run. */
  readonly isLast: boolean
  /** An answer ended at an output limit that the budget had lowered. */
  cutShort(): void
}

export interface PaymentParts {
  spending: SpendingStore
  /** The payer of the current call; without one it is not counted. */
  payer(): Payer | undefined
  /** How many real tokens an estimated one of the model is. */
  scale(model: string): number
}

/** The provider, with its calls paid for. */
export function paidProvider(provider: Provider, parts: PaymentParts): Provider {
  return withGenerate(provider, (request, signal) => {
    const payer = parts.payer()
    if (!payer) return provider.generate(request, signal)
    const { price } = provider.describeModel(request.model)
    const isUncounted = price ? isFree(price) : payer.budget.unknownPrice === 'ignore'
    if (isUncounted) return provider.generate(request, signal)
    return new PaidCall(provider, parts, payer).generate(request, signal)
  })
}

/** The fewest tokens that an answer is requested with. */
const LEAST_OUTPUT = { ordinary: 256, last: 64 }
/** As many as most answers need: for these a call waits for others. */
const ENOUGH_OUTPUT = 4096
/** The tokens that a last answer may need. */
const HELD_OUTPUT = 512
/** The tokens that a last request has more than the one before: its answer, results and the notice. */
const ADDED_TOKENS = 256
/** The part of a budget that is held back at most for the output of a last answer. */
const HELD_SHARE = 0.1
/** Estimates of the input are exceeded now and then. */
const MARGIN = 1.25

class PaidCall {
  readonly #provider: Provider
  readonly #parts: PaymentParts
  readonly #payer: Payer
  #reserved: { id: string; amount: number } | undefined
  #spent: number | 'nothing' | 'unknown' = 'nothing'

  constructor(provider: Provider, parts: PaymentParts, payer: Payer) {
    this.#provider = provider
    this.#parts = parts
    this.#payer = payer
  }

  async *generate(request: GenerateRequest, signal: AbortSignal | undefined): AsyncGenerator<StreamEvent> {
    const info = this.#provider.describeModel(request.model)
    const { price } = info
    let cap: number
    try {
      if (!price) throw unknownPrice(`${this.#provider.id}/${request.model}`)
      cap = await this.#reserve(this.#callOf(request, info, price), signal)
    } catch (error) {
      yield { type: 'error', error: asAgentError(error) }
      return
    }
    let isAnswered = false
    const paid = withOutputLimit(request, info, cap)
    // Not enumerable: a provider may copy the data of its requests.
    Object.defineProperty(paid, 'onRetry', {
      value: (error: AgentError) => {
        const isBilled = isAnswered || mayBeBilled(error)
        isAnswered = false
        return this.#again(isBilled)
      },
    })
    try {
      for await (const event of this.#provider.generate(paid, signal)) {
        isAnswered ||= OUTPUT.has(event.type)
        if (event.type === 'usage')
          this.#spent = toNanos(costOf(completeUsage(event.usage), price), Math.ceil)
        const isRefused = event.type === 'error' && !isAnswered && !mayBeBilled(event.error)
        if (isRefused && this.#spent === 'unknown') this.#spent = 'nothing'
        const isCut = event.type === 'done' && event.finishReason === 'length'
        if (isCut && cap < wantedOutput(request, info)) this.#payer.cutShort()
        yield event
        // Nothing is sent before the event after the request is asked for.
        if (event.type === 'request') this.#spent = 'unknown'
      }
    } finally {
      const spent = this.#spent
      await this.#settle(spent === 'unknown' ? this.#amount : spent === 'nothing' ? 0 : spent)
    }
  }

  get #amount(): number {
    return this.#reserved?.amount ?? 0
  }

  /** What the call may cost. */
  #callOf(request: GenerateRequest, info: ModelInfo, price: ModelPrice): CallCost {
    const { isLast } = this.#payer
    const inputTokens = countRequest(request) * this.#parts.scale(request.model) * MARGIN
    const input = dearestInput(inputTokens, price)
    const output = Math.max(priceFor(inputTokens, price).output, 0) / MILLION
    const wanted = wantedOutput(request, info)
    const costOfOutput = (tokens: number) => toNanos(input + output * Math.min(tokens, wanted), Math.ceil)
    return {
      wants: costOfOutput(wanted),
      enough: costOfOutput(ENOUGH_OUTPUT),
      least: costOfOutput(isLast ? LEAST_OUTPUT.last : LEAST_OUTPUT.ordinary),
      hold: isLast ? 0 : this.#held(inputTokens, output, price),
      outputFor: nanos =>
        nanos >= costOfOutput(wanted) ? wanted : Math.floor((toUsd(nanos) - input) / output + ROUNDING),
    }
  }

  /** The cost of a last answer after this call. A small budget holds back less for it: it is there to be used. */
  #held(inputTokens: number, outputPrice: number, price: ModelPrice): number {
    const { perRunUsd = Number.POSITIVE_INFINITY, perSessionUsd = perRunUsd } = this.#payer.budget
    const share = Math.min(perRunUsd, perSessionUsd) * HELD_SHARE
    const most = HELD_OUTPUT * outputPrice
    const least = LEAST_OUTPUT.last * outputPrice
    const input = dearestInput(inputTokens + ADDED_TOKENS * MARGIN, price)
    return toNanos(input + Math.min(most, Math.max(least, share)), Math.ceil)
  }

  /** Reserves and returns how many tokens the answer may have. Waits while calls of others may give back what is missing. */
  async #reserve(call: CallCost, signal: AbortSignal | undefined): Promise<number> {
    // Few calls are refused: most get here what they need.
    const first = await this.#ask(call, call.enough)
    if (!('scope' in first)) return call.outputFor(first.granted)
    const { key, runId } = this.#payer
    const names = { run: [runId], session: [key.sessionId], day: [] }[first.scope]
    const name = JSON.stringify([key.appName, key.userId, ...names])
    const started = performance.now()
    return inLine(name, line => this.#wait(call, line, { started, signal }))
  }

  async #wait(
    call: CallCost,
    line: Line,
    { started, signal }: { started: number; signal: AbortSignal | undefined },
  ): Promise<number> {
    const { isLast } = this.#payer
    for (let pauseMs = 20; ; pauseMs = Math.min(MOST_PAUSE_MS, pauseMs * 1.5)) {
      if (signal?.aborted)
        throw new AgentError('aborted', 'The run was stopped while it waited for its budget.')
      const now = performance.now()
      const isOver = now - line.changedAt > STALLED_MS || now - started > MOST_WAIT_MS
      const isPatient = !isLast && !isOver && now - started < ENOUGH_MS
      const grant = await this.#ask(call, isPatient ? call.enough : call.least)
      if (!('scope' in grant)) return call.outputFor(grant.granted)
      if (grant.left !== line.left) Object.assign(line, { left: grant.left, changedAt: now })
      if (isLast || isOver || grant.pending === 0) {
        const last = isPatient ? await this.#ask(call, call.least) : grant
        if ('scope' in last) throw budgetSpent(last)
        return call.outputFor(last.granted)
      }
      await new Promise(resolve => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)))
    }
  }

  async #ask({ wants, enough, hold }: CallCost, least: number): Promise<SpendingGrant> {
    const { key, runId, budget, hasActed, isLast } = this.#payer
    const { spending } = this.#parts
    const id = randomUUID()
    const limits = spendingLimits(budget)
    const ask: SpendingAsk = { id, key, runId, limits, wants, enough, least: Math.max(1, least), hold }
    if (hasActed && !isLast) ask.isHoldFirm = true
    const grant = await spending.reserve(ask)
    if (!('scope' in grant)) this.#reserved = { id, amount: grant.granted }
    return grant
  }

  /** The call is sent once more. What may have been billed is spent, and as much is reserved again. */
  async #again(isBilled: boolean): Promise<void> {
    this.#spent = 'unknown'
    if (!isBilled) return
    const amount = this.#amount
    await this.#settle(amount)
    const exactly = { wants: amount, enough: amount, least: amount, hold: 0, outputFor: () => 0 }
    const grant = await this.#ask(exactly, amount)
    if ('scope' in grant) throw budgetSpent(grant)
  }

  async #settle(spent: number): Promise<void> {
    const reserved = this.#reserved
    this.#reserved = undefined
    if (reserved) await this.#parts.spending.settle(reserved.id, spent)
  }
}

interface CallCost extends Pick<SpendingAsk, 'wants' | 'enough' | 'least'> {
  hold: number
  /** How many tokens of output an amount pays for. */
  outputFor(nanos: number): number
}

/** The events of an answer that has begun. Vendors bill it, whatever ends it. */
const OUTPUT: ReadonlySet<StreamEvent['type']> = new Set<StreamEvent['type']>([
  'text-delta',
  'reasoning-delta',
  'tool-call',
  'media',
  'vendor',
])

type Refusal = Extract<SpendingGrant, { scope: unknown }>

const MILLION = 1_000_000

/** Dollars for input, at the highest of its prices. */
function dearestInput(tokens: number, price: ModelPrice): number {
  const { input, cacheWrite = 0 } = priceFor(tokens, price)
  return (tokens * Math.max(input, cacheWrite)) / MILLION
}

const ROUNDING = 1e-6
const MOST_PAUSE_MS = 1000
/** How long a call waits for more than the least. */
const ENOUGH_MS = 5000
/** How long it waits when nothing is given back, and altogether. */
const STALLED_MS = 20_000
const MOST_WAIT_MS = 300_000

/** Calls that wait for the same limit, one after another; and what it left when it last changed. */
interface Line {
  tail: Promise<unknown>
  left?: number
  changedAt: number
}

const lines = new Map<string, Line>()

async function inLine<T>(name: string, work: (line: Line) => Promise<T>): Promise<T> {
  const line: Line = lines.get(name) ?? { tail: Promise.resolve(), changedAt: performance.now() }
  lines.set(name, line)
  const turn = line.tail.then(() => work(line))
  const ended = turn.catch(() => {})
  line.tail = ended
  try {
    return await turn
  } finally {
    if (line.tail === ended) lines.delete(name)
  }
}

function wantedOutput({ options }: GenerateRequest, info: ModelInfo): number {
  return Math.min(options?.maxOutputTokens ?? info.outputLimit, info.outputLimit)
}

/** The request with an output limit that includes what the model thinks. */
function withOutputLimit(
  request: GenerateRequest,
  info: ModelInfo,
  maxOutputTokens: number,
): GenerateRequest {
  const { thinking } = request.options ?? {}
  const fitting = thinking && fittingThinking(thinking, info, maxOutputTokens)
  const options: GenerationOptions = {
    ...request.options,
    maxOutputTokens,
    ...(fitting ? { thinking: fitting } : {}),
  }
  return { ...request, options }
}

/** Claude's output limit is raised by a budget for thinking that it does not hold. */
function fittingThinking(
  thinking: NonNullable<GenerationOptions['thinking']>,
  { profile }: ModelInfo,
  limit: number,
): GenerationOptions['thinking'] {
  if (!profile.startsWith('anthropic')) return thinking
  const { budgetTokens: own = -1 } = thinking
  if (own === 0) return thinking
  if (limit < 2 * LEAST_THINKING) return { ...thinking, budgetTokens: 0 }
  const most = limit - LEAST_THINKING
  return own > most || own === -1 ? { ...thinking, budgetTokens: Math.max(LEAST_THINKING, most) } : thinking
}

const LEAST_THINKING = 1024

/**
 * Whether a call that failed before its answer may be on the vendor's bill. It is free when it was refused, by a status
 * or by a code that says so, or never left this machine. A vendor may have worked on any other: a connection that was
 * reset, or on which nothing came.
 */
function mayBeBilled({ code, details }: AgentError): boolean {
  if (typeof details.status === 'number' && details.status >= 400) return false
  return details.isSent !== false && !NOT_BILLED.has(code)
}

const NOT_BILLED: ReadonlySet<string> = new Set<AgentError['code']>([
  'context-overflow',
  'history-illegal',
  'invalid-argument',
  'invalid-config',
  'provider-auth',
  'provider-overloaded',
  'provider-quota',
  'provider-rate-limit',
])

function asAgentError(error: unknown): AgentError {
  if (error instanceof AgentError) return error
  return new AgentError('internal', 'The cost of a model call could not be reserved.', { cause: error })
}

function unknownPrice(reference: string): AgentError {
  return new AgentError(
    'invalid-config',
    `The price of ${reference} is not known, so its calls cannot be held to a budget. Set it as ` +
      '`providers.NAME.models.MODEL.price`, or set `budget.unknownPrice` to "ignore" to call it uncounted.',
    { details: { model: reference } },
  )
}

function budgetSpent({ scope, limit, left }: Refusal): AgentError {
  const whose = { run: 'this run', session: 'the session', day: 'the user for today' }[scope]
  const [limitUsd, leftUsd] = [toUsd(limit), toUsd(Math.max(0, left))]
  return new AgentError(
    'budget-spent',
    `The budget of ${whose}, $${limitUsd}, has $${leftUsd} left: not enough for another model call. Raise it to go on.`,
    { details: { scope, limitUsd, leftUsd } },
  )
}
