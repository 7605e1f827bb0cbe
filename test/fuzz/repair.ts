/**
 * The properties of repair, with many more cases:
 *
 *     node --import tsx test/fuzz/repair.ts --count 1000000 --seed 1
 *
 * Each history goes through every profile; the result is checked twice, by the tests' own implementation of the
 * rules and by the strict servers (`--judge none` skips them). The seed of a history is the seed given
 * plus its number, so a failure is one short run away.
 */
import { pathToFileURL } from 'node:url'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { buildHistory, deepFreeze, seededChooser } from '../properties/repair-generator.js'
import { checkLaws, type Judge, PROFILE_NAMES } from '../properties/repair-laws.js'

export interface FuzzOptions {
  /** A second check, in addition to the tests' own rules, of whether an outcome is valid. */
  readonly judge?: Judge
  /** Prepares a generated history for that check. */
  readonly prepare?: (history: readonly ProviderMessage[]) => ProviderMessage[]
  readonly progress?: (line: string) => void
  /** Stop after this many failures. Default 10. */
  readonly maxFailures?: number
}

export interface FuzzReport {
  readonly histories: number
  readonly checks: number
  /** Checks whose history was legal and came out as the same list. */
  readonly untouched: number
  readonly failures: readonly { seed: number; profile: string; law: string }[]
}

/** Runs `count` generated histories through every profile. */
export function fuzzRepair(count: number, seed: number, options: FuzzOptions = {}): FuzzReport {
  const { judge, prepare, progress, maxFailures = 10 } = options
  const failures: { seed: number; profile: string; law: string }[] = []
  let histories = 0
  let untouched = 0
  for (; histories < count && failures.length < maxFailures; histories++) {
    const built = buildHistory(seededChooser(seed + histories))
    const history = deepFreeze(prepare?.(built) ?? built)
    for (const profile of PROFILE_NAMES) {
      const { broken, wasLegal } = checkLaws(history, profile, judge)
      if (broken !== undefined) failures.push({ seed: seed + histories, profile, law: broken })
      else if (wasLegal) untouched++
    }
    if (progress && (histories + 1) % 5000 === 0) {
      progress(`${histories + 1} of ${count} histories, ${failures.length} failures`)
    }
  }
  return { histories, checks: histories * PROFILE_NAMES.length, untouched, failures }
}

function option(name: string, fallback: string): string {
  const at = process.argv.indexOf(`--${name}`)
  return (at === -1 ? undefined : process.argv[at + 1]) ?? fallback
}

async function main(): Promise<void> {
  const count = Number(option('count', '10000'))
  const seed = Number(option('seed', '1'))
  const strict =
    option('judge', 'strict') === 'none' ? undefined : await import('../properties/repair-judge.js')
  const report = fuzzRepair(count, seed, {
    ...(strict && { judge: strict.strictJudge, prepare: strict.signHistory }),
    progress: line => console.log(line),
  })
  for (const { seed: at, profile, law } of report.failures) console.log(`seed ${at}, ${profile}: ${law}`)
  const { histories, checks, untouched, failures } = report
  console.log(
    `repair: ${histories} histories, ${checks} checks, ${untouched} legal and untouched, ` +
      `${failures.length} failures, seed ${seed}`,
  )
  process.exitCode = failures.length === 0 ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main()
