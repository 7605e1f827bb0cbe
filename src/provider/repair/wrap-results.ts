/** What a tool said, in the form that the wire demands: an object with a name, or at least not nothing. */

import { isRecord } from '../../base/is-record.js'
import type { ToolResultPart } from '../provider.js'
import { matchResults } from './match-results.js'
import type { Profile } from './profile.js'
import { type Entry, replaceAllParts, type StepContext, toolLabel } from './receipt.js'
import { writable } from './well-formed-text.js'

const STEP = 'wrap-results'

/** Stands in for a result that is nothing at all. */
const NO_OUTPUT_TEXT = '(no output)'

/** Names results after their calls, fills empty ones and wraps what is not an object. */
export function wrapResults(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const sites = context.profile.results.named ? matchResults(entries, context).results : []
  let site = 0
  return replaceAllParts(entries, (part, _, entry) => {
    if (part.type !== 'tool-result') return part
    // Sites are listed in the order of this walk.
    const name = sites[site++]?.call?.call.name
    const named = name !== undefined && part.name !== name ? { ...part, name } : part
    if (named !== part) {
      const old = part.name === '' ? "without a tool's name" : `of ${part.name}`
      const detail = `A result ${old} was named after its call of ${toolLabel(named)}.`
      context.report({ step: STEP, kind: 'name', at: entry.at, detail })
    }
    return wrap(named, entry.at, context)
  })
}

function wrap(part: ToolResultPart, at: number, { profile, report }: StepContext): ToolResultPart {
  const filled = isRefusedEmpty(part.result, profile) ? NO_OUTPUT_TEXT : part.result
  if (filled !== part.result) {
    report({ step: STEP, kind: 'fill', at, detail: `The empty result of ${toolLabel(part)} was filled.` })
  }
  if (profile.results.object && !isRecord(filled)) {
    const key = part.isError === true ? 'error' : 'output'
    report({
      step: STEP,
      kind: 'wrap',
      at,
      detail: `The result of ${toolLabel(part)} was wrapped as "${key}".`,
    })
    // One level more may be one too many.
    return { ...part, result: writable({ [key]: filled }) }
  }
  return filled === part.result ? part : { ...part, result: filled }
}

function isRefusedEmpty(result: unknown, { results }: Profile): boolean {
  if (result === undefined) return true
  return !results.empty && (result === null || result === '')
}
