import type {
  ProviderMessage,
  ProviderPart,
  ToolDeclaration,
  ToolResultPart,
} from '../../provider/provider.js'
import type { BudgetLens } from '../../session/fit-to-budget.js'
import type { ShortenedOutput } from '../../session/message.js'
import { shortenOutput } from '../../session/shorten-output.js'
import {
  BYTES_PER_TOKEN,
  CALL_TOKENS,
  countTextTokens,
  MEDIA_TOKENS,
  MESSAGE_TOKENS,
  utf8Length,
} from '../../session/tokens.js'

/** The lens for a history. Where no message is known to be the user's, every one in the user's role counts as such. */
export function lensFor(messages: readonly ProviderMessage[]): BudgetLens<ProviderMessage> {
  if (messages.some(startsTurn)) return providerMessageLens
  return { ...providerMessageLens, startsTurn: hasUserWords }
}

/** How a budget sees a neutral message: the same costs as those of stored messages. */
const providerMessageLens: BudgetLens<ProviderMessage> = {
  tokens: countProviderTokens,
  startsTurn,
  calls: message => message.parts.filter(part => part.type === 'tool-call'),
  answers: message => message.parts.filter(part => part.type === 'tool-result'),
  outputTokens: message =>
    message.parts.flatMap(part => (part.type === 'tool-result' ? [resultTokens(part)] : [])),
  shorten,
}

/** A message by the user: much that has the user's role was written by programs. */
function startsTurn(message: ProviderMessage): boolean {
  return message.writtenBy !== 'program' && hasUserWords(message)
}

function hasUserWords({ role, parts }: ProviderMessage): boolean {
  return role === 'user' && parts.some(part => part.type === 'text' || part.type === 'media')
}

/** What a message will roughly cost: UTF-8 bytes / 4 and a little for the message and each call. */
export function countProviderTokens(message: ProviderMessage): number {
  let bytes = 0
  let fixed = MESSAGE_TOKENS
  for (const part of message.parts) {
    bytes += partBytes(part)
    if (part.type === 'tool-call' || part.type === 'tool-result') fixed += CALL_TOKENS
    if (part.type === 'media') fixed += MEDIA_TOKENS
    if (part.type === 'tool-result') fixed += MEDIA_TOKENS * (part.media?.length ?? 0)
  }
  return fixed + Math.ceil(bytes / BYTES_PER_TOKEN)
}

/** What the declarations of tools will roughly cost. */
export function countToolTokens(tools: readonly ToolDeclaration[]): number {
  return tools.reduce((all, tool) => all + CALL_TOKENS + countTextTokens(JSON.stringify(tool)), 0)
}

function partBytes(part: ProviderPart): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'vendor':
      return utf8Length(part.text)
    case 'tool-call':
      return utf8Length(part.name) + utf8Length(JSON.stringify(part.args) ?? '')
    case 'tool-result':
      return utf8Length(part.name) + utf8Length(jsonOf(part))
    case 'media':
      return 0
  }
}

function resultTokens(part: ToolResultPart): number {
  return CALL_TOKENS + countTextTokens(jsonOf(part))
}

/** A fit asks for the same result several times, and results are the bulk of a long run. */
const jsonTexts = new WeakMap<ToolResultPart, string>()

function jsonOf(part: ToolResultPart): string {
  const known = jsonTexts.get(part)
  if (known !== undefined) return known
  const text = JSON.stringify(part.result) ?? ''
  jsonTexts.set(part, text)
  return text
}

function shorten(
  message: ProviderMessage,
  limitTokens: number,
): { item: ProviderMessage; shortened: ShortenedOutput[] } {
  const shortened: ShortenedOutput[] = []
  const parts = message.parts.map(part => {
    if (part.type !== 'tool-result') return part
    const before = jsonOf(part)
    const after = shortenOutput(before, limitTokens - CALL_TOKENS)
    if (after === before) return part
    const [fromTokens, toTokens] = [countTextTokens(before), countTextTokens(after)]
    shortened.push({ callId: part.id, name: part.name, fromTokens, toTokens })
    return { ...part, result: JSON.parse(after) as unknown }
  })
  return { item: { ...message, parts }, shortened }
}
