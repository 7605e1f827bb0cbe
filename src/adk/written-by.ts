/**
 * Who wrote a content that has the user's role: the user, or a program in that role.
 *
 * - ADK copies the contents of its events into each request and rewrites those of other agents and of
 *   compacted history as new contents. The mark below is a property by symbol: ADK's copies keep it, its new
 *   contents do not have it, and JSON, stored rows and wires never show it.
 * - The session service marks what it gives to ADK by role and metadata. A marked content is never judged by
 *   its text.
 * - A content without a mark (a model adapter under another session service, contents that a callback made) is
 *   the user's, unless it has the whole shape of ADK's account of another agent's event.
 */
import type { Content, Part } from './sdk.js'

/** `program`: a correction by Lango, an account by ADK. */
export type WrittenBy = 'user' | 'program'

const MARK = Symbol.for('lango.written-by')

/** A copy of the content that says who wrote it. */
export function markWrittenBy(content: Content, writtenBy: WrittenBy): Content {
  return Object.assign({ ...content }, { [MARK]: writtenBy })
}

/** Who wrote a content of the user's role. */
export function writtenBy(content: Content): WrittenBy {
  const mark: unknown = Reflect.get(content, MARK)
  if (mark === 'user' || mark === 'program') return mark
  return hasShapeOfAccount(content) ? 'program' : 'user'
}

/** Whether a content is ADK's account of another agent's event. */
export function isAccountByAdk(content: Content): boolean {
  return Reflect.get(content, MARK) === undefined && hasShapeOfAccount(content)
}

/** A heading in a part of its own, and then only what ADK writes of an agent's words, calls and results. */
function hasShapeOfAccount({ parts = [] }: Content): boolean {
  const [heading, ...others] = parts
  return heading?.text === ACCOUNT_HEADING && others.length > 0 && others.every(isAccountPart)
}

const ACCOUNT_HEADING = 'For context:'

/** Thoughts, media and code are copied along as they are. */
function isAccountPart({ text, thought }: Part): boolean {
  return !text || thought === true || ACCOUNT_TEXT.test(text)
}

const ACCOUNT_TEXT = /^\[[^\]]+\] (?:said: |called tool `|tool `)/
