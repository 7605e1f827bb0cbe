/**
 * Time, timers and random numbers of a simulation. While `virtualTime` is installed, code that runs for an owner (a
 * simulated process, or the world around the processes) gets them from the current `Clock`; all other code gets the real
 * ones. Nothing waits: the clock jumps to the next timer when nothing is left to do.
 *
 * - A timer belongs to the owner whose code set it, and keeps the asynchronous context of that code.
 * - The timers of an owner that has crashed never fire; those of one that is paused fire when the pause is over.
 * - Between two timers, all promises that can be resolved are resolved.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type { Random } from '../chaos/random.js'

/** Code runs for an owner; it may crash or pause. */
export interface Owner {
  readonly name: string
  isCrashed: boolean
  /** Nothing happens in it before this time. */
  pausedUntil: number
}

/** The owner that the current code runs for. */
export const ownerScope = new AsyncLocalStorage<Owner>()

/** What `setTimeout` returns. */
class Timer {
  at: number
  readonly order: number
  readonly owner: Owner
  readonly fire: () => void
  readonly everyMs: number | undefined
  isOver = false

  constructor(parts: Pick<Timer, 'at' | 'order' | 'owner' | 'fire' | 'everyMs'>) {
    this.at = parts.at
    this.order = parts.order
    this.owner = parts.owner
    this.fire = parts.fire
    this.everyMs = parts.everyMs
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    return this
  }
}

export class Clock {
  /** Milliseconds since the simulation began. */
  now = 0
  readonly random: Random
  /** Called before a timer of a process fires. It may crash or pause the process. */
  onTimer: (owner: Owner) => void = () => {}
  /** In the order in which they fire. */
  readonly #timers: Timer[] = []
  readonly #base = nextBase
  #order = 0

  constructor(random: Random) {
    this.random = random
  }

  /** Grows over all simulations of the program: code that remembers a time finds the next one later. */
  steadyMs(): number {
    return this.#base + this.now
  }

  wallMs(): number {
    return EPOCH + this.now
  }

  add(owner: Owner, callback: () => void, delayMs: number, everyMs?: number): Timer {
    const ms = Number.isFinite(delayMs) && delayMs > 0 ? Math.ceil(delayMs) : 0
    const context = new AsyncResource('SimulatedTimer')
    const fire = () => context.runInAsyncScope(callback)
    const timer = new Timer({ at: this.now + ms, order: this.#order++, owner, fire, everyMs })
    this.#insert(timer)
    return timer
  }

  /** Resolves after that time, for the owner of the calling code. */
  sleep(ms: number): Promise<void> {
    const owner = ownerScope.getStore()
    if (!owner) throw new TypeError('Only an owner can sleep in a simulation.')
    return new Promise(resolve => void this.add(owner, resolve, ms))
  }

  /** Fires timers until `isOver`, until none is left, or until that time. */
  async run(isOver: () => boolean, untilMs: number): Promise<void> {
    await drained()
    while (!isOver()) {
      const timer = this.#timers.shift()
      if (!timer) return
      if (timer.at > untilMs) {
        this.#insert(timer)
        return
      }
      if (timer.isOver || timer.owner.isCrashed) continue
      this.now = Math.max(this.now, timer.at)
      if (this.#isHeld(timer)) continue
      if (timer.everyMs === undefined) timer.isOver = true
      timer.fire()
      if (timer.everyMs !== undefined && !timer.isOver) this.#repeat(timer, timer.everyMs)
      await drained()
    }
  }

  /** Afterwards code that still runs changes nothing: it is a remainder of this simulation. */
  end(): void {
    nextBase += this.now + HOUR_MS
  }

  #isHeld(timer: Timer): boolean {
    this.onTimer(timer.owner)
    if (timer.owner.isCrashed) return true
    if (timer.owner.pausedUntil <= this.now) return false
    timer.at = timer.owner.pausedUntil
    this.#insert(timer)
    return true
  }

  #repeat(timer: Timer, everyMs: number): void {
    timer.at = this.now + Math.max(1, everyMs)
    this.#insert(timer)
  }

  /** There are few timers, and most are inserted near the end. */
  #insert(timer: Timer): void {
    let place = this.#timers.length
    while (place > 0 && isBefore(timer, this.#timers[place - 1])) place -= 1
    this.#timers.splice(place, 0, timer)
  }
}

function isBefore(one: Timer, other: Timer | undefined): boolean {
  if (!other) return false
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

const HOUR_MS = 3_600_000
const EPOCH = Date.UTC(2030, 0, 1)
/** Later than any real time since the program began. */
let nextBase = 1e9

let current: Clock | undefined

/** The clock that owners get from now on. */
export function useClock(clock: Clock): void {
  current = clock
}

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
}

/** Resolves when every promise that can be resolved without time is resolved. */
function drained(): Promise<void> {
  return new Promise(resolve => real.setImmediate(resolve))
}

/** The clock and the owner of the current code, if it belongs to a simulation. */
function here(): { clock: Clock; owner: Owner } | undefined {
  const owner = ownerScope.getStore()
  return owner && current ? { clock: current, owner } : undefined
}

type Callback = (...args: unknown[]) => void
type Replaced = Record<string, unknown>

/** Replaces the sources of time and chance. Returns the function that restores them. */
export function installVirtualTime(): () => void {
  const restores = [...replaceTimers(), ...replaceClocks(), ...replaceChance()]
  syncBuiltinESMExports()
  return () => {
    for (const restore of restores) restore()
    syncBuiltinESMExports()
  }
}

function replaceTimers(): (() => void)[] {
  const clear = (timer: unknown, fallback: (timer: never) => void) => {
    if (timer instanceof Timer) timer.isOver = true
    else fallback(timer as never)
  }
  const set = (callback: Callback, ms = 0, ...args: unknown[]) => {
    const { clock, owner } = here() ?? {}
    if (!clock || !owner) return real.setTimeout(callback, ms, ...args)
    return clock.add(owner, () => callback(...args), Math.max(1, ms))
  }
  const repeat = (callback: Callback, ms = 0, ...args: unknown[]) => {
    const { clock, owner } = here() ?? {}
    if (!clock || !owner) return real.setInterval(callback, ms, ...args)
    return clock.add(owner, () => callback(...args), Math.max(1, ms), ms)
  }
  const soon = (callback: Callback, ...args: unknown[]) => {
    const { clock, owner } = here() ?? {}
    if (!clock || !owner) return real.setImmediate(callback, ...args)
    return clock.add(owner, () => callback(...args), 0)
  }
  const promises = createRequire(import.meta.url)('node:timers/promises') as Replaced
  const realSleep = promises.setTimeout as (ms: number, value: unknown, options: unknown) => Promise<unknown>
  const sleep = (ms: number, value?: unknown, options: { signal?: AbortSignal } = {}) =>
    here() ? sleepUnless(set, ms, value, options.signal) : realSleep(ms, value, options)
  return [
    replace(globalThis, 'setTimeout', set),
    replace(globalThis, 'setInterval', repeat),
    replace(globalThis, 'setImmediate', soon),
    replace(globalThis, 'clearTimeout', (timer: unknown) => clear(timer, real.clearTimeout)),
    replace(globalThis, 'clearInterval', (timer: unknown) => clear(timer, real.clearInterval)),
    replace(globalThis, 'clearImmediate', (timer: unknown) => clear(timer, real.clearImmediate)),
    replace(promises, 'setTimeout', sleep),
  ]
}

/** As `setTimeout` of `node:timers/promises`. */
function sleepUnless(
  set: (callback: Callback, ms: number) => unknown,
  ms: number,
  value: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal?.reason)
    if (signal?.aborted) {
      aborted()
      return
    }
    signal?.addEventListener('abort', aborted, { once: true })
    set(() => {
      signal?.removeEventListener('abort', aborted)
      resolve(value)
    }, ms)
  })
}

function replaceClocks(): (() => void)[] {
  const realNow = Date.now
  const realSteady = performance.now.bind(performance)
  const realTimeout = AbortSignal.timeout.bind(AbortSignal)
  const timeout = (ms: number) => {
    const { clock, owner } = here() ?? {}
    if (!clock || !owner) return realTimeout(ms)
    const over = new AbortController()
    clock.add(owner, () => over.abort(new DOMException('The time is over.', 'TimeoutError')), ms)
    return over.signal
  }
  return [
    replace(Date, 'now', () => here()?.clock.wallMs() ?? realNow()),
    replace(performance, 'now', () => here()?.clock.steadyMs() ?? realSteady()),
    replace(AbortSignal, 'timeout', timeout),
  ]
}

function replaceChance(): (() => void)[] {
  const crypto = createRequire(import.meta.url)('node:crypto') as Replaced & { randomUUID(): string }
  const realUuid = crypto.randomUUID.bind(crypto)
  const realRandom = Math.random
  const uuid = () => here()?.clock.random.uuid() ?? realUuid()
  const realValues = globalThis.crypto.getRandomValues.bind(globalThis.crypto)
  const values = (array: Uint8Array) => {
    const random = here()?.clock.random
    if (!random) return realValues(array as Uint8Array<ArrayBuffer>)
    for (let at = 0; at < array.length; at++) array[at] = random.between(0, 255)
    return array
  }
  return [
    replace(crypto, 'randomUUID', uuid),
    replace(globalThis.crypto, 'randomUUID', uuid),
    replace(globalThis.crypto, 'getRandomValues', values),
    replace(Math, 'random', () => here()?.clock.random.next() ?? realRandom()),
  ]
}

/** Returns the function that restores the property. */
function replace(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name)
  Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true })
  return () => {
    if (before) Object.defineProperty(target, name, before)
    else Reflect.deleteProperty(target, name)
  }
}
