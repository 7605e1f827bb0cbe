/**
 * A function for long loops: it resolves at once, and every `everyMs` only after the event loop has handled what
 * waits (requests, timers, lease renewals). Awaiting resolved promises alone never lets them run.
 */
export function createPause(everyMs = EVERY_MS): () => Promise<void> {
  let last = performance.now()
  return async () => {
    if (performance.now() - last < everyMs) return
    await new Promise(resolve => setImmediate(resolve))
    last = performance.now()
  }
}

const EVERY_MS = 5
