/**
 * A function for long loops: it returns nothing, and every `everyMs` a promise that resolves after the event loop has
 * handled what waits (requests, timers, lease renewals). Awaiting resolved promises alone never lets them run.
 *
 * Code that is called often awaits only what is there: awaiting nothing costs a promise, too.
 */
export function createPause(everyMs = EVERY_MS): () => Promise<void> | undefined {
  let last = performance.now()
  return () => {
    if (performance.now() - last < everyMs) return undefined
    return new Promise(resolve =>
      setImmediate(() => {
        last = performance.now()
        resolve()
      }),
    )
  }
}

const EVERY_MS = 5

/**
 * A pause for code that is not a loop but a step of long work, such as one call among many. All callers share its
 * clock: after 5 ms of any work the next caller waits for one turn of the event loop.
 */
export const letOthersRun = createPause()

/**
 * Turns for work that is long until it waits for the first time, such as the beginning of a run: a few in each turn of the
 * event loop, in order. What comes from outside meanwhile, such as requests for further runs, is handled between them.
 * Where many wait, more begin at once: turns of a busy process are long.
 */
export function createTurns(): () => Promise<void> {
  const waiting: (() => void)[] = []
  const next = () => {
    for (const begin of waiting.splice(0, Math.max(BEGUN_AT_ONCE, waiting.length / 4))) begin()
    if (waiting.length > 0) setImmediate(next)
  }
  return () =>
    new Promise(resolve => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(next)
    })
}

const BEGUN_AT_ONCE = 8

/** Work in small steps: a generator that yields between them and returns the result. */
export type Steps<Result> = Generator<void, Result, void>

/** The result of the work, without a pause. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

/** The result of the work; other work of the process runs between the steps. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const pause = createPause()
  let step = steps.next()
  while (!step.done) {
    await pause()
    step = steps.next()
  }
  return step.value
}

/** What the promise resolves with, or `'timeout'` when that takes longer. The promise itself is not cancelled. */
export async function orTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T | 'timeout'> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<'timeout'>(resolve => {
    timer = setTimeout(resolve, timeoutMs, 'timeout')
    timer.unref()
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for the promise, at most for the given time. */
export function within(ms: number, promise: Promise<unknown>): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    promise.then(done, done)
  })
}

/** Work that begins when its last execution has ended. It must not fail. */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> | undefined
  return () => {
    last = last ? last.then(work) : work()
    return last
  }
}
