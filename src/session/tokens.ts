import { checkArgument } from '../errors.js'
import type { Message, ToolCall } from './message.js'

/**
 * What a message will roughly cost in a model's context: its texts by `estimateTokens`, plus a little for the
 * message and for each call. No tokenizer runs here: they cost more than the append itself and are quadratic on
 * long runs of one letter. Providers' reported usage calibrates the estimate elsewhere.
 *
 * - A tool result counts once: `content` that merely repeats the outputs adds nothing.
 * - Images and files cost a fixed sum, never their base64.
 * - Signatures are opaque proofs, not text: they add nothing.
 * - What never reaches a model (usage, actions, metadata) adds nothing.
 *
 * ```ts
 * import { countMessageTokens } from 'lango/store'
 *
 * const tokens = countMessageTokens({ role: 'user', author: 'user', content: 'Hello', timestamp: Date.now() })
 * ```
 */
export function countMessageTokens(message: Message): number {
  checkArgument(
    typeof message?.content === 'string',
    'countMessageTokens',
    'needs a message with a text as content',
  )
  const calls = message.toolCalls
  let tokens = 0
  let fixed = MESSAGE_TOKENS
  if (calls !== undefined) {
    for (const call of calls) tokens += callTokens(call)
    fixed += CALL_TOKENS * calls.length
  }
  if (calls === undefined || !repeatsOutputs(message.content, calls))
    tokens += estimateTokens(message.content)
  if (message.extra !== undefined) {
    const extra = { tokens: 0, media: 0 }
    for (const [name, value] of Object.entries(message.extra)) {
      if (!NEVER_SENT.has(name)) weigh(value, name, extra, 0)
    }
    tokens += extra.tokens
    fixed += MEDIA_TOKENS * extra.media
  }
  return fixed + Math.ceil(tokens)
}

/** The cost of a message apart from its text. */
export const MESSAGE_TOKENS = 4
/** The cost of a call or an answer apart from its name and JSON. */
export const CALL_TOKENS = 8
/** The cost of an image or a file, whatever its size: between a tile of Gemini's and a page of Anthropic's. */
export const MEDIA_TOKENS = 1000

/** The tokens of a bare text, without the overhead of a message. */
export function countTextTokens(text: string): number {
  return Math.ceil(estimateTokens(text))
}

/**
 * The tokens of a text as o200k would roughly count them, from the kinds of its characters; the weights are fitted to
 * that vocabulary (`docs/benchmarks.md` has the table). A long text is sampled in evenly spread windows, so that the
 * cost of an estimate is bounded whatever the length.
 */
export function estimateTokens(text: string): number {
  const { length } = text
  if (length <= SAMPLED_FROM) return scanTokens(text, 0, length)
  const step = (length - WINDOW) / (WINDOWS - 1)
  let tokens = 0
  for (let index = 0; index < WINDOWS; index++) {
    const from = Math.floor(index * step)
    tokens += scanTokens(text, from, from + WINDOW)
  }
  return tokens * (length / (WINDOW * WINDOWS))
}

const WINDOW = 90
const WINDOWS = 6
const SAMPLED_FROM = 640

const [LOWER, UPPER, DIGIT, SPACE, BREAK, MARK] = [1, 2, 3, 4, 5, 6]
const KINDS = Uint8Array.from({ length: 128 }, (_, unit) => {
  if (unit >= 97 && unit <= 122) return LOWER
  if (unit >= 65 && unit <= 90) return UPPER
  if (unit >= 48 && unit <= 57) return DIGIT
  if (unit === 32 || unit === 9) return SPACE
  return unit === 10 || unit === 13 ? BREAK : MARK
})

/** A word of up to six letters is mostly one token with the space before it; each further letter costs a part. */
const WORD = 1
const WORD_LENGTH = 6
const LETTER = 0.27

function scanTokens(text: string, from: number, to: number): number {
  let tokens = 0
  let before = 0
  let index = from
  while (index < to) {
    const unit = text.charCodeAt(index)
    const kind = unit < 128 ? KINDS[unit] : 0
    const start = index
    if (kind === LOWER || kind === UPPER) {
      index = endOfWord(text, index, to)
      tokens += wordTokens(text, start, index) + (before === DIGIT ? 0.05 : 0)
    } else if (kind === 0) {
      index = endOfScript(text, index, to)
      tokens += foreignTokens(unit, index - start)
    } else {
      index++
      while (index < to && KINDS[text.charCodeAt(index)] === kind) index++
      tokens += runTokens(kind ?? MARK, index - start, before)
    }
    before = kind ?? 0
  }
  return tokens
}

/** Digits go in threes; several blanks, line breaks and punctuation marks in runs. */
function runTokens(kind: number, length: number, before: number): number {
  if (kind === DIGIT) return 1.24 * Math.ceil(length / 3)
  if (kind === SPACE) return length === 1 ? 0 : 1.03 + Math.max(0, length - 40) / 4
  if (kind === BREAK) return before === MARK ? 0.5 : 1.1
  return 0.75 + 0.24 * (length - 1)
}

function endOfWord(text: string, from: number, to: number): number {
  let index = from + 1
  for (; index < to; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 128 ? !isLatin(unit) : (KINDS[unit] ?? 0) > UPPER || KINDS[unit] === 0) break
  }
  return index
}

/** Latin letters with accents, and the accents themselves. */
function isLatin(unit: number): boolean {
  return (
    (unit >= 0xc0 && unit < 0x250) || (unit >= 0x300 && unit < 0x370) || (unit >= 0x1e00 && unit < 0x1f00)
  )
}

/** A capital inside begins another word after four letters or more; changes in short order are no words at all. */
function wordTokens(text: string, from: number, to: number): number {
  let tokens = 0
  let start = from
  let last = 0
  for (let index = from; index < to; index++) {
    const unit = text.charCodeAt(index)
    const kind = unit < 128 ? KINDS[unit] : 0
    if (kind === 0) tokens += unit >= 0x100 && unit < 0x180 ? 1.1 : 0.7
    else if (kind === UPPER && last === UPPER) tokens += 0.24
    else if (kind === UPPER && index > from) {
      if (index - start > 3) {
        tokens += WORD + LETTER * Math.max(0, index - start - WORD_LENGTH)
        start = index
      } else tokens += 1.2
    }
    last = kind ?? 0
  }
  return tokens + WORD + LETTER * Math.max(0, to - start - WORD_LENGTH)
}

/** Alphabets from Greek to Mongolian are written in words, which end where the alphabets do. */
function isAlphabetic(unit: number): boolean {
  return unit >= 0x370 && unit < 0x1e00
}

function endOfScript(text: string, from: number, to: number): number {
  const unit = text.charCodeAt(from)
  if (unit >= 0xd800 && unit < 0xdc00) return Math.min(from + 2, to)
  if (!isAlphabetic(unit)) return from + 1
  let index = from + 1
  while (index < to && isAlphabetic(text.charCodeAt(index))) index++
  return index
}

/** What stands in no ASCII word: letters of other scripts, symbols, emoji. */
function foreignTokens(unit: number, length: number): number {
  if (isAlphabetic(unit)) return 0.3 + length * letterTokens(unit)
  if (isLatin(unit)) return WORD + 0.2
  if ((unit >= 0x4e00 && unit < 0xa000) || (unit >= 0x3400 && unit < 0x4dc0)) return 0.87
  if (unit >= 0xac00 && unit < 0xd7a4) return 0.78
  if (unit >= 0x3041 && unit < 0x3100) return 0.74
  if (unit >= 0xd800 && unit < 0xdc00) return 1.87
  if (unit < 0xc0 || (unit >= 0x2000 && unit < 0x2040) || unit === 0x200d) return 0.95
  if ((unit >= 0x3000 && unit < 0x3041) || unit >= 0xfe00) return 0.95
  return 1.88
}

function letterTokens(unit: number): number {
  if (unit < 0x400) return 0.37
  if (unit < 0x530) return 0.3
  return unit >= 0xe00 && unit < 0xe80 ? 0.4 : 0.31
}

/** The length of a text in UTF-8 without encoding it. A lone surrogate counts as its replacement, 3 bytes. */
export function utf8Length(text: string): number {
  return nativeLength ? nativeLength(text) : countedLength(text)
}

// Node counts natively, some ten times faster; elsewhere it is counted by hand.
const nativeLength: ((text: string) => number) | undefined = globalThis.Buffer?.byteLength

function countedLength(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else {
      bytes += 2
      // A surrogate pair is four bytes in all: two units of length, and two added here.
      if (unit >= 0xd800 && unit < 0xdc00) {
        const next = text.charCodeAt(index + 1)
        if (next >= 0xdc00 && next < 0xe000) index++
      }
    }
  }
  return bytes
}

/** The `content` of a tool result: its outputs, one per line. */
export function joinOutputs(calls: readonly ToolCall[]): string | undefined {
  let joined: string | undefined
  for (const call of calls) {
    if (typeof call.output !== 'string') continue
    joined = joined === undefined ? call.output : `${joined}\n${call.output}`
  }
  return joined
}

/** Whether `content` only repeats the outputs of its calls. */
export function repeatsOutputs(content: string, calls: readonly ToolCall[]): boolean {
  return content !== '' && content === joinOutputs(calls)
}

function callTokens(call: ToolCall): number {
  let tokens = 0
  for (const text of [call.name, call.input, call.output]) {
    if (typeof text === 'string') tokens += estimateTokens(text)
  }
  return tokens
}

/** Fields of an event that are never sent to a model. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'actions',
  'citationMetadata',
  'customMetadata',
  'groundingMetadata',
  'logprobsResult',
  'longRunningToolIds',
  'usageMetadata',
])

const SIGNATURES: ReadonlySet<string> = new Set(['signature', 'thoughtSignature', 'thought_signature'])
const MEDIA: ReadonlySet<string> = new Set(['inlineData', 'fileData', 'inline_data', 'file_data'])

/** Deeper data is not counted: no event nests so far. */
const MAX_DEPTH = 32

function weigh(value: unknown, name: string, sum: { tokens: number; media: number }, depth: number): void {
  if (SIGNATURES.has(name) || depth > MAX_DEPTH) return
  if (MEDIA.has(name)) {
    sum.media++
    return
  }
  if (typeof value === 'string') sum.tokens += estimateTokens(value)
  else if (typeof value === 'number' || typeof value === 'boolean') sum.tokens += 1
  else if (Array.isArray(value)) for (const item of value) weigh(item, '', sum, depth + 1)
  else if (typeof value === 'object' && value !== null) weighFields(value, sum, depth)
}

function weighFields(fields: object, sum: { tokens: number; media: number }, depth: number): void {
  const named = fields as { type?: unknown; mimeType?: unknown; data?: unknown }
  // A bare media part, as the neutral shape has it.
  if (named.type === 'media' || (typeof named.mimeType === 'string' && typeof named.data === 'string')) {
    sum.media++
    return
  }
  for (const [name, value] of Object.entries(fields)) {
    sum.tokens += name.length / 4
    weigh(value, name, sum, depth + 1)
  }
}
