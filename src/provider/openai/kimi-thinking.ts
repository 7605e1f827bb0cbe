/**
 * Moonshot's models think unless they are told not to, and while they think they cannot be forced to call a tool. Up to
 * K2.6 thinking can be switched off for such a request; K2.7 always thinks; K3 always thinks too, by effort, and takes
 * "some tool must be called" but not the name of one. Sources: `docs/strict-servers.md`, X34.
 */
import type { GenerationOptions } from '../provider.js'
import type { PreparedRequest } from '../stream-answer.js'

type Thinking = 'switched' | 'always' | 'by-effort'

function thinkingOf(model: string): Thinking {
  if (/\bkimi-k[3-9]/.test(model)) return 'by-effort'
  return /\bkimi-k2(\.[7-9]|-thinking)/.test(model) ? 'always' : 'switched'
}

/** Whether a tool must be called. */
export function isForced({ toolChoice }: GenerationOptions): boolean {
  return toolChoice === 'required' || typeof toolChoice === 'object'
}

/** Whether the choice of a tool that the options ask for can be sent. */
export function kimiTakesChoice(options: GenerationOptions, model: string): boolean {
  return !isForced(options) || thinkingOf(model) !== 'always'
}

/** For K3 a tool that must be called is the only one that is declared. */
export function kimiOptions({ model, options }: PreparedRequest): GenerationOptions {
  const { toolChoice } = options
  if (typeof toolChoice !== 'object' || !('name' in toolChoice) || thinkingOf(model) !== 'by-effort')
    return options
  return { ...options, toolChoice: { names: [toolChoice.name] } }
}

/** The fields of the body. `effort`: absent where the options leave it to the model. */
export function kimiThinking(
  model: string,
  options: GenerationOptions,
  effort: string | undefined,
): Record<string, unknown> {
  const thinking = thinkingOf(model)
  if (thinking === 'always') return {}
  if (thinking === 'by-effort')
    return effort === undefined ? {} : { reasoning_effort: EFFORTS[effort] ?? 'max' }
  const isOff = options.thinking?.budgetTokens === 0 || isForced(options)
  if (isOff) return { thinking: { type: 'disabled' } }
  return effort === undefined ? {} : { thinking: { type: 'enabled' } }
}

const EFFORTS: Readonly<Record<string, string>> = { minimal: 'low', low: 'low', medium: 'high', high: 'high' }

/** Reports thinking that is otherwise than it was asked for. */
export function reportKimiThinking({ model, options, report }: PreparedRequest): void {
  const isOff = options.thinking?.budgetTokens === 0
  const thinking = thinkingOf(model)
  if (isOff && thinking !== 'switched') report('replace', `${model} always thinks, also in this request.`)
  if (!isOff && thinking === 'switched' && isForced(options))
    report(
      'replace',
      `${model} cannot be forced to call a tool while it thinks: it does not think in this request.`,
    )
}
