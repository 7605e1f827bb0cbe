import { type Message, normalizeRole } from '../session/message.js'
import { isSynthetic } from '../session/token-budget-truncate.js'

const PREVIEW_LENGTH = 120

/** How far back a preview is looked for: a list must stay cheap when a session ends in thousands of tool calls. */
export const PREVIEW_WINDOW = 200

/** Whether a person would read this message: words of a user or an assistant, not Lango's own. */
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
