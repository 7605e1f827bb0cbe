/**
 * What repair costs: ADK's contents → neutral messages → repaired → the provider's body, against a
 * `structuredClone` of the same contents in the same run. Every profile is measured; the slowest is the one
 * that counts. Then: how the time grows with the length of the history.
 *
 *     npm run bench -- repair [--json]
 */
import { convertMessages } from '../src/adk/model/convert-messages.js'
import type { ProfileName } from '../src/provider/repair/profile.js'
import { PROFILES } from '../src/provider/repair/profile.js'
import { repairHistory } from '../src/provider/repair/repair-history.js'
import { wireBody } from '../test/properties/repair-judge.js'
import { Report } from './support/report.js'

type Contents = Parameters<typeof convertMessages>[0]

const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]
const report = new Report('repair')

let slowestProfile: ProfileName = 'gemini-3'
const legal = conversation(100, false)
const malformed = conversation(100, true)
for (const [kind, contents] of [
  ['legal', legal],
  ['malformed', malformed],
] as const) {
  report.progress(`100 ${kind} contents, every profile …`)
  const measured = PROFILE_NAMES.map(profile => ({ profile, ...compare(contents, profile) }))
  const slowest = measured.reduce((one, other) =>
    other.ours / other.peer > one.ours / one.peer ? other : one,
  )
  const name = `100 ${kind} contents to a body (slowest: ${slowest.profile}) vs structuredClone`
  report.atMost(name, 'µs', slowest.ours, slowest.peer, 3)
  slowestProfile = slowest.profile
}
report.progress('1,000 and 10,000 contents …')
for (const [kind, broken] of [
  ['legal', false],
  ['malformed', true],
] as const) {
  const long = send(conversation(10_000, broken), slowestProfile)
  const short = send(conversation(1000, broken), slowestProfile)
  const { ours, peer } = alternate(long, short, { rounds: [1, 10], samples: 25, warmUp: 5 })
  report.atMost(`10,000 ${kind} contents vs 1,000`, 'µs', ours, peer, 12)
}
report.finish()

/** The whole walk of a request, as a provider does it. */
function send(contents: Contents, profile: ProfileName): () => unknown {
  return () => wireBody(repairHistory(convertMessages(contents), profile).messages, profile)
}

function compare(contents: Contents, profile: ProfileName): { ours: number; peer: number } {
  const clone = () => structuredClone(contents)
  return alternate(send(contents, profile), clone, { rounds: [5, 5], samples: 80, warmUp: 100 })
}

/**
 * Microseconds of one call each, measured in turns so that whatever slows the machine slows both; of all
 * samples the tenth percentile, because what else runs on the machine can only add to the true cost.
 */
function alternate(
  ours: () => unknown,
  peer: () => unknown,
  { rounds, samples, warmUp }: { rounds: readonly [number, number]; samples: number; warmUp: number },
): { ours: number; peer: number } {
  time(ours, warmUp)
  time(peer, warmUp)
  const pairs = Array.from({ length: samples }, () => [time(ours, rounds[0]), time(peer, rounds[1])] as const)
  return { ours: undisturbed(pairs.map(pair => pair[0])), peer: undisturbed(pairs.map(pair => pair[1])) }
}

function undisturbed(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 10)] ?? Number.NaN
}

/**
 * What was made is kept until the sample ends: ten requests of 1,000 contents then hold as much memory as one
 * of 10,000, and the collector, whose work grows with what is alive, weighs on both alike.
 */
function time(work: () => unknown, rounds: number): number {
  const made: unknown[] = []
  const start = performance.now()
  for (let round = 0; round < rounds; round++) made.push(work())
  return ((performance.now() - start) * 1000) / made.length
}

/** Turns of six contents with two parallel calls. Broken: every third answer is lost, and roles repeat. */
function conversation(length: number, broken: boolean): Contents {
  const contents: { role: string; parts: Record<string, unknown>[] }[] = []
  for (let turn = 0; contents.length < length; turn++) {
    const ids = [`call_${turn}_a`, `call_${turn}_b`]
    const calls = ids.map(id => ({
      functionCall: { id, name: 'search', args: { query: `words ${id}`, limit: 10 } },
    }))
    const results = ids.map(id => ({
      functionResponse: { id, name: 'search', response: { output: `found by ${id}: ${'text '.repeat(30)}` } },
    }))
    contents.push({ role: 'user', parts: [{ text: `question ${turn}: ${'word '.repeat(40)}` }] })
    contents.push({ role: 'model', parts: [{ text: 'Let me look.' }, ...calls] })
    contents.push({ role: 'user', parts: broken && turn % 3 === 0 ? results.slice(1) : results })
    contents.push({ role: 'model', parts: [{ text: `answer ${turn}: ${'word '.repeat(60)}` }] })
    if (broken && turn % 2 === 0) contents.push({ role: 'model', parts: [{ text: 'And one more thing.' }] })
    contents.push({ role: 'user', parts: [{ text: 'Go on.' }] })
    contents.push({ role: 'model', parts: [{ text: 'Gladly.' }] })
  }
  return contents.slice(0, length) as unknown as Contents
}
