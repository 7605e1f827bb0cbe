import { checkArgument } from '../errors.js'
import type { Message, ToolCall } from './message.js'

/**
 * What a message will roughly cost in a model's context: UTF-8 bytes / 4, plus a little for the message and
 * for each call. No tokenizer runs here: they cost more than the append itself and are quadratic on long
 * runs of one letter. Providers' reported usage calibrates the estimate elsewhere.
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
  let bytes = 0
  let fixed = MESSAGE_TOKENS
  if (calls !== undefined) {
    for (const call of calls) bytes += callBytes(call)
    fixed += CALL_TOKENS * calls.length
  }
  if (calls === undefined || !repeatsOutputs(message.content, calls)) bytes += utf8Length(message.content)
  if (message.extra !== undefined) {
    const extra = { bytes: 0, media: 0 }
    for (const [name, value] of Object.entries(message.extra)) {
      if (!NEVER_SENT.has(name)) weigh(value, name, extra, 0)
    }
    bytes += extra.bytes
    fixed += MEDIA_TOKENS * extra.media
  }
  return fixed + Math.ceil(bytes / BYTES_PER_TOKEN)
}

/** The cost of a message apart from its text. */
export const MESSAGE_TOKENS = 4
/** The cost of a call or an answer apart from its name and JSON. */
export const CALL_TOKENS = 8
/** The cost of an image or a file, whatever its size: between a tile of Gemini's and a page of Anthropic's. */
export const MEDIA_TOKENS = 1000
export const BYTES_PER_TOKEN = 4

/** The tokens of a bare text, without the overhead of a message. */
export function countTextTokens(text: string): number {
  return Math.ceil(utf8Length(text) / BYTES_PER_TOKEN)
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

function callBytes(call: ToolCall): number {
  let bytes = 0
  for (const text of [call.name, call.input, call.output]) {
    if (typeof text === 'string') bytes += utf8Length(text)
  }
  return bytes
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

function weigh(value: unknown, name: string, sum: { bytes: number; media: number }, depth: number): void {
  if (SIGNATURES.has(name) || depth > MAX_DEPTH) return
  if (MEDIA.has(name)) {
    sum.media++
    return
  }
  if (typeof value === 'string') sum.bytes += utf8Length(value)
  else if (typeof value === 'number' || typeof value === 'boolean') sum.bytes += 4
  else if (Array.isArray(value)) for (const item of value) weigh(item, '', sum, depth + 1)
  else if (typeof value === 'object' && value !== null) weighFields(value, sum, depth)
}

function weighFields(fields: object, sum: { bytes: number; media: number }, depth: number): void {
  const named = fields as { type?: unknown; mimeType?: unknown; data?: unknown }
  // A bare media part, as the neutral shape has it.
  if (named.type === 'media' || (typeof named.mimeType === 'string' && typeof named.data === 'string')) {
    sum.media++
    return
  }
  for (const [name, value] of Object.entries(fields)) {
    sum.bytes += name.length
    weigh(value, name, sum, depth + 1)
  }
}
