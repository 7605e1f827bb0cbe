import { randomUUID } from 'node:crypto'
import type { SessionKey } from '../session/message.js'
import type { RunEventRecord } from '../session/run-store.js'
import type { UserKey } from '../session/session-store.js'
import {
  byDay,
  DAY_MS,
  dayName,
  dayNumber,
  grantOf,
  lastDayBefore,
  RESERVED_MS,
  type SpendingAsk,
  type SpendingGrant,
  type SpendingLimits,
  type SpendingStore,
  tightest,
  toNanos,
  toUsd,
  type UsageLine,
  type UsageQuery,
} from '../session/spending.js'
import { type RunUsage, sumUsage, type UsageRecord, usageOfEvent } from '../session/usage.js'
import { sessionNotFound } from './store-errors.js'

interface SpendingPlaces {
  assertOpen(): void
  sessionOf(key: SessionKey): { pk: number } | undefined
}

interface KeptUsage extends UsageRecord, UserKey {
  day: number
  session: number
  budgeted: boolean
}

interface Reservation extends UserKey {
  scopes: Scopes
  amount: number
  at: number
}

/** The names of the sums that count for a call. */
interface Scopes {
  run: string
  session: string
  day: string
}

/** Money in memory. */
export class MemorySpending implements SpendingStore {
  readonly #places: SpendingPlaces
  readonly #usage = new Map<string, KeptUsage>()
  /** By user, then by what is limited. */
  readonly #sums = new Map<string, Map<string, number>>()
  readonly #reserved = new Map<string, Reservation>()

  constructor(places: SpendingPlaces) {
    this.#places = places
  }

  async reserve(ask: SpendingAsk): Promise<SpendingGrant> {
    const { key, runId, limits } = ask
    const pk = this.#pkOf(key)
    const today = Math.floor(Date.now() / DAY_MS)
    const scopes = { run: runScope(runId), session: `session/${pk}`, day: `day/${today}` }
    const sums = this.#add(key, scopes, 0)
    const unbudgeted = [...this.#usage.values()].filter(row => !row.budgeted && isOf(row, key))
    const spentBy = {
      run: [],
      session: unbudgeted.filter(row => row.session === pk),
      day: unbudgeted.filter(row => row.day === today),
    }
    const left: SpendingLimits = {}
    for (const scope of ['run', 'session', 'day'] as const) {
      const limit = limits[scope]
      const without = spentBy[scope].reduce((all, { usage }) => all + toNanos(usage.cost ?? 0), 0)
      if (limit !== undefined) left[scope] = limit - (sums.get(scopes[scope]) ?? 0) - without
    }
    const granted = grantOf(left, ask)
    if (granted === 0) return this.#refusal(ask, scopes, left)
    this.#add(key, scopes, granted)
    const { appName, userId } = key
    this.#reserved.set(ask.id, { appName, userId, scopes, amount: granted, at: Date.now() })
    return { granted }
  }

  async settle(id: string, spent: number): Promise<void> {
    this.#places.assertOpen()
    const reserved = this.#reserved.get(id)
    if (!reserved) return
    this.#reserved.delete(id)
    this.#add(reserved, reserved.scopes, spent - reserved.amount)
  }

  async usage({ appName, userId, model, from, to }: UsageQuery): Promise<UsageLine[]> {
    this.#places.assertOpen()
    const rows = [...this.#usage.values()].filter(
      row =>
        row.appName === appName &&
        (userId ?? row.userId) === row.userId &&
        (model ?? row.model) === row.model &&
        row.day >= (from === undefined ? row.day : dayNumber(from)) &&
        row.day <= (to === undefined ? row.day : dayNumber(to)),
    )
    const groups = new Map<string, KeptUsage[]>()
    for (const row of rows) {
      const name = JSON.stringify([row.day, row.userId, row.model, row.kind])
      groups.set(name, [...(groups.get(name) ?? []), row])
    }
    return [...groups.values()].map(toLine).sort(byDay)
  }

  /** Keeps what a run event reports. */
  keepEvent(key: SessionKey, runId: string, event: RunEventRecord): void {
    const record = usageOfEvent(event)
    if (record) this.keep(key, runId, record, `${runId}/${event.seq}`)
  }

  keep(key: SessionKey, runId: string, record: UsageRecord, id: string = randomUUID()): void {
    const { appName, userId } = key
    const session = this.#places.sessionOf(key)?.pk
    if (session === undefined || this.#usage.has(id)) return
    const budgeted = this.#sums.get(userText(key))?.has(runScope(runId)) ?? false
    const day = Math.floor(Date.now() / DAY_MS)
    this.#usage.set(id, { ...record, appName, userId, session, day, budgeted })
  }

  /** Deletes what is kept about a user, and counts it. */
  deleteUser(owner: UserKey): { usage: number } {
    let deleted = this.#sums.get(userText(owner))?.size ?? 0
    this.#sums.delete(userText(owner))
    for (const kept of [this.#usage, this.#reserved])
      for (const [id, row] of kept) if (isOf(row, owner) && kept.delete(id)) deleted += 1
    return { usage: deleted }
  }

  /** Deletes the rows of days that had ended, and counts them. What they count in the budget of a session stays in its sum. */
  expire(appName: string, beforeMs: number): number {
    const lastDay = lastDayBefore(beforeMs)
    let deleted = 0
    for (const [id, row] of this.#usage) {
      if (row.appName !== appName || row.day > lastDay) continue
      this.#usage.delete(id)
      deleted += 1
      if (row.budgeted) continue
      const sums = this.#sums.get(userText(row)) ?? new Map<string, number>()
      this.#sums.set(userText(row), sums)
      const scope = `session/${row.session}`
      sums.set(scope, (sums.get(scope) ?? 0) + toNanos(row.usage.cost ?? 0))
    }
    return deleted
  }

  #pkOf(key: SessionKey): number {
    this.#places.assertOpen()
    const session = this.#places.sessionOf(key)
    if (!session) throw sessionNotFound(key)
    return session.pk
  }

  #add(owner: UserKey, scopes: Scopes, amount: number): ReadonlyMap<string, number> {
    const sums = this.#sums.get(userText(owner)) ?? new Map<string, number>()
    this.#sums.set(userText(owner), sums)
    for (const scope of Object.values(scopes)) sums.set(scope, (sums.get(scope) ?? 0) + amount)
    return sums
  }

  #refusal({ key, limits }: SpendingAsk, scopes: Scopes, left: SpendingLimits): SpendingGrant {
    const scope = tightest(left)
    const open = [...this.#reserved.values()].filter(
      reserved =>
        isOf(reserved, key) &&
        reserved.scopes[scope] === scopes[scope] &&
        reserved.at > Date.now() - RESERVED_MS,
    )
    const pending = open.reduce((all, { amount }) => all + amount, 0)
    return { granted: 0, scope, limit: limits[scope] ?? 0, left: left[scope] ?? 0, pending }
  }
}

function runScope(runId: string): string {
  return `run/${runId}`
}

function isOf(row: UserKey, { appName, userId }: UserKey): boolean {
  return row.appName === appName && row.userId === userId
}

function userText({ appName, userId }: UserKey): string {
  return JSON.stringify([appName, userId])
}

function toLine(rows: readonly KeptUsage[]): UsageLine {
  const [first] = rows
  const unpricedCalls = rows.reduce(
    (all, { calls, usage }) => all + (usage.cost === undefined ? calls : 0),
    0,
  )
  // In billionths, as the other stores add up.
  const inNanos = ({ cost, ...usage }: RunUsage) => ({
    ...usage,
    ...(cost === undefined ? {} : { cost: toNanos(cost) }),
  })
  const { cost, ...usage } = sumUsage(rows.map(row => inNanos(row.usage)))
  return {
    day: dayName(first?.day ?? 0),
    userId: first?.userId ?? '',
    model: first?.model ?? '',
    kind: first?.kind ?? 'run',
    calls: rows.reduce((all, { calls }) => all + calls, 0),
    usage: cost === undefined ? usage : { ...usage, cost: toUsd(cost) },
    unpricedCalls,
  }
}
