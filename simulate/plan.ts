/** What one simulation does: the messages that users send and the faults that hit the processes, drawn from a seed. */
import type { Sent } from '../chaos/clients.js'
import { Random } from '../chaos/random.js'
import { ANSWERED_LATER, type ToolName } from './bank.js'

/** One call that a message asks the model for. */
export interface PlannedCall {
  tool: ToolName
  order: string
}

/** What the model does in one step: calls of tools, all in one answer, or a transfer to the other agent. */
export type PlannedStep = readonly PlannedCall[] | 'transfer'

export interface PlannedMessage extends Sent {
  /** When it is sent, in milliseconds since the simulation began. */
  atMs: number
  /** Sent twice with one run id, through two processes. */
  isTwice: boolean
  isFollowed: boolean
  /** How long after its acknowledgement it is stopped, if it is. */
  stopAfterMs?: number
}

/**
 * `crash`: the process ends. `pause`: nothing happens in it for longer than a lease. `fail`: the call fails; a store call
 * fails before it took effect, or after it (the acknowledgement is lost). `outage`: so do all store calls of the process
 * for a while. `close`: the process is shut down.
 */
export type Action = 'crash' | 'pause' | 'fail' | 'outage' | 'close'

export interface PlannedFault {
  /** The names of the points that it may hit begin so. */
  point: string
  /** It hits the point that is reached as the nth. */
  nth: number
  action: Action
  /** How long the pause or the outage takes, and how long it takes until a process is started again. */
  ms: number
}

export interface Plan {
  seed: string
  processes: number
  /** How many runs a process executes at once. */
  maxRunning: number
  messages: readonly PlannedMessage[]
  faults: readonly PlannedFault[]
}

/** How faults are drawn. */
export interface FaultOptions {
  /** The most faults of one simulation. Default 4. */
  mostFaults?: number | undefined
  /** Which kinds of faults. Default: all. */
  actions?: readonly Action[] | undefined
  /**
   * Whether some payments are made by ADK's own tools, which a person answers between two rounds of a run. Default false,
   * and then a seed gives the plan that it always gave.
   */
  confirmations?: boolean | undefined
  /** How many processes. Default: 2 or 3. */
  processes?: number | undefined
  /** How long a pause takes. Default: 11 to 40 s. */
  pauseMs?: number | undefined
}

export function makePlan(seed: string, options: FaultOptions = {}): Plan {
  const { mostFaults = MOST_FAULTS, confirmations } = options
  const random = new Random(seed).stream('plan')
  const confirming = confirmations ? new Random(seed).stream('confirmations') : undefined
  const sessions = random.chance(0.3) ? 2 : 1
  const count = random.between(1, 3)
  const some = random.chance(0.25) ? 3 : 2
  return {
    seed,
    processes: options.processes ?? some,
    maxRunning: random.pick([1, 2, 8]) ?? 8,
    messages: Array.from({ length: count }, (_, index) =>
      makeMessage(random, `m${index + 1}`, sessions, confirming),
    ),
    faults: Array.from({ length: random.between(1, mostFaults) }, () => makeFault(random, options)),
  }
}

/** A message that asks for everything in its session that is not paid. */
export function lastMessage(random: Random, token: string, sessionId: string): PlannedMessage {
  const plain = plainMessage(random, token, sessionId)
  return { ...plain, text: `${plain.mark} [all]` }
}

/** A message to a session that asks for nothing. */
function plainMessage(random: Random, token: string, sessionId: string): PlannedMessage {
  const mark = `[message ${token}]`
  const flags = { atMs: 0, isTwice: false, isFollowed: false }
  const sent = { sessionId, runId: random.uuid(), sentAtMs: 0, followed: new Map(), answered: [] }
  return { ...flags, ...sent, text: mark, mark, orders: [] }
}

function makeMessage(
  random: Random,
  token: string,
  sessions: number,
  confirming: Random | undefined,
): PlannedMessage {
  const plain = plainMessage(random, token, `s${random.between(1, sessions)}`)
  const made = Array.from({ length: random.between(0, 2) }, (_, at) => makeStep(random, `${token}-${at}`))
  const steps = confirming ? made.map(step => confirmedStep(step, confirming)) : made
  const flags = [random.chance(0.5) ? '[insist]' : '', random.chance(0.5) ? '[all]' : '']
  const calls = steps.flatMap(step => (step === 'transfer' ? [] : step))
  return {
    ...plain,
    text: [plain.mark, ...flags, ...steps.map(textOf)].filter(Boolean).join(' '),
    orders: calls.map(({ tool, order }) => ({ counter: tool === 'pay_keyed' ? 'keyed' : 'blind', order })),
    atMs: random.chance(0.5) ? random.between(0, 20) : random.between(0, 8000),
    isTwice: random.chance(0.25),
    isFollowed: random.chance(0.2),
    ...(random.chance(0.1) ? { stopAfterMs: random.between(0, 3000) } : {}),
  }
}

function makeStep(random: Random, token: string): PlannedStep {
  if (random.chance(0.12)) return 'transfer'
  const count = random.chance(0.3) ? random.between(2, 3) : 1
  // A batch of tools that may be repeated is executed at the same time.
  const isParallel = random.chance(0.4)
  return Array.from({ length: count }, (_, at) => {
    const tool = isParallel && count > 1 ? random.pick(REPEATABLE) : random.weighted(TOOLS)
    return { tool: tool ?? 'balance', order: `${token}-${at}` }
  })
}

/** Some of the calls go to tools that a person answers later; some of the orders are refused by everybody. */
function confirmedStep(step: PlannedStep, random: Random): PlannedStep {
  if (step === 'transfer') return step
  return step.map(call => {
    if (!random.chance(0.4)) return call
    const tool = random.pick(ANSWERED_LATER) ?? call.tool
    const isRefused = tool === 'pay_confirmed' && random.chance(0.2)
    return { tool, order: isRefused ? `${call.order}-r` : call.order }
  })
}

const TOOLS: Readonly<Record<Exclude<ToolName, 'pay_confirmed' | 'pay_later'>, number>> = {
  balance: 1,
  pay_keyed: 2,
  pay_retried: 1,
  pay_blind: 3,
  pay_asked: 2,
  pay_failing: 1,
  pay_verified: 2,
  pay_approved: 1,
}

const REPEATABLE: readonly ToolName[] = ['balance', 'pay_keyed']

function textOf(step: PlannedStep): string {
  return step === 'transfer'
    ? '{transfer}'
    : `{${step.map(({ tool, order }) => `${tool} ${order}`).join('+')}}`
}

/** The steps that a text asks for. */
export function stepsIn(text: string): PlannedStep[] {
  return [...text.matchAll(/\{([^}"]+)\}/g)].map(([, step = '']) =>
    step === 'transfer'
      ? 'transfer'
      : step.split('+').map(call => {
          const [tool = '', order = ''] = call.split(' ')
          return { tool: tool as ToolName, order }
        }),
  )
}

/** How often each kind of point is hit, and how many such points a simulation may reach. */
const POINTS = {
  'store:': { weight: 6, most: 60 },
  'store:openRun': { weight: 3, most: 3 },
  'store:queueRun': { weight: 1, most: 2 },
  'store:beginRun': { weight: 3, most: 2 },
  'store:acquireLease': { weight: 2, most: 4 },
  'store:lease.release': { weight: 1, most: 4 },
  'store:runs.saveStep': { weight: 6, most: 16 },
  'store:runs.resumeRun': { weight: 1, most: 2 },
  'model:': { weight: 5, most: 9 },
  'tool:': { weight: 8, most: 5 },
  timer: { weight: 2, most: 50 },
} as const

/** How many faults a simulation has at most, unless more are wanted. */
export const MOST_FAULTS = 4

const WEIGHTS: Readonly<Record<Action, number>> = { crash: 8, pause: 4, fail: 4, outage: 1, close: 1 }

export const ACTIONS = Object.keys(WEIGHTS) as readonly Action[]

function makeFault(random: Random, { actions = ACTIONS, pauseMs }: FaultOptions): PlannedFault {
  const weights = Object.fromEntries(Object.entries(POINTS).map(([name, { weight }]) => [name, weight]))
  const point = random.weighted(weights) as keyof typeof POINTS
  const action = random.weighted(Object.fromEntries(actions.map(name => [name, WEIGHTS[name]]))) as Action
  const ms = action === 'pause' ? random.between(11_000, 40_000) : random.between(50, 15_000)
  const nth = random.between(1, POINTS[point].most)
  return { point, nth, action, ms: action === 'pause' ? (pauseMs ?? ms) : ms }
}
