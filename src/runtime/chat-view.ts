/** Stored messages as people read them, what was spent, and how a run goes on. Loads neither ADK nor an SDK. */

import { convertContents } from '../adk/model/convert-messages.js'
import type { Event, Part } from '../adk/sdk.js'
import { messagesToContents, restoringEvents } from '../adk/session/messages-to-events.js'
import { isRecord } from '../base/is-record.js'
import { inSlices } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { MediaPart, ProviderPart, VendorPart } from '../provider/provider.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import type { RunInput } from '../run/run-host.js'
import type { ChatMedia, ChatMessage, ChatPart } from '../session/chat-message.js'
import { normalizeRole, type SessionKey, type StoredMessage } from '../session/message.js'
import type { RunSummary } from '../session/run-store.js'
import { messagePages } from '../session/session-pages.js'
import type { ReadOptions, SessionStore } from '../session/session-store.js'
import { sourcesOf } from '../session/sources.js'
import { isSynthetic } from '../session/turn.js'
import {
  BUDGET_RULE,
  type Budget,
  isBudget,
  messageUsage,
  type PriceOf,
  type RunUsage,
  sessionUsage,
} from '../session/usage.js'

/** A page of messages; without a bound, the newest. */
export async function readChat(
  store: SessionStore,
  key: SessionKey,
  options: ReadOptions,
  priceOf: PriceOf,
): Promise<ChatMessage[]> {
  const isOpen = options.afterSeq === undefined && options.beforeSeq === undefined
  const range = isOpen ? { beforeSeq: Number.MAX_SAFE_INTEGER } : {}
  return toChatMessages(await store.readMessages(key, { limit: 50, ...range, ...options }), priceOf)
}

/** Each stored message as its readable parts, in order. */
export function toChatMessages(messages: readonly StoredMessage[], priceOf: PriceOf): ChatMessage[] {
  const contents = messagesToContents(messages)
  return messages.map((message, index) => {
    const content = contents[index]
    const parts = content ? convertContents([content], () => 'user').flatMap(({ parts }) => parts) : []
    const { seq, role, author, timestamp, tokens } = message
    return {
      seq,
      role: normalizeRole(role) ?? 'user',
      author: author ?? role,
      timestamp,
      tokens,
      parts: parts.map(toChatPart),
      ...(isSynthetic(message) || isNodeInput(message, messages[index - 1]) ? { synthetic: true } : {}),
      ...answerFacts(message, priceOf),
    }
  })
}

/**
 * Whether a message of the role `user` is what a workflow hands to one of its agents, and nothing that a person wrote: a
 * person's message begins an invocation.
 */
function isNodeInput({ role, invocationId, toolCalls = [] }: StoredMessage, before?: StoredMessage): boolean {
  const isInside = invocationId !== undefined && before?.invocationId === invocationId
  return isInside && normalizeRole(role) === 'user' && toolCalls.length === 0
}

/** What a session has used, read page by page. */
export async function readUsage(store: SessionStore, key: SessionKey, priceOf: PriceOf): Promise<RunUsage> {
  const answers: StoredMessage[] = []
  for await (const page of messagePages(store, key))
    answers.push(...page.filter(({ extra }) => extra?.usageMetadata !== undefined))
  return sessionUsage(answers, priceOf)
}

function answerFacts(stored: StoredMessage, priceOf: PriceOf): Partial<ChatMessage> {
  const { extra } = stored
  const model = typeof extra?.modelVersion === 'string' ? extra.modelVersion : undefined
  const usage = messageUsage(stored, priceOf)
  const code = extra?.errorCode
  const message = extra?.errorMessage
  const sources = extra ? sourcesOf(extra) : []
  return {
    ...(model === undefined ? {} : { model }),
    ...(usage ? { usage } : {}),
    ...(sources.length > 0 ? { sources } : {}),
    ...(code || message ? { error: { code: String(code ?? ''), message: String(message ?? '') } } : {}),
  }
}

function toChatPart(part: ProviderPart): ChatPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'reasoning':
      return { type: 'reasoning', text: part.text, ...(part.redacted ? { redacted: true } : {}) }
    case 'tool-call': {
      const { id, name, args, signature } = part
      return { type: 'tool-call', id, name, args, ...(signature === undefined ? {} : { signed: true }) }
    }
    case 'tool-result': {
      const { id, name, result, isError, media = [] } = part
      return {
        ...{ type: 'tool-result', id, name, result },
        ...(isError ? { isError } : {}),
        ...(media.length > 0 ? { media: media.map(toChatMedia) } : {}),
      }
    }
    case 'media':
      return toChatMedia(part)
    case 'vendor':
      return vendorChatPart(part)
  }
}

function toChatMedia({ mimeType, name, data, url }: MediaPart): ChatMedia {
  return {
    type: 'media',
    mimeType,
    ...(name === undefined ? {} : { name }),
    ...(data === undefined ? {} : { data }),
    ...(url === undefined ? {} : { url }),
  }
}

/** What another vendor's server tools did reads like the model's reasoning, as it does while it is streamed. */
function vendorChatPart({ vendor, value, text }: VendorPart): ChatPart {
  if (vendor !== 'gemini') return { type: 'reasoning', text }
  const { executableCode, codeExecutionResult } = (isRecord(value) ? value : {}) as Part
  if (executableCode) {
    const { code = '', language } = executableCode
    return { type: 'code', code, ...(language ? { language: language.toLowerCase() } : {}) }
  }
  if (!codeExecutionResult) return { type: 'other', text }
  return { type: 'code', output: codeExecutionResult.output ?? String(codeExecutionResult.outcome ?? '') }
}

export interface EventOptions {
  /** Only events of messages after this number. */
  afterSeq?: number
  /** At most the events of so many messages. Default: all. */
  limit?: number
}

/**
 * The events that were stored, one for each message, nothing merged and nothing left out. A message from
 * elsewhere that holds a call together with its answer gives two.
 */
export async function readAdkEvents(
  store: SessionStore,
  key: SessionKey,
  range: EventOptions,
  rootAgentName: string,
): Promise<Event[]> {
  const messages: StoredMessage[] = []
  for await (const page of messagePages(store, key, range)) messages.push(...page)
  return inSlices(restoringEvents(messages, { rootAgentName }))
}

export interface ResumeOptions {
  /** For a run that ended at its budget: what the run that goes on may cost. */
  budget?: Budget | undefined
}

/** The run that goes on where another one ended at its budget. */
export async function goOn(
  { runs }: SessionStore,
  run: RunSummary | undefined,
  runId: string,
  budget: Budget,
): Promise<RunInput> {
  if (!isBudget(budget)) throw new AgentError('invalid-argument', `\`budget\` must be ${BUDGET_RULE}.`)
  if (!run) throw new AgentError('run-not-found', `There is no run "${runId}".`)
  if (run.finishReason !== 'budget') {
    const state = run.finished ? `it ended with "${run.finishReason}"` : 'it has not ended'
    throw new AgentError(
      'invalid-argument',
      `Run "${runId}" did not end at its budget: ${state}. Resume it without a budget, or send a message.`,
    )
  }
  const start = (await runs.readEvents(runId, { limit: 2 })).find(({ type }) => type === 'run-start')
  const { sessionId, userId } = run.key
  const model = typeof start?.model === 'string' && start.model !== '' ? { model: start.model } : {}
  return { sessionId, userId, text: GO_ON, budget, ...model }
}

const GO_ON = 'The budget was raised. Go on where you stopped.'

/** The prices of models that stored answers name; a provider may no longer be configured. */
export function pricesOf(registry: ProviderRegistry): PriceOf {
  return reference => {
    try {
      const { provider, model } = registry.resolve(reference)
      return provider.describeModel(model).price
    } catch {
      return undefined
    }
  }
}
