import type { Lease, SessionStore } from '../../src/session/session-store.js'

export interface CrashableStore {
  store: SessionStore
  /** From now on nothing that was given this store can read or write, and its leases are free. */
  crash(): Promise<void>
}

/** A store as a process sees it that may end at any moment: its calls then never return. */
export function crashable(store: SessionStore): CrashableStore {
  let isOver = false
  const leases: Lease[] = []
  const never = () => new Promise<never>(() => {})
  const call = async (target: object, method: (...args: unknown[]) => unknown, args: unknown[]) => {
    if (isOver) return never()
    const result: unknown = await method.apply(target, args)
    if (isLease(result)) leases.push(result)
    if (typeof result === 'object' && result !== null && 'lease' in result) leases.push(result.lease as Lease)
    return isOver ? never() : result
  }
  const guarded = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (_target, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value === 'function')
          return (...args: unknown[]) => call(target, value as (...args: unknown[]) => unknown, args)
        return typeof value === 'object' && value !== null ? guarded(value) : value
      },
    })
  return {
    store: guarded(store),
    crash: async () => {
      isOver = true
      for (const lease of leases) await lease.release().catch(() => {})
    },
  }
}

function isLease(value: unknown): value is Lease {
  return typeof value === 'object' && value !== null && 'fence' in value && 'release' in value
}
