/** Locks between processes: a file that only one of them can create. */
import { open, rm, stat } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentError } from '../errors.js'

const LOCK_WAIT_MS = 20

/** Does the work while no other process holds the lock. A lock that is older than `staleMs` was left by a crashed process. */
export async function withLock<Result>(
  lock: string,
  work: () => Promise<Result>,
  staleMs = STALE_LOCK_MS,
): Promise<Result> {
  const mostWaits = (staleMs + 1000) / LOCK_WAIT_MS
  for (let waits = 0; !(await take(lock)); waits += 1) {
    if (waits > mostWaits)
      throw new AgentError(
        'invalid-argument',
        `${lock} is held by another process. Delete it if no such process is running.`,
      )
    const held = await stat(lock).catch(() => undefined)
    if (held && Date.now() - held.mtimeMs > staleMs) await rm(lock, { force: true })
    else await wait(LOCK_WAIT_MS)
  }
  try {
    return await work()
  } finally {
    await rm(lock, { force: true })
  }
}

/** A writer of a small file needs milliseconds. */
const STALE_LOCK_MS = 4000

async function take(lock: string): Promise<boolean> {
  try {
    const handle = await open(lock, 'wx', 0o600)
    await handle.close()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
