import type { Origin } from '../provider.js'
import type { StepContext } from './receipt.js'

/**
 * Whether what was sealed there may be sent back: to the vendor that made it, and to the same account. Histories that
 * were stored without an account belong to any account of their vendor.
 */
export function isOwnOrigin(origin: Origin, { profile, account, model }: StepContext): boolean {
  if (origin.vendor !== profile.vendor) return false
  if (profile.byMaker && !isSame(makerOf(origin.model), makerOf(model))) return false
  return isSame(origin.account, account)
}

/** What is not known differs from nothing. */
function isSame(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other
}

function makerOf(model: string | undefined): string | undefined {
  return model?.includes('/') ? model.slice(0, model.indexOf('/')) : undefined
}
