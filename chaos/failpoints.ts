/**
 * Moments at which a process is disturbed. The parts of the program that a server talks to (clients, model, bank)
 * report each moment with the process that it concerns, and wait until the disturbance is over. So a kill hits between
 * two steps of a call, and not somewhere near them.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export const FAILPOINTS = [
  /** A request that starts a run was sent. */
  'post-sent',
  /** The run was acknowledged. */
  'post-accepted',
  /** The model was asked. */
  'model-asked',
  /** The model's answer is on its way. */
  'model-answered',
  /** The bank has received a payment and not made it, has made it and not answered, or has answered. */
  'keyed-before',
  'keyed-after',
  'keyed-answered',
  'blind-before',
  'blind-after',
  'blind-answered',
  'asked-before',
  'asked-after',
  'asked-answered',
  /** A client read a request for approval: its run waits. */
  'approval-asked',
  /** An answer to it was sent, or was acknowledged. */
  'approval-sent',
  'approval-accepted',
] as const

export type Failpoint = (typeof FAILPOINTS)[number]

interface Armed {
  point: Failpoint
  delayMs: number
  act(slot: number): Promise<void>
  /** The point was reached in time. */
  hit(): void
  done(): void
}

export class Failpoints {
  #armed: Armed | undefined

  /** Waits until a process reaches the point, and disturbs it. `false` when none did in time. */
  async strike(
    { point, delayMs, withinMs }: { point: Failpoint; delayMs: number; withinMs: number },
    act: (slot: number) => Promise<void>,
  ): Promise<boolean> {
    return new Promise<boolean>(resolve => {
      const timer = setTimeout(() => {
        this.#armed = undefined
        resolve(false)
      }, withinMs)
      this.#armed = { point, delayMs, act, hit: () => clearTimeout(timer), done: () => resolve(true) }
    })
  }

  /** A process has reached a point. */
  async reached(point: Failpoint, slot: number): Promise<void> {
    const armed = this.#armed
    if (armed?.point !== point) return
    this.#armed = undefined
    armed.hit()
    try {
      if (armed.delayMs > 0) await sleep(armed.delayMs)
      await armed.act(slot)
    } finally {
      armed.done()
    }
  }
}
