/**
 * Fills the index of a session in bounded steps. Each step is one transaction that also records how far the index has
 * got, so that a process that is killed loses one step at most, and two processes add nothing twice.
 */

import type { SessionKey, StoredMessage } from '../session/message.js'
import type { IndexedDocument } from '../session/session-memory.js'
import type { SessionStore } from '../session/session-store.js'
import { joinOutputs } from '../session/tokens.js'
import { isSynthetic } from '../session/turn.js'
import { TERMS_VERSION, termsOf } from './terms.js'

/** The tool by which models search. */
export const RECALL_TOOL = 'recall'

export interface IndexProgress {
  indexed: number
  total: number
}

export interface IndexOptions {
  signal?: AbortSignal | undefined
  /** After each step. */
  onProgress?: ((progress: IndexProgress) => void) | undefined
}

/** Messages of one step: a few milliseconds of work. */
const STEP_MESSAGES = 128

/** Indexes what is not indexed yet, and returns how many messages are. */
export async function indexSession(
  store: SessionStore,
  key: SessionKey,
  { signal, onProgress }: IndexOptions = {},
): Promise<IndexProgress> {
  for (;;) {
    const progress = await store.memory.progress(key)
    if (!progress) return { indexed: 0, total: 0 }
    const { totalMessages: total, version, indexedSeq } = progress
    if (version !== TERMS_VERSION && indexedSeq > 0) {
      await store.memory.reset(key, { index: true })
      continue
    }
    const state = { indexed: indexedSeq, total }
    if (indexedSeq >= total || signal?.aborted) return state
    const messages = await store.readMessages(key, { afterSeq: indexedSeq, limit: STEP_MESSAGES })
    const last = messages.at(-1)
    if (!last) return state
    const documents = messages.flatMap(documentOf)
    const range = { version: TERMS_VERSION, afterSeq: indexedSeq, throughSeq: last.seq }
    // When another process was faster, its progress is read again.
    if (!(await store.memory.index(key, { ...range, documents }))) continue
    const reached = { indexed: last.seq, total }
    onProgress?.(reached)
    if (last.seq >= total) return reached
    await new Promise(resume => setImmediate(resume))
  }
}

/** What Lango itself says to a model is not part of the conversation. */
function documentOf(message: StoredMessage): IndexedDocument[] {
  if (isSynthetic(message)) return []
  // What was recalled was said elsewhere.
  if (message.toolCalls?.some(({ name }) => name === RECALL_TOOL)) return []
  const { seq, timestamp, author = '' } = message
  const terms = termsOf(`${author} ${readableText(message)} ${dateWords(timestamp)}`)
  return [{ seq, at: timestamp, terms }]
}

/** The number of the message that began the current turn. */
export async function turnStart(store: SessionStore, key: SessionKey): Promise<number> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  return session?.messages[0]?.seq ?? 1
}

/** The text of a message with the names, inputs and outputs of its tool calls. */
export function readableText({ content, toolCalls = [] }: StoredMessage): string {
  const outputs = joinOutputs(toolCalls)
  const calls = toolCalls.map(({ name, input }) => (input === undefined ? name : `${name} ${input}`))
  return [content, ...calls, content === outputs ? '' : outputs].filter(Boolean).join('\n')
}

/** A day in words, so that "in March" finds what was said in March. */
export function dateWords(time: number): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
