import type { Message } from '../../session/message.js'
import { normalizeRole } from '../../session/message.js'

/** The author of restored answers when nobody says what the root agent is called. */
const DEFAULT_AGENT_NAME = 'lango-agent'

export interface AuthorContext {
  rootAgentName?: string | undefined
  /** Who made the call that this message answers. */
  callAuthor?: string | undefined
}

/**
 * Who an event is by. A stored author wins; a user is `user`; a tool's result belongs to whoever made the
 * call, because ADK turns results by anybody else into text; everything else was said by the root agent.
 */
export function eventAuthor(message: Message, context: AuthorContext): string {
  if (message.author) return message.author
  const rootAgent = context.rootAgentName || DEFAULT_AGENT_NAME
  const role = normalizeRole(message.role)
  if (role === 'user') return 'user'
  if (role === 'tool') return context.callAuthor ?? rootAgent
  return rootAgent
}
