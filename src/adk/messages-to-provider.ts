import { checkMessages } from '../errors.js'
import type { ProviderMessage } from '../provider/provider.js'
import { accountOf, type Message, normalizeRole } from '../session/message.js'
import { isSynthetic } from '../session/turn.js'
import { markAnswer, markNumber, markWrittenBy } from './adk-quirks.js'
import { convertContents } from './model/convert-messages.js'
import { messagesToContents } from './session/messages-to-events.js'

/**
 * Stored messages as neutral ones, for linting and repairing a history without ADK. Faithful: doubled ids,
 * odd roles and arguments that are no objects stay as they are, so that they are found. Only missing ids are
 * given, and bare tool results find their calls by position, as they do when a session is restored.
 *
 * ```ts
 * import { lintHistory, messagesToProvider } from 'lango/provider'
 *
 * const messages = [{ role: 'user', content: 'Hello', timestamp: Date.now() }]
 * for (const finding of lintHistory(messagesToProvider(messages), 'anthropic-4.6')) console.log(finding.message)
 * ```
 */
export function messagesToProvider(messages: readonly Message[]): ProviderMessage[] {
  checkMessages(messages, 'messagesToProvider')
  const spoken = messagesToContents(messages).flatMap((content, index) => {
    const message = messages[index]
    if (!content || !message) return []
    const marked = markWrittenBy(content, isSynthetic(message) ? 'program' : 'user')
    const account = accountOf(message.extra?.customMetadata)
    const sealed = account === undefined ? marked : markAnswer(marked, { account })
    return [{ content: markNumber(sealed, index + 1), role: roleOf(message, content.role) }]
  })
  return convertContents(
    spoken.map(({ content }) => content),
    (_, index) => spoken[index]?.role ?? 'user',
  )
}

/** The row's own role where it says more than the content's. */
function roleOf(message: Message, contentRole: string | undefined): string {
  const role = normalizeRole(message.role)
  if (role === undefined) return message.role
  if (role === 'system') return role
  return contentRole === 'model' ? 'assistant' : 'user'
}
