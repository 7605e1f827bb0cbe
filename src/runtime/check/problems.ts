/** What is wrong with a history, by place: who rejects it, with which words, and what repair changes. */

import { defined } from '../../base/defined.js'
import { own } from '../../base/own.js'
import { PROFILES, type Profile } from '../../provider/repair/profile.js'
import { REFUSALS } from '../../provider/repair/refusals.js'
import type { ProfileLint, SessionFinding } from '../info.js'

/** One problem in one place, for all profiles that reject it. */
export interface Problem {
  /** `message 3` of a session, `messages[2]` of a request. */
  where: string
  code: string
  problem: string
  /** The errors of the providers, each with their profiles. */
  refusals: Refusal[]
  /** What repair changes, each in a sentence. */
  repairs: string[]
}

export interface Refusal {
  /** The provider's error message with the label of `docs/strict-servers.md`; absent where none is known. */
  words?: string
  profiles: string[]
}

/** What breaks, by place; findings with one code in one place are one problem. */
export function problemsOf(
  profiles: readonly ProfileLint[],
  whereOf: (finding: SessionFinding) => string,
): Problem[] {
  const found = new Map<string, { at: number; problem: Problem }>()
  for (const { profile, findings } of profiles) {
    for (const finding of findings) {
      if (finding.severity !== 'breaks') continue
      const where = whereOf(finding)
      const key = `${where} ${finding.code}`
      const { what, words } = parted(finding.message, profile)
      const known = found.get(key) ?? {
        at: finding.seq ?? finding.at,
        problem: { where, code: finding.code, problem: what, refusals: [], repairs: [] },
      }
      found.set(key, known)
      addRefusal(known.problem, profile, words)
      if (!known.problem.repairs.includes(finding.repair)) known.problem.repairs.push(finding.repair)
    }
  }
  return [...found.values()].sort((left, right) => left.at - right.at).map(({ problem }) => problem)
}

/** The error of a provider of that profile for that code, where it is known. */
export function refusalWords(profile: string, code: string): string | undefined {
  const vendor = own<Profile>(PROFILES, profile)?.vendor ?? ''
  return own(own(REFUSALS, profile) ?? {}, code) ?? own(own(REFUSALS, vendor) ?? {}, code)
}

/** Adds a profile to those that reject it with the same error. `words`: what the server answered to this very history. */
export function addRefusal(
  problem: Pick<Problem, 'code' | 'refusals'>,
  profile: string,
  words: string | undefined = refusalWords(profile, problem.code),
): void {
  const same = problem.refusals.find(refusal => refusal.words === words)
  if (!same) problem.refusals.push({ ...defined({ words }), profiles: [profile] })
  else if (!same.profiles.includes(profile)) same.profiles.push(profile)
}

/** A finding says what is wrong, and then who answers what. */
function parted(message: string, profile: string): { what: string; words?: string } {
  const link = ` ${profile} answers `
  const at = message.indexOf(link)
  return at < 0 ? { what: message } : { what: message.slice(0, at), words: message.slice(at + link.length) }
}
