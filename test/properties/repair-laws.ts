/** The three properties of repair, as one check that says which of them a history violates. */

import { DUMMY_SIGNATURE } from '../../src/base/markers.js'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { violations } from './repair-legality.js'

export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

/** Anyone who can say what a profile's server would refuse. */
export type Judge = (messages: readonly ProviderMessage[], profile: ProfileName) => readonly string[]

export interface Verdict {
  /** The property that repair violated, and how. */
  readonly broken?: string
  /** The history needed no repair. */
  readonly wasLegal: boolean
}

/** Whether repair keeps its properties on a history. A further check may decide whether the outcome is valid. */
export function checkLaws(history: readonly ProviderMessage[], profile: ProfileName, judge?: Judge): Verdict {
  const wasLegal = violations(history, profile).length === 0
  const broken = brokenLaw(history, profile, wasLegal, judge)
  return broken === undefined ? { wasLegal } : { wasLegal, broken }
}

function brokenLaw(
  history: readonly ProviderMessage[],
  profile: ProfileName,
  wasLegal: boolean,
  judge: Judge | undefined,
): string | undefined {
  const { messages, repairs } = repairHistory(history, profile)
  const illegal = [...violations(messages, profile), ...(judge?.(messages, profile) ?? [])]
  if (illegal.length > 0) return `legal: ${illegal.join('; ')}`
  if (wasLegal && messages !== history) return `still: changed by ${kinds(repairs)}`
  const again = repairHistory(messages, profile)
  if (again.messages !== messages) return `still: repaired twice, ${kinds(again.repairs)}`
  if (messages !== history && repairs.length === 0) return 'honest: changed without a receipt'
  if (messages === history && repairs.length > 0)
    return `honest: receipts without a change, ${kinds(repairs)}`
  return brokenHonesty(history, messages, repairs) ?? brokenLint(history, profile, repairs.length)
}

function kinds(repairs: readonly { step: string; kind: string }[]): string {
  return repairs.map(repair => `${repair.step}/${repair.kind}`).join(', ')
}

function brokenHonesty(
  history: readonly ProviderMessage[],
  messages: readonly ProviderMessage[],
  repairs: readonly { at: number }[],
): string | undefined {
  const last = Math.max(history.length - 1, 0)
  if (repairs.some(repair => repair.at < 0 || repair.at > last)) return 'honest: a receipt points nowhere'
  const { text: before, tokens } = readingOf(history)
  const after = messages === history ? before : written(messages)
  for (const token of tokens) {
    if (!after.includes(token)) return `honest: ${token} is lost`
  }
  for (const message of messages) {
    for (const part of message.parts) {
      const signature = 'signature' in part ? part.signature : undefined
      if (signature && signature !== DUMMY_SIGNATURE && !before.includes(JSON.stringify(signature))) {
        return `honest: the signature ${signature} was altered`
      }
    }
  }
  return undefined
}

interface Reading {
  text: string
  tokens: readonly string[]
}

/** Each history is judged for every profile, and read once. */
const readings = new WeakMap<readonly ProviderMessage[], Reading>()

function readingOf(history: readonly ProviderMessage[]): Reading {
  const known = readings.get(history)
  if (known) return known
  const text = written(history)
  // u: a user's text, x: anybody's text, s: an instruction, a: an answer, r: a result, v: a vendor part's words.
  const reading = { text, tokens: [...new Set(text.match(/\b[uxsarv]\d+#/g))] }
  readings.set(history, reading)
  return reading
}

/** All of it as text, whatever it is: what JSON cannot say, and what is nested too deeply for it. */
function written(value: unknown): string {
  const texts: string[] = []
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null)
      texts.push(typeof next === 'string' ? JSON.stringify(next) : String(next))
    else if (next instanceof Map) open.push(...next.keys(), ...next.values())
    else for (const [key, inner] of Object.entries(next)) open.push(key, inner)
  }
  return texts.join('\n')
}

/** Lint sees what repair does: nothing to say exactly when there is nothing to do. */
function brokenLint(
  history: readonly ProviderMessage[],
  profile: ProfileName,
  repairs: number,
): string | undefined {
  const findings = lintHistory(history, profile, { next: 'none' })
  // A fault that only follows from another one is part of its finding.
  const agrees = findings.length > 0 === repairs > 0 && findings.length <= repairs
  return agrees ? undefined : 'lint: disagrees with repair'
}
