/**
 * Stores that fail on purpose. All tests wrap stores here: `faultyStore` replaces single methods, `interceptStore` sees
 * every call, `crashable` (crashable-store.ts) ends the process that uses the store.
 */
import type { RunStore } from '../../src/session/run-store.js'
import type { SessionStore } from '../../src/session/session-store.js'

/** Replaces a method of the store: gets the real method and the arguments of the call. */
type Fault<Method> = Method extends (...args: infer Args) => infer Result
  ? (real: (...args: Args) => Result, ...args: Args) => Result
  : never

/** Faults by the name of their method. */
type Faults<Part> = { [Name in keyof Part]?: Fault<Part[Name]> }

export interface StoreFaults extends Omit<Faults<SessionStore>, 'runs'> {
  runs?: Faults<RunStore>
}

/**
 * A store some of whose methods fail, stall, or lose what they are given. The store itself is not changed.
 *
 *     faultyStore(store, { runs: { saveStep: () => Promise.reject(new AgentError('store-unavailable', 'down')) } })
 */
export function faultyStore(store: SessionStore, { runs = {}, ...own }: StoreFaults): SessionStore {
  const ofRuns = Object.entries(runs).map(([name, fault]) => [`runs.${name}`, fault] as const)
  const faults = new Map<string, unknown>([...Object.entries(own), ...ofRuns])
  for (const name of faults.keys()) {
    const method = name.split('.').reduce<unknown>((part, key) => Reflect.get(Object(part), key), store)
    if (typeof method !== 'function') throw new TypeError(`The store has no method ${name} to fail.`)
  }
  return wrapped(store, '', (name, method) => {
    const fault = faults.get(name) as Method | undefined
    return fault ? (...args) => fault(method, ...args) : method
  })
}

/** A store whose calls `intercept` makes: it may delay, list or drop them. `saveStep` of `runs` is `runs.saveStep`. */
export function interceptStore(
  store: SessionStore,
  intercept: (name: string, invoke: () => unknown) => unknown,
): SessionStore {
  return wrapped(
    store,
    '',
    (name, method) =>
      (...args) =>
        intercept(name, () => method(...args)),
  )
}

type Method = (...args: unknown[]) => unknown

/** Replaces the methods of an object and of the objects in it. */
function wrapped<Part extends object>(
  target: Part,
  prefix: string,
  replace: (name: string, method: Method) => Method,
): Part {
  return new Proxy(target, {
    get: (_target, property) => {
      const value: unknown = Reflect.get(target, property)
      const name = `${prefix}${String(property)}`
      if (typeof value === 'function') return replace(name, value.bind(target))
      return typeof value === 'object' && value !== null ? wrapped(value, `${name}.`, replace) : value
    },
  })
}
