import { type CountedEvent, callNames, isDelegationEvent, TRANSFER_TOOL } from './is-delegation-event.js'

/** What the loop must do after an event. `wrap-up`: the next model call is the last one. */
export type TurnVerdict = 'continue' | 'warn' | 'wrap-up' | 'stop'

export interface TurnLimitOptions {
  maxTurns?: number | undefined
  multiAgent?: boolean | undefined
  maxDelegations?: number | undefined
}

const DEFAULT_MAX_TURNS = 25
const MULTI_AGENT_MAX_TURNS = 50
const DEFAULT_MAX_DELEGATIONS = 32
const WARN_AT = 0.8

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
    if (!this.warned && this.turns >= Math.ceil(this.maxTurns * WARN_AT)) {
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
