import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'

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

/**
 * Lets timers run when the run has kept the process busy for a while. A quick model with quick tools needs
 * nothing but microtasks, and the lease would never be renewed.
 */
export function breather(): () => Promise<void> {
  let last = performance.now()
  return async () => {
    if (performance.now() - last < BREATH_MS) return
    await new Promise(resolve => setImmediate(resolve))
    last = performance.now()
  }
}

const BREATH_MS = 20

/**
 * A store whose appends can be shut. When a run is stopped, a tool that does not listen may still finish and
 * ADK would store its late answer; after `seal` nothing more gets in, and what was under way has arrived.
 */
export interface AppendGate {
  readonly store: SessionStore
  /** Whether anything of the run has reached the store. */
  readonly hasAppended: boolean
  seal(): Promise<void>
}

export function gateAppends(store: SessionStore): AppendGate {
  const underWay = new Set<Promise<unknown>>()
  let sealed = false
  let hasAppended = false
  const pass = async <T>(write: () => Promise<T>): Promise<T> => {
    if (sealed) throw new AgentError('aborted', 'The run has ended: nothing more of it is stored.')
    const writing = write()
    underWay.add(writing)
    try {
      return await writing
    } finally {
      underWay.delete(writing)
    }
  }
  return {
    store: {
      createSession: (key, state, options) => pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => store.loadSession(key, options),
      readMessages: (key, options) => store.readMessages(key, options),
      appendMessage: (key, message, options) =>
        pass(async () => {
          const place = await store.appendMessage(key, message, options)
          hasAppended = true
          return place
        }),
      updateState: (key, delta, options) => pass(() => store.updateState(key, delta, options)),
      forkSession: (key, newSessionId, options) => store.forkSession(key, newSessionId, options),
      describeSession: key => store.describeSession(key),
      renameSession: (key, title) => store.renameSession(key, title),
      listSessions: query => store.listSessions(query),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
      runs: store.runs,
      calibration: store.calibration,
      close: () => store.close(),
    },
    get hasAppended() {
      return hasAppended
    },
    async seal() {
      sealed = true
      await Promise.allSettled(underWay)
    },
  }
}
