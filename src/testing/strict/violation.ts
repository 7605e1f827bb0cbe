import type { JsonObject } from './json.js'
import type { Reading, StrictPlatform, StrictProfile } from './profile.js'
import type { Quirk } from './script.js'

/** One rule that a request breaks, with what the vendor says about it. */
export interface Violation {
  /** The label of the rule: `G1`, `C2`, `A11`, … or `<vendor>-schema` for the shape of the JSON. */
  readonly code: string
  /** The HTTP status. 200 means that the vendor does not refuse but answers with nothing. */
  readonly status: number
  /** The vendor's words. */
  readonly message: string
  /** OpenAI and Mistral say which parameter is at fault. */
  readonly param?: string | null
  /** The place of the fault, such as `messages[3]`, where the vendor's words do not name it. Never sent. */
  readonly place?: string
  /** The vendor's own error code, where its error bodies have one. */
  readonly errorCode?: string | number | null
  /** The vendor's own error type, where it is not the usual one. */
  readonly errorType?: string
  /** Structured details, where the vendor sends them. */
  readonly details?: unknown
}

/**
 * The reading of media limits on which sources disagree. `documented` refuses only where all sources agree; `strict` refuses
 * where any source does, and refuses bytes that are no picture.
 */
export type LimitsReading = 'strict' | 'documented'

/** What a rule may know besides the body. */
export interface JudgeContext {
  readonly profile: StrictProfile
  readonly reading: Reading
  readonly limits: LimitsReading
  readonly platform: StrictPlatform | undefined
  readonly quirks: ReadonlySet<Quirk>
  readonly contextWindow: number
  /** Lower-case names. Empty when a body is judged without HTTP. */
  readonly headers: Readonly<Record<string, string>>
  /** True for token counting, which needs fewer fields. */
  readonly countOnly: boolean
  /** True when signatures and ids are a real vendor's and cannot be verified. */
  readonly opaque: boolean
  /** The account that the server belongs to: it refuses what was sealed for another one. */
  readonly account: string | undefined
  /** Responses that this server keeps: what `previous_response_id` and stored item ids refer to. */
  readonly stored: StoredResponses
}

/** Output items of earlier answers, by response id. */
export type StoredResponses = ReadonlyMap<string, readonly JsonObject[]>

/** A rule is a small pure function; the order of a family's rules is the order in which its vendor checks. */
export type Rule = (body: JsonObject, context: JudgeContext) => Violation | undefined

/** Every violation, at most one per rule, in the vendor's order. */
export function applyRules(rules: readonly Rule[], body: JsonObject, context: JudgeContext): Violation[] {
  // A copy for each judgement: what is read once of it cannot outlive a change that the caller makes.
  const judged = { ...body }
  const violations: Violation[] = []
  for (const rule of rules) {
    const violation = rule(judged, context)
    if (violation !== undefined) violations.push(violation)
  }
  return violations
}

/** All rules of a family look at the same reading of a body; it is made once per judgement. */
export function readOnce<Reading>(read: (body: JsonObject) => Reading): (body: JsonObject) => Reading {
  const readings = new WeakMap<JsonObject, Reading>()
  return body => {
    const known = readings.get(body)
    if (known !== undefined) return known
    const reading = read(body)
    readings.set(body, reading)
    return reading
  }
}

/** The first defined value of a mapping: rules look for the first fault in a list. */
export function firstOf<Item, Found>(
  items: readonly Item[],
  find: (item: Item, index: number) => Found | undefined,
): Found | undefined {
  for (let index = 0; index < items.length; index += 1) {
    const found = find(items[index] as Item, index)
    if (found !== undefined) return found
  }
  return undefined
}
