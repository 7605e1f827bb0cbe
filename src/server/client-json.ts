/**
 * The JSON of a request body, bounded before it is parsed: what is small in bytes may still hold so many values, or
 * nest so deeply, that parsing and checking it would block the event loop.
 *
 * - depth and number of values are counted in the text, in slices between which other requests are served;
 * - long strings are skipped, so that an attachment of many megabytes costs next to nothing;
 * - what has passed is parsed at once: bytes and values are bounded, so the time is.
 */
import type { Context } from 'hono'
import { z } from 'zod'
import { isRecord } from '../base/is-record.js'
import { createPause } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { State } from '../session/message.js'
import { beyond, checkCount } from './refusal.js'
import type { ServerEnv, ServerLimits } from './server-context.js'

/** The JSON of the body; an empty body is `{}` where it is optional. */
export async function readClientJson(
  c: Context<ServerEnv>,
  options: { optional?: boolean | undefined } = {},
): Promise<unknown> {
  const text = await c.req.text()
  return text === '' && options.optional ? {} : clientJson(text, c.get('limits'))
}

/** The JSON of a text, checked before it is parsed. */
export async function clientJson(text: string, limits: JsonLimits): Promise<unknown> {
  await checkShape(text, limits)
  try {
    return JSON.parse(text)
  } catch {
    throw new AgentError('invalid-argument', 'The body of the request is not JSON.')
  }
}

type JsonLimits = Pick<ServerLimits, 'maxDepth' | 'maxValues'>

/** Characters between two pauses. */
const SLICE = 256 * 1024

/** Refuses a text whose JSON would be too deep or too large to parse at once. */
export async function checkShape(text: string, limits: JsonLimits): Promise<void> {
  const pause = createPause()
  const scan = { at: 0, depth: 0, values: 1 }
  while (scan.at < text.length) {
    scanSlice(text, scan, limits)
    await pause()
  }
}

/** Text that is not JSON is scanned too; parsing it fails afterwards. */
function scanSlice(
  text: string,
  scan: { at: number; depth: number; values: number },
  { maxDepth, maxValues }: JsonLimits,
): void {
  const end = scan.at + SLICE
  while (scan.at < text.length && scan.at < end) {
    const unit = text.charCodeAt(scan.at)
    scan.at = unit === QUOTE ? endOfString(text, scan.at) : scan.at + 1
    if (unit === COMMA) scan.values += 1
    else if (unit === OPEN_OBJECT || unit === OPEN_LIST) {
      scan.values += 1
      scan.depth += 1
      if (scan.depth > maxDepth)
        throw beyond({ limit: 'maxDepth', most: maxDepth, sent: scan.depth, isAtLeast: true })
    } else if (unit === CLOSE_OBJECT || unit === CLOSE_LIST) scan.depth -= 1
    if (scan.values > maxValues)
      throw beyond({ limit: 'maxValues', most: maxValues, sent: scan.values, isAtLeast: true })
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d

/** The position after the string that begins at `start`. A quote after an odd number of backslashes is part of it. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return at + 1
  }
  return text.length
}

const REFUSED_PREFIXES = ['lango:', 'app:']

/** An object with any keys. Zod's own record drops `__proto__` silently. */
export const JsonObject = z.custom<Record<string, unknown>>(isRecord, 'Invalid input: expected an object')

/**
 * State that a client may set. Lango's own keys hold approvals, and an app's keys are shared by all users: a client
 * may write neither. `__proto__` is refused at any depth, because an assignment under this name
 * changes an object instead of adding to it; `constructor` and all other names are ordinary keys.
 */
export function clientState(
  delta: Readonly<Record<string, unknown>>,
  { maxStateKeys }: Pick<ServerLimits, 'maxStateKeys'>,
): State {
  const keys = Object.keys(delta)
  checkCount({ limit: 'maxStateKeys', most: maxStateKeys, sent: keys.length })
  for (const key of keys) {
    const prefix = REFUSED_PREFIXES.find(refused => key.toLowerCase().startsWith(refused))
    if (prefix) {
      throw new AgentError(
        'invalid-argument',
        `State keys that begin with "${prefix}" cannot be set by a client.`,
      )
    }
  }
  if (hasPrototypeKey(delta))
    throw new AgentError('invalid-argument', 'The state key "__proto__" cannot be set by a client.')
  return delta
}

function hasPrototypeKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPrototypeKey)
}
