/**
 * The session of a chat, and its history as the AI SDK's messages. Stored messages are never changed: a turn that is
 * regenerated, or a message that is edited, continues in a copy of the session up to that turn. The chat keeps its
 * id, and the state of its session names the copy.
 */

import { randomUUID } from 'node:crypto'
import { defined } from '../../../base/defined.js'
import { AgentError } from '../../../errors.js'
import type { SessionKey } from '../../../session/message.js'
import { messagePages } from '../../../session/session-pages.js'
import type { SessionStore } from '../../../session/session-store.js'
import { startsTurn } from '../../../session/turn.js'
import { codeText } from '../../../transcript/item.js'
import type { ChatMessage, ChatPart } from '../../chat-protocol.js'
import { errorText, sourceParts } from './chat-stream.js'

/** A key that no client can set. */
const CONTINUED_AS = 'lango:chat'

/** The session in which a chat continues. */
export async function sessionOfChat(store: SessionStore, chat: SessionKey): Promise<SessionKey> {
  const session = await store.loadSession(chat, { maxMessages: 1 })
  const sessionId = session?.state[CONTINUED_AS]
  if (typeof sessionId !== 'string') return chat
  const copy = { ...chat, sessionId }
  return (await store.loadSession(copy, { maxMessages: 1 })) ? copy : chat
}

export interface TurnQuestion {
  /** The user's messages in the client's copy of the chat, in order. */
  texts: readonly string[]
  /** `again`: the turn of the last text. `edit`: the turn after those before it. */
  kind: 'again' | 'edit'
}

/** Forks the session of the chat before a turn; the chat continues in the copy. */
export async function turnBack(
  store: SessionStore,
  chat: SessionKey,
  { texts, kind }: TurnQuestion,
): Promise<SessionKey> {
  const current = await sessionOfChat(store, chat)
  const session = await store.loadSession(current, { maxMessages: 1 })
  // Nothing is stored yet, so there is nothing to fork.
  if (!session) return chat
  const turns = await turnsOf(store, current)
  const index = kind === 'again' ? lastMatch(texts, turns) : following(texts.slice(0, -1), turns)
  const turn = index === undefined ? undefined : turns[index]
  if (!turn) throw turnNotFound()
  const copy = { ...chat, sessionId: randomUUID() }
  if (turn.seq === 1) await store.createSession(copy, {}, session.title ? { title: session.title } : {})
  else await store.forkSession(current, copy.sessionId, { throughSeq: turn.seq - 1 })
  await store.updateState(copy, { [CONTINUED_AS]: undefined })
  await pointTo(store, chat, copy.sessionId)
  return copy
}

/** Waits for the lease: a run that was just stopped may still hold it. */
async function pointTo(store: SessionStore, chat: SessionKey, sessionId: string): Promise<void> {
  const lease = await store.acquireLease(chat, { waitMs: WAIT_MS })
  try {
    await store.updateState(chat, { [CONTINUED_AS]: sessionId }, { fence: lease.fence })
  } finally {
    await lease.release()
  }
}

const WAIT_MS = 10_000

interface Turn {
  seq: number
  text: string
}

async function turnsOf(store: SessionStore, key: SessionKey): Promise<Turn[]> {
  const turns: Turn[] = []
  for await (const page of messagePages(store, key))
    turns.push(...page.filter(startsTurn).map(({ seq, content }) => ({ seq, text: content })))
  return turns
}

function following(texts: readonly string[], turns: readonly Turn[]): number | undefined {
  if (texts.length === 0) return 0
  const before = lastMatch(texts, turns)
  return before === undefined ? undefined : before + 1
}

/**
 * The stored turn of the client's last text. A client may have only the end of a long chat, and a text may occur
 * twice: the turn with the most equal texts before it is taken, then the one at the same position.
 */
export function lastMatch(texts: readonly string[], turns: readonly Turn[]): number | undefined {
  let best: { index: number; agreed: number } | undefined
  for (let index = turns.length - 1; index >= 0; index--) {
    const agreed = agreement(texts, turns, index)
    const isSamePlace = agreed === texts.length && index + 1 === texts.length
    if (agreed > (best?.agreed ?? 0) || (isSamePlace && agreed === best?.agreed)) best = { index, agreed }
  }
  return best?.index
}

function agreement(texts: readonly string[], turns: readonly Turn[], end: number): number {
  let agreed = 0
  while (agreed <= end && agreed < texts.length) {
    if (texts[texts.length - 1 - agreed] !== turns[end - agreed]?.text) break
    agreed += 1
  }
  return agreed
}

function turnNotFound(): AgentError {
  const message = 'The turn to regenerate was not found in the session. Load the messages of the chat again.'
  return new AgentError('invalid-argument', message)
}

/** A message of the AI SDK, as far as Lango writes one. */
export interface UiHistoryMessage {
  id: string
  role: 'user' | 'assistant'
  parts: UiHistoryPart[]
}

interface UiHistoryPart {
  type: string
  [field: string]: unknown
}

/**
 * Stored messages as the AI SDK's, for a chat that is opened again. Everything between two messages of the user is
 * one message of the agent, as it was streamed; one whose beginning is missing is left out.
 */
export function toUiMessages(messages: readonly ChatMessage[]): UiHistoryMessage[] {
  const history: UiHistoryMessage[] = []
  for (const message of messages) {
    if (message.synthetic || message.role === 'system') continue
    const last = history.at(-1)
    if (message.role === 'user') history.push({ id: idOf(message), role: 'user', parts: partsOf(message) })
    else if (message.role === 'tool') answer(last?.parts ?? [], message.parts)
    else if (last?.role === 'assistant') last.parts.push({ type: 'step-start' }, ...partsOf(message))
    else if (last) {
      const parts = [{ type: 'step-start' }, ...partsOf(message)]
      history.push({ id: idOf(message), role: 'assistant', parts })
    }
  }
  return history
}

function idOf({ seq }: ChatMessage): string {
  return `message-${seq}`
}

function partsOf({ parts, sources = [] }: ChatMessage): UiHistoryPart[] {
  return [...parts.flatMap(toParts), ...sourceParts(sources)]
}

function toParts(part: ChatPart): UiHistoryPart[] {
  switch (part.type) {
    case 'text':
    case 'other':
      return [{ type: 'text', text: part.text, state: 'done' }]
    case 'reasoning':
      return part.text === '' ? [] : [{ type: 'reasoning', text: part.text, state: 'done' }]
    case 'code':
      return [{ type: 'reasoning', text: codeText(part), state: 'done' }]
    case 'media':
      return [fileOf(part)]
    case 'tool-call': {
      const facts = { toolCallId: part.id, toolName: part.name, input: part.args, providerExecuted: true }
      return [{ type: 'dynamic-tool', ...facts, state: 'output-error', errorText: 'There is no result.' }]
    }
    case 'tool-result':
      return []
  }
}

function fileOf({ mimeType, name, data, url }: Extract<ChatPart, { type: 'media' }>): UiHistoryPart {
  const place = url ?? `data:${mimeType};base64,${data ?? ''}`
  return { type: 'file', mediaType: mimeType, url: place, ...defined({ filename: name }) }
}

/** Gives each call its result. Ids repeat in long chats: the newest call with the id is the right one. */
function answer(calls: UiHistoryPart[], results: readonly ChatPart[]): void {
  for (const result of results) {
    if (result.type !== 'tool-result') continue
    const call = calls.findLast(part => part.type === 'dynamic-tool' && part.toolCallId === result.id)
    if (!call) continue
    if (result.isError) call.errorText = errorText(result.result)
    else {
      delete call.errorText
      call.state = 'output-available'
      call.output = result.result
    }
  }
}
