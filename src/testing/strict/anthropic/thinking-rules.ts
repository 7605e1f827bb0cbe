/**
 * Thinking comes back as it was. Blocks that Claude never signed are invalid anywhere; in the latest
 * assistant message the genuine ones must be unmodified, complete and in order. Earlier turns may leave
 * theirs out.
 */
import { type JsonObject, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { lastAssistant, type ReadMessage, readMessages } from './messages.js'
import { refuse } from './shape-rules.js'
import { isThinking, type OpenedThinking, openThinking } from './signature.js'

/** The forms of `thinking`, and what it excludes. */
export const thinkingOptions: Rule = (body, context) => {
  const thinking = objectOf(body.thinking)
  const type = textOf(thinking.type)
  if (body.thinking === undefined || body.thinking === null || type === 'disabled') return undefined
  if (type === 'adaptive' && context.profile === 'anthropic-4.5') {
    return refuse('A-schema', 'adaptive thinking is not supported on this model')
  }
  const choice = textOf(objectOf(body.tool_choice).type)
  if (choice === 'any' || choice === 'tool') {
    return refuse('A-schema', 'Thinking may not be enabled when tool_choice forces tool use.')
  }
  return type === 'enabled' ? budgetFault(body, thinking) : undefined
}

function budgetFault(body: JsonObject, thinking: JsonObject): Violation | undefined {
  const budget = thinking.budget_tokens
  if (budget === undefined) return refuse('A-schema', 'thinking.enabled.budget_tokens: Field required')
  if (typeof budget !== 'number' || budget < 1024) {
    return refuse('A-schema', 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  }
  if (typeof body.max_tokens === 'number' && body.max_tokens <= budget) {
    return refuse(
      'A-schema',
      '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
    )
  }
  if (body.temperature === undefined || body.temperature === 1) return undefined
  return refuse(
    'A-schema',
    '`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking',
  )
}

/** A11: not Claude's, or altered in an earlier turn. */
export const thinkingGenuine: Rule = body => {
  const messages = readMessages(body)
  const latest = lastAssistant(messages)
  return firstOf(messages, message =>
    firstOf(message.blocks, (block, index) => {
      if (!isThinking(block)) return undefined
      const opened = openThinking(block)
      if (opened?.unmodified || (opened !== undefined && message === latest)) return undefined
      const what =
        block.type === 'redacted_thinking'
          ? 'Invalid `data` in `redacted_thinking` block'
          : 'Invalid `signature` in `thinking` block'
      return refuse('A11', `messages.${message.index}.content.${index}: ${what}`)
    }),
  )
}

/** A12: in the latest assistant message nothing is edited, dropped or reordered. */
export const thinkingUnmodified: Rule = body => {
  const latest = lastAssistant(readMessages(body))
  if (latest === undefined) return undefined
  const at = modifiedBlock(latest)
  if (at === undefined) return undefined
  return refuse(
    'A12',
    `messages.${latest.index}.content.${at}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
  )
}

/** The index of the first block that is not as it was in the answer it came from. */
function modifiedBlock(message: ReadMessage): number | undefined {
  const opened = message.blocks.flatMap((block, at) => {
    const thinking = isThinking(block) ? openThinking(block) : undefined
    return thinking === undefined ? [] : [{ at, thinking }]
  })
  const edited = opened.find(({ thinking }) => !thinking.unmodified)
  if (edited !== undefined) return edited.at
  const turns = new Map<string, { at: number; thinking: OpenedThinking }[]>()
  for (const entry of opened) {
    turns.set(entry.thinking.turn, [...(turns.get(entry.thinking.turn) ?? []), entry])
  }
  for (const blocks of turns.values()) {
    const moved = blocks.find(({ thinking }, place) => thinking.index !== place)
    if (moved !== undefined) return moved.at
    const last = blocks.at(-1)
    if (last !== undefined && blocks.length !== last.thinking.count) return last.at
  }
  return undefined
}

/** A13: with a thinking budget, a message with calls starts with thinking. */
export const thinkingLeads: Rule = (body, context) => {
  if (textOf(objectOf(body.thinking).type) !== 'enabled' || context.reading === 'lenient') return undefined
  const latest = lastAssistant(readMessages(body))
  const first = latest?.blocks[0]
  if (latest === undefined || first === undefined || isThinking(first)) return undefined
  if (!latest.blocks.some(block => block.type === 'tool_use')) return undefined
  return refuse(
    'A13',
    `messages.${latest.index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${textOf(first.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`,
  )
}
