/**
 * Executes a scenario and cuts it at one call of the store. Processes are made one after another, each with a store of its
 * own; one that has crashed is never used again. The judge says what is wrong afterwards.
 */
import { stableJson } from '../../../src/base/stable-json.js'
import { AgentError } from '../../../src/errors.js'
import type { Entry, LogStore, NewRun, Post, RunRow } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { thisProcess } from '../../../src/store/lease-process.js'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import { type SqlDatabase, type Statement, sql } from '../../../src/store/sql-database.js'
import { LogProcess, type Seen, type Surroundings } from './log-process.js'
import { type Action, nextAction, type OpenCall, type RunView, type Step } from './miniature-agent.js'

/**
 * - `before`: the process ends before the call is stored; `inside`: while it is stored; `after`: when it is stored, before
 *   it is acknowledged.
 * - `again`: the acknowledgement is lost, and the process sends the same call once more.
 * - `late`: the process is suspended before the call; others take over and finish, then it continues. With `progress`,
 *   it continues after that many calls of others, one of which holds the lease.
 */
export type Mode = 'before' | 'inside' | 'after' | 'again' | 'late'

export const MODES: readonly Mode[] = ['before', 'inside', 'after', 'again', 'late']

export interface Cut {
  readonly mode: Mode
  /** Counted from 1. */
  readonly call: number
  readonly progress?: number
  /** A second process ends that many calls later, when that call is stored. */
  readonly second?: number
}

/** Somebody outside of the run: does one thing when the log is in some state, and again until it is acknowledged. */
export interface Act {
  readonly name: string
  when(entries: readonly Entry[], runs: readonly RunRow[]): boolean
  /** `false`: not yet. */
  do(process: LogProcess): Promise<boolean>
}

export interface Scenario {
  readonly name: string
  readonly key: SessionKey
  /** Nested sessions, which exist from the start. */
  readonly nested: readonly SessionKey[]
  readonly scripts: readonly Script[]
  readonly acts: readonly Act[]
  /** State at the start and, if every run is done, at the end. */
  readonly state?: { readonly before: Record<string, unknown>; readonly after: Record<string, unknown> }
  readonly keepsLease?: boolean
  /** The store numbers the writes of the processes. */
  readonly isCounted?: boolean
}

export interface Script {
  readonly runId: string
  readonly steps: readonly Step[]
}

export const PROBLEM_KINDS = [
  ...(['lost', 'twice', 'stuck', 'interleaved', 'gap', 'unreadable', 'late'] as const),
  ...(['disagrees', 'lease', 'state', 'changed', 'pending', 'error'] as const),
] as const

export type ProblemKind = (typeof PROBLEM_KINDS)[number]

export interface Problem {
  readonly kind: ProblemKind
  readonly detail: string
}

/** Stores of processes, over one database. */
export interface Stores {
  /** For the harness itself: never broken. */
  readonly database: SqlDatabase
  /** The database of a process. */
  connect(): SqlDatabase
  /** The store of a process over its database. */
  open?(database: SqlDatabase): LogStore
  /** An agent with a defect. */
  next?(view: RunView): Action
  /** Is called when a process has crashed. */
  crashed?(key: SessionKey): Promise<void>
}

/** Payments by `run/step payment ordinal`. */
export type Bank = Map<string, number>

export interface WorldOptions {
  readonly cut?: Cut | undefined
  readonly bank?: Bank
  /** The name of all its processes. Default: one for each. */
  readonly holder?: string
}

/** The most processes that may be needed after one another. */
const MOST_GENERATIONS = 10

export class World {
  readonly scenario: Scenario
  readonly stores: Stores
  readonly reader: SqlLog
  readonly bank: Bank
  readonly seen = new Map<string, Seen>()
  readonly acknowledged = { run: new Set<string>(), post: new Set<string>() }
  readonly problems: Problem[] = []
  /** Calls of the store, in order. */
  readonly calls: string[] = []
  generations = 0
  expiries = 0
  readonly #cut: Cut | undefined
  readonly #holder: string | undefined
  readonly #done = new Set<Act>()
  readonly #late: Suspended[] = []
  #progress = 0
  #processes = 0

  constructor(stores: Stores, scenario: Scenario, { cut, bank = new Map(), holder }: WorldOptions = {}) {
    this.stores = stores
    this.scenario = scenario
    this.reader = new SqlLog(stores.database)
    this.bank = bank
    this.#cut = cut
    this.#holder = holder
  }

  get cut(): Cut | undefined {
    return this.#cut
  }

  /** Stores what is there before the first process: nested sessions and state. */
  async setUp(): Promise<void> {
    const { key, nested, state } = this.scenario
    for (const { appName, userId, sessionId } of state ? [key, ...nested] : nested)
      await this.stores.database.run(
        sql(
          `INSERT INTO lango_sessions (app_name, user_id, session_id, search, created_at, updated_at, updated_hour)
            VALUES (?, ?, ?, '', 1, 1, 1)`,
          ...[appName, userId, sessionId],
        ),
      )
    if (state) await this.reader.append({ key, entries: [{ kind: 'notice' }], also: { state: state.before } })
  }

  /** Runs processes until nothing is left to do. */
  async play(): Promise<void> {
    let isIdle = false
    while (this.generations < MOST_GENERATIONS) {
      this.generations += 1
      const before = this.#progress
      await this.#generation()
      if (await this.#isOver()) break
      const isStill = this.#progress === before
      // A lease whose grant was not acknowledged is kept by a process that lives, until it expires.
      if (isStill && isIdle) break
      if (isStill) await this.#expire()
      isIdle = isStill
    }
    await this.#wake()
    if (!(await this.#isOver())) this.report('stuck', `after ${this.generations} generations`)
  }

  report(kind: ProblemKind, detail: string): void {
    this.problems.push({ kind, detail })
  }

  async #generation(): Promise<void> {
    await this.#perform()
    await this.#run(process => process.sweep(this.scenario.key.appName).then(() => true))
  }

  /** The acts that are due, at once. */
  async #perform(): Promise<void> {
    if (this.#done.size === this.scenario.acts.length) return
    const entries = await this.reader.read(this.scenario.key)
    const runs = await this.reader.findRuns(this.scenario.scripts.map(({ runId }) => runId))
    const due = this.scenario.acts.filter(act => !this.#done.has(act) && act.when(entries, runs))
    // Not again while it is being done, unless its process was suspended.
    for (const act of due) this.#done.add(act)
    await Promise.all(
      due.map(async act => {
        if (!(await this.#run(process => act.do(process)))) this.#done.delete(act)
      }),
    )
  }

  async #isOver(): Promise<boolean> {
    const { scripts, acts } = this.scenario
    const runs = await this.reader.findRuns(scripts.map(({ runId }) => runId))
    const entries = await this.reader.read(this.scenario.key)
    if (acts.some(act => !this.#done.has(act) && act.when(entries, runs))) return false
    return runs.length === scripts.length && runs.every(({ state }) => state === 'finished')
  }

  /** Lets a new process work until it ends, crashes or is suspended. */
  async #run(work: (process: LogProcess) => Promise<boolean>): Promise<boolean> {
    const life = new Life()
    const process = this.#process(life)
    const running = work(process).catch(error => this.#failed(life, process, error))
    const outcome = await Promise.race([running, life.suspended])
    if (typeof outcome === 'boolean') return outcome
    this.#progress += 1
    this.#late.push({ life, running, call: this.calls.at(-1) ?? '', wake: outcome })
    if (this.#late.length === 1) {
      await this.#bury(process)
      return false
    }
    // The second one holds the lease while the first one wakes up.
    await this.#wake()
    outcome()
    return running
  }

  #process(life: Life): LogProcess {
    this.#processes += 1
    const holder = this.#holder ?? `elsewhere boot pid ${this.#processes} ${this.scenario.key.appName}`
    const database = dying(this.stores.connect(), life)
    const log = this.#cuttable(this.stores.open?.(database) ?? new SqlLog(database), life)
    const around: Surroundings = {
      pay: (runId, call) => this.#pay(runId, call),
      see: (key, entry) => this.#see(key, entry),
      acknowledged: (what, id) => {
        this.#progress += 1
        if (what !== 'write') this.acknowledged[what].add(id)
      },
      between: () => this.#perform(),
      keepsLease: this.scenario.keepsLease ?? false,
      isCounted: this.scenario.isCounted ?? false,
      next: this.stores.next ?? nextAction,
    }
    return new LogProcess(log, holder, around)
  }

  #pay(runId: string, { payment, ordinal }: OpenCall): void {
    const name = `${runId} ${payment} ${ordinal}`
    this.bank.set(name, (this.bank.get(name) ?? 0) + 1)
  }

  /** An entry that a process has seen must stay in the log. */
  #see(key: SessionKey, { seq, kind, runId, key: name, message, data }: Seen): void {
    const place = `${JSON.stringify(key)} ${seq}`
    const known = this.seen.get(place)
    const entry = { seq, kind, runId, key: name, message, data } as Seen
    this.seen.set(place, known ?? entry)
    if (known && stableJson(known) !== stableJson(entry)) this.report('changed', `entry ${seq} is another`)
  }

  async #failed(life: Life, process: LogProcess, error: unknown): Promise<boolean> {
    if (error instanceof Crash) {
      this.#progress += 1
      await this.#bury(process)
      await this.stores.crashed?.(this.scenario.key)
      return false
    }
    const isRefused =
      error instanceof AgentError && (error.code === 'lease-lost' || error.code === 'session-busy')
    if (!(isRefused && life.isLate)) this.report('error', String(error))
    return false
  }

  /** The leases of a process that has ended, or seems to have: its holder is gone, or its time is over. */
  async #bury({ holder }: LogProcess): Promise<void> {
    const isGone = (this.#cut?.call ?? 0) % 2 === 0
    const gone = `${thisProcess().machine}999999999 1`
    const { appName } = this.scenario.key
    for (const table of ['lango_sessions', 'lango_leases'])
      await this.stores.database.run(
        isGone
          ? sql(`UPDATE ${table} SET holder = ? WHERE app_name = ? AND holder = ?`, gone, appName, holder)
          : sql(`UPDATE ${table} SET lease_until = 1 WHERE app_name = ? AND holder = ?`, appName, holder),
      )
  }

  async #expire(): Promise<void> {
    this.expiries += 1
    for (const table of ['lango_sessions', 'lango_leases'])
      await this.stores.database.run(
        sql(
          `UPDATE ${table} SET lease_until = 1 WHERE app_name = ? AND holder <> ''`,
          this.scenario.key.appName,
        ),
      )
  }

  /** The first suspended process continues. It must change nothing of what the others have stored. */
  async #wake(): Promise<void> {
    const [first] = this.#late
    if (!first || first.life.isLate) return
    first.life.isLate = true
    const before = await this.history()
    first.wake()
    await first.running
    // Calls that need no lease are carried out now, unless others have done so meanwhile.
    const mayChange = this.#late.length > 1 && ['accept', 'post', 'endQueued'].includes(first.call)
    if (!mayChange && (await this.history()) !== before) this.report('changed', 'by a process that was late')
  }

  /** Everything that is stored of the scenario but leases. */
  async history(): Promise<string> {
    const { database } = this.stores
    const { appName } = this.scenario.key
    const ofApp = 'session_pk IN (SELECT pk FROM lango_sessions WHERE app_name = ?)'
    const rows = await Promise.all([
      database.run(
        sql(
          `SELECT session_id, entry_count, message_count, token_total, turn_seq, post_count, open_runs
            FROM lango_sessions WHERE app_name = ? ORDER BY pk`,
          appName,
        ),
      ),
      database.run(sql(`SELECT * FROM lango_entries WHERE ${ofApp} ORDER BY session_pk, seq`, appName)),
      database.run(sql(`SELECT * FROM lango_runs WHERE ${ofApp} ORDER BY pk`, appName)),
      database.run(sql(`SELECT * FROM lango_session_state WHERE ${ofApp} ORDER BY session_pk, key`, appName)),
      database.run(sql('SELECT * FROM lango_user_state WHERE app_name = ? ORDER BY key', appName)),
      database.run(sql('SELECT * FROM lango_app_state WHERE app_name = ? ORDER BY key', appName)),
    ])
    return JSON.stringify(rows)
  }

  #cuttable(log: LogStore, life: Life): LogStore {
    const around = (kind: string, invoke: () => Promise<unknown>) => this.#call(kind, life, invoke)
    return new Proxy(log, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function') return member
        const invoke = (...parameters: unknown[]) =>
          Reflect.apply(member, target, parameters) as Promise<unknown>
        if (!WRITES.has(String(name))) return invoke
        return (...parameters: unknown[]) => around(String(name), () => invoke(...parameters))
      },
    })
  }

  async #call(kind: string, life: Life, invoke: () => Promise<unknown>): Promise<unknown> {
    if (life.isOver) throw new Crash()
    const call = this.calls.push(kind)
    const { mode, call: at, progress = Number.POSITIVE_INFINITY } = this.#cut ?? { mode: 'before', call: 0 }
    const isTaken = mode === 'late' && this.#late.length === 1 && life.hasLease
    if (isTaken && call >= at + progress) await life.suspend()
    if (call === at + (this.#cut?.second ?? Number.NaN)) {
      await invoke().catch(() => {})
      return life.crash()
    }
    if (call !== at) return life.granted(await invoke())
    switch (mode) {
      case 'before':
        return life.crash()
      case 'inside':
        life.isDying = true
        await invoke().catch(() => {})
        return life.crash()
      case 'after':
        await invoke().catch(() => {})
        return life.crash()
      case 'again':
        await invoke().catch(() => {})
        return life.granted(await invoke())
      case 'late':
        await life.suspend()
        return life.granted(await invoke())
    }
  }
}

export const WRITES: ReadonlySet<string> = new Set([
  ...['accept', 'acquire', 'release', 'append', 'pause', 'begin', 'endQueued', 'post'],
])

interface Suspended {
  readonly life: Life
  readonly running: Promise<boolean>
  /** The call that it was suspended before. */
  readonly call: string
  readonly wake: () => void
}

/** The process ends here. */
class Crash extends Error {}

/** The life of one process. */
class Life {
  isOver = false
  /** Its database breaks off in the middle of the next write. */
  isDying = false
  /** It continues after others have taken over. */
  isLate = false
  hasLease = false
  /** Resolves to what wakes the process. */
  readonly suspended: Promise<() => void>
  #suspended: (wake: () => void) => void = () => {}

  constructor() {
    this.suspended = new Promise(resolve => {
      this.#suspended = resolve
    })
  }

  granted(answer: unknown): unknown {
    const isLease = typeof answer === 'object' && answer !== null && ('fence' in answer || 'begun' in answer)
    this.hasLease ||= isLease
    return answer
  }

  crash(): never {
    this.isOver = true
    throw new Crash()
  }

  suspend(): Promise<void> {
    return new Promise(wake => this.#suspended(wake))
  }
}

/** A database whose connection ends in the middle of a write when the process does. */
function dying(database: SqlDatabase, life: Life): SqlDatabase {
  const broken: Statement = sql('INSERT INTO lango_nowhere VALUES (1)')
  return over(database, {
    batch(statements) {
      if (!life.isDying) return database.batch(statements)
      return database.batch([...statements.slice(0, Math.ceil(statements.length / 2)), broken])
    },
  })
}

/** The same database with other members. */
export function over(database: SqlDatabase, members: Partial<SqlDatabase>): SqlDatabase {
  return new Proxy(database, {
    get(target, name) {
      const member = Reflect.get(members, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** The acts that scenarios are made of. */
export const acts = {
  accept: (key: SessionKey, { runId, steps }: Script, when: Act['when'] = () => true): Act => ({
    name: `accept ${runId}`,
    when,
    do: process => process.accept(runOf(key, runId, steps)),
  }),
  acceptUnderLease: (key: SessionKey, { runId, steps }: Script): Act => ({
    name: `accept ${runId} under a lease`,
    when: () => true,
    do: process => process.acceptUnderLease(runOf(key, runId, steps)),
  }),
  post: (post: Post & { key: string }, when: Act['when']): Act => ({
    name: `post ${post.key}`,
    when,
    do: process => process.post(post),
  }),
  endQueued: (runId: string): Act => ({
    name: `end ${runId}`,
    when: (_, runs) => runs.some(run => run.runId === runId && run.state === 'queued'),
    do: process => process.endQueued(runId),
  }),
}

function runOf(key: SessionKey, runId: string, steps: readonly Step[]): NewRun {
  const message = { role: 'user', content: `Message of ${runId}`, timestamp: 1, id: `message ${runId}` }
  return { key, runId, message, input: { steps }, when: 'begin-or-queue' }
}
