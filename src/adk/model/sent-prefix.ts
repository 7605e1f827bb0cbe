/**
 * Law 4, steady: within one session, model, agent and branch each request extends the one before it, byte for byte and
 * cache marks aside, or one break is reported. This file compares two bodies; it knows the names that vendors use and no
 * vendor.
 */
import { createHash } from 'node:crypto'
import { isRecord } from '../../base/is-record.js'
import { BREAK_CAUSES, PREFIX_BREAK } from '../../base/prefix-break.js'
import type { PrefixBreakReason, Repair } from '../../provider/provider.js'
import { countTextTokens } from '../../session/tokens.js'

/** What of a body comes before the next answer, as digests. */
export interface SentPrefix {
  readonly system: PrefixItem
  readonly tools: PrefixItem
  /** One for each message. */
  readonly items: readonly PrefixItem[]
}

export interface PrefixItem {
  readonly digest: string
  /** The estimated tokens of its JSON text. */
  readonly tokens: number
}

/** The first place where a request differs from the one before it. */
export interface PrefixBreak {
  readonly place: 'system' | 'tools' | 'messages'
  /** The index of the message; 0 when the instruction or the tools differ. */
  readonly at: number
  /** How many tokens of the earlier request cannot be read from a cache any more. */
  readonly tokens: number
}

/** `undefined` when the body has no list of messages: there is nothing to compare then. */
export function prefixOf(body: unknown): SentPrefix | undefined {
  const list = listOf(body)
  if (!list || !isRecord(body)) return undefined
  const leading = countLeading(list)
  const system = body.system ?? body.systemInstruction ?? body.instructions ?? list.slice(0, leading)
  return {
    system: toItem(system),
    tools: toItem(body.tools ?? []),
    items: list.slice(leading).map(toItem),
  }
}

/** The messages of a body, without the system messages that lead them. */
export function wireItems(body: unknown): readonly unknown[] {
  const list = listOf(body) ?? []
  return list.slice(countLeading(list))
}

function listOf(body: unknown): readonly unknown[] | undefined {
  if (!isRecord(body)) return undefined
  return [body.messages, body.contents, body.input].find(list => Array.isArray(list))
}

/** Where a request does not extend the one before it. */
export function findBreak(before: SentPrefix, after: SentPrefix): PrefixBreak | undefined {
  // Providers read the tools first, then the system instruction, then the messages.
  if (before.tools.digest !== after.tools.digest) return { place: 'tools', at: 0, tokens: tokensOf(before) }
  if (before.system.digest !== after.system.digest)
    return { place: 'system', at: 0, tokens: tokensOf(before) - before.tools.tokens }
  const at = before.items.findIndex(({ digest }, index) => digest !== after.items[index]?.digest)
  if (at === -1) return undefined
  return { place: 'messages', at, tokens: sum(before.items.slice(at)) }
}

/** What a request to another model costs a cache: everything. */
export function wholeOf(before: SentPrefix): PrefixBreak {
  return { place: 'messages', at: 0, tokens: tokensOf(before) }
}

function tokensOf({ system, tools, items }: SentPrefix): number {
  return sum([system, tools, ...items])
}

function sum(items: readonly PrefixItem[]): number {
  return items.reduce((all, { tokens }) => all + tokens, 0)
}

const CAUSES: Readonly<Record<PrefixBreakReason, string>> = BREAK_CAUSES

/** The receipt of a break. `known`: the cause, where the caller knows it. */
export function breakReceipt(found: PrefixBreak, known: PrefixBreakReason | undefined): Repair {
  const reason = known ?? REASONS[found.place]
  const where = found.place === 'messages' ? ` from message ${found.at} on` : ''
  return {
    step: 'steady',
    kind: PREFIX_BREAK,
    at: found.at,
    detail: `The request does not extend the one before it${where}, because ${CAUSES[reason]}: about ${found.tokens} tokens cannot be read from a cache.`,
    reason,
    tokens: found.tokens,
  }
}

const REASONS = { system: 'instruction', tools: 'tools', messages: 'repair' } as const

/** The system messages that lead a list belong to the instruction. */
function countLeading(list: readonly unknown[]): number {
  const first = list.findIndex(
    item => !isRecord(item) || (item.role !== 'system' && item.role !== 'developer'),
  )
  return first === -1 ? list.length : first
}

function toItem(value: unknown): PrefixItem {
  const text = JSON.stringify(value, withoutCacheMarks) ?? ''
  return {
    digest: createHash('sha1').update(text).digest('base64').slice(0, 16),
    tokens: countTextTokens(text),
  }
}

function withoutCacheMarks(name: string, value: unknown): unknown {
  return name === 'cache_control' && isRecord(value) && value.type === 'ephemeral' ? undefined : value
}
