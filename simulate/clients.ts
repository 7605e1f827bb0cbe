/** The people around the processes: those who send messages, and one who answers questions. */

import type { Problem } from '../chaos/check.js'
import { isRefusedOrder } from '../chaos/orders.js'
import type { Random } from '../chaos/random.js'
import { AgentError } from '../src/errors.js'
import type { RunEvent } from '../src/run/run-event.js'
import type { SessionStore } from '../src/session/session-store.js'
import type { RunAnswer } from '../src/tool.js'
import { type Bank, paid } from './bank.js'
import type { Clock } from './clock.js'
import type { PlannedMessage } from './plan.js'
import type { SimulatedProcess } from './process.js'

export interface ClientParts {
  clock: Clock
  random: Random
  bank: Bank
  /** Read without faults. */
  store: SessionStore
  /** Otherwise some questions stay open until they time out. */
  answersAll: boolean
  /** Counts a message as acknowledged when it is sent: a mistake that the checks must find. */
  acknowledgesEarly: boolean
  up(): readonly SimulatedProcess[]
  note(text: string): void
  wrong(problem: Problem): void
}

const ANSWER_MS = 15_000
const MOST_ATTEMPTS = 40
const LOOK_MS = 800
const AGAIN_MS = 6000

export class Clients {
  readonly sent: PlannedMessage[] = []
  /** Messages whose sending is not over. */
  sending = 0
  readonly #parts: ClientParts
  /** When a question is answered next. */
  readonly #due = new Map<string, number>()
  #moment = 0

  constructor(parts: ClientParts) {
    this.#parts = parts
  }

  /** Sends a message until it is acknowledged. */
  async send(message: PlannedMessage): Promise<void> {
    const { clock, random } = this.#parts
    this.sending += 1
    this.sent.push(message)
    await clock.sleep(message.atMs)
    message.sentAtMs = ++this.#moment
    await Promise.all([
      this.#deliver(message, random),
      ...(message.isTwice ? [this.#deliver(message, random)] : []),
    ])
    this.sending -= 1
  }

  async #deliver(message: PlannedMessage, random: Random): Promise<void> {
    const { clock, note, up, acknowledgesEarly } = this.#parts
    const { sessionId, runId, text, mark } = message
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const process = random.pick(up())
      try {
        const starting = process?.call(runtime => runtime.start({ sessionId, runId, text }), ANSWER_MS)
        if (acknowledgesEarly && process) starting?.catch(() => {})
        const started = acknowledgesEarly ? process : await starting
        if (started && process) return this.#acknowledged(message, process)
      } catch (error) {
        note(`${mark} failed: ${String(error)}`)
        if (!isTransient(error))
          this.#parts.wrong({ kind: 'not-found', detail: String(error), sessionId, runId })
      }
      await clock.sleep(random.between(1, 3000))
    }
    note(`${mark} was given up`)
  }

  #acknowledged(message: PlannedMessage, process: SimulatedProcess): void {
    this.#parts.note(`${message.mark} acknowledged by ${process.name}`)
    message.acknowledgedAtMs ??= ++this.#moment
    if (message.isFollowed) void this.#follow(message, process)
    if (message.stopAfterMs !== undefined) void this.#stop(message, message.stopAfterMs)
  }

  async #follow({ runId, followed }: PlannedMessage, process: SimulatedProcess): Promise<void> {
    const read = async (events: AsyncIterable<RunEvent>) => {
      for await (const { seq, type } of events) if (!process.isCrashed) followed.set(seq, type)
    }
    await process.call(runtime => read(runtime.follow(runId)), Number.MAX_SAFE_INTEGER).catch(() => {})
  }

  async #stop(message: PlannedMessage, afterMs: number): Promise<void> {
    const { clock, random, up, note } = this.#parts
    await clock.sleep(afterMs)
    note(`${message.mark} is stopped`)
    message.isStopRequested = true
    await random
      .pick(up())
      ?.call(runtime => runtime.stop(message.runId), ANSWER_MS)
      .catch(() => {})
  }

  /** Looks at the open questions from time to time, and answers most of them. */
  async answer(isOver: () => boolean): Promise<void> {
    const { clock, random, store } = this.#parts
    while (!isOver()) {
      await clock.sleep(LOOK_MS)
      const runs = await store.runs.listUnfinished({ appName: 'lango' })
      for (const { runId, state } of runs) {
        const events = (await store.runs.readEvents(runId)) as unknown as RunEvent[]
        const isWaiting = state === 'waiting'
        for (const question of openIn(events)) await this.#reply(runId, { ...question, isWaiting }, random)
      }
    }
  }

  async #reply(runId: string, question: Question, random: Random): Promise<void> {
    const { up, note, clock, answersAll } = this.#parts
    const { id, order, kind } = question
    const name = `${runId} ${id} ${kind === 'outcome'}`
    const latest = answersAll ? clock.now + random.between(10_000, 90_000) : Number.POSITIVE_INFINITY
    const due = this.#due.get(name) ?? (random.chance(0.1) ? latest : 0)
    this.#due.set(name, due)
    if (clock.now < due) return
    // An answer that has no effect is given again.
    this.#due.set(name, clock.now + AGAIN_MS)
    const answer = this.#answerTo(question, random)
    if (answer === undefined) return
    try {
      const process = random.pick(up())
      const given = process?.call(runtime => runtime.answer(runId, id, answer).then(() => true), ANSWER_MS)
      const isTaken = await given
      note(`answered ${JSON.stringify(answer)} to ${order}`)
      // What was acknowledged is not said twice: a run that has lost it is stuck.
      if (isTaken && ADK_KINDS.has(kind)) this.#due.set(name, Number.POSITIVE_INFINITY)
    } catch (error) {
      note(`the answer to ${order} failed: ${String(error)}`)
    }
  }

  #answerTo({ order, kind, isWaiting }: Question, random: Random): RunAnswer | undefined {
    const made = this.#parts.bank.byOrder().get(order)?.[0]
    switch (kind) {
      case 'confirmation':
        return isRefusedOrder(order) ? 'no' : 'once'
      case 'result':
        // A run that waits executes nothing: what has not been paid by then was never begun.
        return made
          ? paid(order, made.receipt)
          : isWaiting
            ? { error: `Order ${order} was not paid.` }
            : undefined
      case 'outcome':
        return random.chance(0.2) ? 'leave' : made ? 'happened' : 'run'
      case 'approval':
        return random.weighted({ once: 4, always: 1, no: 1 })
    }
  }
}

interface Question {
  id: string
  order: string
  /** Of these, ADK asks for confirmations and for results. */
  kind: 'approval' | 'outcome' | 'confirmation' | 'result'
  /** No process works on its run. */
  isWaiting: boolean
}

const ADK_KINDS: ReadonlySet<Question['kind']> = new Set(['confirmation', 'result'])

/** The questions of a run that nobody has answered. */
function openIn(events: readonly RunEvent[]): Omit<Question, 'isWaiting'>[] {
  const open = new Map<string, Omit<Question, 'isWaiting'>>()
  const ask = ({ id, args }: { id: string; args: Record<string, unknown> }, kind: Question['kind']) =>
    open.set(id, { id, order: String(args.order), kind })
  for (const event of events) {
    if (event.type === 'approval-request')
      ask(event, event.callId === undefined ? 'approval' : 'confirmation')
    if (event.type === 'approval-answer') open.delete(event.id)
    if (event.type === 'tool-call' && event.name === 'pay_later') ask(event, 'result')
    if (event.type === 'tool-result') open.delete(event.id)
    if (event.type === 'tool-unknown' && event.asks) ask(event, 'outcome')
    if (event.type === 'tool-unknown' && event.answer !== undefined) open.delete(event.id)
    if (event.type === 'run-finish') open.clear()
  }
  return [...open.values()]
}

/** Whether the client may send the message again. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof AgentError)) return false
  return error.retryable || error.code === 'lease-lost' || error.message.includes('closed')
}
