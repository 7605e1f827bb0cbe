/** Step 3 of the specification's five: a history that a cut left headless begins with a user again. */
import { countLeading } from './place-system.js'
import { type Entry, hasResults, madeEntry, type StepContext } from './receipt.js'

/** The specification's text for a user turn that no user wrote. */
export const CONTINUE_TEXT = '[continue]'

/** Puts a minimal user turn in front where the profile demands one. */
export function prependUser(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, next, report } = context
  const leading = countLeading(entries)
  const first = entries[leading]
  if (first ? !isHeadless(first, leading, profile.first) : !isMissing(leading, profile.needsTurn, next)) {
    return entries
  }
  const at = first?.at ?? 0
  report({
    step: 'prepend-user',
    kind: 'prepend',
    at,
    detail: `The user turn "${CONTINUE_TEXT}" was put in front.`,
  })
  const turn = madeEntry('user', [{ type: 'text', text: CONTINUE_TEXT }], at)
  return [...entries.slice(0, leading), turn, ...entries.slice(leading)]
}

function isHeadless(first: Entry, leading: number, demand: 'user' | 'user-or-system' | 'any'): boolean {
  if (demand === 'any' || (demand === 'user-or-system' && leading > 0)) return false
  return first.message.role !== 'user' || hasResults(first)
}

function isMissing(leading: number, needsTurn: boolean, next: 'user' | 'none'): boolean {
  return next === 'none' && (leading === 0 || needsTurn)
}
