/**
 * A bank with several counters. `keyed` makes a payment once for each idempotency key; `blind` makes a payment whenever
 * it is asked, and so does `asked`, whose tool needs a person's approval. Every effect is recorded with its order: an
 * order that has two effects was paid twice.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Failpoints } from './failpoints.js'
import type { Random } from './random.js'

export const COUNTERS = ['keyed', 'blind', 'asked'] as const

export type Counter = (typeof COUNTERS)[number]

/** A payment that was asked for. */
export interface PaymentRequest {
  counter: Counter
  order: string
  key: string
  slot: number
  atMs: number
  /** `repeat`: the key was known. `none`: the caller was gone before the payment was made. */
  effect?: 'made' | 'repeat' | 'none'
}

export class Bank {
  readonly requests: PaymentRequest[] = []
  readonly #receipts = new Map<string, string>()
  readonly #random: Random
  readonly #failpoints: Failpoints
  readonly #server: Server

  constructor(random: Random, failpoints: Failpoints) {
    this.#random = random
    this.#failpoints = failpoints
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  async start(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>(resolve => void this.#server.close(() => resolve()))
  }

  /** The payments that were made, by order. */
  effects(): Map<string, PaymentRequest[]> {
    const made = new Map<string, PaymentRequest[]>()
    for (const request of this.requests) {
      if (request.effect === 'made') made.set(request.order, [...(made.get(request.order) ?? []), request])
    }
    return made
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (request.url === '/balance') return answer(response, { balance: 1000 })
      const counter = COUNTERS.find(name => request.url === `/${name}`) ?? 'blind'
      const { order } = JSON.parse(await text(request)) as { order: string }
      const key = String(request.headers['idempotency-key'] ?? '')
      const slot = Number(request.headers['x-chaos-slot'])
      const payment: PaymentRequest = { counter, order, key, slot, atMs: Date.now() }
      this.requests.push(payment)
      await this.#pay(payment, response)
    } catch {
      // The caller was killed while it sent its request: there was no order.
      response.destroy()
    }
  }

  async #pay(payment: PaymentRequest, response: ServerResponse): Promise<void> {
    const { counter, slot, order } = payment
    const random = this.#random
    const stopsWhenAlone = random.chance(0.5)
    await sleep(this.#pauseMs())
    await this.#failpoints.reached(`${counter}-before`, slot)
    if (stopsWhenAlone && response.destroyed) {
      payment.effect = 'none'
      return
    }
    const receipt = this.#make(payment)
    await sleep(this.#pauseMs())
    await this.#failpoints.reached(`${counter}-after`, slot)
    answer(response, { status: 'paid', order, receipt })
    await this.#failpoints.reached(`${counter}-answered`, slot)
  }

  /** Most answers are quick; some take long enough for other events to come in between. */
  #pauseMs(): number {
    const random = this.#random
    return random.chance(0.1) ? random.between(200, 600) : random.between(0, 15)
  }

  #make(payment: PaymentRequest): string {
    const { counter, key } = payment
    const known = counter === 'keyed' && key !== '' ? this.#receipts.get(key) : undefined
    payment.effect = known === undefined ? 'made' : 'repeat'
    const receipt = known ?? `receipt-${this.requests.length}`
    this.#receipts.set(key, receipt)
    return receipt
  }
}

function answer(response: ServerResponse, body: unknown): void {
  if (response.destroyed) return
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
