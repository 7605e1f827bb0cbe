/** Events that arise beside the main loop, such as a repair reported while a model call is under way. */
export class Outbox<T> {
  private items: T[] = []
  private wake: () => void = () => {}

  put(item: T): void {
    this.items.push(item)
    this.wake()
  }

  /** Lets whoever waits look around, although nothing has come. */
  wakeUp(): void {
    this.wake()
  }

  /** Takes everything that has arrived. */
  take(): T[] {
    const taken = this.items
    this.items = []
    return taken
  }

  /** Resolves as soon as there is something to take. */
  ready(): Promise<void> {
    if (this.items.length > 0) return Promise.resolve()
    return new Promise(resolve => {
      this.wake = resolve
    })
  }
}
