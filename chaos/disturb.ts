/** What happens to the servers and to their database, by the seed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../src/errors.js'
import type { ChaosDatabase } from './database.js'
import { FAILPOINTS, type Failpoint, type Failpoints } from './failpoints.js'
import type { Fleet } from './fleet.js'
import type { Random } from './random.js'

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
  onlyKills: boolean
  deadlineMs: number
  signal: AbortSignal
  /** Called before and after the database is disturbed. */
  databaseDisturbed(): void
  progress(line: string): void
}

const ON_SERVERS = { kill: 70, freeze: 8, term: 12, disconnect: 0, restart: 0 }
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
    if (what === 'disconnect' || what === 'restart') await disturbDatabase(options, what)
    else await disturbServer(options, what)
    if (counts.kills > 0 && counts.kills % 10 === 0 && what === 'kill') progress(`${counts.kills} kills`)
  }
}

function weightsFor({ database, onlyKills }: DisturbOptions): typeof ON_SERVERS {
  if (onlyKills) return { kill: 1, freeze: 0, term: 0, disconnect: 0, restart: 0 }
  const disconnect = database.disconnect ? 6 : 0
  return { ...ON_SERVERS, disconnect, restart: database.restart ? 3 : 0 }
}

async function disturbServer(options: DisturbOptions, what: 'kill' | 'freeze' | 'term'): Promise<void> {
  const { fleet, failpoints, points, random, counts } = options
  const point = random.pick(points ?? FAILPOINTS) ?? 'blind-after'
  const delayMs = random.chance(0.5) ? 0 : random.between(1, 40)
  const frozenMs = random.between(FROZEN_MS.least, FROZEN_MS.most)
  const act = async (slot: number) => {
    // A termination takes a while; what reached the failpoint continues.
    if (what === 'term') {
      if (fleet.working().includes(slot)) counts.terminations += 1
      void fleet.terminate(slot)
    } else if (what === 'freeze') counts.freezes += Number(await fleet.freeze(slot, frozenMs))
    else counts.kills += Number(await fleet.kill(slot))
  }
  const withinMs = points ? WITHIN_LONG_MS : WITHIN_MS
  if ((await failpoints.strike({ point, delayMs, withinMs }, act)) || points) return
  const slot = random.pick(fleet.working())
  if (slot !== undefined) await act(slot)
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
