/** Marks of what a run reports about a request: changes of the history, and breaks, which are different marks. */
import { own } from '../base/own.js'
import { BREAK_CAUSES, breaksIn, withoutBreaks } from '../base/prefix-break.js'
import type { RunEvent, RunRepair } from '../run/run-event.js'
import type { Mark } from './item.js'

export function receiptMarks({ profile, repairs }: Extract<RunEvent, { type: 'repair' }>): Mark[] {
  const [changes, breaks] = [withoutBreaks(repairs), breaksIn(repairs)]
  return [
    ...(changes.length > 0 ? [{ type: 'repair' as const, profile, repairs: changes }] : []),
    ...(breaks.length > 0 ? [{ type: 'break' as const, breaks }] : []),
  ]
}

/** Every model call of a run repairs the same history again. */
export function isSameReceipt(one: Mark, other: Mark): boolean {
  return one.type === other.type && receiptText(one) === receiptText(other)
}

function receiptText(mark: Mark): string {
  const profile = mark.type === 'repair' ? mark.profile : ''
  const receipts = mark.type === 'repair' ? mark.repairs : mark.type === 'break' ? mark.breaks : []
  return [profile, ...receipts.map(({ detail }) => detail)].join('\n')
}

/** What people read when a request does not extend the one before it. */
export function breakText(breaks: readonly RunRepair[]): string {
  return `Prompt cache: ${lostText(breaks)}`
}

/** How much of a prompt cache is lost, and why. */
export function lostText(breaks: readonly RunRepair[]): string {
  const tokens = breaks.reduce((all, { tokens: lost = 0 }) => all + lost, 0)
  const causes = new Set(breaks.map(({ reason = '' }) => own(BREAK_CAUSES, reason) ?? reason))
  return `about ${tokens.toLocaleString('en-US')} tokens lost (${[...causes].join(', ')})`
}
