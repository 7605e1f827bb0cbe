/**
 * Which session a chat is. Stored messages are never changed, so a turn that is done again, or a message that is
 * edited, goes to a copy of the session up to there; the chat keeps its id, and its session remembers which copy
 * it is now.
 */

import { randomUUID } from 'node:crypto'
import { AgentError } from '../../../errors.js'
import type { SessionKey } from '../../../session/message.js'
import { messagePages } from '../../../session/session-pages.js'
import type { SessionStore } from '../../../session/session-store.js'
import { startsTurn } from '../../../session/turn.js'
import type { ChatMessage, ChatPart } from '../../chat-protocol.js'
import { errorText } from './chat-stream.js'

/** A key that no client can set. */
const CONTINUED_AS = 'lango:chat'

/** The session that a chat goes on in. */
export async function sessionOfChat(store: SessionStore, chat: SessionKey): Promise<SessionKey> {
  const session = await store.loadSession(chat, { maxMessages: 1 })
  const sessionId = session?.state[CONTINUED_AS]
  if (typeof sessionId !== 'string') return chat
  const copy = { ...chat, sessionId }
  return (await store.loadSession(copy, { maxMessages: 1 })) ? copy : chat
}

export interface TurnQuestion {
  /** What the user said in the client's view of the chat, in order. */
  texts: readonly string[]
  /** `again`: the turn of the last text. `edit`: the turn after those before it. */
  kind: 'again' | 'edit'
}

/** Turns the chat back to before a turn: a copy of its session ends there, and the chat goes on in it. */
export async function turnBack(
  store: SessionStore,
  chat: SessionKey,
  { texts, kind }: TurnQuestion,
): Promise<SessionKey> {
  const current = await sessionOfChat(store, chat)
  const session = await store.loadSession(current, { maxMessages: 1 })
  // Nothing was stored yet: there is nothing to turn back.
  if (!session) return chat
  const turns = await turnsOf(store, current)
  const index = kind === 'again' ? lastMatch(texts, turns) : following(texts.slice(0, -1), turns)
  const turn = index === undefined ? undefined : turns[index]
  if (!turn) throw notThere()
  const copy = { ...chat, sessionId: randomUUID() }
  if (turn.seq === 1) await store.createSession(copy, {}, session.title ? { title: session.title } : {})
  else await store.forkSession(current, copy.sessionId, { throughSeq: turn.seq - 1 })
  await store.updateState(copy, { [CONTINUED_AS]: undefined })
  await pointTo(store, chat, copy.sessionId)
  return copy
}

/** A run that was stopped a moment ago may still hold the session. */
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
 * The stored turn that the client's last text is. A client may know the end of a long chat only, and people say
 * the same thing twice: the turn with the most agreement before it wins, then the one at the same place.
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

function notThere(): AgentError {
  const message = 'The turn to do again was not found in the session. Load the messages of the chat again.'
  return new AgentError('invalid-argument', message)
}

/** Stored messages as the AI SDK's messages, for a chat that is opened again. */
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
 * What a person and the agent have said. All that the agent did between two messages of the user is one message,
 * as it was when it was streamed; a history that begins in the middle of one begins with the next.
 */
export function toUiMessages(messages: readonly ChatMessage[]): UiHistoryMessage[] {
  const history: UiHistoryMessage[] = []
  for (const message of messages) {
    if (message.synthetic || message.role === 'system') continue
    const last = history.at(-1)
    if (message.role === 'user') history.push({ id: idOf(message), role: 'user', parts: said(message) })
    else if (message.role === 'tool') answer(last?.parts ?? [], message.parts)
    else if (last?.role === 'assistant') last.parts.push({ type: 'step-start' }, ...said(message))
    else if (last) {
      const parts = [{ type: 'step-start' }, ...said(message)]
      history.push({ id: idOf(message), role: 'assistant', parts })
    }
  }
  return history
}

function idOf({ seq }: ChatMessage): string {
  return `message-${seq}`
}

function said({ parts }: ChatMessage): UiHistoryPart[] {
  return parts.flatMap(toParts)
}

function toParts(part: ChatPart): UiHistoryPart[] {
  switch (part.type) {
    case 'text':
    case 'other':
      return [{ type: 'text', text: part.text, state: 'done' }]
    case 'reasoning':
      return part.text === '' ? [] : [{ type: 'reasoning', text: part.text, state: 'done' }]
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
  return { type: 'file', mediaType: mimeType, url: place, ...(name === undefined ? {} : { filename: name }) }
}

/** Gives each call its result. The newest call of an id is meant: ids come back in long chats. */
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
