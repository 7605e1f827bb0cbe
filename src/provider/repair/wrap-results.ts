/** What a tool said, in the form that the wire demands: an object with a name, or at least not nothing. */
import type { ToolResultPart } from '../provider.js'
import { isObject } from './fix-arguments.js'
import type { Profile } from './profile.js'
import { type Entry, hasCalls, replaceEntries, replaceParts, type StepContext, toolLabel } from './receipt.js'

const STEP = 'wrap-results'

/** Stands in for a result that is nothing at all. */
export const NO_OUTPUT_TEXT = '(no output)'

/** Names results after their calls, fills empty ones and wraps what is not an object. */
export function wrapResults(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, report } = context
  let names: ReadonlyMap<string, string> = new Map()
  return replaceEntries(entries, entry => {
    if (profile.results.named && hasCalls(entry)) names = namesOf(entry)
    return replaceParts(entry, part => {
      if (part.type !== 'tool-result') return part
      const name = part.name === '' && profile.results.named ? names.get(part.id) : undefined
      const named = name === undefined ? part : { ...part, name }
      if (named !== part) {
        const detail = `A result without a tool's name was named ${named.name} after its call.`
        report({ step: STEP, kind: 'name', at: entry.at, detail })
      }
      return wrap(named, entry.at, context)
    })
  })
}

function namesOf(entry: Entry): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const part of entry.message.parts) if (part.type === 'tool-call') names.set(part.id, part.name)
  return names
}

function wrap(part: ToolResultPart, at: number, { profile, report }: StepContext): ToolResultPart {
  const filled = isRefusedEmpty(part.result, profile) ? NO_OUTPUT_TEXT : part.result
  if (filled !== part.result) {
    report({ step: STEP, kind: 'fill', at, detail: `The empty result of ${toolLabel(part)} was filled.` })
  }
  if (profile.results.object && !isObject(filled)) {
    const key = part.isError === true ? 'error' : 'output'
    report({
      step: STEP,
      kind: 'wrap',
      at,
      detail: `The result of ${toolLabel(part)} was wrapped as "${key}".`,
    })
    return { ...part, result: { [key]: filled } }
  }
  return filled === part.result ? part : { ...part, result: filled }
}

function isRefusedEmpty(result: unknown, { results }: Profile): boolean {
  if (result === undefined) return true
  return !results.empty && (result === null || result === '')
}
