import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'

/** Hands the turn to the next in line. */
export type Leave = () => void

/**
 * One run per session within this process: first come, first served. The lease in the store does the same
 * across processes; this queue only spares it the polling.
 */
export class SessionQueue {
  private readonly tails = new Map<string, Promise<void>>()

  /** Waits for the turn of this session. With `reject`, fails at once when somebody is before us. */
  async enter(key: SessionKey, whenBusy: 'queue' | 'reject', signal?: AbortSignal): Promise<Leave> {
    const name = JSON.stringify([key.appName, key.userId, key.sessionId])
    const before = this.tails.get(name)
    if (before && whenBusy === 'reject') throw busy(key)
    let leave: Leave = () => {}
    const mine = new Promise<void>(resolve => {
      leave = resolve
    })
    const tail = (before ?? Promise.resolve()).then(() => mine)
    this.tails.set(name, tail)
    void tail.then(() => {
      if (this.tails.get(name) === tail) this.tails.delete(name)
    })
    try {
      await raceAbort(before, signal)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }
}

function busy(key: SessionKey): AgentError {
  return new AgentError(
    'session-busy',
    `Session "${key.sessionId}" is busy with another run. Wait for it to finish, or run with whenBusy: 'queue'.`,
    { retryable: true, details: { ...key } },
  )
}

async function raceAbort(waiting: Promise<void> | undefined, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw aborted()
  if (!waiting) return
  if (!signal) return waiting
  let stop = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(aborted())
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    await Promise.race([waiting, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function aborted(): AgentError {
  return new AgentError('aborted', 'The run was stopped while it waited for its session.')
}
