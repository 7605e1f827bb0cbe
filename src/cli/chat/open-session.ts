/** A stored session as the chat shows it: its last messages, what it has used, and what its user has typed. */

import { toChatMessages } from '../../runtime/chat-view.js'
import { normalizeRole, type SessionKey, type StoredMessage } from '../../session/message.js'
import type { RunSummary } from '../../session/run-store.js'
import { messagePages } from '../../session/session-pages.js'
import type { SessionStore } from '../../session/session-store.js'
import { isSynthetic } from '../../session/turn.js'
import { type PriceOf, sessionUsage } from '../../session/usage.js'
import { fromMessages } from '../../transcript/from-messages.js'
import { count } from '../wording.js'
import { type ChatItemBody, chatItemsOf } from './chat-item.js'
import type { OpenedSession } from './chat-state.js'

export interface FoundSession extends OpenedSession {
  exists: boolean
  totalMessages: number
  /** What the user typed, oldest first. */
  prompts: string[]
  /** The newest run that has begun and not ended: its events show what it wrote, so the items end before it. */
  openRun?: RunSummary
}

/** How many messages are shown, and how many are looked at for usage and prompts. */
const SHOWN = 24
const READ = 4_000
const PAGE = 1_000

/** Reads a session. One that does not exist is a new one. */
export async function openSession(
  store: SessionStore,
  key: SessionKey,
  priceOf: PriceOf,
): Promise<FoundSession> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  const totalMessages = session?.totalMessages ?? 0
  const messages = totalMessages === 0 ? [] : await readTail(store, key, totalMessages)
  const [lastRun] = session ? await store.runs.listRuns(key, { limit: 1 }) : []
  const openRun = lastRun && !lastRun.finished && lastRun.afterSeq !== undefined ? lastRun : undefined
  const before = messages.filter(({ seq }) => seq <= (openRun?.afterSeq ?? totalMessages) + 1)
  const shown = lastTurns(before)
  const hidden = totalMessages - messages.length + before.length - shown.length
  const items = itemsOf(shown)
  const end = openRun ? [] : ending(items, shown.at(-1), lastRun)
  return {
    ...(openRun ? { openRun } : {}),
    ...(lastRun ? { runId: lastRun.runId } : {}),
    sessionId: key.sessionId,
    exists: session !== undefined,
    totalMessages,
    items: [...(hidden > 0 ? [earlier(hidden)] : []), ...items, ...end],
    usage: sessionUsage(messages, priceOf),
    usageIsPartial: messages.length < totalMessages,
    prompts: messages.filter(isPrompt).map(({ content }) => content),
  }
}

async function readTail(store: SessionStore, key: SessionKey, total: number): Promise<StoredMessage[]> {
  const messages: StoredMessage[] = []
  const range = { afterSeq: Math.max(0, total - READ), limit: READ + PAGE }
  for await (const page of messagePages(store, key, range)) messages.push(...page)
  return messages
}

/** The newest messages, from a message of the user on where there is one. */
function lastTurns(messages: readonly StoredMessage[]): StoredMessage[] {
  const tail = messages.slice(-SHOWN)
  const start = tail.findIndex(isPrompt)
  return start > 0 ? tail.slice(start) : tail
}

function earlier(hidden: number): ChatItemBody {
  return { kind: 'notice', tone: 'quiet', text: `${count(hidden, 'earlier message')} not shown` }
}

function isPrompt(message: StoredMessage): boolean {
  return normalizeRole(message.role) === 'user' && message.content.trim() !== '' && !isSynthetic(message)
}

/** Messages as the items that show them. */
export function itemsOf(messages: readonly StoredMessage[]): ChatItemBody[] {
  return fromMessages(toChatMessages(messages, () => undefined)).flatMap(chatItemsOf)
}

/** How the last run ended, when its messages do not show it. */
function ending(
  items: readonly ChatItemBody[],
  message: StoredMessage | undefined,
  run: RunSummary | undefined,
): ChatItemBody[] {
  if (!message) return []
  const isShown = isSynthetic(message) || items.at(-1)?.kind === 'notice'
  if (run ? !run.finished : !isShown && endsOpen(items)) return [INTERRUPTED]
  return run?.finishReason === 'error' && !isShown ? [FAILED] : []
}

/** Without a record of runs: a run that has finished ends with words of the assistant. */
function endsOpen(items: readonly ChatItemBody[]): boolean {
  const last = items.at(-1)
  return last?.kind === 'tool' || last?.kind === 'user'
}

const INTERRUPTED: ChatItemBody = {
  kind: 'notice',
  tone: 'warning',
  text: 'the last run was interrupted; your next message continues from here',
}

const FAILED: ChatItemBody = { kind: 'notice', tone: 'warning', text: 'the last run failed · /inspect' }
