/**
 * Who spoke, and what starts a turn. Truncation, pairing, restoring and repair all decide it by this rule: from the
 * role, the origin and the kind of content, never from the text.
 */
import { isRecord } from '../base/is-record.js'
import { type Message, normalizeRole, toolCallKind } from './message.js'

/** What a message of any shape states about itself. */
export interface Speech {
  role: string
  /** Written by a program in the user's role: a correction by Lango, ADK's account of another agent's event. */
  byProgram: boolean
  /** It holds more than the answers of tools. */
  speaks: boolean
}

/** Whether a message starts a turn: the user wrote it. */
export function isTurnStart({ role, byProgram, speaks }: Speech): boolean {
  return role === 'user' && !byProgram && speaks
}

/** Whether a stored message starts a turn. */
export function startsTurn(message: Message): boolean {
  return isTurnStart({
    role: normalizeRole(message.role) ?? '',
    byProgram: isSynthetic(message),
    speaks: !(message.toolCalls ?? []).some(call => toolCallKind(call, message.role) !== 'call'),
  })
}

/** Written by Lango itself (a correction, a nudge): hidden in chats and previews. */
export function isSynthetic(message: Message): boolean {
  return isSyntheticMetadata(message.extra?.customMetadata)
}

/** Whether the `customMetadata` of an event marks it as written by Lango. */
export function isSyntheticMetadata(metadata: unknown): boolean {
  return isRecord(metadata) && isRecord(metadata.lango) && metadata.lango.synthetic === true
}
