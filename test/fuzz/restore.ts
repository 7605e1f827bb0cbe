/**
 * The properties of restoring, with many more cases:
 *
 *     node --import tsx test/fuzz/restore.ts --count 100000 --seed 1
 *
 * The seed of a history is the seed given plus its number, so a failure is one short run away.
 */
import { pathToFileURL } from 'node:url'
import { brokenRestoreLaw, malformedHistory } from '../properties/malformed-histories.js'

export interface RestoreFuzzReport {
  readonly histories: number
  readonly failures: readonly { seed: number; law: string }[]
}

export interface RestoreFuzzOptions {
  readonly progress?: (line: string) => void
  /** Stop after this many failures. Default 10. */
  readonly maxFailures?: number
}

/** Restores `count` generated histories; a throw also counts as a violation. */
export async function fuzzRestore(
  count: number,
  seed: number,
  { progress, maxFailures = 10 }: RestoreFuzzOptions = {},
): Promise<RestoreFuzzReport> {
  const failures: { seed: number; law: string }[] = []
  let histories = 0
  for (; histories < count && failures.length < maxFailures; histories += 1) {
    const law = await lawBrokenBy(seed + histories)
    if (law !== undefined) failures.push({ seed: seed + histories, law })
    if (progress && (histories + 1) % 10_000 === 0) {
      progress(`${histories + 1} of ${count} histories, ${failures.length} failures`)
    }
  }
  return { histories, failures }
}

async function lawBrokenBy(seed: number): Promise<string | undefined> {
  try {
    return await brokenRestoreLaw(malformedHistory(seed))
  } catch (error) {
    return `restoring throws: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
  }
}

function numberOption(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? fallback : Number(process.argv[at + 1])
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [count, seed] = [numberOption('count', 10_000), numberOption('seed', 1)]
  const report = await fuzzRestore(count, seed, { progress: line => console.log(line) })
  for (const { seed: at, law } of report.failures) console.log(`seed ${at}: ${law}`)
  console.log(`restore: ${report.histories} histories, ${report.failures.length} failures, seed ${seed}`)
  process.exitCode = report.failures.length === 0 ? 0 : 1
}
