/**
 * Law 4 with many more sessions. `--count` is the number of request pairs per profile:
 *
 *     node --import tsx test/fuzz/steady.ts --count 100000 --seed 1 [--only PROFILE]
 *
 * The profiles take turns, and each round prints a line. The seed of a session is the seed given plus its number, so a
 * failure is one short run away.
 */
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { playSession } from '../properties/steady-sessions.js'

const [count, seed] = [Number(option('count') ?? 1000), Number(option('seed') ?? 1)]
const only = option('only')
/** A profile is given up after so many failures. */
const MOST_FAILURES = 10

/** So many sessions of each profile are a round. */
const ROUND = 20

/** What was played of a profile. */
interface Played {
  pairs: number
  sessions: number
  resumed: number
  failures: number
  readonly breaks: Record<string, number>
}

const profiles = (Object.keys(PROFILES) as ProfileName[]).filter(name => only === undefined || name === only)
if (profiles.length === 0) {
  console.error(`No such profile: ${only}. Choose one of: ${Object.keys(PROFILES).join(', ')}.`)
  process.exit(1)
}
const played = new Map(
  profiles.map((name): [ProfileName, Played] => [
    name,
    { pairs: 0, sessions: 0, resumed: 0, failures: 0, breaks: {} },
  ]),
)
// In rounds, so that a run that is interrupted has played about as many pairs of every profile.
while (profiles.some(isOpen)) {
  for (const profile of profiles) await playRound(profile)
  const all = [...played.values()]
  const least = Math.min(...all.map(({ pairs }) => pairs))
  console.log(
    `${least} of ${count} pairs of each of ${profiles.length} profiles, ${sum('pairs')} in all, ${sum('resumed')} resumed runs, ${sum('failures')} failures`,
  )
}
for (const [profile, { pairs, sessions, resumed, failures, breaks }] of played) {
  console.log(
    `steady ${profile}: ${pairs} pairs of ${sessions} sessions, ${resumed} resumed runs, ${failures} failures, breaks ${JSON.stringify(breaks)}`,
  )
}
process.exitCode = sum('failures') === 0 ? 0 : 1

function isOpen(profile: ProfileName): boolean {
  const { pairs, failures } = of(profile)
  return pairs < count && failures < MOST_FAILURES
}

function of(profile: ProfileName): Played {
  return played.get(profile) as Played
}

function sum(what: 'pairs' | 'resumed' | 'failures'): number {
  return [...played.values()].reduce((total, one) => total + one[what], 0)
}

async function playRound(profile: ProfileName): Promise<void> {
  const state = of(profile)
  for (let session = 0; session < ROUND && isOpen(profile); session++) {
    const at = seed + state.sessions
    const { pairs, resumed, text } = await play(profile, at, state.breaks)
    state.sessions += 1
    state.pairs += pairs
    state.resumed += resumed
    if (text === undefined) continue
    state.failures += 1
    console.log(`${profile}, seed ${at}: ${text}`)
  }
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
    return { pairs: report.pairs, resumed: report.resumed, text }
  } catch (error) {
    return {
      pairs: 1,
      resumed: 0,
      text: `the session fails: ${error instanceof Error ? error.stack : String(error)}`,
    }
  }
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? undefined : process.argv[at + 1]
}
