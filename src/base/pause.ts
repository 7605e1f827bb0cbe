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

let connections = 0

/** Counts a connection. The event loop accepts one in each turn: many that come at once need as many turns. */
export function noteConnection(): void {
  connections += 1
}

/**
 * The share that work has of the event loop. As long as each turn accepts a connection, more of them may wait, and work takes
 * a turn every 10 ms only. Whether it may begin is asked once in each turn of the event loop.
 */
export class Share {
  #seen = connections
  #endedAt = 0
  #isAccepting = false

  get isAccepting(): boolean {
    return this.#isAccepting
  }

  mayBegin(): boolean {
    this.#isAccepting = connections !== this.#seen
    this.#seen = connections
    return !this.#isAccepting || performance.now() - this.#endedAt >= REST_MS
  }

  ended(): void {
    this.#endedAt = performance.now()
  }
}

const REST_MS = 10

/**
 * Turns for steps of long work, such as those of many runs. Those who wait are resumed in order, for a limited time in each
 * turn of the event loop, so that its turns stay short however many wait: what comes from outside is handled in between.
 */
export class Turns {
  readonly #share: Share | undefined
  readonly #waiting: (() => void)[] = []
  #resumed = 0
  /** How many were there when the turn began: those who come later wait for the next one. */
  #known = 0
  #startedAt = performance.now()

  /** Without a share, connections are not waited for. */
  constructor(share?: Share) {
    this.#share = share
  }

  /** Nothing to wait for until 5 ms after the last turn began. */
  pause(): Promise<void> | undefined {
    return performance.now() - this.#startedAt < EVERY_MS ? undefined : this.wait()
  }

  /** Resolves in a later turn, after those who wait already. */
  wait(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) setImmediate(this.#begin)
    })
  }

  readonly #begin = (): void => {
    if (this.#share?.mayBegin() === false) {
      setImmediate(this.#begin)
      return
    }
    this.#startedAt = performance.now()
    this.#known = this.#waiting.length
    this.#resume()
  }

  #resume(): void {
    this.#waiting[this.#resumed]?.()
    this.#resumed += 1
    // After everything that the resumed one does before it waits again.
    queueMicrotask(() => process.nextTick(this.#endOrResume))
  }

  readonly #endOrResume = (): void => {
    const turnMs = this.#share?.isAccepting ? EVERY_MS : TURN_MS
    if (this.#resumed < this.#known && performance.now() - this.#startedAt < turnMs) {
      this.#resume()
      return
    }
    this.#waiting.splice(0, this.#resumed)
    this.#resumed = 0
    this.#share?.ended()
    if (this.#waiting.length > 0) setImmediate(this.#begin)
  }
}

/** How long those who wait are resumed in one turn of the event loop, unless connections wait. */
const TURN_MS = 20

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
