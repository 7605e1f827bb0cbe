import type { Event } from '../adk/sdk.js'
import { stableJson } from '../base/stable-json.js'
import { loopWarning, wrapUpFor } from './notices.js'
import type { RunEventBody, RunFinishReason } from './run-event.js'
import type { RunPlugin, WrapUpReason } from './run-plugin.js'

/** What the loop must do, and what listeners must hear. */
export interface LimitVerdict {
  verdict: 'continue' | 'stop'
  bodies: RunEventBody[]
}

/** Keeps a run within its limits: counts turns, notices loops, and has the plugin tell the model. */
export class RunLimits {
  private readonly limit: TurnLimit
  private readonly loops = new LoopGuard()
  private readonly toolNames: string[] = []
  private wrapUpReason: WrapUpReason | undefined
  /** True while a long-running call waits for its answer from outside. */
  waiting = false

  constructor(
    options: TurnLimitOptions,
    private readonly plugin: RunPlugin,
  ) {
    this.limit = new TurnLimit(options)
  }

  get turns(): number {
    return this.limit.turns
  }

  get delegations(): number {
    return this.limit.delegations
  }

  get wrapUpGranted(): boolean {
    return this.limit.wrapUpGranted
  }

  get finishReason(): RunFinishReason {
    if (this.wrapUpReason === undefined) return 'stop'
    return this.wrapUpReason === 'loop' ? 'loop' : 'turn-limit'
  }

  observe(event: Event): LimitVerdict {
    const names = event.partial ? [] : callNames(event)
    if (names.length === 0) return { verdict: 'continue', bodies: [] }
    this.waiting ||= (event.longRunningToolIds?.length ?? 0) > 0
    this.toolNames.push(...names.filter(name => name !== TRANSFER_TOOL))
    const verdict = this.limit.observe(event)
    if (verdict === 'stop') return { verdict, bodies: [] }
    if (verdict === 'wrap-up') return this.wrapUp(this.reasonOfCount())
    const bodies: RunEventBody[] =
      verdict === 'warn' ? [{ type: 'turn-warning', turns: this.turns, maxTurns: this.limit.maxTurns }] : []
    return this.watchLoop(event, bodies)
  }

  /** A nested agent's calls count too; false when there are none left to give. */
  observeNested(calls: readonly { name?: string | undefined }[]): RunEventBody[] {
    const parts = calls.map(call => ({ functionCall: { name: call.name } }))
    const verdict = this.limit.observe({ content: { parts } })
    if (verdict === 'wrap-up') return this.wrapUp(this.reasonOfCount()).bodies
    return verdict === 'warn'
      ? [{ type: 'turn-warning', turns: this.turns, maxTurns: this.limit.maxTurns }]
      : []
  }

  private watchLoop(event: Event, bodies: RunEventBody[]): LimitVerdict {
    const calls = (event.content?.parts ?? []).flatMap(part => (part.functionCall ? [part.functionCall] : []))
    const repeated = this.loops.observe(calls)
    if (repeated === 'warn') this.plugin.warn(loopWarning(this.loops.count))
    if (repeated !== 'stop') return { verdict: 'continue', bodies }
    this.limit.grantWrapUp()
    return this.wrapUp('loop')
  }

  private reasonOfCount(): WrapUpReason {
    return this.limit.turns >= this.limit.maxTurns ? 'turn-limit' : 'delegation-limit'
  }

  private wrapUp(reason: WrapUpReason): LimitVerdict {
    const { turns, maxTurns, delegations, maxDelegations } = this.limit
    this.wrapUpReason = reason
    this.plugin.grantWrapUp(
      wrapUpFor(reason, { turns, maxTurns, delegations, maxDelegations, toolNames: this.toolNames }),
    )
    return { verdict: 'continue', bodies: [{ type: 'wrap-up', reason, turns, maxTurns }] }
  }
}

type LoopVerdict = 'continue' | 'warn' | 'stop'

interface GuardedCall {
  name?: string | undefined
  args?: Readonly<Record<string, unknown>> | undefined
}

const WARN_AT = 3
const STOP_AT = 5

/**
 * Notices a model that repeats itself: the same calls with the same arguments, turn after turn. Ids do not
 * matter, nor does the order of keys. Any other call starts the count anew.
 */
export class LoopGuard {
  private last = ''
  private repeats = 0

  observe(calls: readonly GuardedCall[]): LoopVerdict {
    if (calls.length === 0) return 'continue'
    const signature = calls.map(call => `${call.name ?? ''}(${stableJson(call.args ?? {})})`).join('\n')
    this.repeats = signature === this.last ? this.repeats + 1 : 1
    this.last = signature
    if (this.repeats >= STOP_AT) return 'stop'
    return this.repeats === WARN_AT ? 'warn' : 'continue'
  }

  /** How often the last calls were made in a row. */
  get count(): number {
    return this.repeats
  }
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
  private warned = false

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
    if (!this.warned && this.turns >= Math.ceil(this.maxTurns * WARN_SHARE)) {
      this.warned = true
      return 'warn'
    }
    return 'continue'
  }

  /** Grants the wrap-up turn for another reason than the count, for example a loop. */
  grantWrapUp(): void {
    this.wrapUpGranted = true
  }
}

/** The little of an ADK event that turn counting looks at. */
interface CountedEvent {
  partial?: boolean | undefined
  content?:
    | { parts?: readonly { functionCall?: { name?: string | undefined } | undefined }[] | undefined }
    | undefined
  actions?: { transferToAgent?: string | undefined } | undefined
}

/** The tool by which ADK hands a conversation to another agent. */
export const TRANSFER_TOOL = 'transfer_to_agent'

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

/** The names of the tools that an event calls, in order. */
function callNames(event: CountedEvent): string[] {
  return (event.content?.parts ?? []).flatMap(part =>
    part.functionCall ? [part.functionCall.name ?? ''] : [],
  )
}
