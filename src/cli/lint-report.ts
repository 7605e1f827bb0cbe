/** Findings as text: one verdict per profile, then each problem, who rejects it how, and what repair changes. */

import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import { PROFILES, type Profile } from '../provider/repair/profile.js'
import { REFUSALS } from '../provider/repair/refusals.js'
import type { ProfileLint, SessionFinding } from '../runtime/info.js'
import type { Styles } from './output.js'
import { plainLine, wrapped } from './plain-text.js'
import { count } from './wording.js'

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
      const known = found.get(key) ?? {
        at: finding.seq ?? finding.at,
        problem: newProblem(finding, where, profile),
      }
      found.set(key, known)
      addRefusal(known.problem, profile)
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

/** Adds a profile to those that reject it with the same error. */
export function addRefusal(problem: Pick<Problem, 'code' | 'refusals'>, profile: string): void {
  const words = refusalWords(profile, problem.code)
  const same = problem.refusals.find(refusal => refusal.words === words)
  if (!same) problem.refusals.push({ ...defined({ words }), profiles: [profile] })
  else if (!same.profiles.includes(profile)) same.profiles.push(profile)
}

function newProblem(finding: SessionFinding, where: string, profile: string): Problem {
  const words = refusalWords(profile, finding.code)
  const suffix = words === undefined ? '' : ` ${profile} answers ${words}`
  const problem = finding.message.endsWith(suffix)
    ? finding.message.slice(0, -suffix.length || undefined)
    : finding.message
  return { where, code: finding.code, problem, refusals: [], repairs: [] }
}

/** One line for each profile. */
export function verdictLines(profiles: readonly ProfileLint[], styles: Styles): string[] {
  const width = Math.max(...profiles.map(({ profile }) => profile.length))
  return profiles.map(({ profile, refused, breaks, mapped }) => {
    const rewritten = mapped === 0 ? '' : styles.dim(`, ${mapped} rewritten on every send`)
    const verdict = refused ? styles.red(`rejected, ${count(breaks, 'finding')}`) : styles.green('accepted')
    return `  ${profile.padEnd(width)}  ${verdict}${rewritten}`
  })
}

/** What is rewritten on every send, summarized: the kinds and how often. */
export function mappedLine(profiles: readonly ProfileLint[]): string | undefined {
  const counts = new Map<string, number>()
  for (const { findings } of profiles) {
    const own = new Map<string, number>()
    for (const { code, severity } of findings) {
      if (severity === 'mapped') own.set(code, (own.get(code) ?? 0) + 1)
    }
    for (const [code, times] of own) counts.set(code, Math.max(times, counts.get(code) ?? 0))
  }
  if (counts.size === 0) return undefined
  const kinds = [...counts].map(([code, times]) => (times === 1 ? code : `${code} (${times})`))
  return `Rewritten on every send, harmless: ${kinds.join(', ')}.`
}

/** Problems as paragraphs. */
export function problemLines(problems: readonly Problem[], width: number, styles: Styles): string[] {
  return problems.flatMap(({ where, problem, refusals, repairs }) => [
    '',
    ...wrapped(`${styles.bold(where)}: ${plainLine(problem)}`, '', width),
    ...refusals.flatMap(({ words, profiles }) => {
      const who = profiles.length === Object.keys(PROFILES).length ? 'every profile' : profiles.join(', ')
      return wrapped(
        words === undefined
          ? `${who}: violates the rules; the error text is not recorded`
          : `${who}: ${words}`,
        '    ',
        width,
      )
    }),
    ...repairs.flatMap(repair => wrapped(styles.dim(`repair: ${plainLine(repair)}`), '    ', width)),
  ])
}
