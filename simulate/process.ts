/**
 * A simulated process: a real runtime on the shared store. Whatever it does outside itself (a store call, a model call, a
 * tool's effect) passes points at which a fault may hit it. After a crash nothing that it still does has any effect, and
 * nothing answers it.
 */
import { AgentError } from '../src/errors.js'
import type { Logger } from '../src/logger.js'
import type { RuntimeOptions } from '../src/runtime/options.js'
import { createRuntime, type Runtime } from '../src/runtime/runtime.js'
import type { Lease, SessionStore } from '../src/session/session-store.js'
import { type Clock, type Owner, ownerScope } from './clock.js'
import type { Mutate } from './mutations.js'
import type { PlannedFault } from './plan.js'

/** What a process needs of the simulation around it. */
export interface Surroundings {
  readonly clock: Clock
  /** The fault that hits this process at this point, if one does. */
  hit(point: string, process: SimulatedProcess): PlannedFault | undefined
  /** How long a call takes, in milliseconds. */
  latencyMs(): number
  note(owner: Owner, text: string): void
  /** Starts a process for this slot again after that time. */
  restart(process: SimulatedProcess, ms: number): void
}

export class SimulatedProcess implements Owner {
  readonly name: string
  readonly slot: number
  isCrashed = false
  pausedUntil = 0
  /** A closing process takes no messages. */
  isClosing = false
  #runtime: Runtime | undefined
  #outageUntil = 0
  readonly #world: Surroundings

  constructor(world: Surroundings, slot: number, generation: number) {
    this.#world = world
    this.slot = slot
    this.name = `p${slot}.${generation}`
  }

  get isUp(): boolean {
    return this.#runtime !== undefined && !this.isCrashed && !this.isClosing
  }

  /** A pause or an outage is not over. */
  get isDisturbed(): boolean {
    return !this.isCrashed && Math.max(this.pausedUntil, this.#outageUntil) > this.#world.clock.now
  }

  /** Nothing else happens in the simulation until the runtime is ready. */
  async boot(options: Omit<RuntimeOptions, 'logger'>): Promise<void> {
    const logger = this.#logger()
    await ownerScope.run(this, async () => {
      const runtime = await createRuntime({ ...options, logger })
      await runtime.ready()
      this.#runtime = runtime
    })
    this.note('ready')
  }

  /** Calls the runtime from outside. Resolves with `undefined` when there is no answer in time. */
  call<T>(work: (runtime: Runtime) => Promise<T>, limitMs: number): Promise<T | undefined> {
    const runtime = this.#runtime
    const { clock } = this.#world
    return new Promise((resolve, reject) => {
      void clock.sleep(limitMs).then(() => resolve(undefined))
      if (!runtime || this.isCrashed) return
      const answered = ownerScope.run(this, async () => {
        await this.reach('call:before')
        return work(runtime)
      })
      const whenUp = (pass: () => void) => void ownerScope.run(this, () => this.#awake().then(pass))
      answered.then(
        value => whenUp(() => resolve(value)),
        error => whenUp(() => reject(error)),
      )
    })
  }

  /** Runs that this process has accepted or executes. */
  active(): readonly string[] {
    return this.#runtime?.active().map(({ runId }) => runId) ?? []
  }

  /** A point that faults may hit. */
  async reach(point: string): Promise<void> {
    if (this.isCrashed) return never()
    if (!this.#runtime) return
    const fault = this.#world.hit(point, this)
    if (fault) this.#suffer(fault, point)
    if (this.isCrashed) return never()
    if (point.startsWith('store:') && this.#outageUntil > this.#world.clock.now) throw storeFailed(point)
    const ms = this.#world.latencyMs()
    if (ms > 0 || this.pausedUntil > this.#world.clock.now) await this.#world.clock.sleep(ms)
    if (this.isCrashed) return never()
  }

  /** A timer of the process is about to fire. */
  timer(): void {
    const fault = this.#runtime && this.#world.hit('timer', this)
    if (fault) this.#suffer(fault, 'timer')
  }

  /** A store as this process has it. */
  store(inner: SessionStore, mutate: Mutate | undefined): SessionStore {
    const call = (name: string, invoke: () => Promise<unknown>) => this.#storeCall(name, invoke)
    return guarded(inner, '', call, mutate)
  }

  note(text: string): void {
    this.#world.note(this, text)
  }

  crash(restartMs: number): void {
    this.isCrashed = true
    this.note('CRASH')
    this.#world.restart(this, restartMs)
  }

  /** Shuts the process down as a signal would. */
  close(restartMs: number): void {
    if (this.isClosing || !this.#runtime) return
    this.isClosing = true
    const closing = ownerScope.run(this, () => this.#runtime?.close())
    const ended = () => {
      if (!this.isCrashed) this.crash(restartMs)
    }
    closing?.then(ended, ended)
  }

  #suffer({ action, ms }: PlannedFault, point: string): void {
    this.note(`FAULT ${action} ${ms} at ${point}`)
    const { now } = this.#world.clock
    // A tool that fails after its effect has failed as far as anybody knows: that is the author's to avoid.
    const hasPaid = point.startsWith('tool:') && point.endsWith(':after')
    if (action === 'crash' || (action === 'fail' && hasPaid)) this.crash(ms)
    else if (action === 'pause') this.pausedUntil = Math.max(this.pausedUntil, now + ms)
    else if (action === 'outage') this.#outageUntil = now + ms
    else if (action === 'close') this.close(ms)
    else if (point.startsWith('store:')) throw storeFailed(point)
    else if (point.startsWith('model:'))
      throw new AgentError('provider-unavailable', `Failed at ${point}.`, { retryable: true })
    else if (point.startsWith('tool:')) throw new RangeError(`Failed at ${point}.`)
  }

  #awake(): Promise<void> {
    if (this.isCrashed) return never()
    const { clock } = this.#world
    return this.pausedUntil > clock.now ? clock.sleep(0) : Promise.resolve()
  }

  async #storeCall(name: string, invoke: () => Promise<unknown>): Promise<unknown> {
    await this.reach(`store:${name}:before`)
    if (this.isCrashed) return never()
    const result = await invoke()
    const lease = leaseIn(result)
    try {
      await this.reach(`store:${name}:after`)
    } catch (error) {
      // Nobody knows of the lease, so nobody renews it: it expires in the store.
      lease?.released()
      throw error
    }
    if (!lease) return result
    const own = this.#ownLease(lease)
    return lease === result ? own : { ...(result as object), lease: own }
  }

  #ownLease(lease: Lease): Lease {
    return {
      fence: lease.fence,
      lost: lease.lost,
      release: async () => {
        try {
          await this.#storeCall('lease.release', () => lease.release())
        } finally {
          // Like the driver's own lease: it ends here in any case, and a ticket that was not returned expires.
          lease.released()
        }
      },
      released: () => lease.released(),
    }
  }

  #logger(): Logger {
    const log = (message: string, fields?: Readonly<Record<string, unknown>>) =>
      this.note(`log: ${message} ${String(fields?.error ?? '')}`)
    return { debug: () => {}, info: () => {}, warn: log, error: log }
  }
}

function never(): Promise<never> {
  return new Promise(() => {})
}

function storeFailed(point: string): AgentError {
  return new AgentError('store-unavailable', `The store failed at ${point}.`, { retryable: true })
}

function leaseIn(result: unknown): Lease | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  if ('fence' in result && 'release' in result) return result as Lease
  return 'lease' in result ? (result.lease as Lease) : undefined
}

type Call = (name: string, invoke: () => Promise<unknown>) => Promise<unknown>
type Method = (...args: unknown[]) => Promise<unknown>

/** Every method of the store, of `runs` and of `calibration`, called through `call`. */
function guarded<T extends object>(target: T, prefix: string, call: Call, mutate: Mutate | undefined): T {
  const known = new Map<string | symbol, unknown>()
  return new Proxy(target, {
    get: (_target, name) => {
      if (!known.has(name)) known.set(name, guardedValue(target, name, prefix, { call, mutate }))
      return known.get(name)
    },
  })
}

function guardedValue(
  target: object,
  name: string | symbol,
  prefix: string,
  { call, mutate }: { call: Call; mutate: Mutate | undefined },
): unknown {
  const value: unknown = Reflect.get(target, name)
  const full = `${prefix}${String(name)}`
  if (typeof value === 'object' && value !== null) return guarded(value, `${full}.`, call, mutate)
  if (typeof value !== 'function') return value
  const method = (...args: unknown[]) => (value as Method).apply(target, args)
  return (...args: unknown[]) => mutate?.(full, args, method, call) ?? call(full, () => method(...args))
}
