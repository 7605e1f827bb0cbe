/**
 * Writes that wait for a connection join: those of different sessions are sent as one transaction, in one round trip,
 * with one commit and one wait for the disk. A write that finds a connection free is sent by itself.
 */
import type { Joining, Row, Statement } from './sql-database.js'

/** What the driver answers to a statement. */
interface Answer {
  readonly rows: readonly unknown[]
}

/** The connections that groups are sent over. */
export interface GroupLink<Client> {
  readonly connections: number
  take(): Promise<Client>
  /** `failure`: why the connection cannot be used again, if so. */
  release(client: Client, failure: unknown): void
  /** Sends the statements of one write, in one transaction. */
  sendAlone(client: Client, statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
  /** Sends BEGIN, the statements and COMMIT without waiting in between. The answers are in the same order. */
  sendGroup(client: Client, statements: readonly Statement[]): Promise<PromiseSettledResult<Answer>[]>
  /** Whether the connection ended with this error. */
  endsConnection(error: unknown): boolean
}

/** A write that changes rows of one session, and when it was sent. */
interface JoiningWrite {
  readonly statements: readonly Statement[]
  readonly session: string
  readonly order: string
  /** Not with others: a group that it was in has failed. */
  isAlone: boolean
  onSent(): void
  resolve(rows: readonly (readonly Row[])[]): void
  reject(error: unknown): void
}

export class GroupCommit<Client> {
  readonly #link: GroupLink<Client>
  #waiting: JoiningWrite[] = []
  /** Connections in use here, and those of them that are still waited for. */
  #used = 0
  #awaited = 0

  constructor(link: GroupLink<Client>) {
    this.#link = link
  }

  /** `onSent` is called when it may have arrived at the server. */
  run(
    statements: readonly Statement[],
    { session, order }: Joining,
    onSent: () => void,
  ): Promise<readonly (readonly Row[])[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statements, session, order, isAlone: false, onSent, resolve, reject })
      this.#send()
    })
  }

  #send(): void {
    while (this.#awaited < this.#waiting.length && this.#used < this.#link.connections) {
      this.#used += 1
      void this.#sendNext().finally(() => {
        this.#used -= 1
        this.#send()
      })
    }
  }

  async #sendNext(): Promise<void> {
    const { client, problem } = await this.#take()
    const writes = this.#next()
    if (client === undefined) {
      for (const write of writes) write.reject(problem)
      return
    }
    let failure: unknown
    try {
      failure = await (writes.length <= 1 ? this.#sendOne(client, writes) : this.#sendAll(client, writes))
    } finally {
      this.#link.release(client, failure)
    }
  }

  async #take(): Promise<{ client?: Client; problem?: unknown }> {
    this.#awaited += 1
    try {
      return { client: await this.#link.take() }
    } catch (problem) {
      return { problem }
    } finally {
      this.#awaited -= 1
    }
  }

  /** A share of those that wait, at most one of each session, in the order in which their locks are acquired. */
  #next(): JoiningWrite[] {
    const share = Math.min(MOST_JOINED, Math.ceil(this.#waiting.length / this.#link.connections))
    const sessions = new Set<string>()
    const next: JoiningWrite[] = []
    const left: JoiningWrite[] = []
    for (const write of this.#waiting) {
      const fits = next.length < share && !sessions.has(write.session)
      const joins = fits && (next.length === 0 || !(write.isAlone || next[0]?.isAlone))
      if (joins) sessions.add(write.session)
      ;(joins ? next : left).push(write)
    }
    this.#waiting = left
    return next.sort((one, other) => (one.order < other.order ? -1 : 1))
  }

  async #sendOne(client: Client, [write]: readonly JoiningWrite[]): Promise<unknown> {
    if (!write) return undefined
    write.onSent()
    try {
      write.resolve(await this.#link.sendAlone(client, write.statements))
      return undefined
    } catch (error) {
      write.reject(error)
      return this.#link.endsConnection(error) ? error : undefined
    }
  }

  async #sendAll(client: Client, writes: readonly JoiningWrite[]): Promise<unknown> {
    for (const write of writes) write.onSent()
    const answers = await this.#link.sendGroup(
      client,
      writes.flatMap(({ statements }) => statements),
    )
    const failed = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason] : []))
    const broken = failed.find(error => this.#link.endsConnection(error))
    // Whether it was committed is unknown.
    if (broken !== undefined) for (const write of writes) write.reject(broken)
    // When one statement failed, the COMMIT has rolled all of them back.
    else if (failed.length > 0)
      this.#again(
        writes,
        answers.findIndex(({ status }) => status === 'rejected'),
      )
    else resolveAll(writes, answers)
    return broken
  }

  /** The first statement that failed is sent by itself, and the others together; when none of them failed, each by itself. */
  #again(writes: readonly JoiningWrite[], failed: number): void {
    const owners = writes.flatMap(write => write.statements.map(() => write))
    const culprit = owners[failed - 1]
    for (const write of culprit ? [culprit] : writes) write.isAlone = true
    this.#waiting = [...writes, ...this.#waiting]
  }
}

/** More would keep the locks of the first ones for too long. */
const MOST_JOINED = 16

/** The first answer is that of the BEGIN. */
function resolveAll(writes: readonly JoiningWrite[], answers: readonly PromiseSettledResult<Answer>[]): void {
  let next = 1
  for (const { statements, resolve } of writes) {
    resolve(answers.slice(next, next + statements.length).map(rowsOf))
    next += statements.length
  }
}

function rowsOf(answer: PromiseSettledResult<Answer> | undefined): readonly Row[] {
  return answer?.status === 'fulfilled' ? (answer.value.rows as readonly Row[]) : []
}
