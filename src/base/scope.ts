import { AsyncLocalStorage } from 'node:async_hooks'

/** What is known about the code that is at work, by name. */
interface Place {
  run: unknown
  call: unknown
  work: unknown
  node: unknown
  limiter: unknown
  observer: unknown
}

/** One for all: every promise of the process carries each of its asynchronous contexts. */
const places = new AsyncLocalStorage<Place>()

const NOWHERE: Place = {
  run: undefined,
  call: undefined,
  work: undefined,
  node: undefined,
  limiter: undefined,
  observer: undefined,
}

/** A value that code finds wherever it works for it, nested and asynchronous code included. */
export class Scope<Value> {
  readonly #name: keyof Place

  /** Each name is used once in a process. */
  constructor(name: keyof Place) {
    this.#name = name
  }

  getStore(): Value | undefined {
    return places.getStore()?.[this.#name] as Value | undefined
  }

  /** Does the work with the value. What other scopes have set stays. */
  run<Result>(value: Value, work: () => Result): Result {
    const place = { ...(places.getStore() ?? NOWHERE) }
    place[this.#name] = value
    return places.run(place, work)
  }
}
