/**
 * What a store keeps about money: one row for each model call, and the sums that budgets are checked against.
 *
 * - Amounts are whole billionths of a dollar, so that sums are exact in every store.
 * - A sum counts what was spent and what is reserved alike: the reservation of a process that is gone stays spent.
 * - Days are those of UTC, by the store's clock.
 */
import type { SessionKey } from './message.js'
import type { Budget, RunUsage, UsageKind } from './usage.js'

/** The limits of a budget as stores count. */
export function spendingLimits({ perRunUsd, perSessionUsd, perUserUsdPerDay }: Budget): SpendingLimits {
  return {
    ...(perRunUsd === undefined ? {} : { run: toNanos(perRunUsd, Math.floor) }),
    ...(perSessionUsd === undefined ? {} : { session: toNanos(perSessionUsd, Math.floor) }),
    ...(perUserUsdPerDay === undefined ? {} : { day: toNanos(perUserUsdPerDay, Math.floor) }),
  }
}

export interface SpendingStore {
  /**
   * Reserves what a model call may cost at most, in one transaction with the check of all limits. Less than was asked
   * for is granted where the limits require it, but never less than `least`: then nothing is reserved.
   */
  reserve(ask: SpendingAsk): Promise<SpendingGrant>
  /** Replaces a reservation by what was spent. A second time it changes nothing. */
  settle(id: string, spent: number): Promise<void>
  /** Model calls in sums, oldest day first. */
  usage(query: UsageQuery): Promise<UsageLine[]>
}

export interface SpendingAsk {
  /** The id of the reservation: unique, and named when it is settled. */
  id: string
  /** The session whose limits and user count. `session-not-found`. */
  key: SessionKey
  runId: string
  limits: SpendingLimits
  /** The worst case. */
  wants: number
  /** As much as an ordinary answer needs: nobody reserves more than a part of what others need too, but this much. */
  enough: number
  /** Nothing is reserved below this. */
  least: number
  /** Left in the budget of the run and of the session for a last answer, where that leaves `least`. */
  hold?: number
  /** Leaves it in any case. */
  isHoldFirm?: boolean
}

/** The most that may be spent and reserved, by what it is limited for. */
export interface SpendingLimits {
  run?: number
  session?: number
  /** The user, on the current day. */
  day?: number
}

export type SpendingScope = keyof SpendingLimits

export type SpendingGrant =
  | { granted: number }
  | {
      granted: 0
      /** The limit that leaves the least. */
      scope: SpendingScope
      limit: number
      /** What that limit leaves. */
      left: number
      /** What calls that are under way have reserved there: part of it will come back. */
      pending: number
    }

export interface UsageQuery {
  appName: string
  userId?: string
  /** `provider/model` */
  model?: string
  /** The first and the last day, as `2026-11-17`. */
  from?: string
  to?: string
}

/** The model calls of a user with one model on one day. */
export interface UsageLine {
  day: string
  userId: string
  model: string
  /** `memory`: calls of the observer. */
  kind: UsageKind
  calls: number
  /** Without a cost when the price of a call was not known. */
  usage: RunUsage
  /** How many calls have no known price. */
  unpricedCalls: number
}

/** The order of lines: by day, user, model and kind. */
export function byDay(one: UsageLine, other: UsageLine): number {
  const nameOf = ({ day, userId, model, kind }: UsageLine) => [day, userId, model, kind].join('\n')
  return nameOf(one) < nameOf(other) ? -1 : 1
}

const NANOS = 1_000_000_000

/** Dollars as billionths. Rounded up where a worst case is counted. */
export function toNanos(usd: number, round: (value: number) => number = Math.round): number {
  // A billionth of a billionth is noise of the arithmetic.
  return round(Number((usd * NANOS).toFixed(3)))
}

export function toUsd(nanos: number): number {
  return nanos / NANOS
}

/** How long a reservation may belong to a call that is under way. */
export const RESERVED_MS = 900_000

/** What is granted, given what the limits leave. All stores decide by this. */
export function grantOf(left: Readonly<SpendingLimits>, ask: SpendingAsk): number {
  const { run = MOST, session = MOST, day = MOST } = left
  const { wants, enough, least, hold = 0, isHoldFirm = false } = ask
  const room = Math.min(run, session, day)
  const fair = Math.max(enough, day / FAIR_PARTS)
  const unheld = Math.min(run, session) - hold
  const granted = Math.floor(Math.min(wants, room, fair, isHoldFirm ? unheld : Math.max(unheld, least)))
  return granted >= least ? granted : 0
}

/** The limit that leaves the least. */
export function tightest(left: Readonly<SpendingLimits>): SpendingScope {
  const scopes = (['run', 'session', 'day'] as const).filter(scope => left[scope] !== undefined)
  return scopes.reduce((one, other) => ((left[other] ?? MOST) < (left[one] ?? MOST) ? other : one), 'run')
}

const MOST = Number.MAX_SAFE_INTEGER
/** Runs of one user work side by side: one call reserves at most this part of what the day leaves. */
const FAIR_PARTS = 4

export const DAY_MS = 86_400_000

/** `2026-11-17` as the number of days since 1970, and back. */
export function dayNumber(day: string): number {
  return Math.floor(Date.parse(`${day}T00:00:00Z`) / DAY_MS)
}

/** The last day that had ended at a time. */
export function lastDayBefore(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS) - 1
}

export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
