/**
 * Preserved thinking, as documented for Claude 5.1 and later: a thinking block is bound to everything before it:
 * `system`, `tools` and the messages, cache marks aside, the thinking among them included. When something of it has
 * changed, the block is refused, or dropped where the request asks for that; a block that the model cannot read is
 * dropped without an error. What was dropped is no longer part of the prefix of what follows.
 */
import { createHash } from 'node:crypto'
import { canonicalJson, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { JudgeContext, Rule, Violation } from '../violation.js'
import { readMessages } from './messages.js'
import { refuse } from './shape-rules.js'
import { isThinking, openThinking } from './signature.js'

export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

export function hasBindingBeta({ headers }: JudgeContext): boolean {
  return textOf(headers['anthropic-beta']).includes(BINDING_BETA)
}

/** What a block is bound to: everything before it, and the same without thinking. */
export interface Prefix {
  readonly full: string
  readonly bare: string
}

/** One entry of an answer's `input_transformations`. */
export interface Transformation {
  readonly type: 'thinking_dropped' | 'thinking_mismatch_allowed'
  readonly path: string
  readonly reason: 'prefix_binding_mismatch' | 'model_binding_mismatch'
}

export interface CheckedThinking {
  readonly transformations: readonly Transformation[]
  /** The first block whose prefix has changed, unless such blocks are dropped or allowed. */
  readonly refusal: Violation | undefined
  /** The prefix of the first block of the answer. */
  readonly prefix: PrefixDigest
}

/** Grows block by block; messages of one role that follow each other are one. */
export class PrefixDigest {
  readonly #full = createHash('sha256')
  readonly #bare = createHash('sha256')

  constructor(body: JsonObject) {
    const system =
      typeof body.system === 'string' ? [{ type: 'text', text: body.system }] : listOf(body.system)
    const head = canonicalJson([system.map(withoutMarks), listOf(body.tools).map(withoutMarks)])
    this.#full.update(head)
    this.#bare.update(head)
  }

  add(role: unknown, block: JsonObject): void {
    const text = canonicalJson([role, withoutMarks(block)])
    this.#full.update(text)
    if (!isThinking(block)) this.#bare.update(text)
  }

  now(): Prefix {
    return { full: hex(this.#full), bare: hex(this.#bare) }
  }
}

function hex(hash: ReturnType<typeof createHash>): string {
  return hash.copy().digest('hex').slice(0, 24)
}

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks)
  if (!isObject(value)) return value
  const entries = Object.entries(value).filter(([key]) => key !== 'cache_control')
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutMarks(inner)]))
}

/** Reads the thinking of a request in order: what stays, what is dropped, what is refused. */
export function checkThinking(body: JsonObject, context: JudgeContext): CheckedThinking {
  const prefix = new PrefixDigest(body)
  const transformations: Transformation[] = []
  let refusal: Violation | undefined
  for (const message of readMessages(body)) {
    for (const [index, block] of message.blocks.entries()) {
      const path = `messages.${message.index}.content.${index}`
      const fate = isThinking(block) ? fateOf(block, prefix.now(), body, context) : 'kept'
      if (fate === 'refused') refusal ??= boundElsewhere(path, block, prefix.now())
      if (fate === 'kept' || fate === 'refused' || fate === 'allowed') prefix.add(message.role, block)
      if (fate === 'allowed') {
        transformations.push({ type: 'thinking_mismatch_allowed', path, reason: 'prefix_binding_mismatch' })
      }
      if (fate === 'unreadable' || fate === 'dropped') {
        const reason = fate === 'dropped' ? 'prefix_binding_mismatch' : 'model_binding_mismatch'
        transformations.push({ type: 'thinking_dropped', path, reason })
      }
    }
  }
  return { transformations, refusal, prefix }
}

type Fate = 'kept' | 'allowed' | 'dropped' | 'refused' | 'unreadable'

function fateOf(block: JsonObject, prefix: Prefix, body: JsonObject, context: JudgeContext): Fate {
  const bound = openThinking(block)
  // What Claude never signed is refused by another rule.
  if (bound === undefined) return 'kept'
  if (bound.prefix === undefined || !canRead(textOf(body.model), bound.model)) return 'unreadable'
  if (bound.prefix.full === prefix.full) return 'kept'
  const behaviour = objectOf(objectOf(body.thinking).block_binding).prefix_mismatch_behavior
  if (behaviour === 'drop_block') return 'dropped'
  // Older accounts enforce the check only for requests that say what should happen.
  return context.reading === 'lenient' && behaviour === undefined ? 'allowed' : 'refused'
}

/** A model reads its own blocks and those of Haiku 5.5. */
function canRead(reader: string, maker: string | undefined): boolean {
  return maker === undefined || reader === maker || /haiku-5[.-]5/.test(maker)
}

function boundElsewhere(path: string, block: JsonObject, prefix: Prefix): Violation {
  const field = block.type === 'redacted_thinking' ? 'Invalid `data` in `redacted_thinking` block' : INVALID
  const missing = openThinking(block)?.prefix?.bare === prefix.bare ? ` ${MISSING}` : ''
  return refuse('A25', `${path}: ${field}. ${BOUND}${missing}`)
}

const INVALID = 'Invalid `signature` in `thinking` block'
const BOUND =
  'The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
const MISSING =
  'The `thinking` block that preceded this one when it was created is missing from this request.'

/** A25: thinking whose prefix has changed. */
export const thinkingBound: Rule = (body, context) =>
  context.profile === 'anthropic-5.1' ? checkThinking(body, context).refusal : undefined

/** A26: these models always think, and cannot be forced to call a tool; what happens to bound blocks is a beta. */
export const alwaysThinks: Rule = (body, context) => {
  const thinking = objectOf(body.thinking)
  if (thinking.block_binding !== undefined && !hasBindingBeta(context)) {
    return refuse(
      'A-schema',
      `thinking.block_binding: Extra inputs are not permitted. Send the header \`anthropic-beta: ${BINDING_BETA}\`.`,
    )
  }
  if (context.profile !== 'anthropic-5.1') return undefined
  if (thinking.type === 'disabled' || thinking.type === 'enabled') {
    return refuse('A26', `thinking.type: \`${textOf(thinking.type)}\` is not supported on this model.`)
  }
  const choice = textOf(objectOf(body.tool_choice).type)
  if (choice !== 'any' && choice !== 'tool') return undefined
  return refuse('A26', `tool_choice: \`${choice}\` is not supported on this model. Use \`auto\` or \`none\`.`)
}
