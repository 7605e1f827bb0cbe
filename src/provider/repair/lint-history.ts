import { defined } from '../../base/defined.js'
import type { ProviderMessage } from '../provider.js'
import { type Finding, findingsOf } from './finding.js'
import { type Profile, resolveProfile } from './profile.js'
import { repairHistory } from './repair-history.js'

export interface LintOptions {
  /** `user` (the default): judged as if a user message followed. `none`: judged as it stands. */
  readonly next?: 'user' | 'none'
  /** The account that the history would be sent to. Default: the one that has sealed what is in it. */
  readonly account?: string
}

/**
 * Says what a provider would refuse in a history, and what repair would do about it. Sends nothing.
 *
 * ```ts
 * import { lintHistory } from 'lango/provider'
 *
 * const call = { type: 'tool-call', id: 'a', name: 'weather', args: {} } as const
 * const findings = lintHistory([{ role: 'assistant', parts: [call] }], 'anthropic-4.6')
 * for (const { severity, message } of findings) console.log(severity, message)
 * ```
 */
export function lintHistory(
  messages: readonly ProviderMessage[],
  profile: string | Profile,
  { next = 'user', account }: LintOptions = {},
): Finding[] {
  const resolved = resolveProfile(profile)
  return findingsOf(
    repairHistory(messages, resolved, { mode: 'explain', next, ...defined({ account }) }).repairs,
    resolved,
  )
}
