/** A value that calls its listeners when it changes: what `useSyncExternalStore` needs. */
export class Observable<Value> {
  #current: Value
  readonly #listeners = new Set<() => void>()

  constructor(current: Value) {
    this.#current = current
  }

  readonly get = (): Value => this.#current

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  set(value: Value): void {
    if (Object.is(value, this.#current)) return
    this.#current = value
    for (const listener of [...this.#listeners]) listener()
  }
}
