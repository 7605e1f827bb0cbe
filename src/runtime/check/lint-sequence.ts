/**
 * What a sequence of requests shows that one alone cannot: whether each extends the one before it. Where it does not,
 * prompt caches start anew, and thinking that is bound to its prefix is refused from there on.
 */
import { isRecord } from '../../base/is-record.js'
import { stableJson } from '../../base/stable-json.js'
import { type Fields, listOf, text } from '../../formats/wire-parts.js'
import { findingText } from '../../provider/repair/finding.js'
import type { Profile } from '../../provider/repair/profile.js'
import type { SessionFinding } from '../info.js'
import type { RequestBody } from './lint-request.js'

/** What one request of a sequence adds to the verdict over it. */
export interface SequenceVerdict {
  findings: SessionFinding[]
  /** What is not refused, but costs. */
  notes: string[]
}

/** One block, item or part, with the message that it stands in. */
interface Unit {
  at: number
  path: string
  written: string
  /** What proves that it is the same piece of reasoning as another. */
  proof: string
  words: string
}

/** Compares each request with the one before it. */
export function lintSequence(requests: readonly RequestBody[], profile: Profile): SequenceVerdict[] {
  const broken = new Set<string>()
  const known = new Map<string, Unit>()
  let before: { body: Fields; units: Unit[] } | undefined
  return requests.map(({ body }) => {
    const units = unitsOf(body)
    const change = before && changeOf(before, { body, units })
    before = { body, units }
    const edited = units.find(
      unit => unit.proof !== '' && (known.get(unit.proof)?.words ?? unit.words) !== unit.words,
    )
    for (const unit of units) if (unit.proof !== '' && !known.has(unit.proof)) known.set(unit.proof, unit)
    const notes = change ? [`${change.what} The prompt cache does not hold from there on.`] : []
    if (edited && profile.vendor === 'anthropic') return { findings: [altered(edited, profile)], notes }
    if (!profile.reasoning.bound) return { findings: [], notes }
    if (change) for (const { proof } of units.slice(change.from)) if (proof !== '') broken.add(proof)
    const first = units.find(({ proof }) => broken.has(proof))
    return { findings: first ? [unbound(first, change?.what, body, profile)] : [], notes }
  })
}

interface Change {
  /** The index of the first unit that follows the change. */
  from: number
  what: string
}

/** What of the earlier request is not as it was; nothing when the later one only adds to it. */
function changeOf(
  before: { body: Fields; units: readonly Unit[] },
  after: { body: Fields; units: readonly Unit[] },
): Change | undefined {
  for (const [name, label] of HEADS) {
    if (headOf(before.body, name) !== headOf(after.body, name)) {
      return { from: 0, what: `${label} differs from that of the request before.` }
    }
  }
  const from = before.units.findIndex(({ written }, index) => written !== after.units[index]?.written)
  const was = before.units[from]
  if (!was) return undefined
  const isGone = was.proof !== '' && !after.units.some(({ proof }) => proof === was.proof)
  const what = isGone
    ? `The reasoning at ${was.path} of the request before is missing.`
    : `${was.path} of the request before was changed, moved or left out.`
  return { from, what }
}

const HEADS: readonly (readonly [string, string])[] = [
  ['system', 'The `system` prompt'],
  ['instructions', 'The instruction'],
  ['systemInstruction', 'The system instruction'],
  ['tools', 'The list of `tools`'],
]

function headOf(body: Fields, name: string): string {
  const value = body[name]
  const written = name === 'system' && typeof value === 'string' ? [{ type: 'text', text: value }] : value
  return stableJson(withoutMarks(written ?? null))
}

/** All pieces of a request's messages in order. A text is one block. */
function unitsOf(body: Fields): Unit[] {
  for (const name of ['messages', 'contents', 'input']) {
    const rows = body[name]
    if (Array.isArray(rows)) return rows.flatMap((row, at) => unitsIn(isRecord(row) ? row : {}, at, name))
  }
  return []
}

function unitsIn(row: Fields, at: number, list: string): Unit[] {
  const { content, parts, ...rest } = row
  const blocks = Array.isArray(parts) ? parts : content
  const pieces = typeof blocks === 'string' ? [{ type: 'text', text: blocks }] : listOf(blocks)
  const head = stableJson(withoutMarks(rest))
  const key = Array.isArray(parts) ? 'parts' : 'content'
  if (pieces.length === 0) return [unit(row, head, at, `${list}.${at}`)]
  return pieces.map((piece, index) =>
    unit(isRecord(piece) ? piece : {}, head, at, `${list}.${at}.${key}.${index}`),
  )
}

function unit(piece: Fields, head: string, at: number, path: string): Unit {
  const isThinking = piece.type === 'thinking' || piece.type === 'redacted_thinking'
  const proof = isThinking ? text(piece.signature ?? piece.data) : ''
  return { at, path, written: head + stableJson(withoutMarks(piece)), proof, words: text(piece.thinking) }
}

/** Cache marks are no part of a prefix. */
function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks)
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([key]) => key !== 'cache_control')
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutMarks(inner)]))
}

function unbound(
  { at, path }: Unit,
  what: string | undefined,
  { thinking }: Fields,
  profile: Profile,
): SessionFinding {
  const binding = isRecord(thinking) && isRecord(thinking.block_binding) ? thinking.block_binding : {}
  const isDropped = binding.prefix_mismatch_behavior === 'drop_block'
  const words = `A25: “${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.”`
  return {
    code: 'unbound-reasoning',
    severity: isDropped ? 'mapped' : 'breaks',
    at,
    message: `${findingText('unbound-reasoning')} ${what ?? 'It was refused in an earlier request already.'} ${profile.name} answers ${words}`,
    repair:
      'Send every request as the one before with messages added at the end, or leave out the thinking from there on, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". Lango does the first, and the others where it must cut.',
  }
}

function altered({ at, path }: Unit, profile: Profile): SessionFinding {
  const words = `A12: “${path}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.”`
  return {
    code: 'altered-reasoning',
    severity: 'breaks',
    at,
    message: `${findingText('altered-reasoning')} ${profile.name} answers ${words}`,
    repair:
      'Send the answer back exactly as it came, or without any of its thinking. Lango stores it as it came.',
  }
}
