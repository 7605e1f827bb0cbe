/** What happens to the servers and to their database, by the seed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../src/errors.js'
import type { ChaosDatabase } from './database.js'
import { FAILPOINTS, type Failpoint, type Failpoints } from './failpoints.js'
import type { Fleet } from './fleet.js'
import type { Random } from './random.js'

/** kill -9, SIGSTOP for longer than a lease, SIGTERM; the connections of the database, and the database itself. */
export const EVENTS = ['kill', 'freeze', 'term', 'disconnect', 'restart'] as const

export type ChaosEvent = (typeof EVENTS)[number]

export interface Disturbances {
  kills: number
  freezes: number
  terminations: number
  disconnects: number
  restarts: number
}

export interface DisturbOptions {
  fleet: Fleet
  failpoints: Failpoints
  database: ChaosDatabase
  random: Random
  counts: Disturbances
  /** Ends after that many kills. */
  kills: number
  /** The moments at which servers are disturbed. Default: all, and any moment when none of them comes soon. */
  points?: readonly Failpoint[] | undefined
  /** What happens. Default: everything. */
  events?: readonly ChaosEvent[] | undefined
  deadlineMs: number
  signal: AbortSignal
  /** Called before and after the database is disturbed. */
  databaseDisturbed(): void
  progress(line: string): void
}

const WEIGHTS: Readonly<Record<ChaosEvent, number>> = {
  kill: 70,
  freeze: 8,
  term: 12,
  disconnect: 8,
  restart: 4,
}
/** A lease lasts 10 s: a process that is frozen for longer finds its session taken. */
const FROZEN_MS = { least: 11_000, most: 15_000 }
const WITHIN_MS = 2500
const WITHIN_LONG_MS = 30_000

/** Disturbs one part after another until there were enough kills, or the time is over. */
export async function disturb(options: DisturbOptions): Promise<void> {
  const { fleet, random, counts, kills, deadlineMs, signal, progress } = options
  const weights = weightsFor(options)
  while (counts.kills < kills && Date.now() < deadlineMs && !signal.aborted) {
    await sleep(random.between(50, 900))
    if (fleet.working().length === 0) continue
    const what = random.weighted(weights)
    await disturbOnce(options, what)
    if (counts.kills > 0 && counts.kills % 10 === 0 && what === 'kill') progress(`${counts.kills} kills`)
  }
}

function weightsFor({ database, events = EVENTS }: DisturbOptions): Record<ChaosEvent, number> {
  const isPossible = {
    kill: true,
    freeze: true,
    term: true,
    disconnect: database.disconnect !== undefined,
    restart: database.restart !== undefined,
  }
  const weight = (name: ChaosEvent) => (events.includes(name) && isPossible[name] ? WEIGHTS[name] : 0)
  return Object.fromEntries(EVENTS.map(name => [name, weight(name)])) as Record<ChaosEvent, number>
}

/** At a failpoint; when none is reached soon, at once. */
async function disturbOnce(options: DisturbOptions, what: ChaosEvent): Promise<void> {
  const { fleet, failpoints, points, random } = options
  const point = random.pick(points ?? FAILPOINTS) ?? 'blind-after'
  const delayMs = random.chance(0.5) ? 0 : random.between(1, 40)
  const frozenMs = random.between(FROZEN_MS.least, FROZEN_MS.most)
  const act = (slot: number) => disturbPart(options, what, { slot, frozenMs })
  const withinMs = points ? WITHIN_LONG_MS : WITHIN_MS
  if ((await failpoints.strike({ point, delayMs, withinMs }, act)) || points) return
  const slot = random.pick(fleet.working())
  if (slot !== undefined) await act(slot)
}

async function disturbPart(
  options: DisturbOptions,
  what: ChaosEvent,
  { slot, frozenMs }: { slot: number; frozenMs: number },
): Promise<void> {
  const { fleet, counts } = options
  switch (what) {
    case 'kill':
      counts.kills += Number(await fleet.kill(slot))
      return
    case 'freeze':
      counts.freezes += Number(await fleet.freeze(slot, frozenMs))
      return
    case 'term':
      if (!fleet.working().includes(slot)) return
      counts.terminations += 1
      // A termination takes a while; what reached the failpoint continues.
      void fleet.terminate(slot)
      return
    case 'disconnect':
    case 'restart':
      await disturbDatabase(options, what)
  }
}

async function disturbDatabase(
  { database, counts, databaseDisturbed, progress }: DisturbOptions,
  what: 'disconnect' | 'restart',
): Promise<void> {
  databaseDisturbed()
  try {
    if (what === 'restart') await database.restart?.()
    else await database.disconnect?.()
    counts[what === 'restart' ? 'restarts' : 'disconnects'] += 1
  } catch (error) {
    progress(`the database could not be disturbed: ${messageOf(error)}`)
  } finally {
    databaseDisturbed()
  }
}
