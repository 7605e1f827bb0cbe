/**
 * The healed copy of a session. The original is only read. A copy that is there already is not written again;
 * one that was left unfinished, or whose original has grown, is completed.
 */
import { isDeepStrictEqual } from 'node:util'
import { AgentError } from '../../errors.js'
import { toJsonData } from '../../session/json.js'
import type { Message, SessionKey, StoredMessage } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'

export interface WrittenCopy {
  sessionId: string
  messages: number
  /** How many messages were written now: 0 when the copy was there already. */
  written: number
}

const PAGE = 500

/** Writes the healed messages as a session of the same user. Throws `session-exists` for another session's name. */
export async function writeCopy(
  store: SessionStore,
  key: SessionKey,
  healed: readonly Message[],
  sessionId: string,
): Promise<WrittenCopy> {
  const copy = { ...key, sessionId }
  const there = await store.loadSession(copy, { budgetTokens: 'off', maxMessages: 1 })
  const same = there ? await countSame(store, copy, healed) : 0
  if (there && same < Math.min(there.totalMessages, healed.length)) {
    throw new AgentError(
      'session-exists',
      `There is a session "${sessionId}" already, and it is not a copy of "${key.sessionId}". Name another with --as.`,
    )
  }
  if (!there) await store.createSession(copy, await ownState(store, key))
  for (const message of healed.slice(same)) await store.appendMessage(copy, message)
  return { sessionId, messages: healed.length, written: healed.length - same }
}

/** How many messages, from the first on, the copy has in common with the healed history. */
async function countSame(store: SessionStore, copy: SessionKey, healed: readonly Message[]): Promise<number> {
  let same = 0
  for (;;) {
    const page = await store.readMessages(copy, { afterSeq: same, limit: PAGE })
    for (const message of page) {
      const expected = healed[same]
      if (!expected || !isSame(message, expected)) return same
      same += 1
    }
    if (page.length < PAGE) return same
  }
}

function isSame({ seq: _seq, tokens: _tokens, ...stored }: StoredMessage, expected: Message): boolean {
  return isDeepStrictEqual(toJsonData(stored), toJsonData(expected))
}

/** What belongs to the session alone: app and user share theirs with the copy anyway. */
async function ownState(store: SessionStore, key: SessionKey): Promise<Record<string, unknown>> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  const entries = Object.entries(session?.state ?? {})
  return Object.fromEntries(entries.filter(([name]) => !/^(app|user):/.test(name)))
}
