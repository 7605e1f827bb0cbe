/** Receipts of requests that do not extend the one before them. They are among the repairs of a request, and are none. */

/** The kind of such a receipt. */
export const PREFIX_BREAK = 'prefix-break'

/** Why a request does not extend the one before it. */
export const BREAK_CAUSES = {
  budget: 'the budget moved the beginning of the history',
  instruction: 'the instruction changed',
  tools: 'the tools changed',
  model: 'the model changed',
  repair: 'an earlier message is sent differently',
} as const

interface Receipt {
  readonly kind: string
}

/** The breaks among the receipts of a request. */
export function breaksIn<R extends Receipt>(receipts: readonly R[]): R[] {
  return receipts.filter(({ kind }) => kind === PREFIX_BREAK)
}

/** The changes of the history among the receipts of a request. */
export function withoutBreaks<R extends Receipt>(receipts: readonly R[]): R[] {
  return receipts.filter(({ kind }) => kind !== PREFIX_BREAK)
}
