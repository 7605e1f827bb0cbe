/** A stored session as the chat shows it: its last messages, what it has used, and what its user has typed. */

import { messagesToProvider } from '../../adk/messages-to-provider.js'
import { ABORTED_MARKER } from '../../base/markers.js'
import { CONFIRMATION_TOOL, TRANSFER_TOOL } from '../../base/names.js'
import type { ProviderPart } from '../../provider/provider.js'
import { normalizeRole, type SessionKey, type StoredMessage } from '../../session/message.js'
import { messagePages } from '../../session/session-pages.js'
import type { RunSummary, SessionStore } from '../../session/session-store.js'
import { isSynthetic } from '../../session/turn.js'
import { type PriceOf, sessionUsage } from '../../session/usage.js'
import { count } from '../wording.js'
import type { ChatItemBody, ToolItem } from './chat-item.js'
import type { OpenedSession } from './chat-state.js'

export interface FoundSession extends OpenedSession {
  exists: boolean
  totalMessages: number
  /** What the user typed, oldest first. */
  prompts: string[]
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
  const shown = lastTurns(messages)
  const hidden = totalMessages - shown.length
  return {
    ...(lastRun ? { runId: lastRun.runId } : {}),
    sessionId: key.sessionId,
    exists: session !== undefined,
    totalMessages,
    items: [
      ...(hidden > 0 ? [earlier(hidden)] : []),
      ...itemsOf(shown),
      ...lastWord(itemsOf(shown), shown.at(-1), lastRun),
    ],
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

/** Messages as items of the transcript. */
export function itemsOf(messages: readonly StoredMessage[]): ChatItemBody[] {
  const items: ChatItemBody[] = []
  for (const message of messages) {
    if (isSynthetic(message)) {
      if (message.content.includes(ABORTED_MARKER))
        items.push({ kind: 'notice', tone: 'quiet', text: 'stopped' })
      continue
    }
    const author = message.author ?? ''
    const role = normalizeRole(message.role) ?? 'user'
    const parts = messagesToProvider([message]).flatMap(each => each.parts)
    for (const part of parts) addPart(items, part, author, role === 'assistant')
    const failure = message.extra?.errorMessage
    if (typeof failure === 'string') items.push({ kind: 'notice', tone: 'error', text: failure })
  }
  return items
}

/** How the last run ended, when its messages do not show it. */
function lastWord(
  items: readonly ChatItemBody[],
  message: StoredMessage | undefined,
  run: RunSummary | undefined,
): ChatItemBody[] {
  if (!message) return []
  const isTold = isSynthetic(message) || items.at(-1)?.kind === 'notice'
  if (run ? !run.finished : !isTold && endsOpen(items)) return [INTERRUPTED]
  return run?.finishReason === 'error' && !isTold ? [FAILED] : []
}

/** Without a record of runs: a run that has finished ends with words of the assistant. */
function endsOpen(items: readonly ChatItemBody[]): boolean {
  const last = items.at(-1)
  return last?.kind === 'tool' || last?.kind === 'user'
}

const INTERRUPTED: ChatItemBody = {
  kind: 'notice',
  tone: 'warning',
  text: 'the last run was interrupted; your next message goes on from here',
}

const FAILED: ChatItemBody = { kind: 'notice', tone: 'warning', text: 'the last run failed · /inspect' }

function addPart(items: ChatItemBody[], part: ProviderPart, author: string, isAssistant: boolean): void {
  switch (part.type) {
    case 'text':
      if (part.text.trim() === '') return
      if (isAssistant) items.push({ kind: 'answer', author, text: part.text, live: false })
      else items.push({ kind: 'user', text: part.text })
      return
    case 'reasoning':
      if (part.text.trim() !== '') items.push({ kind: 'reasoning', author, text: part.text, live: false })
      return
    case 'tool-call':
      if (HIDDEN.has(part.name)) return
      items.push({
        kind: 'tool',
        callId: part.id,
        author,
        name: part.name,
        args: part.args,
        status: 'stopped',
      })
      return
    case 'tool-result':
      answerTool(items, part)
      return
    case 'media':
      items.push({ kind: 'notice', tone: 'quiet', text: `attached: ${part.name ?? part.mimeType}` })
      return
    case 'vendor':
      items.push({ kind: 'notice', tone: 'quiet', text: part.text })
      return
    default:
      part satisfies never
  }
}

/** Calls that are told in other words. */
const HIDDEN: ReadonlySet<string> = new Set([TRANSFER_TOOL, CONFIRMATION_TOOL])

function answerTool(items: ChatItemBody[], part: Extract<ProviderPart, { type: 'tool-result' }>): void {
  if (HIDDEN.has(part.name)) return
  const answer = { status: part.isError ? ('failed' as const) : ('done' as const), result: part.result }
  const index = items.findLastIndex(
    item => item.kind === 'tool' && item.status === 'stopped' && item.callId === part.id,
  )
  const call = items[index]
  if (call?.kind === 'tool') items[index] = { ...call, ...answer } satisfies ToolItem
  else items.push({ kind: 'tool', callId: part.id, author: '', name: part.name, args: undefined, ...answer })
}
