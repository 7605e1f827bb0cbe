/**
 * A digest of messages by fixed rules, for memory without a model: it quotes, it does not understand. Sentences are
 * chosen that name somebody or something, give a number or a date, state a decision or leave a task open; results of
 * tools are named with their size and a hash. Every line comes from one message and says so.
 */
import { createHash } from 'node:crypto'
import { normalizeRole, type StoredMessage } from '../session/message.js'
import type { ObservationKind, Observed } from '../session/session-memory.js'
import { isSynthetic } from '../session/turn.js'

/** What digest lines carry as their origin: rules made them, not a model. */
const DIGEST = 'digest'

/** Lines of one message, and characters of one line. */
const MOST_LINES = 2
const LONGEST_LINE = 240

export function digest(messages: readonly StoredMessage[]): Observed[] {
  return messages.flatMap(message => {
    if (isSynthetic(message)) return []
    const results = (message.toolCalls ?? []).flatMap(({ name, output }) =>
      output === undefined ? [] : [line(message, 'tool-result', 3, toolResult(name, output))],
    )
    return [...sentences(message), ...results.slice(0, MOST_RESULTS)]
  })
}

const MOST_RESULTS = 8

function toolResult(name: string, output: string): string {
  const hash = createHash('sha256').update(output).digest('hex').slice(0, 12)
  const start = output.slice(0, 80).replace(/\s+/g, ' ')
  return `${name} returned ${output.length} characters (sha256 ${hash}…): ${start}`
}

function sentences(message: StoredMessage): Observed[] {
  const role = normalizeRole(message.role)
  if (role !== 'user' && role !== 'assistant') return []
  const isPersons = role === 'user'
  const rated = split(message.content)
    .map((text, place) => ({ text, place, ...rate(text, isPersons) }))
    .filter(({ score }) => score >= LEAST_SCORE)
    .sort((one, other) => other.score - one.score || one.place - other.place)
    .slice(0, MOST_LINES)
    .sort((one, other) => one.place - other.place)
  return rated.map(({ text, kind, score }) =>
    line(
      message,
      kind,
      kind === 'fact' ? (score > 4 ? 2 : 3) : 1,
      `${message.author ?? role}: ${shorten(text)}`,
    ),
  )
}

const LEAST_SCORE = 2

function split(content: string): string[] {
  return content
    .slice(0, LONGEST_TEXT)
    .split(/(?<=[.!?。！？])\s+|(?<=[。！？])|\n+/u)
    .map(text => text.trim())
    .filter(text => text.length > 3)
}

/** Of a longer message the beginning is read; the rest stays for recall. */
const LONGEST_TEXT = 20_000

/** What a sentence is about, by its words. Only a person's own words decide something or leave a task. */
function rate(text: string, isPersons: boolean): { kind: ObservationKind; score: number } {
  const isQuestion = /[?？]$/.test(text)
  if (isPersons && DECISION.test(text)) return { kind: 'decision', score: 8 }
  if (isPersons && TASK.test(text)) return { kind: 'task', score: 7 }
  if (isPersons && PREFERENCE.test(text)) return { kind: 'preference', score: 6 }
  const names = text.slice(1).match(/(?<![.!?]\s)\b\p{Lu}[\p{L}\p{M}]+/gu)?.length ?? 0
  const numbers = text.match(/\d+/g)?.length ?? 0
  const times = text.match(TIMES)?.length ?? 0
  const own = text.match(/\b(?:I|we|my|our)\b/giu)?.length ?? 0
  const score = names + numbers + times + (own > 0 ? 1 : 0) + (text.length > 60 ? 1 : 0)
  return { kind: 'fact', score: isQuestion ? score - 3 : score }
}

const DECISION =
  /\b(?:decided|decision|agreed|let'?s go with|we(?:'ll| will) use|from now on|remember (?:that|this|to)|important:|always|never again|final answer|approved?)\b/i
const TASK =
  /\b(?:todo|to-do|remind me|need(?:s)? to|have to|must|don'?t forget|next step|follow up|deadline|due (?:by|on))\b/i
const PREFERENCE =
  /\b(?:i (?:really )?(?:prefer|like|love|hate|dislike|want)|my favou?rite|please (?:always|never|don'?t))\b/i
const TIMES =
  /\b(?:today|yesterday|tomorrow|tonight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december|last|next|ago|week|month|year)\b/gi

function shorten(text: string): string {
  return text.length <= LONGEST_LINE ? text : `${text.slice(0, LONGEST_LINE - 1)}…`
}

function line(
  { seq, timestamp }: StoredMessage,
  kind: ObservationKind,
  priority: Observed['priority'],
  text: string,
): Observed {
  return { text, kind, priority, time: timestamp, fromSeq: seq, toSeq: seq, origin: DIGEST }
}
