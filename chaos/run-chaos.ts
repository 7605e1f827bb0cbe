/** One store under chaos: servers, clients, a model, a bank, disturbances, and the verdict. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '../src/run/run-event.js'
import type { SessionStore } from '../src/session/session-store.js'
import { openStore } from '../src/store/open-store.js'
import { Bank } from './bank.js'
import { check, collect, type Evidence, type FinalRun, MAX_ATTEMPTS, type Problem } from './check.js'
import { Clients, isAccepted, type Sent } from './clients.js'
import { type ChaosDatabase, openDatabase } from './database.js'
import { type ChaosEvent, type Disturbances, disturb } from './disturb.js'
import { type Failpoint, Failpoints } from './failpoints.js'
import { Fleet } from './fleet.js'
import { MODEL_PROFILES, Model, modelOf } from './model.js'
import { Random } from './random.js'

export interface ChaosOptions {
  /** `sqlite`, `postgres`, or the URL of a store. */
  store: string
  seed: string
  processes: number
  sessions?: number
  /** Ends after that many kills. */
  kills: number
  /** Ends after that time, whatever the number of kills. */
  limitMs: number
  /** What dispatches runs. Default: leases. */
  engine?: 'leases' | 'dbos'
  /** The moments at which servers are disturbed, and no others. */
  points?: readonly Failpoint[]
  /** What happens. Default: everything. */
  events?: readonly ChaosEvent[]
  /** Lets the servers make a mistake that the checks must find. */
  sabotage?: boolean
  /** Whether runs of processes that are gone are continued, as is the default of Lango, or end as interrupted. */
  resume?: boolean
  signal?: AbortSignal
  progress?(line: string): void
}

export interface ChaosReport extends Disturbances {
  store: string
  engine: string
  seed: string
  processes: number
  seconds: number
  sent: number
  acknowledged: number
  /** Accepted messages that are in a history. */
  stored: number
  /** Runs that were stopped before they began: their messages are not in a history. */
  stopped: number
  payments: number
  effects: number
  /** Tool calls whose outcome is unknown in the end. */
  unknowns: number
  /** Runs that were continued, and how often, after the end of a process, a handover, or an answer. */
  resumed: number
  afterCrash: number
  afterHandover: number
  afterAnswer: number
  /** Model steps that were answered from the store. */
  replayedSteps: number
  /** Answers of people that were acknowledged. */
  approvals: number
  interrupted: number
  /** Answers from ports that belonged to other programs. */
  strangers: number
  modelRequests: number
  modelFaults: number
  finishReasons: Record<string, number>
  /** The errors of runs, by code. */
  errors: Record<string, number>
  /** Answers besides 200 and 202, by status and code. */
  answers: Record<string, { count: number; example: string }>
  problems: Problem[]
  /** Where the evidence was written; only with problems. */
  folder?: string
}

/** A run that has not ended and stores nothing for this long is stuck: the leases of killed processes last 10 s. */
const STILL_MS = 120_000
/** How long the last process has to end every run. */
const QUIET_MS = 900_000
/** After its database was disturbed, a server may fail to start. */
const RECOVERY_MS = 8000

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await mkdtemp(join(tmpdir(), 'lango-chaos-'))
  let database: ChaosDatabase | undefined
  try {
    database = await openDatabase(options.store, folder)
    const report = await new Chaos(options, database, folder).run()
    if (report.problems.length === 0) await rm(folder, { recursive: true, force: true })
    return report
  } finally {
    await database?.close()
  }
}

class Chaos {
  readonly #options: ChaosOptions
  readonly #database: ChaosDatabase
  readonly #folder: string
  readonly #problems: Problem[] = []
  readonly #counts: Disturbances = { kills: 0, freezes: 0, terminations: 0, disconnects: 0, restarts: 0 }
  readonly #failpoints = new Failpoints()
  readonly #random: Random
  readonly #token = randomUUID()
  readonly #bank: Bank
  readonly #model: Model
  #disturbedAt = 0

  constructor(options: ChaosOptions, database: ChaosDatabase, folder: string) {
    this.#options = options
    this.#database = database
    this.#folder = folder
    this.#random = new Random(`${options.seed}/${database.name}`)
    this.#bank = new Bank(this.#random.stream('bank'), this.#failpoints)
    this.#model = new Model(this.#random.stream('model'), this.#failpoints)
  }

  async run(): Promise<ChaosReport> {
    const startedAt = Date.now()
    const fleet = await this.#startFleet()
    try {
      const clients = this.#startClients(fleet)
      await this.#disturb(fleet)
      const { evidence } = await this.#judge(fleet, clients)
      return await this.#report(clients, evidence, startedAt)
    } finally {
      await fleet.close()
      await this.#model.close()
      await this.#bank.close()
    }
  }

  async #startFleet(): Promise<Fleet> {
    const { processes, sabotage = false, resume = true, engine = 'leases' } = this.#options
    const settings = {
      store: this.#database.url,
      bankUrl: await this.#bank.start(),
      models: await this.#model.start(),
      defaultModel: modelOf(MODEL_PROFILES[0]),
      sabotage,
      resume,
      maxAttempts: MAX_ATTEMPTS,
      engine,
      token: this.#token,
    }
    const fleet = new Fleet({
      processes,
      settings,
      logFile: join(this.#folder, 'servers.log'),
      crashed: detail => this.#problems.push({ kind: 'crashed', detail }),
      mayFailToStart: () => Date.now() < this.#disturbedAt + RECOVERY_MS,
    })
    await fleet.start()
    return fleet
  }

  #startClients(fleet: Fleet): Clients {
    const clients = new Clients({
      fleet,
      failpoints: this.#failpoints,
      random: this.#random.stream('clients'),
      sessions: this.#options.sessions ?? 8,
      // Without resuming, a run that waits ends with its process.
      hasPeople: this.#options.resume ?? true,
      token: this.#token,
      slotOf: mark => this.#model.slotOf(mark),
      wrong: (kind, detail, runId) => this.#problems.push({ kind, detail, runId }),
    })
    clients.start()
    return clients
  }

  async #disturb(fleet: Fleet): Promise<void> {
    const { kills, limitMs, points, events } = this.#options
    const { signal = new AbortController().signal, progress = () => {} } = this.#options
    await disturb({
      fleet,
      failpoints: this.#failpoints,
      database: this.#database,
      random: this.#random.stream('disturb'),
      counts: this.#counts,
      kills,
      points,
      events,
      deadlineMs: Date.now() + limitMs,
      signal,
      databaseDisturbed: () => {
        this.#disturbedAt = Date.now()
      },
      progress,
    })
  }

  /** Everything is stopped, one process is started, and what was accepted must come to its end. */
  async #judge(fleet: Fleet, clients: Clients): Promise<{ evidence: Evidence }> {
    const { progress = () => {} } = this.#options
    progress('waiting for the end of all runs')
    await clients.stop()
    await fleet.stop()
    this.#model.isFaulty = false
    await fleet.start(1)
    const store = await openStore(this.#database.url)
    try {
      await this.#untilQuiet(store, clients.sent)
      await clients.finish()
      const last = await clients.sendLast()
      await this.#untilQuiet(store, last)
      await clients.finish()
      const collected = await collect(store, clients.sent, this.#bank.effects())
      const isDatabaseDisturbed = this.#counts.disconnects + this.#counts.restarts > 0
      const ends = { faulted: this.#model.faulted, isDatabaseDisturbed }
      const evidence = { ...collected, ...((this.#options.resume ?? true) ? { ends } : {}) }
      this.#problems.push(...check(evidence), ...checkLast(evidence, last), ...this.#illegal())
      if (this.#problems.length > 0) await this.#keepEvidence(evidence)
      return { evidence }
    } finally {
      await store.close()
    }
  }

  async #untilQuiet(store: SessionStore, sent: readonly Sent[]): Promise<void> {
    const end = Date.now() + QUIET_MS
    let deadline = Date.now() + STILL_MS
    let open = sent
    let stored = ''
    while (open.length > 0 && Date.now() < Math.min(deadline, end) && !this.#options.signal?.aborted) {
      const left: Sent[] = []
      const places: number[] = []
      for (const each of open) {
        const run = await store.runs.findRun(each.runId)
        if (!run || run.finished) continue
        left.push(each)
        places.push(run.lastSeq)
      }
      open = left
      // A busy machine may need longer for all of them; only runs that do not go on are stuck.
      if (places.join() !== stored) deadline = Date.now() + STILL_MS
      stored = places.join()
      await sleep(100)
    }
  }

  #illegal(): Problem[] {
    return this.#model.refused.map(({ profile, violation }) => ({
      kind: 'illegal',
      detail: `${profile} would refuse a request: ${JSON.stringify(violation)}`,
    }))
  }

  async #keepEvidence({ runs, messages }: Evidence): Promise<void> {
    const write = (name: string, data: unknown) =>
      writeFile(join(this.#folder, name), `${JSON.stringify(data, null, 2)}\n`)
    await write('problems.json', this.#problems)
    await write('bank.json', this.#bank.requests)
    await write('refused.json', this.#model.refused.slice(0, 20))
    await mkdir(join(this.#folder, 'sessions'), { recursive: true })
    const owners = new Map(runs.map(({ sent }) => [sent.runId, sent.sessionId]))
    const sessions = new Set(
      this.#problems.flatMap(({ sessionId, runId }) => sessionId ?? owners.get(runId ?? '') ?? []),
    )
    for (const sessionId of sessions) {
      const own = runs.filter(({ sent }) => sent.sessionId === sessionId)
      const described = own.map(run => ({ ...run, sent: { ...run.sent, followed: [...run.sent.followed] } }))
      await write(join('sessions', `${sessionId}.json`), {
        runs: described,
        messages: messages.get(sessionId) ?? [],
      })
    }
  }

  async #report(clients: Clients, evidence: Evidence, startedAt: number): Promise<ChaosReport> {
    const { seed, processes, engine = 'leases' } = this.#options
    const { runs, messages, effects } = evidence
    const known = runs.filter(({ isKnown }) => isKnown)
    const isStored = ({ sessionId, mark }: Sent) =>
      (messages.get(sessionId) ?? []).some(({ role, content }) => role === 'user' && content.includes(mark))
    const errors = countBy(runs.flatMap(({ events }) => events.flatMap(errorCode)))
    return {
      store: this.#database.name,
      engine,
      seed,
      processes,
      seconds: Math.round((Date.now() - startedAt) / 1000),
      ...this.#counts,
      sent: clients.sent.length,
      acknowledged: clients.sent.filter(isAccepted).length,
      stored: known.filter(({ sent }) => isStored(sent)).length,
      stopped: known.filter(({ sent, isFinished }) => isFinished && !isStored(sent)).length,
      payments: this.#bank.requests.length,
      effects: [...effects.values()].flat().length,
      unknowns: runs.flatMap(({ calls }) => calls.filter(({ status }) => status === 'unknown')).length,
      ...countResumed(runs),
      approvals: clients.approvals,
      interrupted: errors['run-interrupted'] ?? 0,
      strangers: clients.strangers,
      modelRequests: this.#model.requests,
      modelFaults: this.#model.faults,
      finishReasons: countBy(known.map(({ finishReason = 'none' }) => finishReason)),
      errors,
      answers: Object.fromEntries(clients.answers),
      problems: this.#problems,
      ...(this.#problems.length > 0 ? { folder: this.#folder } : {}),
    }
  }
}

function countResumed(runs: readonly FinalRun[]) {
  const counts = { resumed: 0, afterCrash: 0, afterHandover: 0, afterAnswer: 0, replayedSteps: 0 }
  for (const { events } of runs) {
    const open = new Set<string>()
    let isResumed = false
    for (const event of events) {
      if (event.type === 'approval-request') open.add(event.id)
      if (event.type === 'approval-answer') open.delete(event.id)
      if (event.type !== 'run-resumed') continue
      isResumed = true
      counts.replayedSteps += event.replayedSteps
      // Only the end of a process counts as another attempt.
      if (event.attempt > 1) counts.afterCrash += 1
      else if (open.size > 0) counts.afterAnswer += 1
      else counts.afterHandover += 1
    }
    counts.resumed += Number(isResumed)
  }
  return counts
}

/** The last message of each session was answered: its history is usable. */
function checkLast({ runs }: Evidence, last: readonly Sent[]): Problem[] {
  const ids = new Set(last.map(({ runId }) => runId))
  return runs
    .filter(({ sent, finishReason }) => ids.has(sent.runId) && finishReason !== 'stop')
    .map(({ sent, finishReason }) => ({
      kind: 'illegal',
      detail: `the last message of the session ended with ${finishReason}`,
      sessionId: sent.sessionId,
      runId: sent.runId,
    }))
}

function errorCode(event: RunEvent): string[] {
  return event.type === 'error' ? [event.error.code] : []
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
