/** What users ask for. A message carries its orders as marks, so that the model and the checks read the same words. */
import { COUNTERS, type Counter } from './bank.js'
import type { Random } from './random.js'

/** The header by which clients recognise the servers of their fleet. */
export const SERVER_HEADER = 'x-chaos-server'

export interface Order {
  counter: Counter
  /** Unique: paid at most once, however often it is asked for. */
  order: string
}

export interface Ask {
  text: string
  /** Unique within the text of all messages. */
  mark: string
  orders: readonly Order[]
}

const KINDS = { keyed: 4, blind: 4, batch: 4, plain: 2, asked: 0, 'asked-batch': 0 }
const KINDS_WITH_PEOPLE = { ...KINDS, asked: 3, 'asked-batch': 2 }

/** The next message of a user; with people, some payments need an approval. */
export function makeAsk(random: Random, token: string, hasPeople: boolean): Ask {
  const mark = `[message ${token}]`
  const orders: Order[] = []
  const kind = random.weighted(hasPeople ? KINDS_WITH_PEOPLE : KINDS)
  if (kind === 'keyed' || kind === 'batch') orders.push({ counter: 'keyed', order: `${token}-k` })
  if (kind === 'blind' || kind === 'batch' || kind === 'asked-batch')
    orders.push({ counter: 'blind', order: `${token}-b` })
  if (kind === 'asked' || kind === 'asked-batch')
    orders.push({ counter: 'asked', order: `${token}-${random.chance(0.2) ? REFUSED : 'a'}` })
  const asks = orders.map(({ counter, order }) => `Pay 17 at the bank. [${counter} ${order}]`)
  if (kind === 'batch') asks.push('And what is the balance? [balance]')
  if (kind === 'plain') asks.push('Just say something.')
  return { text: [mark, ...asks].join(' '), mark, orders }
}

/** The orders that a text asks for. */
export function ordersIn(text: string): Order[] {
  return [...text.matchAll(/\[(keyed|blind|asked) ([\w-]+)\]/g)].map(([, counter, order]) => ({
    counter: COUNTERS.find(name => name === counter) ?? 'blind',
    order: String(order),
  }))
}

/** Whether people say no to the order, whenever they are asked. */
export function isRefusedOrder(order: string): boolean {
  return order.endsWith(`-${REFUSED}`)
}

const REFUSED = 'r'

export function asksForBalance(text: string): boolean {
  return text.includes('[balance]')
}

/** The orders that a tool result, or a text with one in it, reports as paid. */
export function paidIn(text: string): string[] {
  const plain = text.replaceAll('\\', '')
  return [...plain.matchAll(/"status":\s*"paid",\s*"order":\s*"([\w-]+)"/g)].map(([, order]) => String(order))
}
