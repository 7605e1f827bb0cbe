/**
 * The laws of repair at length:
 *
 *     node --import tsx test/fuzz/repair.ts --count 1000000 --seed 1
 *
 * Each history goes through every profile. The seed of a history is the seed given plus its number, so a
 * failure is one short run away.
 */
import { pathToFileURL } from 'node:url'
import { buildHistory, seededChooser } from '../properties/repair-generator.js'
import { brokenLaw, type Judge, PROFILE_NAMES } from '../properties/repair-laws.js'

export interface FuzzOptions {
  /** Who decides what is legal. Default: the tests' own reading of the rules. */
  readonly judge?: Judge
  readonly progress?: (line: string) => void
  /** Stop after this many failures. Default 10. */
  readonly maxFailures?: number
}

export interface FuzzReport {
  readonly histories: number
  readonly checks: number
  readonly failures: readonly { seed: number; profile: string; law: string }[]
}

/** Runs `count` generated histories through every profile. */
export function fuzzRepair(count: number, seed: number, options: FuzzOptions = {}): FuzzReport {
  const { judge, progress, maxFailures = 10 } = options
  const failures: { seed: number; profile: string; law: string }[] = []
  let histories = 0
  for (; histories < count && failures.length < maxFailures; histories++) {
    const history = buildHistory(seededChooser(seed + histories))
    for (const profile of PROFILE_NAMES) {
      const law = brokenLaw(history, profile, judge)
      if (law !== undefined) failures.push({ seed: seed + histories, profile, law })
    }
    if (progress && (histories + 1) % 10_000 === 0) {
      progress(`${histories + 1} of ${count} histories, ${failures.length} failures`)
    }
  }
  return { histories, checks: histories * PROFILE_NAMES.length, failures }
}

function numberOption(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? fallback : Number(process.argv[at + 1])
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const count = numberOption('count', 10_000)
  const seed = numberOption('seed', 1)
  const report = fuzzRepair(count, seed, { progress: line => console.log(line) })
  for (const { seed: at, profile, law } of report.failures) console.log(`seed ${at}, ${profile}: ${law}`)
  console.log(
    `repair: ${report.histories} histories, ${report.checks} checks, ${report.failures.length} failures, seed ${seed}`,
  )
  process.exitCode = report.failures.length === 0 ? 0 : 1
}
