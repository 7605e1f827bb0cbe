import { AgentError } from '../errors.js'
import type { SessionStore } from '../session/session-store.js'

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
