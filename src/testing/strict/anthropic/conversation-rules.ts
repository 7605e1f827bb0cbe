/**
 * What Anthropic demands of a conversation:
 *
 * 1. it starts with the user, and from 4.6 on it ends with the user;
 * 2. no message and no text block is empty;
 * 3. a message with `tool_use` ends with it, and the next message is the user's and begins with its results,
 *    one for each;
 * 4. tool blocks need tools;
 * 5. at most four cache marks.
 */

import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { sealOpensFor } from '../seal.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { lastAssistant, type ReadMessage, readMessages } from './messages.js'
import { refuse } from './shape-rules.js'
import { isThinking, type OpenedThinking, openThinking } from './signature.js'

/** A17: refused by older models, accepted by newer ones. */
export const startsWithUser: Rule = (body, context) => {
  const first = readMessages(body)[0]
  if (first?.role !== 'assistant' || context.reading === 'lenient') return undefined
  return refuse('A17', 'messages: first message must use the "user" role')
}

/** A7. */
export const messagesNotEmpty: Rule = body => {
  const messages = readMessages(body)
  return firstOf(messages, message => {
    if (message.blocks.length > 0) return undefined
    const final = message.index === messages.length - 1 && message.role === 'assistant'
    if (final) return undefined
    return refuse(
      'A7',
      `messages.${message.index}: all messages must have non-empty content except for the optional final assistant message`,
    )
  })
}

/** A6, in messages and in the blocks of `system`. */
export const textNotBlank: Rule = body => {
  const blocks = readMessages(body).flatMap(message => message.blocks)
  const nested = blocks.flatMap(block => listOf(block.content).map(objectOf))
  return (
    blankText('messages', [...blocks, ...nested]) ?? blankText('system', listOf(body.system).map(objectOf))
  )
}

function blankText(where: string, blocks: readonly JsonObject[]): Violation | undefined {
  const blank = blocks.find(block => block.type === 'text' && textOf(block.text).trim() === '')
  if (blank === undefined) return undefined
  const demand = textOf(blank.text) === '' ? 'be non-empty' : 'contain non-whitespace text'
  return refuse('A6', `${where}: text content blocks must ${demand}`)
}

/** A4: within one message. The same id in a later turn has been seen to be accepted. */
export const callIdsUnique: Rule = body =>
  firstOf(readMessages(body), message => {
    const seen = new Set<string>()
    return firstOf(message.blocks, (block, index) => {
      if (block.type !== 'tool_use') return undefined
      const id = textOf(block.id)
      if (seen.has(id)) {
        return refuse('A4', `messages.${message.index}.content.${index}: \`tool_use\` ids must be unique`)
      }
      seen.add(id)
      return undefined
    })
  })

/** A2. */
export const resultsHaveCalls: Rule = (body, context) => {
  const messages = readMessages(body)
  return firstOf(messages, message => {
    const calls = new Set(callsBefore(messages, message.index, context.reading === 'lenient'))
    return firstOf(message.blocks, (block, index) => {
      const id = textOf(block.tool_use_id)
      if (block.type !== 'tool_result' || (message.role === 'user' && calls.has(id))) return undefined
      return refuse(
        'A2',
        `messages.${message.index}.content.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      )
    })
  })
}

/** The calls that a message may answer. Consecutive user messages are combined in the lenient reading. */
function callsBefore(messages: readonly ReadMessage[], index: number, combined: boolean): string[] {
  let at = index - 1
  if (combined) while (at >= 0 && messages[at]?.role === 'user') at -= 1
  const previous = messages[at]
  return previous?.role === 'assistant' ? callIds(previous) : []
}

function callIds(message: ReadMessage): string[] {
  return message.blocks.flatMap(block => (block.type === 'tool_use' ? [textOf(block.id)] : []))
}

/** A3. */
export const resultsSingle: Rule = body =>
  firstOf(readMessages(body), message => {
    const ids = message.blocks.flatMap(block =>
      block.type === 'tool_result' ? [textOf(block.tool_use_id)] : [],
    )
    const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
    if (repeated === undefined) return undefined
    return refuse(
      'A3',
      `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${repeated}`,
    )
  })

/** A1: also when text follows a call in its message, or stands before the results in the next. */
export const callsAnswered: Rule = (body, context) => {
  const messages = readMessages(body)
  return firstOf(messages, message => {
    if (message.role !== 'assistant') return undefined
    const ids = callIds(message)
    if (ids.length === 0) return undefined
    const answered = endsWithCalls(message) ? leadingResults(messages, message.index, context.reading) : []
    const open = ids.filter(id => !answered.includes(id))
    if (open.length === 0) return undefined
    return refuse(
      'A1',
      `messages.${message.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    )
  })
}

function endsWithCalls(message: ReadMessage): boolean {
  const first = message.blocks.findIndex(block => block.type === 'tool_use')
  return message.blocks.slice(first).every(block => block.type === 'tool_use' || isThinking(block))
}

/** The ids of the results with which the next message begins. */
function leadingResults(messages: readonly ReadMessage[], index: number, reading: string): string[] {
  const ids: string[] = []
  for (let next = index + 1; messages[next]?.role === 'user'; next += 1) {
    for (const block of messages[next]?.blocks ?? []) {
      if (block.type !== 'tool_result') return ids
      ids.push(textOf(block.tool_use_id))
    }
    if (reading === 'strict') return ids
  }
  return ids
}

/** A15: model dependent. */
export const toolsDefined: Rule = (body, context) => {
  if (context.reading === 'lenient' || listOf(body.tools).length > 0) return undefined
  const blocks = readMessages(body).flatMap(message => message.blocks)
  if (!blocks.some(block => block.type === 'tool_use' || block.type === 'tool_result')) return undefined
  return refuse('A15', 'Requests which include `tool_use` or `tool_result` blocks must define tools.')
}

/** A8, A9, A10: how a conversation may end. */
export const endsWell: Rule = (body, context) => {
  const last = readMessages(body).at(-1)
  if (last?.role !== 'assistant' || context.countOnly) return undefined
  const block = last.blocks.at(-1)
  // A turn that the API itself paused comes back as it was.
  if (last.blocks.some(isServerBlock)) return undefined
  if (block !== undefined && isThinking(block)) {
    return refuse(
      'A10',
      `messages.${last.index}: The final block in an assistant message cannot be \`thinking\`.`,
    )
  }
  if (context.profile !== 'anthropic-4.5') {
    return refuse(
      'A8',
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
  }
  if (block?.type !== 'text' || !/\s$/.test(textOf(block.text))) return undefined
  return refuse('A9', 'messages: final assistant content cannot end with trailing whitespace')
}

function isServerBlock(block: JsonObject): boolean {
  return block.type === 'server_tool_use' || isServerResult(block)
}

function isServerResult(block: JsonObject): boolean {
  return block.type !== 'tool_result' && /_tool_result$/.test(textOf(block.type))
}

/** A27: what a server tool was asked and what it found stand in one message; only a paused turn may end with a question. */
export const serverToolsPaired: Rule = body => {
  const messages = readMessages(body)
  return firstOf(messages, message => {
    const asked = message.blocks.filter(block => block.type === 'server_tool_use')
    const found = message.blocks.filter(isServerResult)
    const orphan = found.find(
      block =>
        !asked.some(({ id }) => id === block.tool_use_id) && !isAskedBefore(messages, message.index, block),
    )
    if (orphan !== undefined) {
      const type = textOf(orphan.type)
      return refuse(
        'A27',
        `messages.${message.index}: unexpected \`tool_use_id\` found in \`${type}\` blocks: ${textOf(orphan.tool_use_id)}. Each \`${type}\` block must have a corresponding \`server_tool_use\` block before it.`,
      )
    }
    const open = asked.find(block => !found.some(({ tool_use_id: id }) => id === block.id))
    const paused = message === messages.at(-1) && open === message.blocks.at(-1)
    if (open === undefined || paused) return undefined
    const name = textOf(open.name)
    if (waitsForClient(message, open)) {
      if (textOf(body.container) !== '') return undefined
      return refuse(
        'A28',
        'container_id is required when there are pending tool uses generated by code execution with tools.',
      )
    }
    return refuse(
      'A27',
      `messages.${message.index}: \`${name}\` tool use with id \`${textOf(open.id)}\` was found without a corresponding \`${name}_tool_result\` block`,
    )
  })
}

/** Code that called a tool of the client: its result comes in a later answer. */
function waitsForClient(message: ReadMessage, question: JsonObject): boolean {
  return (
    /code_execution$/.test(textOf(question.name)) && message.blocks.some(({ type }) => type === 'tool_use')
  )
}

function isAskedBefore(
  messages: readonly ReadMessage[],
  at: number,
  { tool_use_id: id }: JsonObject,
): boolean {
  return messages.some(
    message =>
      message.index < at && message.blocks.some(block => block.id === id && waitsForClient(message, block)),
  )
}

/** A16, and marks on blank text. */
export const cacheMarks: Rule = body => {
  const places = cacheable(body)
  const marked = places.filter(({ block }) => isObject(block.cache_control))
  if (marked.length > 4) {
    return refuse('A16', `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`)
  }
  const blank = marked.find(({ block }) => block.type === 'text' && textOf(block.text).trim() === '')
  if (blank === undefined) return undefined
  return refuse('A16', `${blank.path}: cache_control cannot be set for empty text blocks`)
}

function cacheable(body: JsonObject): { path: string; block: JsonObject }[] {
  const top = (name: string) =>
    listOf(body[name]).map((value, index) => ({ path: `${name}.${index}`, block: objectOf(value) }))
  const inMessages = readMessages(body).flatMap(message =>
    message.blocks.flatMap((block, index) => {
      const path = `messages.${message.index}.content.${index}`
      const nested = listOf(block.content).map((value, at) => ({
        path: `${path}.tool_result.content.${at}`,
        block: objectOf(value),
      }))
      return [{ path: `${path}.${textOf(block.type)}`, block }, ...nested]
    }),
  )
  return [...top('system'), ...top('tools'), ...inMessages]
}

/** A18 and A19. */
export const fitsWindow: Rule = (body, context): Violation | undefined => {
  const tokens = estimateTokens(body)
  if (context.countOnly) return undefined
  if (tokens > context.contextWindow) return promptTooLong(tokens, context.contextWindow)
  const wanted = typeof body.max_tokens === 'number' ? body.max_tokens : 0
  if (tokens + wanted <= context.contextWindow) return undefined
  return refuse(
    'A19',
    `input length and \`max_tokens\` exceed context limit: ${tokens} + ${wanted} > ${context.contextWindow}, decrease input length or \`max_tokens\` and try again`,
  )
}

export function promptTooLong(tokens: number, window: number): Violation {
  return refuse('A18', `prompt is too long: ${tokens} tokens > ${window} maximum`)
}

/**
 * Thinking comes back as it was. Blocks that Claude never signed are invalid anywhere; in the latest
 * assistant message the genuine ones must be unmodified, complete and in order. Earlier turns may leave
 * theirs out.
 */
/** The forms of `thinking`, and what it excludes. */
export const thinkingOptions: Rule = (body, context) => {
  const thinking = objectOf(body.thinking)
  const type = textOf(thinking.type)
  if (body.thinking === undefined || body.thinking === null || type === 'disabled') return undefined
  const last = readMessages(body).at(-1)
  if (type === 'enabled' && last?.role === 'assistant') {
    return refuse(
      'A13',
      'messages: prefilling the assistant message is not supported when `thinking` is enabled.',
    )
  }
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

/** A11: not Claude's, made on another platform or for another account, or altered in an earlier turn. */
export const thinkingGenuine: Rule = (body, context) => {
  const messages = readMessages(body)
  const latest = lastAssistant(messages)
  return firstOf(messages, message =>
    firstOf(message.blocks, (block, index) => {
      if (!isThinking(block)) return undefined
      const opened = openThinking(block)
      if (context.opaque && looksSigned(block)) return undefined
      const isOwn = opened !== undefined && sealOpensFor(context.account, opened)
      if (isOwn && (opened.unmodified || message === latest)) return undefined
      const what =
        block.type === 'redacted_thinking'
          ? 'Invalid `data` in `redacted_thinking` block'
          : 'Invalid `signature` in `thinking` block'
      return refuse('A11', `messages.${message.index}.content.${index}: ${what}`)
    }),
  )
}

/** Real signatures are long base64; empty ones, and those of other vendors by their form, are not. */
function looksSigned(block: JsonObject): boolean {
  const proof = textOf(block.type === 'redacted_thinking' ? block.data : block.signature)
  return /^[A-Za-z0-9+/_-]{1,}={0,2}$/.test(proof) && !/^(gAAAA|rs_|skip_thought|msg_)/.test(proof)
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
