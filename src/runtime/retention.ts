/**
 * Deleting by age: idle sessions and old run records, at the start and then every hour.
 *
 * A clock that jumps ahead makes everything look old. The store refuses to delete when its clock is days ahead of what
 * it stored before. That also happens after a real pause, so the clock is believed again once this process has seen
 * it advance steadily for a day.
 */
import { defined } from '../base/defined.js'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { SessionStore } from '../session/session-store.js'
import type { CheckedOptions } from './options.js'

export interface RetentionParts {
  store: SessionStore
  appName: string
  sessionsMs?: number | undefined
  runsMs?: number | undefined
  usageMs?: number | undefined
  logger: Logger
  /** A clock that is never set. Default: the process's. */
  steadyMs?: () => number
}

/** Deletes now and every hour. Returns a function that stops it and waits for the slice under way. */
export function startRetention(parts: RetentionParts): () => Promise<void> {
  const stop = new AbortController()
  const sweep = createSweep(parts, stop.signal)
  let timer: NodeJS.Timeout | undefined
  let sweeping = Promise.resolve()
  const next = () => {
    sweeping = sweep().then(() => {
      if (stop.signal.aborted) return
      // Processes that started together do not all delete at the same moment.
      timer = setTimeout(next, HOUR_MS * (0.9 + Math.random() * 0.2))
      timer.unref()
    })
  }
  next()
  return async () => {
    stop.abort()
    clearTimeout(timer)
    await sweeping
  }
}

/** One sweep; it logs what was removed, and failures, and never throws. */
export function createSweep(parts: RetentionParts, signal?: AbortSignal): () => Promise<void> {
  const { appName, logger, sessionsMs, runsMs, usageMs } = parts
  const doubt = new ClockDoubt(parts.steadyMs)
  return async () => {
    try {
      const ages = defined({ sessionsMs, runsMs, usageMs, signal })
      const receipt = await parts.store.expire({ appName, ...ages, trustClock: doubt.isSettled })
      const { now, clockAheadMs, ...removed } = receipt
      if (doubt.observe(now, clockAheadMs) === 'began') {
        logger.warn(
          'Nothing was deleted by age: the clock of the store is far ahead of the times that it stored before. ' +
            'Check the clock. If it is right, deleting begins after a day',
          {
            app: appName,
            clock: new Date(now).toISOString(),
            aheadHours: Math.round((clockAheadMs ?? 0) / HOUR_MS),
          },
        )
      }
      if (Object.values(removed).some(count => count > 0))
        logger.info('Old data was deleted', { app: appName, ...removed })
    } catch (error) {
      if (signal?.aborted !== true)
        logger.warn('Old data could not be deleted', { app: appName, error: messageOf(error) })
    }
  }
}

/** Whether a clock that was far ahead has proved right: it advanced for a day as a clock that is never set did. */
class ClockDoubt {
  readonly #steadyMs: () => number
  #since: { steady: number; clock: number } | undefined
  #settled = false

  constructor(steadyMs: () => number = () => performance.now()) {
    this.#steadyMs = steadyMs
  }

  get isSettled(): boolean {
    return this.#settled
  }

  observe(clock: number, aheadMs: number | undefined): 'began' | 'continues' | 'none' {
    if (aheadMs === undefined) {
      this.#since = undefined
      this.#settled = false
      return 'none'
    }
    const steady = this.#steadyMs()
    const since = this.#since
    const passed = since ? steady - since.steady : 0
    const isSteady = since !== undefined && Math.abs(clock - since.clock - passed) < HOUR_MS
    if (!isSteady) this.#since = { steady, clock }
    this.#settled = isSteady && passed >= DAY_MS
    return since === undefined || !isSteady ? 'began' : 'continues'
  }
}

const HOUR_MS = 3_600_000

export const DAY_MS = 24 * HOUR_MS

/** Deletes what the options say is too old, until the returned function is called. */
export function retain({
  options,
  store,
  logger,
}: {
  options: Pick<CheckedOptions, 'app' | 'retention'>
  store: SessionStore
  logger: Logger
}): () => Promise<void> {
  const { sessionsDays, runsDays, usageDays } = options.retention ?? {}
  if ((sessionsDays ?? runsDays ?? usageDays) === undefined) return async () => {}
  const inMs = (days: number | undefined) => (days === undefined ? undefined : days * DAY_MS)
  return startRetention({
    store,
    appName: options.app,
    sessionsMs: inMs(sessionsDays),
    runsMs: inMs(runsDays),
    usageMs: inMs(usageDays),
    logger,
  })
}
