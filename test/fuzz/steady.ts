/**
 * Law 4 with many more sessions. `--count` is the number of request pairs per profile:
 *
 *     node --import tsx test/fuzz/steady.ts --count 100000 --seed 1 [--only PROFILE]
 *
 * The seed of a session is the seed given plus its number, so a failure is one short run away.
 */
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { playSession } from '../properties/steady-sessions.js'

const [count, seed] = [Number(option('count') ?? 1000), Number(option('seed') ?? 1)]
const only = option('only')
/** A profile is given up after so many failures. */
const MOST_FAILURES = 10

let failures = 0
for (const profile of Object.keys(PROFILES) as ProfileName[]) {
  if (only === undefined || profile === only) failures += await fuzzProfile(profile)
}
process.exitCode = failures === 0 ? 0 : 1

async function fuzzProfile(profile: ProfileName): Promise<number> {
  const breaks: Record<string, number> = {}
  let [pairs, sessions, failed] = [0, 0, 0]
  for (; pairs < count && failed < MOST_FAILURES; sessions += 1) {
    const problem = await play(profile, seed + sessions, breaks)
    pairs += problem.pairs
    if (problem.text === undefined) continue
    failed += 1
    console.log(`${profile}, seed ${seed + sessions}: ${problem.text}`)
  }
  console.log(
    `steady ${profile}: ${pairs} pairs of ${sessions} sessions, ${failed} failures, breaks ${JSON.stringify(breaks)}`,
  )
  return failed
}

async function play(profile: ProfileName, at: number, breaks: Record<string, number>) {
  try {
    const report = await playSession(profile, at)
    for (const [reason, times] of Object.entries(report.breaks))
      breaks[reason] = (breaks[reason] ?? 0) + times
    const [first] = report.broken
    const text =
      first &&
      `a request ${first.extends ? 'extends' : 'does not extend'} the one before, receipts: ${first.breaks.join() || 'none'}`
    return { pairs: report.pairs, text }
  } catch (error) {
    return { pairs: 1, text: `the session fails: ${error instanceof Error ? error.stack : String(error)}` }
  }
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? undefined : process.argv[at + 1]
}
