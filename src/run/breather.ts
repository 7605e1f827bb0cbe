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
