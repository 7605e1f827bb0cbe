/** What a process of the fleet does: executes the runs that the generator sends, and accounts for itself. */
import pg from 'pg'

export type Order =
  | { kind: 'run'; id: number; sessionId: string; delayMs: number }
  | { kind: 'account'; id: number }
  | { kind: 'prune'; id: number }
  | { kind: 'close'; id: number }

export type Answer = { id: number; cpuMs?: number; statements?: number; error?: string }

/** The driver's calls of this process: each is one statement and one round trip. */
let statements = 0

export function countStatements(
  Client: { prototype: { query: (...args: never[]) => unknown } } = pg.Client,
): void {
  const query = Client.prototype.query
  Client.prototype.query = function counted(this: unknown, ...args: never[]) {
    statements += 1
    return query.apply(this as never, args)
  }
}

export function serveOrders(work: {
  run(sessionId: string, delayMs: number): Promise<void>
  prune?(): Promise<void>
  close(): Promise<void>
}): void {
  const answer = (message: Answer) => process.send?.(message)
  const obey = async (order: Order): Promise<Answer> => {
    const { id } = order
    switch (order.kind) {
      case 'run':
        await work.run(order.sessionId, order.delayMs)
        return { id }
      case 'account': {
        const { user, system } = process.cpuUsage()
        return { id, cpuMs: (user + system) / 1000, statements }
      }
      case 'prune':
        await work.prune?.()
        return { id }
      case 'close':
        await work.close()
        setImmediate(() => process.exit())
        return { id }
    }
  }
  process.on('message', (order: Order) => {
    obey(order).then(answer, (error: unknown) => answer({ id: order.id, error: String(error) }))
  })
  // A process without its generator has nothing to do.
  process.on('disconnect', () => process.exit())
  answer({ id: 0 })
}
