/** Titles of sessions: short, on one line, and searchable in any language whatever the database can fold. */
import { AgentError } from '../errors.js'
import { restoreText, storableText } from './storable-text.js'

const MAX_TITLE = 200

/** A title as it is kept: one line, at most 200 characters, `undefined` when nothing is left. */
export function tidyTitle(title: unknown): string | undefined {
  if (title === undefined) return undefined
  if (typeof title !== 'string') {
    throw new AgentError('invalid-argument', 'title must be a string', { details: { field: 'title' } })
  }
  const line = title
    .slice(0, 4 * MAX_TITLE)
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const whole = [...line].slice(0, MAX_TITLE).join('')
  return whole === '' ? undefined : whole
}

/** The columns `title` and `search` of a session. */
export function titleColumns(
  title: string | undefined,
  sessionId: string,
): [title: string | null, search: string] {
  const words = folded(title === undefined ? sessionId : `${title}\n${sessionId}`)
  return [title === undefined ? null : storableText(title), words]
}

/** The title in a row, if it has one. */
export function titleIn(stored: unknown): { title?: string } {
  return typeof stored === 'string' ? { title: restoreText(stored) } : {}
}

/** Whether a search finds a session. */
export function isFound(search: string, title: string | undefined, sessionId: string): boolean {
  return titleColumns(title, sessionId)[1].includes(folded(search))
}

/** A search as a pattern for LIKE with the escape character `!`. */
export function searchPattern(search: string): string {
  return `%${folded(search).replaceAll(/[!%_]/g, '!$&')}%`
}

/** Case and width folded; halves of surrogate pairs, which databases refuse, become a question mark. */
function folded(text: string): string {
  return Buffer.from(text.normalize('NFKC').toLowerCase()).toString().replaceAll('\0', '')
}
