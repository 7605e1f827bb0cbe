/** Findings as text: one verdict per profile, then each problem, who rejects it how, and what repair changes. */

import { PROFILES } from '../provider/repair/profile.js'
import type { Problem } from '../runtime/check/problems.js'
import type { ProfileLint } from '../runtime/info.js'
import type { Styles } from './output.js'
import { plainLine, wrapped } from './plain-text.js'
import { count } from './wording.js'

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
