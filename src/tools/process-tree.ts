/**
 * Processes with all their descendants. A child leads its own process group and has a mark in its environment that
 * descendants inherit: on Linux one that left the group (`setsid`, a daemon) is found by that mark. All remaining
 * processes are killed when this process exits.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessTree {
  readonly child: ChildProcess
  /** Sends a signal to the whole group. */
  signal(signal: NodeJS.Signals): void
  /** Kills the whole tree. Call it again when `child` has exited, for descendants that outlived it. */
  kill(): void
}

const MARK = 'LANGO_PROCESS_MARK'
const living = new Set<ProcessTree>()
let listensForExit = false

/** Starts a process that can be killed with all its descendants. `options.env` is required. */
export function spawnTree(
  command: string,
  args: readonly string[],
  options: Omit<SpawnOptions, 'detached'> & { env: NodeJS.ProcessEnv },
): ProcessTree {
  const mark = randomUUID()
  const child = spawn(command, args, {
    ...options,
    // Windows has no process groups; there a detached process would only open a window.
    detached: process.platform !== 'win32',
    env: { ...options.env, [MARK]: mark },
  })
  const tree: ProcessTree = {
    child,
    signal: signal => signalGroup(child, signal),
    kill: () => {
      // Once the tree has exited, its pid may belong to another process.
      if (!living.has(tree)) return
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      signalGroup(child, 'SIGKILL')
      killMarked(`${MARK}=${mark}`)
      if (hasEnded) living.delete(tree)
    },
  }
  // A process that could not be started has no pid.
  if (child.pid !== undefined) remember(tree)
  return tree
}

function remember(tree: ProcessTree): void {
  living.add(tree)
  if (listensForExit) return
  listensForExit = true
  process.on('exit', () => {
    for (const left of [...living]) left.kill()
  })
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  if (process.platform === 'win32') {
    if (child.exitCode === null) spawnSync('taskkill', ['/pid', String(child.pid), '/t', '/f'])
    return
  }
  send(-child.pid, signal)
}

/** Kills processes with the mark. One may start another meanwhile, so the search is repeated a few times. */
function killMarked(mark: string): void {
  if (process.platform !== 'linux') return
  for (let round = 0; round < 5; round++) {
    const found = markedProcesses(mark)
    if (found.length === 0) return
    for (const pid of found) send(pid, 'SIGKILL')
  }
}

function markedProcesses(mark: string): number[] {
  const entry = `${mark}\0`
  return readdirSync('/proc').flatMap(name => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) return []
    try {
      // A zombie has an empty environment.
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(entry) ? [pid] : []
    } catch {
      return []
    }
  })
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has already exited.
  }
}
