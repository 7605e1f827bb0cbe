/** What one request shows of its budget and its repairs: figures to draw, and where a repair belongs. */
import type { Alignment } from './align-messages.js'
import type { InspectedStep, ModelChoice, StepCut, StepRepair } from './types.js'
import type { WireRequest } from './wire-messages.js'
import { jsonText } from './wire-part.js'

export interface StepCuts {
  /** What was left out when the session was opened. */
  atLoad?: StepCut
  /** What was left out of the loaded history just before the request. */
  atSend?: StepCut
  /** Both together. */
  messages: number
  tokens: number
}

/** Distinguishes the two cuts of a step: the first counts the session, the second the history. */
export function cutsOf(step: InspectedStep): StepCuts {
  const [first, second] = step.cuts
  const whole = step.stored?.messages
  const isLoad = first !== undefined && first.messages + first.keptMessages === whole
  const atLoad = isLoad ? first : undefined
  const atSend = isLoad ? second : first
  return {
    ...(atLoad ? { atLoad } : {}),
    ...(atSend ? { atSend } : {}),
    messages: step.cuts.reduce((all, cut) => all + cut.messages, 0),
    tokens: step.cuts.reduce((all, cut) => all + cut.tokens, 0),
  }
}

export interface BudgetPicture {
  /** Estimates in tokens. */
  system: number
  tools: number
  kept: number
  cut: number
  cutMessages: number
  /** What the history may cost; absent when nothing limits it. */
  budget?: number
  /** Of the model. */
  window?: number
  answer?: number
  /** What the provider counted for the whole request. */
  counted?: number
}

/** The sizes of a request's parts, estimated as Lango estimates them: four bytes are a token. */
export function budgetPicture(
  step: InspectedStep,
  request: WireRequest,
  context: { model?: ModelChoice | undefined; budgetTokens?: number | 'off' | undefined },
): BudgetPicture {
  const { atLoad, atSend, tokens, messages } = cutsOf(step)
  const kept = atSend?.keptTokens ?? step.history?.tokens ?? atLoad?.keptTokens ?? estimate(request.messages)
  const configured = typeof context.budgetTokens === 'number' ? context.budgetTokens : undefined
  // A session is opened with more than a request may hold; the request's own cut has the budget.
  const budget = atSend?.budgetTokens ?? configured ?? atLoad?.budgetTokens
  return {
    system: request.system === '' ? 0 : estimate(request.system),
    tools: request.tools.length === 0 ? 0 : estimate(request.tools),
    kept,
    cut: tokens,
    cutMessages: messages,
    ...(budget === undefined ? {} : { budget }),
    ...(context.model ? { window: context.model.contextWindow, answer: context.model.outputLimit } : {}),
    ...(step.usage && step.usage.inputTokens > 0 ? { counted: step.usage.inputTokens } : {}),
  }
}

/**
 * The stored message that a repair is about. A repair counts messages of the history that was given to it,
 * the instruction included: what the budget left out is before them. Nothing is known when messages were joined.
 */
export function repairSeq(
  repair: StepRepair,
  step: InspectedStep,
  request: WireRequest,
  alignment: Pick<Alignment, 'knownThrough'>,
): number | undefined {
  const { atLoad, atSend } = cutsOf(step)
  const loaded = alignment.knownThrough - (atLoad?.messages ?? 0)
  if (step.history?.messages !== loaded) return undefined
  const skipped = (atLoad?.messages ?? 0) + (atSend?.messages ?? 0)
  const seq = skipped + repair.at + 1 - (request.system === '' ? 0 : 1)
  return seq > skipped && seq <= alignment.knownThrough ? seq : undefined
}

function estimate(value: unknown): number {
  return Math.ceil(new TextEncoder().encode(jsonText(value)).length / 4)
}
