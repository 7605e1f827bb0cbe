/**
 * What must never be printed. Secrets are recognised by the name of their key and by their pattern; both are checked,
 * because a key may be part of a message and a password part of a URL.
 */

/** Replaces a secret. */
export const HIDDEN = '[hidden]'

/**
 * A copy for printing: keys, tokens, headers and passwords in URLs are hidden, class instances are replaced by their name.
 *
 * ```ts
 * import { redact } from 'lango'
 *
 * console.log(redact({ apiKey: 'sk-secret', model: 'gpt-5.2' })) // { apiKey: '[hidden]', model: 'gpt-5.2' }
 * ```
 */
export function redact(value: unknown): unknown {
  return redactAt(value, [], 0)
}

/** The same text without what looks like a key, a token or a password in a URL. The time is linear in the length. */
export function redactText(text: string): string {
  let shown = text.includes(JWT_START) ? text.replace(DOTTED_RUN, withoutJwt) : text
  for (const [pattern, replacement] of PATTERNS) shown = shown.replace(pattern, replacement)
  return shown
}

/** Whether a key of that name holds a secret. Numbers under such a name are counts, not secrets. */
export function isSecretName(name: string): boolean {
  const hyphenated = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll(/[_.\s]/g, '-')
    .toLowerCase()
  return SECRET_NAME.test(hyphenated)
}

/** Whether the value at that path of a configuration must never be shown. */
export function isSecretPath(path: readonly PropertyKey[]): boolean {
  const parent = path.at(-2)
  if (parent === 'headers' || parent === 'env' || parent === 'tokens') return true
  const last = path.at(-1)
  return typeof last === 'string' && isSecretName(last)
}

const SECRET_NAME =
  /(^|-)(api-?keys?|x-api-key|key-?id|access-?keys?|private-?keys?|authorization|tokens?|secrets?|passwords?|passphrase|cookies?|credentials?)$/

const MAXIMUM_DEPTH = 12

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}/gi, `$1 ${HIDDEN}`],
  [/\b(sk|pk|rk)[-_][A-Za-z0-9_-]{8,}/g, HIDDEN],
  [/\bAIza[A-Za-z0-9_-]{10,}/g, HIDDEN],
  [/\bya29\.[A-Za-z0-9._-]{8,}/g, HIDDEN],
  [/\b(gsk|xai|hf|ghp|gho|ghs|github_pat|glpat|npm|csk|fw|tgp)[-_][A-Za-z0-9_-]{12,}/g, HIDDEN],
  [/\blango_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g, HIDDEN],
  [/\bAKIA[A-Z0-9]{12,}/g, HIDDEN],
  // A password may hold any character but those that end a URL's authority. The scheme is not part of the pattern:
  // the search for its start would be repeated at each letter.
  [/(?<=[a-z0-9+.-])(:\/\/[^\s:/?#@]*):[^\s/?#]*@/gi, `$1:${HIDDEN}@`],
  [/([?&](?:api[-_]?key|key|token|access_token|password|secret|sig(?:nature)?)=)[^&\s#"']+/gi, `$1${HIDDEN}`],
]

const JWT_START = 'eyJ'
const DOTTED_RUN = /[A-Za-z0-9_.-]+/g

/**
 * A JSON Web Token is three parts with dots between them, the first of which starts with `eyJ`. The parts are compared
 * one by one, because a single pattern would read the same long run again for each `eyJ` in it.
 */
function withoutJwt(run: string): string {
  if (!run.includes(JWT_START)) return run
  const parts = run.split('.')
  const shown: string[] = []
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] ?? ''
    const start = part.search(/\beyJ/)
    const isJwt =
      start !== -1 &&
      part.length - start >= 11 &&
      (parts[index + 1]?.length ?? 0) >= 8 &&
      parts[index + 2] !== undefined
    shown.push(isJwt ? part.slice(0, start) + HIDDEN : part)
    if (isJwt) index += 2
  }
  return shown.join('.')
}

function redactAt(value: unknown, path: readonly PropertyKey[], depth: number): unknown {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean')
    return value
  if (typeof value === 'string') return isSecretPath(path) ? HIDDEN : redactText(value)
  if (typeof value !== 'object') return `[${typeof value}]`
  if (depth > MAXIMUM_DEPTH) return '[too deep]'
  if (Array.isArray(value)) return value.map((item, index) => redactAt(item, [...path, index], depth + 1))
  if (!isPlain(value)) return `[${value.constructor?.name ?? 'object'}]`
  // Tokens are the keys of their object; the users they belong to may be shown.
  if (path.at(-1) === 'tokens') return Object.values(value).map(user => `${HIDDEN} of ${String(user)}`)
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, redactAt(item, [...path, key], depth + 1)]),
  )
}

/** An object that holds data and nothing else. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}
