/** The processes of the fleet as the generator sees them, and what all parts spend of the processors. */
import { type ChildProcess, fork } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Answer, Order } from './fleet-process.js'

type Work<T> = T extends Order ? Omit<T, 'id'> : never

export class Member {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>()
  #last = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (answer: Answer) => {
      const waiter = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if (answer.error) waiter?.reject(new TypeError(answer.error))
      else waiter?.resolve(answer)
    })
    child.on('exit', code => {
      for (const { reject } of this.#waiting.values()) reject(new TypeError(`the process ended with ${code}`))
      this.#waiting.clear()
    })
  }

  /** `file` is relative to `bench/`. */
  static async start(file: string, args: readonly string[]): Promise<Member> {
    const path = fileURLToPath(new URL(`../${file}`, import.meta.url))
    const child = fork(path, args, {
      execArgv: process.execArgv,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const member = new Member(child)
    await new Promise<Answer>((resolve, reject) => member.#waiting.set(0, { resolve, reject }))
    return member
  }

  ask(work: Work<Order>): Promise<Answer> {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ ...work, id })
    })
  }

  async close(): Promise<void> {
    await this.ask({ kind: 'close' }).catch(() => {})
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Processor time of a server and of all its processes, those that have ended included. */
export function serverCpuMs(pid: number): number {
  const own = statOf(pid)
  if (own === undefined) return Number.NaN
  const children = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => statOf(Number(name)) ?? [])
    .filter(({ parent }) => parent === pid)
  return [own.withEnded, ...children.map(({ alone }) => alone)].reduce((sum, value) => sum + value, 0)
}

/** Ticks are 10 ms on Linux; other systems have no such files. */
function statOf(pid: number) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').map(Number) ?? []
    const at = (index: number) => fields[index] ?? 0
    const alone = (at(11) + at(12)) * 10
    return { parent: at(1), alone, withEnded: alone + (at(13) + at(14)) * 10 }
  } catch {
    return undefined
  }
}
