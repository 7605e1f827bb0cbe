import type { FollowOptions, LangoClient } from '../../src/client/client.js'
import type { RunEvent } from './state/api.js'

/** A network that comes and goes, goes at most so often in one run. */
const MAXIMUM_RETURNS = 1000

/**
 * The events of a run. The client waits longer and longer between its attempts; when the browser says that the
 * network is back, nobody needs to wait: the run is followed anew from where it was.
 */
export async function* followAcrossNetworks(
  client: LangoClient,
  runId: string,
  options: FollowOptions & { signal: AbortSignal },
): AsyncGenerator<RunEvent, void, undefined> {
  const { signal, onConnection } = options
  let after = 0
  for (let attempt = 0; attempt < MAXIMUM_RETURNS && !signal.aborted; attempt += 1) {
    const again = new AbortController()
    const back = () => again.abort()
    window.addEventListener('online', back, { once: true })
    signal.addEventListener('abort', back, { once: true })
    try {
      const settings = { after, signal: again.signal, ...(onConnection ? { onConnection } : {}) }
      for await (const event of client.follow(runId, settings)) {
        after = event.seq
        yield event
      }
      if (!again.signal.aborted) return
    } catch (error) {
      if (!again.signal.aborted) throw error
    } finally {
      window.removeEventListener('online', back)
      signal.removeEventListener('abort', back)
    }
  }
}

/** Waits for a time, or less: until the network is back or the signal fires. */
export function networkOr(pauseMs: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const over = new AbortController()
    const timer = setTimeout(() => done(), pauseMs)
    const done = () => {
      clearTimeout(timer)
      over.abort()
      resolve()
    }
    window.addEventListener('online', done, { signal: over.signal })
    signal.addEventListener('abort', done, { signal: over.signal })
  })
}
