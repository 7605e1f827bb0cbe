/** The part of `checked-store.ts` that concerns money. */
import type { SpendingAsk, SpendingGrant, SpendingStore, UsageLine, UsageQuery } from '../session/spending.js'
import { checkInteger, checkKey, checkName, invalid } from './check-input.js'
import { checked } from './checked-runs.js'

export class CheckedSpending implements SpendingStore {
  readonly #spending: SpendingStore

  constructor(spending: SpendingStore) {
    this.#spending = spending
  }

  reserve(ask: SpendingAsk): Promise<SpendingGrant> {
    const check = () => {
      checkKey(ask.key)
      checkName('id', ask.id)
      checkName('runId', ask.runId)
      for (const name of ['wants', 'enough', 'least'] as const) checkInteger(name, ask[name], 0)
      if (ask.hold !== undefined) checkInteger('hold', ask.hold, 0)
      for (const scope of ['run', 'session', 'day'] as const) {
        const limit = ask.limits[scope]
        if (limit !== undefined) checkInteger(`limits.${scope}`, limit, 0)
      }
    }
    return checked(check, () => this.#spending.reserve(ask))
  }

  settle(id: string, spent: number): Promise<void> {
    const check = () => {
      checkName('id', id)
      checkInteger('spent', spent, 0)
    }
    return checked(check, () => this.#spending.settle(id, spent))
  }

  usage(query: UsageQuery): Promise<UsageLine[]> {
    const check = () => {
      checkName('appName', query.appName)
      if (query.userId !== undefined) checkName('userId', query.userId)
      if (query.model !== undefined) checkName('model', query.model)
      for (const name of ['from', 'to'] as const) {
        const day = query[name]
        if (day !== undefined && !isDay(day)) throw invalid(name, 'must be a day such as 2026-11-17', day)
      }
    }
    return checked(check, () => this.#spending.usage(query))
  }
}

function isDay(day: unknown): boolean {
  return typeof day === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day))
}
