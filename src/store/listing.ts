/** Lists of sessions: titles that can be searched in any language, independent of the database's case folding; previews; cursors. */

import { AgentError } from '../errors.js'
import { type Message, normalizeRole } from '../session/message.js'
import { isSynthetic } from '../session/turn.js'
import { restoreText, storableText } from './storable-text.js'

/** The columns `title` and `search` of a session. */
export function titleColumns(
  title: string | undefined,
  sessionId: string,
): [title: string | null, search: string] {
  const search = folded(title === undefined ? sessionId : `${title}\n${sessionId}`)
  return [title === undefined ? null : storableText(title), search]
}

/** The title in a row, if it has one. */
export function titleIn(stored: unknown): { title?: string } {
  return typeof stored === 'string' ? { title: restoreText(stored) } : {}
}

/** A search as a pattern for LIKE with the escape character `!`. */
export function searchPattern(search: string): string {
  return `%${folded(search).replaceAll(/[!%_]/g, '!$&')}%`
}

/** Case and width folded; halves of surrogate pairs, which databases refuse, become a question mark. */
function folded(text: string): string {
  return Buffer.from(text.normalize('NFKC').toLowerCase()).toString().replaceAll('\0', '')
}

const PREVIEW_LENGTH = 120

/** How far back a preview is searched for: a list must stay cheap when a session ends in thousands of tool calls. */
export const PREVIEW_WINDOW = 200

/** Whether a person would read this message: text of a user or an assistant, not written by Lango. */
export function isReadable(message: Message): boolean {
  const role = normalizeRole(message.role)
  return (role === 'user' || role === 'assistant') && message.content.trim() !== '' && !isSynthetic(message)
}

/** The beginning of a text, never half of a character. */
export function previewOf(text: string): string {
  const start = text.trimStart()
  const end = /[\ud800-\udbff]/.test(start.charAt(PREVIEW_LENGTH - 1)) ? PREVIEW_LENGTH - 1 : PREVIEW_LENGTH
  return start.slice(0, end).trimEnd()
}

/** The last session of a page: the next page starts after it. */
export interface PageCursor {
  updatedAt: number
  pk: number
}

/** A cursor as callers see it: opaque, and safe in a URL. */
export function writeCursor({ updatedAt, pk }: PageCursor): string {
  return Buffer.from(JSON.stringify([updatedAt, pk])).toString('base64url')
}

export function readCursor(text: string): PageCursor {
  try {
    const [updatedAt, pk] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (Number.isFinite(updatedAt) && Number.isSafeInteger(pk)) {
      return { updatedAt: updatedAt as number, pk: pk as number }
    }
  } catch {
    // Falls through: a text that cannot be parsed is not a cursor of this store.
  }
  throw new AgentError('invalid-argument', 'cursor must be the nextCursor of an earlier page', {
    details: { field: 'cursor' },
  })
}
