/** Work of one kind comes one after another, in the order in which it was asked for. Failures do not stop what follows. */
export class Turns<Kind> {
  readonly #last = new Map<Kind, Promise<unknown>>()

  async take<T>(kind: Kind, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(kind)
    const working = before ? before.then(work, work) : work()
    this.#last.set(kind, working)
    try {
      return await working
    } finally {
      if (this.#last.get(kind) === working) this.#last.delete(kind)
    }
  }
}
