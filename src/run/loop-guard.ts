import { stableJson } from '../base/stable-json.js'

export type LoopVerdict = 'continue' | 'warn' | 'stop'

export interface GuardedCall {
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
