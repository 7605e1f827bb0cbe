/**
 * Schedules: messages that are sent by a calendar. Each tick is one run, whichever and however many processes serve the
 * app: the id of the run is derived from the schedule and the time of the tick, so the store keeps one. The newest tick
 * that was dealt with is stored, so that a process that starts knows what was missed.
 */
import { type Cron, nextTick, parseCron, ticksBetween } from '../base/cron.js'
import { defined } from '../base/defined.js'
import { AgentError, invariant, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunInput } from '../run/run-host.js'
import type { StartedRun } from '../run/run-opening.js'
import type { RunSummary } from '../session/run-store.js'
import type { ScheduleRecord } from '../session/schedule-store.js'
import type { SessionStore } from '../session/session-store.js'
import { uuidOf } from './derived-id.js'
import type { CheckedOptions, ScheduleOptions } from './options.js'

/** A schedule, and where it is. */
export interface ScheduleState {
  name: string
  cron: string
  timeZone: string
  session: string
  text: string
  user: string
  model?: string
  missed: 'skip' | 'latest' | 'all'
  overlap: 'queue' | 'skip'
  /** The next ticks, in milliseconds since 1970. */
  next: readonly number[]
  /** The newest tick that was dealt with, and the newest run. */
  lastTick?: number
  lastRun?: RunSummary
}

interface ScheduleParts {
  appName: string
  store: SessionStore
  logger: Logger
  schedules: readonly ScheduleOptions[]
  start(input: RunInput): Promise<StartedRun>
  /** The time, in milliseconds since 1970. Default: the clock of the process. */
  now?: () => number
}

interface Rule {
  readonly options: ScheduleOptions
  readonly cron: Cron
  readonly zone: string
  /** What makes the ticks: when it changes, nothing was missed. */
  readonly text: string
}

/** The schedules of a runtime. */
export interface RuntimeSchedules {
  /** Each schedule with its next ticks (three by default) and its last run. */
  list(nextCount?: number): Promise<ScheduleState[]>
  /** Sends the message of a schedule now, as a run of its own. `invalid-argument` when there is none of that name. */
  runNow(name: string): Promise<StartedRun>
}

/** The schedules of a runtime's options. */
export function createSchedules(
  { options, store, logger }: { options: CheckedOptions; store: SessionStore; logger: Logger },
  start: ScheduleParts['start'],
): Schedules {
  return new Schedules({ appName: options.app, store, logger, schedules: options.schedules ?? [], start })
}

/** Sends the messages of schedules until it is closed. */
export class Schedules implements RuntimeSchedules {
  readonly #parts: ScheduleParts
  readonly #rules: readonly Rule[]
  readonly #now: () => number
  /** By name: the newest tick that was dealt with. */
  readonly #since = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #isClosed = false
  #isFailing = false

  constructor(parts: ScheduleParts) {
    this.#parts = parts
    this.#rules = parts.schedules.map(ruleOf)
    this.#now = parts.now ?? Date.now
  }

  /**
   * Forgets schedules that are no longer there, deals with what was missed, and waits for the next tick. Resolves when the
   * first two are done.
   */
  async begin(): Promise<void> {
    if (this.#isClosed) return
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
      this.#wait()
    })
    await this.#working
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#working
  }

  async list(nextCount = 3): Promise<ScheduleState[]> {
    const { appName, store } = this.#parts
    const records = await store.schedules.read(appName)
    return Promise.all(
      this.#rules.map(async rule => {
        const record = records.find(({ name }) => name === rule.options.name)
        const known = record?.rule === rule.text ? record : undefined
        const lastRun = record?.runId === undefined ? undefined : await store.runs.findRun(record.runId)
        return { ...stateOf(rule, this.#now(), nextCount), ...defined({ lastTick: known?.tick, lastRun }) }
      }),
    )
  }

  /** Sends the message of a schedule now, as a run of its own: its ticks are not changed. */
  async runNow(name: string): Promise<StartedRun> {
    const rule = this.#rules.find(({ options }) => options.name === name)
    if (!rule) throw unknownSchedule(name, this.#rules)
    const { start } = this.#parts
    return start(inputOf(rule.options, this.#now()))
  }

  #wait(): void {
    if (this.#isClosed || this.#rules.length === 0) return
    const now = this.#now()
    const lookMs = this.#isFailing ? RETRY_MS : LOOK_MS
    this.#isFailing = false
    const next = Math.min(...this.#rules.map(({ cron, zone }) => nextTick(cron, zone, now) ?? Infinity))
    clearTimeout(this.#timer)
    // A clock may be set, and a machine may sleep: the time is looked at again before long.
    this.#timer = setTimeout(() => void this.begin(), Math.min(Math.max(1, next - now), lookMs)).unref()
  }

  async #work(): Promise<void> {
    const { appName, logger } = this.#parts
    let schedule: string | undefined
    try {
      const names = this.#rules.map(({ options }) => options.name)
      if (this.#since.size === 0) await this.#parts.store.schedules.keep(appName, names)
      for (const rule of this.#rules) {
        schedule = rule.options.name
        if (!this.#since.has(schedule)) this.#since.set(schedule, await this.#sinceStored(rule))
        await this.#tick(rule)
      }
    } catch (error) {
      this.#isFailing = true
      logger.warn('Schedules could not be looked after', { schedule, error: messageOf(error) })
    }
  }

  /** The newest tick that any process has dealt with. A schedule that is new, or has other times, begins now. */
  async #sinceStored({ options: { name }, text }: Rule): Promise<number> {
    const { appName } = this.#parts
    const schedules = this.#parts.store.schedules
    const known = (await schedules.read(appName)).find(record => record.name === name)
    if (known?.rule === text) return known.tick
    const tick = this.#now()
    await schedules.save({ appName, name, rule: text, tick })
    return tick
  }

  async #tick(rule: Rule): Promise<void> {
    const { name, missed = 'skip' } = rule.options
    const now = this.#now()
    const since = this.#since.get(name) ?? now
    const ticks = ticksBetween(rule, since, now, MOST_MISSED + 1)
    const due = dueOf(ticks, missed, now)
    const left = ticks.length - due.length
    if (left > 0)
      this.#parts.logger.warn('Ticks of a schedule were missed', {
        ...{ schedule: name, missed, count: left },
        ...(ticks.length > MOST_MISSED ? { more: true } : {}),
      })
    for (const tick of due) {
      if (this.#isClosed) return
      await this.#send(rule, tick)
      this.#since.set(name, tick)
    }
    const last = ticks.at(-1)
    if (last !== undefined && last !== due.at(-1)) await this.#save(rule, last)
    if (last !== undefined) this.#since.set(name, last)
  }

  async #send(rule: Rule, tick: number): Promise<void> {
    const { appName, logger, start } = this.#parts
    const { options } = rule
    const { name } = options
    const record = await this.#record(name)
    // Another process has dealt with it.
    if (record?.rule === rule.text && record.tick >= tick) return
    if (options.overlap === 'skip' && (await this.#isBusy(record))) {
      const at = new Date(tick).toISOString()
      logger.info('A tick of a schedule was left out: the run before it has not ended', {
        schedule: name,
        tick: at,
      })
      return this.#save(rule, tick)
    }
    const runId = uuidOf(['schedule', appName, name, String(tick)])
    await start({ ...inputOf(options, tick), runId, at: tick, note: { schedule: name, tick } })
    await this.#save(rule, tick, runId)
  }

  async #isBusy({ runId }: Partial<ScheduleRecord> = {}): Promise<boolean> {
    const run = runId === undefined ? undefined : await this.#parts.store.runs.findRun(runId)
    return run !== undefined && !run.finished
  }

  async #record(name: string): Promise<ScheduleRecord | undefined> {
    return (await this.#parts.store.schedules.read(this.#parts.appName)).find(record => record.name === name)
  }

  #save({ options: { name }, text }: Rule, tick: number, runId?: string): Promise<void> {
    const { appName } = this.#parts
    return this.#parts.store.schedules.save({ appName, name, rule: text, tick, ...defined({ runId }) })
  }
}

/** A tick that is found within this time was not missed. */
const ON_TIME_MS = 60_000
/** How many missed ticks are made up for. */
const MOST_MISSED = 100
const LOOK_MS = 60_000
/** A store that was unavailable is asked again. */
const RETRY_MS = 5000

/** Those of the ticks that are sent. */
export function dueOf(
  ticks: readonly number[],
  missed: NonNullable<ScheduleOptions['missed']>,
  now: number,
): readonly number[] {
  const last = ticks.slice(-1)
  if (missed === 'all') return ticks.slice(-MOST_MISSED)
  return missed === 'latest' ? last : last.filter(tick => now - tick <= ON_TIME_MS)
}

function ruleOf(options: ScheduleOptions): Rule {
  const cron = parseCron(options.cron)
  invariant(!('problem' in cron), 'the configuration has checked it')
  const zone = options.timeZone ?? 'UTC'
  return { options, cron, zone, text: `${options.cron.trim().split(/\s+/).join(' ')} ${zone}` }
}

function stateOf({ options, cron, zone }: Rule, now: number, count: number): ScheduleState {
  const next: number[] = []
  for (let after = now; next.length < count; ) {
    const tick = nextTick(cron, zone, after)
    if (tick === undefined) break
    next.push(tick)
    after = tick
  }
  const { name, session, text, user = 'user', model, missed = 'skip', overlap = 'queue' } = options
  return {
    ...{ name, cron: options.cron, timeZone: zone, session, text, user, missed, overlap, next },
    ...defined({ model }),
  }
}

function inputOf({ name, session, text, user, model }: ScheduleOptions, tick: number): RunInput {
  const sessionId = session === NEW_SESSION ? `${name}-${new Date(tick).toISOString()}` : session
  return { sessionId, text, ...defined({ userId: user, model }) }
}

const NEW_SESSION = 'new'

function unknownSchedule(name: string, rules: readonly Rule[]): AgentError {
  const known = rules.map(({ options }) => options.name).join(', ')
  const fix = known === '' ? 'None is configured.' : `Known: ${known}.`
  return new AgentError('invalid-argument', `There is no schedule "${name}". ${fix}`)
}
