/** One measurement: so many runs at once over some processes, for some seconds. */
import { cpus } from 'node:os'
import { type Member, serverCpuMs } from './fleet-members.js'

export interface Load {
  concurrency: number
  delayMs: number
  /** Until the window closes. Runs that are not finished then are waited for, and not counted. */
  seconds: number
}

export interface Window {
  perSecond: number
  p50: number
  p99: number
  /** Statements, each a round trip, of one run. */
  statements: number
  /** Of the database while the window closed. */
  connections: number
  /** Cores in use, on average. */
  cores: { workers: number; database: number; generator: number }
  /** Of all cores, with whatever else the machine does; 1 is all. */
  idle: number
  finished: number
}

export type Side = 'Lango' | 'ADK, database service' | 'ADK in memory'

export interface Cell {
  side: Side
  processes: number
  concurrency: number
  delayMs: number
  /** The sample with the median rate. */
  window: Window
  rates: number[]
}

export interface Surroundings {
  serverPid: number
  connections(): Promise<number>
}

/** Every slot keeps one run going, in a session of its own that gets a new one after some turns. */
export async function measureWindow(
  members: readonly Member[],
  load: Load,
  { serverPid, connections }: Surroundings,
): Promise<Window> {
  const before = await account(members, serverPid)
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000
  const latencies: number[] = []
  let counted = 0
  const slot = async (index: number) => {
    const member = members[index % members.length]
    for (let turn = 0; performance.now() < endsAt; turn++) {
      const sessionId = `${tag}-${startedAt}-${index}-${Math.floor(turn / TURNS_OF_SESSION)}`
      const began = performance.now()
      await member?.ask({ kind: 'run', sessionId, delayMs: load.delayMs })
      latencies.push(performance.now() - began)
      if (performance.now() < endsAt) counted += 1
    }
  }
  const running = Promise.all(Array.from({ length: load.concurrency }, (_, index) => slot(index)))
  const connected = new Promise<number>((resolve, reject) =>
    setTimeout(() => connections().then(resolve, reject), load.seconds * 900),
  )
  await running
  const seconds = (performance.now() - startedAt) / 1000
  const after = await account(members, serverPid)
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  // When no run fits into the window, the rate is that of the runs that were begun in it.
  const perSecond = counted >= load.concurrency ? counted / load.seconds : latencies.length / seconds
  const cores = (part: 'workers' | 'database' | 'generator') => (after[part] - before[part]) / 1000 / seconds
  return {
    perSecond,
    p50: at(0.5),
    p99: at(0.99),
    statements: (after.statements - before.statements) / latencies.length,
    connections: await connected,
    cores: { workers: cores('workers'), database: cores('database'), generator: cores('generator') },
    idle: (after.idle - before.idle) / (after.all - before.all),
    finished: latencies.length,
  }
}

const TURNS_OF_SESSION = 5
const tag = Date.now().toString(36)

async function account(members: readonly Member[], serverPid: number) {
  const answers = await Promise.all(members.map(member => member.ask({ kind: 'account' })))
  const sum = (of: (answer: (typeof answers)[number]) => number | undefined) =>
    answers.reduce((all, answer) => all + (of(answer) ?? 0), 0)
  const { user, system } = process.cpuUsage()
  return {
    workers: sum(({ cpuMs }) => cpuMs),
    statements: sum(answer => answer.statements),
    database: serverCpuMs(serverPid),
    generator: (user + system) / 1000,
    ...machineTimes(),
  }
}

function machineTimes(): { idle: number; all: number } {
  const times = cpus().map(cpu => cpu.times)
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.map(each => sum(Object.values(each)))) }
}
