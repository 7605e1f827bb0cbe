/** The three properties of repair, as one check that says which of them a history violates. */

import { DUMMY_SIGNATURE } from '../../src/base/markers.js'
import type { ProviderMessage, ProviderPart, Repair } from '../../src/provider/provider.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import type { LimitsReading } from '../../src/provider/repair/media-limits.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { ACCOUNT } from './repair-generator.js'
import { boundedCache, isLegal, violations } from './repair-legality.js'

const mediaHolders = boundedCache<object, boolean>()

export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

/** Anyone who can say what a profile's server would refuse. */
export type Judge = (
  messages: readonly ProviderMessage[],
  profile: ProfileName,
  limits?: LimitsReading,
) => readonly string[]

export interface Verdict {
  /** The property that repair violated, and how. */
  readonly broken?: string
  /** The history needed no repair. */
  readonly wasLegal: boolean
}

/**
 * Whether repair keeps its properties on a history. A further check may decide whether the outcome is valid. The history is
 * frozen: what is read of its parts once holds for every profile.
 */
export function checkLaws(history: readonly ProviderMessage[], profile: ProfileName, judge?: Judge): Verdict {
  const { messages, repairs } = repairHistory(history, profile, { account: ACCOUNT })
  const illegal = violations(messages, profile)
  const wasLegal = messages === history ? illegal.length === 0 : isLegal(history, profile)
  const refused = [
    ...illegal,
    ...(judge?.(messages, profile) ?? []),
    ...byStrictLimits(history, profile, { judge, messages }),
  ]
  const broken =
    refused.length > 0
      ? `legal: ${refused.join('; ')}`
      : brokenLaw({ history, messages, repairs, profile, wasLegal })
  return broken === undefined ? { wasLegal } : { wasLegal, broken }
}

/** What is refused after the stricter reading of disputed limits has been learnt. */
function byStrictLimits(
  history: readonly ProviderMessage[],
  profile: ProfileName,
  { judge, messages }: { judge: Judge | undefined; messages: readonly ProviderMessage[] },
): readonly string[] {
  if (!judge || !holdsMedia(history)) return []
  // Without a disputed rule both readings are one.
  const { limits, listed } = PROFILES[profile].media
  const hasReadings = limits.length > 0 || listed !== undefined
  const strict = hasReadings
    ? repairHistory(history, profile, { mediaLimits: 'strict', account: ACCOUNT }).messages
    : messages
  return judge(strict, profile, 'strict')
}

const holdsMedia = (history: readonly ProviderMessage[]) =>
  mediaHolders(history, () =>
    history.some(message =>
      message.parts?.some(
        part => part.type === 'media' || (part.type === 'tool-result' && part.media?.length),
      ),
    ),
  )

interface Outcome {
  history: readonly ProviderMessage[]
  messages: readonly ProviderMessage[]
  repairs: readonly Repair[]
  profile: ProfileName
  wasLegal: boolean
}

function brokenLaw({ history, messages, repairs, profile, wasLegal }: Outcome): string | undefined {
  if (wasLegal && messages !== history) return `still: changed by ${kinds(repairs)}`
  const again =
    messages === history ? { messages, repairs } : repairHistory(messages, profile, { account: ACCOUNT })
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
  return brokenTokens(history, messages) ?? brokenSignatures(history, messages)
}

function brokenTokens(
  history: readonly ProviderMessage[],
  messages: readonly ProviderMessage[],
): string | undefined {
  if (messages === history) return undefined
  const kept = new Set(messages.flatMap(message => messageReading(message).tokens))
  // A token may be part of a longer word now, such as one of two texts that were joined.
  let text: string | undefined
  for (const token of historyReading(history).tokens) {
    if (kept.has(token)) continue
    text ??= joined(messages)
    if (!text.includes(token)) return `honest: ${token} is lost`
  }
  return undefined
}

function brokenSignatures(
  history: readonly ProviderMessage[],
  messages: readonly ProviderMessage[],
): string | undefined {
  for (const message of messages) {
    for (const part of message.parts) {
      const signature = 'signature' in part ? part.signature : undefined
      if (!signature || signature === DUMMY_SIGNATURE) continue
      if (!historyReading(history).text.includes(JSON.stringify(signature)))
        return `honest: the signature ${signature} was altered`
    }
  }
  return undefined
}

interface Reading {
  text: string
  tokens: readonly string[]
}

// u: a user's text, x: anybody's text, s: an instruction, a: an answer, r: a result, v: a vendor part's words.
const TOKEN = /\b[uxsarv]\d+#/g

/** Each history is judged for every profile, and read once; so is each part, which most profiles send as it is. */
const readings = boundedCache<object, Reading>()

function historyReading(history: readonly ProviderMessage[]): Reading {
  return readings(history, () => {
    const tokens = new Set(history.flatMap(message => messageReading(message).tokens))
    return { text: joined(history), tokens: [...tokens] }
  })
}

function joined(messages: readonly ProviderMessage[]): string {
  return messages.map(message => messageReading(message).text).join('\n')
}

function messageReading(message: ProviderMessage): Reading {
  return readings(message, () => {
    const { parts, ...rest } = message
    const all = [reading(rest), ...parts.map(part => partReading(part))]
    return { text: all.map(one => one.text).join('\n'), tokens: all.flatMap(one => one.tokens) }
  })
}

function partReading(part: ProviderPart): Reading {
  // Some histories hold text where a part should be.
  return typeof part === 'object' ? readings(part, () => reading(part)) : reading(part)
}

function reading(value: unknown): Reading {
  const text = written(value)
  return { text, tokens: text.match(TOKEN) ?? [] }
}

/** A longer one is a file: it has no token, and a hundred of them are more than one text can hold. */
const LONGEST_TEXT = 100_000

/** All of it as text, whatever it is: what JSON cannot say, and what is nested too deeply for it. */
function written(value: unknown): string {
  const texts: string[] = []
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next === 'string') texts.push(next.length > LONGEST_TEXT ? '' : JSON.stringify(next))
    else if (typeof next !== 'object' || next === null) texts.push(String(next))
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
  const findings = lintHistory(history, profile, { next: 'none', account: ACCOUNT })
  // A fault that only follows from another one is part of its finding.
  const agrees = findings.length > 0 === repairs > 0 && findings.length <= repairs
  return agrees ? undefined : 'lint: disagrees with repair'
}
