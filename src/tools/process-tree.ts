/**
 * Processes with everything that they start. A child leads a process group of its own, and carries a mark in
 * its environment that its descendants inherit: one that left the group (`setsid`, a daemon) is still found by
 * it on Linux. Whatever is left when this process exits is ended with it.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessTree {
  readonly child: ChildProcess
  /** Sends a signal to all of it. */
  signal(signal: NodeJS.Signals): void
  /** Kills all of it for good. To be called again when `child` has ended, for what outlived it. */
  kill(): void
}

const MARK = 'LANGO_PROCESS_MARK'
const living = new Set<ProcessTree>()
let listensForExit = false

/** Starts a process that can be ended with all that it starts. `options.env` must be given. */
export function spawnTree(
  command: string,
  args: readonly string[],
  options: Omit<SpawnOptions, 'detached'> & { env: NodeJS.ProcessEnv },
): ProcessTree {
  const mark = randomUUID()
  const child = spawn(command, args, {
    ...options,
    // Windows has no groups; there a detached process would only get a window.
    detached: process.platform !== 'win32',
    env: { ...options.env, [MARK]: mark },
  })
  const tree: ProcessTree = {
    child,
    signal: signal => signalGroup(child, signal),
    kill: () => {
      // Once all of it has ended, its number may belong to somebody else.
      if (!living.has(tree)) return
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      signalGroup(child, 'SIGKILL')
      killMarked(`${MARK}=${mark}`)
      if (hasEnded) living.delete(tree)
    },
  }
  // A process that could not be started has no id, and nothing to end.
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

/** Kills what carries the mark. A process may start another one meanwhile, so it looks again, a few times. */
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
      // A process that has ended but was not yet waited for has an empty environment.
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
    // It is gone already.
  }
}
