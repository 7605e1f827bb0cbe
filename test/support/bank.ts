import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Tool } from '../../src/tool.js'

export interface Bank {
  url: string
  /** The keys of all requests for a payment, in order. */
  readonly requests: readonly string[]
  /** How many payments were made: one for each key. */
  readonly payments: number
  close(): Promise<void>
}

/** A bank on a loopback port. It pays once for each idempotency key, and says what it has paid for a key. */
export async function openBank(): Promise<Bank> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'])
    if (request.method === 'POST') requests.push(key)
    const isPaid = requests.includes(key)
    response.writeHead(isPaid ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isPaid ? { receipt: `receipt of ${key}` } : {}))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    get payments() {
      return new Set(requests).size
    },
    close: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

/** A tool that pays at a bank. */
export function payment(bankUrl: string, more: Partial<Tool> = {}): Tool {
  return {
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    execute: async (_args, { idempotencyKey, signal }) => {
      const headers = { 'idempotency-key': idempotencyKey }
      return (await fetch(bankUrl, { method: 'POST', headers, signal })).json()
    },
    ...more,
  }
}

/** Asks a bank whether a payment was made. */
export function paidAt(bankUrl: string): NonNullable<Tool['verify']> {
  return async (_args, { idempotencyKey, signal }) => {
    const response = await fetch(bankUrl, { headers: { 'idempotency-key': idempotencyKey }, signal })
    return response.status === 200 ? response.json() : undefined
  }
}
