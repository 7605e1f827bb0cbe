/** One simulation: several processes on one store, messages, faults, and at the end the checks. */
import { check, collect, type Problem } from '../chaos/check.js'
import { Random } from '../chaos/random.js'
import type { SessionStore } from '../src/session/session-store.js'
import { checkedStore } from '../src/store/checked-store.js'
import type { SqlDatabase } from '../src/store/sql-database.js'
import { openSqlStore } from '../src/store/sql-store.js'
import { createMemoryDatabase, type MemoryDatabase } from '../src/store/sqlite-memory.js'
import { ANSWERED_LATER, Bank, bankTools } from './bank.js'
import { checkCalls, checkEnds, checkStatuses } from './check.js'
import { Clients } from './clients.js'
import { Clock, installVirtualTime, type Owner, ownerScope, useClock } from './clock.js'
import { ROOT, SimulatedModel } from './model.js'
import { type Mutation, mutationOf } from './mutations.js'
import {
  type FaultOptions,
  lastMessage,
  MOST_FAULTS,
  makePlan,
  type Plan,
  type PlannedFault,
} from './plan.js'
import { SimulatedProcess, type Surroundings } from './process.js'

export interface SimulationOptions extends FaultOptions {
  /** Whether interrupted runs are continued. Default `true`, as for runtimes. */
  resume?: boolean | undefined
  /** A mistake that the checks must find. */
  mutation?: Mutation | undefined
}

export interface SimulationReport {
  seed: string
  plan: Plan
  problems: Problem[]
  /** What happened, in order. */
  trace: string[]
  /** Milliseconds of virtual time. */
  virtualMs: number
  /** Faults that hit. */
  faults: number
  /** Of these, processes that ended without a word, and processes that stopped for longer than their lease. */
  crashes: number
  pauses: number
  runs: number
  effects: number
  /** Runs that another process ended as interrupted. */
  interrupted: number
  resumed: number
}

/** Simulations, one after another, with virtual time installed for as long as they run. */
export async function simulate(
  seeds: Iterable<string>,
  options: SimulationOptions,
  onReport: (report: SimulationReport) => boolean | undefined,
): Promise<void> {
  const restore = installVirtualTime()
  try {
    for (const seed of seeds) {
      const report = await simulateOne(seed, options)
      if (onReport(report) === false) return
    }
  } finally {
    restore()
  }
}

async function simulateOne(seed: string, options: SimulationOptions): Promise<SimulationReport> {
  const random = new Random(seed).stream('run')
  const clock = new Clock(random.stream('ids'))
  const database = await createMemoryDatabase(() => clock.wallMs())
  try {
    const store = await openOn(database)
    return await new Simulation({ seed, options, random, clock, database, store }).run()
  } finally {
    database.close()
  }
}

/** Another store on the database, with writes and leases of its own. */
async function openOn(database: MemoryDatabase): Promise<SessionStore> {
  return checkedStore(await openSqlStore(database.open()))
}

interface SimulationParts {
  seed: string
  options: SimulationOptions
  random: Random
  clock: Clock
  database: MemoryDatabase
  /** Without faults. */
  store: SessionStore
}

/** Until everything has come to rest after the last fault. */
const LIMIT_MS = 600_000
const LOOK_MS = 500
const REST_MS = 2000
const APP_NAME = 'lango'

class Simulation implements Surroundings {
  readonly clock: Clock
  readonly #plan: Plan
  readonly #options: SimulationOptions
  readonly #random: Random
  readonly #bank = new Bank()
  readonly #database: MemoryDatabase
  readonly #tables: SqlDatabase
  readonly #store: SessionStore
  readonly #processes: SimulatedProcess[] = []
  readonly #outside: Owner = { name: 'world', isCrashed: false, pausedUntil: 0 }
  readonly #trace: string[] = []
  readonly #problems: Problem[] = []
  readonly #clients: Clients
  #left: (PlannedFault & { left: number })[]
  /** Slots whose process is to be started. */
  #boots: { slot: number; generation: number }[] = []
  readonly #hits: PlannedFault[] = []
  #isOver = false
  #mutate: ReturnType<typeof mutationOf>

  constructor({ seed, options, random, clock, database, store }: SimulationParts) {
    this.#options = options
    this.#plan = makePlan(seed, options)
    this.#random = random
    this.#database = database
    this.#tables = database.open()
    this.#store = store
    this.#left = this.#plan.faults.map(fault => ({ ...fault, left: fault.nth }))
    this.#mutate = mutationOf(options.mutation)
    this.clock = clock
    this.clock.onTimer = owner => {
      if (owner instanceof SimulatedProcess) owner.timer()
    }
    this.#clients = new Clients({
      clock: this.clock,
      random: this.#random.stream('clients'),
      bank: this.#bank,
      store: this.#store,
      answersAll: options.resume !== false,
      acknowledgesEarly: options.mutation === 'early-answer',
      up: () => this.#processes.filter(({ isUp }) => isUp),
      note: text => this.note(this.#outside, text),
      wrong: problem => this.#problems.push(problem),
    })
  }

  async run(): Promise<SimulationReport> {
    useClock(this.clock)
    try {
      for (let slot = 0; slot < this.#plan.processes; slot++) this.#boots.push({ slot, generation: 1 })
      await this.#phase(this.#plan.messages)
      this.#left = []
      const sessions = new Set(this.#clients.sent.map(({ sessionId }) => sessionId))
      const last = [...sessions].map((sessionId, at) => lastMessage(this.#random, `last${at}`, sessionId))
      if (!this.#isStuck()) await this.#phase(last)
      // What still ends: a lease that is returned, a follower.
      await this.clock.run(() => false, this.clock.now + REST_MS)
      await ownerScope.run(this.#outside, () => this.#check())
    } finally {
      for (const process of this.#processes) process.isCrashed = true
      this.#outside.isCrashed = true
      this.clock.end()
    }
    return this.#report()
  }

  hit(point: string, process: SimulatedProcess): PlannedFault | undefined {
    if (point !== 'timer') this.note(process, point)
    let found: PlannedFault | undefined
    for (const fault of this.#left) {
      if (point.startsWith(fault.point)) fault.left -= 1
      if (fault.left === 0 && !found) found = fault
    }
    if (!found) return undefined
    this.#left = this.#left.filter(({ left }) => left > 0)
    this.#hits.push(found)
    return found
  }

  latencyMs(): number {
    const drawn = this.#random.next()
    if (drawn < 0.6) return 0
    return drawn < 0.97 ? this.#random.between(1, 5) : this.#random.between(20, 300)
  }

  note(owner: Owner, text: string): void {
    this.#trace.push(`${this.clock.now} ${owner.name} ${text}`)
  }

  restart({ slot, name }: SimulatedProcess, ms: number): void {
    const generation = Number(name.split('.')[1]) + 1
    this.clock.add(this.#outside, () => void this.#boots.push({ slot, generation }), ms)
  }

  /** Sends messages, and lets time pass until nothing is left to do. */
  async #phase(messages: Plan['messages']): Promise<void> {
    let isDone = false
    ownerScope.run(this.#outside, () => {
      for (const message of messages) void this.#clients.send(message)
      if (this.#hasQuestions) void this.#clients.answer(() => isDone)
      void this.#watch().then(() => {
        isDone = true
      })
    })
    const paused = this.#plan.faults.map(({ action, ms }) => (action === 'pause' ? ms : 0))
    const until = this.clock.now + LIMIT_MS + paused.reduce((all, ms) => all + ms, 0)
    while (!isDone && this.clock.now < until) {
      await this.clock.run(() => isDone || this.#boots.length > 0, until)
      if (this.#boots.length === 0) break
      for (const boot of this.#boots.splice(0)) await this.#boot(boot)
    }
    if (!isDone) this.#isOver = true
  }

  /** Resolves when every message was sent, every run has ended, and every process is up. */
  async #watch(): Promise<void> {
    for (;;) {
      await this.clock.sleep(LOOK_MS)
      this.#problems.push(...(await checkStatuses(this.#tables)))
      const isUp = this.#processes.filter(process => process.isUp).length === this.#plan.processes
      const isDisturbed = this.#processes.some(process => process.isDisturbed)
      if (this.#clients.sending > 0 || !isUp || isDisturbed) continue
      const unfinished = await this.#store.runs.listUnfinished({ appName: APP_NAME })
      if (unfinished.length === 0) return
    }
  }

  /** The default, unless more faults than usual are wanted: then as many as no run needs. */
  get #maxAttempts(): number {
    const { mostFaults = MOST_FAULTS } = this.#options
    return mostFaults > MOST_FAULTS ? 2 * mostFaults : DEFAULT_ATTEMPTS
  }

  /** Whether a tool of the plan asks a person. */
  get #hasQuestions(): boolean {
    const asking = ['pay_asked', 'pay_approved', ...ANSWERED_LATER]
    return this.#plan.messages.some(({ text }) => asking.some(tool => text.includes(tool)))
  }

  #isStuck(): boolean {
    return this.#isOver
  }

  async #boot({ slot, generation }: { slot: number; generation: number }): Promise<void> {
    const process = new SimulatedProcess(this, slot, generation)
    this.#processes.push(process)
    const { resume = true, mutation } = this.#options
    const bank = this.#bank
    const tools = bankTools({
      bank,
      process,
      now: () => this.clock.now,
      repeatsBlindly: mutation === 'blind-retry',
    })
    const model = new SimulatedModel(process, detail => this.#problems.push({ kind: 'illegal', detail }))
    const store = await openOn(this.#database)
    await process.boot({
      store: process.store(store, this.#mutate?.(store)),
      providers: { play: model },
      runs: { maxRunning: this.#plan.maxRunning, resume, maxAttempts: this.#maxAttempts },
      ...(resume ? {} : { tools: { approvalTimeoutMs: APPROVAL_MS } }),
      agent: {
        name: 'clerk',
        model: 'play/model',
        instruction: ROOT,
        tools,
        subAgents: [{ name: 'teller', description: 'Pays too.', instruction: 'You are the teller.', tools }],
      },
    })
  }

  async #check(): Promise<void> {
    const evidence = await collect(this.#store, this.#clients.sent, this.#bank.byOrder())
    this.#problems.push(
      ...check(evidence),
      ...checkCalls(evidence),
      ...checkEnds(evidence, this.#plan, this.#options.resume === false ? 0 : this.#maxAttempts),
    )
    for (const process of this.#processes)
      if (!this.#isOver && process.isUp && process.active().length > 0)
        this.#problems.push({ kind: 'stuck', detail: `${process.name} holds ${process.active().join(', ')}` })
    for (const { sent, events, calls } of evidence.runs) {
      this.note(this.#outside, `${sent.mark} ${events.map(({ type }) => type).join(' ')}`)
      this.note(
        this.#outside,
        `${sent.mark} ${calls.map(({ tool, status }) => `${tool} ${status}`).join(', ')}`,
      )
    }
    this.#counts = {
      runs: evidence.runs.filter(({ isKnown }) => isKnown).length,
      interrupted: evidence.runs.filter(({ events }) => JSON.stringify(events).includes('run-interrupted'))
        .length,
      resumed: evidence.runs.filter(({ events }) => events.some(({ type }) => type === 'run-resumed')).length,
    }
  }

  #counts = { runs: 0, interrupted: 0, resumed: 0 }

  #report(): SimulationReport {
    return {
      seed: this.#plan.seed,
      plan: this.#plan,
      problems: this.#problems,
      trace: this.#trace,
      virtualMs: this.clock.now,
      faults: this.#hits.length,
      crashes: this.#hits.filter(({ action }) => action === 'crash').length,
      pauses: this.#hits.filter(({ action }) => action === 'pause').length,
      effects: this.#bank.effects.length,
      ...this.#counts,
    }
  }
}

const APPROVAL_MS = 20_000
/** As `runs.maxAttempts` is by default. */
const DEFAULT_ATTEMPTS = 3
