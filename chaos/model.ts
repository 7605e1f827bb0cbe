/**
 * The model: strict servers of several vendors with one script. It calls the tools that the user's orders need, in one
 * batch, and repeats a call whose result does not say that the order was paid, also in a later run: that is what models
 * do when a call failed or its outcome is not known. A request that a vendor would refuse is recorded.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRecord } from '../src/base/is-record.js'
import { PROFILE_FACTS, type StrictProfile } from '../src/testing/strict/profile.js'
import type {
  Fault,
  FaultKind,
  RequestSummary,
  ScriptedCall,
  ScriptStep,
} from '../src/testing/strict/script.js'
import { StrictServer } from '../src/testing/strict/strict-server.js'
import type { Failpoints } from './failpoints.js'
import { asksForBalance, ordersIn, paidIn } from './orders.js'
import type { Random } from './random.js'

export const MODEL_PROFILES = ['openai-chat', 'anthropic-4.6', 'gemini-3'] as const satisfies StrictProfile[]

/** The name of a profile's model, as runs name it. */
export function modelOf(profile: (typeof MODEL_PROFILES)[number]): string {
  return `${profile}/${PROFILE_FACTS[profile].model}`
}

/** A request that a vendor would have refused. */
export interface Refused {
  profile: StrictProfile
  violation: unknown
  body: unknown
}

const FAULTS: Readonly<Partial<Record<FaultKind, number>>> = {
  '429': 2,
  '500': 2,
  '503': 1,
  cut: 3,
  'no-terminal': 1,
  'error-in-stream': 1,
  'slow-drip': 3,
}
const FAULT_SHARE = 0.12
/** Recorded bodies of older requests are dropped. */
const KEPT_BODIES = 50
/** How often the model calls a tool for one order, in all and in one run. */
const MOST_CALLS = 4
const MOST_CALLS_PER_RUN = 2

export class Model {
  readonly refused: Refused[] = []
  requests = 0
  faults = 0
  /** No faults are injected while this is false. */
  isFaulty = true
  /** The messages whose answers were disturbed, by their marks, and the process that asked last for each. */
  readonly faulted = new Set<string>()
  readonly #slots = new Map<string, number>()
  readonly #servers: Server[] = []
  readonly #random: Random
  readonly #failpoints: Failpoints

  constructor(random: Random, failpoints: Failpoints) {
    this.#random = random
    this.#failpoints = failpoints
  }

  /** The base URL of each profile. */
  async start(): Promise<Record<string, string>> {
    const urls: Record<string, string> = {}
    for (const profile of MODEL_PROFILES) urls[profile] = await this.#startServer(profile)
    return urls
  }

  /** The process that executes the run of a message, as far as the model can tell. */
  slotOf(mark: string): number | undefined {
    return this.#slots.get(mark)
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections()
      await new Promise<void>(resolve => void server.close(() => resolve()))
    }
  }

  async #startServer(profile: StrictProfile): Promise<string> {
    const faults: Fault[] = []
    const strict = new StrictServer({ profile, faults, script: request => this.#answer(request) })
    const server = createServer(
      (request, response) => void this.#handle({ profile, strict, faults }, request, response),
    )
    this.#servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return strict.baseUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  }

  async #handle(
    { profile, strict, faults }: { profile: StrictProfile; strict: StrictServer; faults: Fault[] },
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const slot = Number(request.headers['x-chaos-slot'])
    this.requests += 1
    await this.#failpoints.reached('model-asked', slot)
    const index = strict.requests.length
    const isFaulty = this.isFaulty && this.#random.chance(FAULT_SHARE)
    if (isFaulty) {
      this.faults += 1
      const kind = this.#random.weighted(FAULTS as Record<FaultKind, number>)
      faults.push({ kind, at: index, afterEvents: this.#random.between(0, 4) })
    }
    const known = strict.violations.length
    await strict.handle(request, response)
    for (const violation of strict.violations.slice(known)) {
      this.refused.push({ profile, violation, body: strict.requests[violation.requestIndex]?.body })
    }
    this.#note(strict.requests[index]?.body, slot)
    // A request whose process was killed before it was read leaves its fault to the next one.
    for (const { at } of faults) {
      const mark = at === undefined ? undefined : markOf(strict.requests[at]?.body)
      if (mark !== undefined) this.faulted.add(mark)
    }
    // The numbers of the requests stay.
    const old = strict.requests[strict.requests.length - 1 - KEPT_BODIES]
    if (old) strict.requests[strict.requests.length - 1 - KEPT_BODIES] = { ...old, body: undefined }
    await this.#failpoints.reached('model-answered', slot)
  }

  /** The process is wrong when two requests arrive at the same moment. */
  #note(body: unknown, slot: number): void {
    const mark = markOf(body)
    if (mark !== undefined) this.#slots.set(mark, slot)
  }

  async #answer(request: RequestSummary): Promise<ScriptStep> {
    const random = this.#random
    await sleep(random.chance(0.08) ? random.between(300, 1200) : random.between(0, 20))
    return answerTo(request)
  }
}

/** The message that a request asks about. */
function markOf(body: unknown): string | undefined {
  return JSON.stringify(body ?? '')
    .match(/\[message [\w-]+\]/g)
    ?.at(-1)
}

/** What the model says to a conversation. */
export function answerTo({ messages, toolChoice, tools }: RequestSummary): ScriptStep {
  const turn = messages.findLastIndex(({ role, text }) => role === 'user' && text.includes('[message '))
  const inAll = callsByOrder(messages)
  const inTurn = callsByOrder(messages.slice(turn + 1))
  const paid = new Set(
    messages.flatMap(({ text, toolResults }) => paidIn([text, ...contentsOf(toolResults)].join('\n'))),
  )
  const wanted = messages.flatMap(({ role, text }) => (role === 'user' ? ordersIn(text) : []))
  const open = wanted.filter(({ order }) => {
    if (paid.has(order)) return false
    return (inAll.get(order) ?? 0) < MOST_CALLS && (inTurn.get(order) ?? 0) < MOST_CALLS_PER_RUN
  })
  const calls: ScriptedCall[] = open.map(({ counter, order }) => ({
    name: `pay_${counter}`,
    args: { order, amount: 17 },
  }))
  const asked = asksForBalance(messages[turn]?.text ?? '')
  const isRead = messages
    .slice(turn + 1)
    .some(({ toolCalls }) => toolCalls.some(({ name }) => name === 'balance'))
  if (asked && !isRead) calls.push({ name: 'balance', args: {} })
  if (calls.length > 0 && toolChoice !== 'none' && tools.length > 0) {
    return { text: 'Let me see to that.', toolCalls: calls }
  }
  const unpaid = wanted.filter(({ order }) => !paid.has(order)).length
  return { text: unpaid === 0 ? 'All of it is done.' : `${unpaid} orders are open: please check them.` }
}

function contentsOf(results: readonly { content: string }[]): string[] {
  return results.map(({ content }) => content)
}

function callsByOrder(messages: RequestSummary['messages']): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { args } of messages.flatMap(({ toolCalls }) => toolCalls)) {
    const order = isRecord(args) ? String(args.order) : ''
    counts.set(order, (counts.get(order) ?? 0) + 1)
  }
  return counts
}
