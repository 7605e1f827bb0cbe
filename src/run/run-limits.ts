import type { Event } from '../adk/sdk.js'
import { TRANSFER_TOOL } from '../base/names.js'
import { type LeftOutOfAnswer, leftOutOf } from '../session/message.js'
import {
  type CountedCall,
  type Lane,
  LoopGuard,
  type LoopLimit,
  loopWarning,
  type Repetition,
  repetitionText,
} from './loop-guard.js'
import type { BudgetState, RunEventBody, RunFinishReason, WrapUpReason } from './run-event.js'

/** The last model call of a run. */
export interface WrapUp {
  reason: WrapUpReason
  /** Added to the request. */
  notice: string
  /** The answer when the model gives none. */
  fallback: string
}

/** What a run may add to its requests. */
export interface RequestNotices {
  /** Adds a note to the next request. */
  warn(notice: string): void
  /** Makes the next model call the last one. Granted once. */
  grantWrapUp(wrapUp: WrapUp): void
  /** Set by the limits. Called with the agent and its execution before each request; see `LoopGuard.beginStep`. */
  onStep: (lane: Lane, execution: object) => void
  /** Set by the limits. Called when the record of a resumed run has a last turn for its budget. */
  onBudgetNotice: () => void
}

/** What the loop must do, and the events to emit. */
export interface LimitVerdict {
  verdict: 'continue' | 'stop'
  bodies: RunEventBody[]
}

/** Keeps a run within its limits: counts turns, detects loops, and adds notices to the requests. */
export class RunLimits {
  readonly #limit: TurnLimit
  readonly #notices: RequestNotices
  readonly #loops: LoopGuard
  readonly #toolNames: string[] = []
  #wrapUpReason: WrapUpReason | undefined
  /** What the run repeated when it was stopped as a loop. */
  #repeated: Repetition | undefined
  #budget: BudgetState | undefined
  #isCutShort = false
  /** The last answer was ended at the longest length. */
  #isTooLong = false

  constructor(options: RunLimitOptions, notices: RequestNotices) {
    this.#limit = new TurnLimit(options)
    this.#loops = new LoopGuard(options.loop)
    this.#notices = notices
    notices.onStep = (lane, execution) => this.#loops.beginStep(lane, execution)
    notices.onBudgetNotice = () => void this.budgetSpent()
  }

  get turns(): number {
    return this.#limit.turns
  }

  get delegations(): number {
    return this.#limit.delegations
  }

  get wrapUpGranted(): boolean {
    return this.#limit.wrapUpGranted
  }

  get finishReason(): RunFinishReason {
    if (this.#wrapUpReason === undefined)
      return this.#isCutShort ? 'budget' : this.#isTooLong ? 'length' : 'stop'
    return this.#wrapUpReason === 'delegation-limit' ? 'turn-limit' : this.#wrapUpReason
  }

  observe(event: Event): LimitVerdict {
    if (event.partial) return CONTINUE
    this.#isTooLong = leftOutOf(event.customMetadata)?.cutAt !== undefined
    const names = callNames(event)
    if (names.length === 0) return this.#watchLoop(event)
    this.#loops.called(event, callsOf(event))
    this.#toolNames.push(...names.filter(name => name !== TRANSFER_TOOL))
    const verdict = this.#limit.observe(event)
    if (verdict === 'stop') return { verdict, bodies: [] }
    if (verdict === 'wrap-up') return this.#wrapUp(this.#reasonOfCount())
    return verdict === 'warn' ? { verdict: 'continue', bodies: [this.#turnWarning()] } : CONTINUE
  }

  /** A nested agent's calls count too; false when there are none left to give. */
  observeNested(calls: readonly { name?: string | undefined }[]): RunEventBody[] {
    const parts = calls.map(call => ({ functionCall: { name: call.name } }))
    const verdict = this.#limit.observe({ content: { parts } })
    if (verdict === 'wrap-up') return this.#wrapUp(this.#reasonOfCount()).bodies
    return verdict === 'warn' ? [this.#turnWarning()] : []
  }

  /** No further model call can be paid for but the last one. Empty when the last one was granted before. */
  budgetSpent(budget?: BudgetState): RunEventBody[] {
    if (this.#limit.wrapUpGranted) return []
    this.#limit.grantWrapUp()
    this.#budget = budget
    return this.#wrapUp('budget').bodies
  }

  /** An answer ended at an output limit that the budget had lowered. */
  cutShort(): void {
    this.#isCutShort = true
  }

  /** Results complete a repetition: the same calls with other results are progress. */
  #watchLoop(event: Event): LimitVerdict {
    const results = (event.content?.parts ?? []).flatMap(part => part.functionResponse ?? [])
    if (results.length === 0 || this.#limit.wrapUpGranted) return CONTINUE
    const { verdict, repetition } = this.#loops.answered(event, results)
    if (verdict === 'warn') this.#notices.warn(loopWarning(repetition))
    if (verdict !== 'stop') return CONTINUE
    this.#repeated = repetition
    this.#limit.grantWrapUp()
    return this.#wrapUp('loop')
  }

  #turnWarning(): RunEventBody {
    return { type: 'turn-warning', turns: this.turns, maxTurns: this.#limit.maxTurns }
  }

  #reasonOfCount(): WrapUpReason {
    return this.#limit.turns >= this.#limit.maxTurns ? 'turn-limit' : 'delegation-limit'
  }

  #wrapUp(reason: WrapUpReason): LimitVerdict {
    const { turns, maxTurns, delegations, maxDelegations } = this.#limit
    this.#wrapUpReason = reason
    const tally = { turns, maxTurns, delegations, maxDelegations, toolNames: this.#toolNames }
    const budget = this.#budget
    this.#notices.grantWrapUp(wrapUpFor(reason, { ...tally, repeated: this.#repeated, budget }))
    const body = { type: 'wrap-up', reason, turns, maxTurns, ...(budget ? { budget } : {}) } as const
    return { verdict: 'continue', bodies: [body] }
  }
}

/** The notice to a model whose answer had too many calls. */
export function callsLeftOut({ calls = 0, mostCalls = 0 }: LeftOutOfAnswer): string | undefined {
  if (calls === 0) return undefined
  return (
    `[System: ${calls} of the ${calls + mostCalls} tool calls of your last answer were left out and not run, because ` +
    `an answer may have ${mostCalls} at most. Call what is still needed again, in answers of at most ${mostCalls} calls.]`
  )
}

const CONTINUE: LimitVerdict = { verdict: 'continue', bodies: [] }

/** The limits of a run. */
export interface RunLimitOptions extends TurnLimitOptions {
  /** When equal calls with equal results count as a loop. `false`: never. */
  loop?: LoopLimit | false | undefined
}

/** What the loop must do after an event. `wrap-up`: the next model call is the last one. */
type TurnVerdict = 'continue' | 'warn' | 'wrap-up' | 'stop'

export interface TurnLimitOptions {
  maxTurns?: number | undefined
  multiAgent?: boolean | undefined
  maxDelegations?: number | undefined
}

const DEFAULT_MAX_TURNS = 25
const MULTI_AGENT_MAX_TURNS = 50
const DEFAULT_MAX_DELEGATIONS = 32
const WARN_SHARE = 0.8

/**
 * Counts the tool-calling turns of one run. Delegations are free but have a cap of their own. The limit is
 * reached once: it grants one wrap-up turn, and a tool call after that means stop.
 */
export class TurnLimit {
  readonly maxTurns: number
  readonly maxDelegations: number
  turns = 0
  delegations = 0
  /** True once the limit was reached: the one extra turn is given or spent. */
  wrapUpGranted = false
  #warned = false

  constructor(options: TurnLimitOptions = {}) {
    this.maxTurns = options.maxTurns ?? (options.multiAgent ? MULTI_AGENT_MAX_TURNS : DEFAULT_MAX_TURNS)
    this.maxDelegations = options.maxDelegations ?? DEFAULT_MAX_DELEGATIONS
  }

  /** Looks at every event of the run; only whole model turns that call tools count. */
  observe(event: CountedEvent): TurnVerdict {
    if (event.partial) return 'continue'
    const calls = callNames(event)
    if (calls.length === 0) return 'continue'
    if (this.wrapUpGranted) return 'stop'
    this.delegations += calls.filter(name => name === TRANSFER_TOOL).length
    if (!isDelegationEvent(event)) this.turns += 1
    if (this.turns >= this.maxTurns || this.delegations >= this.maxDelegations) {
      this.wrapUpGranted = true
      return 'wrap-up'
    }
    if (!this.#warned && this.turns >= Math.ceil(this.maxTurns * WARN_SHARE)) {
      this.#warned = true
      return 'warn'
    }
    return 'continue'
  }

  /** Grants the wrap-up turn for another reason than the count, for example a loop. */
  grantWrapUp(): void {
    this.wrapUpGranted = true
  }
}

/** The fields of an ADK event that limits are counted by. */
interface CountedEvent {
  partial?: boolean | undefined
  content?: { parts?: readonly { functionCall?: CountedCall | undefined }[] | undefined } | undefined
  actions?: { transferToAgent?: string | undefined } | undefined
}

/**
 * Whether an event only routes the conversation. ADK-JS sets `transferToAgent` on the response event, so the
 * call event before it is known by the name of the tool.
 *
 * @spec isDelegationEvent
 */
export function isDelegationEvent(event: CountedEvent): boolean {
  const calls = callNames(event)
  if (calls.length > 0) return calls.every(name => name === TRANSFER_TOOL)
  return Boolean(event.actions?.transferToAgent)
}

/** The agent that an event transfers to, if it calls the transfer tool. */
export function transferTarget(event: CountedEvent): string | undefined {
  const parts = event.partial ? [] : (event.content?.parts ?? [])
  const call = parts.find(part => part.functionCall?.name === TRANSFER_TOOL)?.functionCall
  return call && String(call.args?.agentName ?? call.args?.agent_name ?? '')
}

/** The names of the tools that an event calls, in order. */
function callNames(event: CountedEvent): string[] {
  return callsOf(event).map(call => call.name ?? '')
}

function callsOf(event: CountedEvent): CountedCall[] {
  return (event.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
}

/** What a run has done so far. */
interface RunTally {
  turns: number
  maxTurns: number
  delegations: number
  maxDelegations: number
  /** Names of the tools that were called, in order. */
  toolNames: readonly string[]
  repeated: Repetition | undefined
  budget: BudgetState | undefined
}

/** The texts of the last turn: for the model, and for the user if the model does not answer. */
function wrapUpFor(reason: WrapUpReason, tally: RunTally): WrapUp {
  const why = {
    'turn-limit': `the limit of ${tally.maxTurns} tool turns is reached`,
    'delegation-limit': `the limit of ${tally.maxDelegations} transfers between agents is reached`,
    budget: `the budget${tally.budget ? ` of $${tally.budget.limitUsd} ${BUDGET_OF[tally.budget.scope]}` : ''} is used up`,
    loop: tally.repeated ? repetitionText(tally.repeated) : 'the same tool call was repeated',
  }[reason]
  return {
    reason,
    notice:
      `[System: This is your last turn, because ${why}. No tool can be called any more. ` +
      'Answer the user now: say what was done, what was found, and what is still missing.]',
    fallback: `I had to stop here, because ${why}. ${doneSoFar(tally)} ${reason === 'budget' ? 'Raise the budget to go on.' : 'Send another message to continue.'}`,
  }
}

const BUDGET_OF = { run: 'for this run', session: 'for this session', day: 'for today' } as const

function doneSoFar({ toolNames, delegations }: RunTally): string {
  if (toolNames.length === 0) {
    return delegations > 0
      ? `So far the question was passed between agents ${delegations} times.`
      : 'Nothing was done yet.'
  }
  const counts = new Map<string, number>()
  for (const name of toolNames) counts.set(name, (counts.get(name) ?? 0) + 1)
  const list = [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`))
  return `So far these tools were called: ${list.join(', ')}.`
}

/** How long tools took: from call to result, without the wait for a person's approval. */
export class ToolClock {
  readonly #started = new Map<string, number>()
  readonly #asked = new Map<string, number>()

  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The event, with the time that its tool took where it is a result. */
  timed(body: RunEventBody): RunEventBody {
    switch (body.type) {
      case 'tool-call':
        this.#started.set(body.id, this.#now())
        return body
      case 'approval-request':
        this.#asked.set(body.id, this.#now())
        return body
      case 'approval-answer':
        this.#answered(body.id)
        return body
      case 'tool-unknown':
        if (body.asks) this.#asked.set(body.id, this.#now())
        else if (body.answer) this.#answered(body.id)
        return body
      case 'tool-result': {
        const started = this.#started.get(body.id)
        if (started === undefined) return body
        this.#started.delete(body.id)
        return { ...body, durationMs: Math.max(0, Math.round(this.#now() - started)) }
      }
      case 'run-queued':
      case 'run-scheduled':
      case 'run-start':
      case 'run-resumed':
      case 'step-restart':
      case 'model-switch':
      case 'model-wait':
      case 'tools-missing':
      case 'text-delta':
      case 'reasoning-delta':
      case 'sources':
      case 'code':
      case 'agent-transfer':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'history-cut':
      case 'usage':
      case 'error':
      case 'run-finish':
        return body
    }
  }

  #answered(id: string): void {
    const [started, asked] = [this.#started.get(id), this.#asked.get(id)]
    if (started !== undefined && asked !== undefined) this.#started.set(id, started + this.#now() - asked)
  }
}
