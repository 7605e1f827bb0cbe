/** A value that tells its listeners when it changed: what `useSyncExternalStore` wants, and nothing more. */
export class Observable<Value> {
  private readonly listeners = new Set<() => void>()

  constructor(private current: Value) {}

  readonly get = (): Value => this.current

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  set(value: Value): void {
    if (Object.is(value, this.current)) return
    this.current = value
    for (const listener of [...this.listeners]) listener()
  }
}
