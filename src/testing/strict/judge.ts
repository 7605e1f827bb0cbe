import { checkArgument } from '../../errors.js'
import { BINDING_BETA } from './anthropic/binding.js'
import { familyOf } from './families.js'
import { isObject } from './json.js'
import {
  PROFILE_FACTS,
  type Reading,
  STRICT_PROFILES,
  type StrictPlatform,
  type StrictProfile,
} from './profile.js'
import type { Quirk } from './script.js'
import type { JudgeContext, LimitsReading, StoredResponses, Violation } from './violation.js'

export interface JudgeOptions {
  /** Default `strict`. */
  readonly reading?: Reading
  /** Default `documented`. */
  readonly limits?: LimitsReading
  readonly platform?: StrictPlatform
  readonly quirks?: readonly Quirk[]
  /** In tokens, four bytes of JSON each. Default: the profile's. */
  readonly contextWindow?: number
  /** Lower-case names. Default: what the vendor's current SDK sends. */
  readonly headers?: Readonly<Record<string, string>>
  readonly countOnly?: boolean
  /**
   * The body is of a real vendor: signatures, encrypted content and item ids cannot be verified here and count as
   * genuine where they look it. Default false: only what the strict servers made is.
   */
  readonly opaque?: boolean
  /** The account that the request is made with: what was sealed for another one is refused. Default: any. */
  readonly account?: string | undefined
  readonly stored?: StoredResponses
}

/** What Anthropic's SDK 1.x sends, and the beta without which a body cannot say what becomes of bound thinking. */
const CURRENT_HEADERS = { 'anthropic-version': '2026-10-21', 'anthropic-beta': BINDING_BETA }

const NEEDS_PROFILE = `needs one of these profiles: ${STRICT_PROFILES.join(', ')}`

/**
 * Every rule of a profile that a request body breaks, in the order in which the vendor would notice; empty
 * when the vendor would accept it. The same rules as the server's, without HTTP.
 *
 * ```ts
 * import { judge } from 'lango/testing'
 *
 * const violations = judge('anthropic-4.6', { model: 'claude', max_tokens: 100, messages: [] })
 * ```
 */
export function judge(profile: StrictProfile, body: unknown, options: JudgeOptions = {}): Violation[] {
  checkArgument(STRICT_PROFILES.includes(profile), 'judge', NEEDS_PROFILE)
  if (!isObject(body)) return [notAnObject(profile)]
  return familyOf(profile).judge(body, judgeContext(profile, options))
}

export function judgeContext(profile: StrictProfile, options: JudgeOptions): JudgeContext {
  return {
    profile,
    reading: options.reading ?? 'strict',
    limits: options.limits ?? 'documented',
    platform: options.platform,
    quirks: new Set(options.quirks),
    contextWindow: options.contextWindow ?? PROFILE_FACTS[profile].contextWindow,
    headers: options.headers ?? CURRENT_HEADERS,
    countOnly: options.countOnly ?? false,
    opaque: options.opaque ?? false,
    account: options.account,
    stored: options.stored ?? new Map(),
  }
}

/** What the vendors say about a body that is not a JSON object. */
export function notAnObject(profile: StrictProfile): Violation {
  switch (PROFILE_FACTS[profile].family) {
    case 'gemini':
      return {
        code: 'G-schema',
        status: 400,
        message: 'Invalid JSON payload received. Root element must be a message.',
      }
    case 'converse':
      return {
        code: 'B-schema',
        status: 400,
        message: 'Malformed input request: the body is not a JSON object.',
      }
    case 'anthropic':
      return { code: 'A-schema', status: 400, message: 'The request body is not valid JSON' }
    default:
      return {
        code: 'C-schema',
        status: 400,
        message:
          "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
        param: null,
        errorCode: null,
      }
  }
}
