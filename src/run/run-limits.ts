import type { Event } from '../adk/sdk.js'
import { callNames, TRANSFER_TOOL } from './is-delegation-event.js'
import { LoopGuard } from './loop-guard.js'
import { loopWarning, wrapUpFor } from './notices.js'
import type { RunEventBody, RunFinishReason } from './run-event.js'
import type { RunPlugin, WrapUpReason } from './run-plugin.js'
import { TurnLimit, type TurnLimitOptions } from './turn-limit.js'

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
