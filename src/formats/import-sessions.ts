/** Reads sessions from a file of any known format, and stores them completely or not at all. */

import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { defined } from '../base/defined.js'
import { titleOfMessage } from '../base/title.js'
import { AgentError, messageOf } from '../errors.js'
import type { Message, SessionKey } from '../session/message.js'
import { appendAll } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import { isDatabaseUrl } from '../store/open-store.js'
import { type ArtifactLine, type ReadSession, readLangoExport } from './session-lines.js'

export interface ImportInto {
  app: string
  /** The format, when the file fits several. */
  format?: string | undefined
  /** The agent that answers of programs without agents are stored under. */
  author?: string | undefined
  signal: AbortSignal
}

/** The sessions of a file, of a database, or of a Lango export that is read from standard input. */
export async function* readSessions(
  source: string | Readable,
  into: ImportInto,
): AsyncGenerator<ReadSession> {
  // Aborted with the signal: an input that stays open would block an interrupted import.
  const readExport = (input: Readable, name: string) =>
    readLangoExport(addAbortSignal(into.signal, input), name)
  if (typeof source !== 'string') {
    yield* readExport(source, 'standard input')
    return
  }
  const adk = await import('./adk-sessions.js')
  if (isDatabaseUrl(source) || (await adk.isSqlite(source))) {
    const { readForeignDatabase } = await import('./foreign-databases.js')
    yield* (await readForeignDatabase(source, into)).sessions
  } else if (await adk.isAdkFile(source)) yield* adk.readAdkFile(source)
  else if (await adk.isLangoExport(source)) yield* readExport(createReadStream(source), source)
  else yield* readTranscripts(source, into)
}

/** The messages under the names that were asked for. The names that they end up with are added to `seen`. */
export async function* withAuthors(
  messages: ReadSession['messages'],
  authors: ReadonlyMap<string, string>,
  seen: Set<string>,
): AsyncGenerator<Message> {
  for await (const message of messages) {
    const name = message.author
    const author = name === undefined ? undefined : authors.get(name)
    const isAgent = message.role !== 'user' && message.role !== 'system' && name !== 'user'
    if (isAgent && name !== undefined) seen.add(author ?? name)
    yield author === undefined ? message : { ...message, author }
  }
}

/** Transcripts and request bodies of other programs, each as one session. */
async function* readTranscripts(
  file: string,
  { app, format, author }: ImportInto,
): AsyncGenerator<ReadSession> {
  const { leftOutOf, readHistoryFile } = await import('../formats/history-files.js')
  const { neutralToMessages } = await import('../formats/neutral-to-messages.js')
  const { histories } = await readHistoryFile(file, format)
  for (const [index, history] of histories.entries()) {
    const fallback = basename(file).replace(/\.\w+$/, '')
    const name = history.name || (histories.length > 1 ? `${fallback}-${index + 1}` : fallback)
    const key = { appName: app, userId: 'user', sessionId: name }
    if (history.kind === 'session') {
      yield { key, state: {}, messages: history.messages }
      continue
    }
    const messages = neutralToMessages(history.messages, { author, now: Date.now() })
    yield { key, state: {}, messages, notes: history.notes, leftOut: leftOutOf(history) }
  }
}

/** Stores a session completely or not at all. */
export async function storeSession(
  store: SessionStore,
  { key, state, title, messages, expected, artifacts }: ReadSession,
  onStored: () => void,
): Promise<number> {
  await createSession(store, key, { state, title })
  let stored = 0
  // An export of Lango's is restored as it was; sessions of others are named as those that begin here.
  let isNamed = title !== undefined || expected !== undefined
  try {
    for await (const group of groupsOf(messages)) {
      const numbers = await appendAll(store, key, group)
      const words = isNamed ? undefined : group.map(firstWords).find(found => found !== '')
      if (words !== undefined) await store.renameSession(key, words)
      isNamed ||= words !== undefined
      for (const [index, seq] of numbers.entries()) {
        stored += 1
        // A store replaces the message that has the same id.
        if (seq !== stored) {
          throw new AgentError(
            'invalid-argument',
            `Message ${stored} has the id of message ${seq} ("${group[index]?.id}"): the file was modified.`,
          )
        }
        onStored()
      }
    }
    if (expected !== undefined && stored !== expected) {
      throw new AgentError(
        'invalid-argument',
        `Session "${key.sessionId}" should have ${expected} messages, but the file contains ${stored}: it was truncated or modified.`,
      )
    }
    if (artifacts) await storeArtifacts(store, key, artifacts)
    return stored
  } catch (error) {
    await store.deleteSession(key)
    const code = error instanceof AgentError ? error.code : 'internal'
    const message = `${messageOf(error).replace(/\.$/, '')}. Session "${key.sessionId}" was not imported.`
    throw new AgentError(code, message, { cause: error })
  }
}

/** The title that a message of the user gives its session; empty for others. */
export function firstWords({ role, content }: Message): string {
  return role === 'user' ? titleOfMessage(String(content ?? '')) : ''
}

/** Artifacts of the user are only added, never overwritten by an old export. */
async function storeArtifacts(
  store: SessionStore,
  key: SessionKey,
  lines: AsyncIterable<ArtifactLine>,
): Promise<void> {
  const known = new Set(await store.artifacts.list(key))
  for await (const { name, header, body } of lines) {
    if (!known.has(name)) await store.artifacts.save({ ...key, name }, { header, body })
  }
}

/** Messages that are stored together, and the length of their texts from which on a group is complete. */
const GROUP = 200
const GROUP_LENGTH = 1_000_000

async function* groupsOf(messages: ReadSession['messages']): AsyncGenerator<Message[]> {
  let group: Message[] = []
  let length = 0
  for await (const message of messages) {
    group.push(message)
    // Of a file's lines nothing is checked yet.
    length += String(message.content ?? '').length
    if (group.length < GROUP && length < GROUP_LENGTH) continue
    yield group
    group = []
    length = 0
  }
  if (group.length > 0) yield group
}

/** State shared with other sessions is only added, never overwritten by an old export. */
async function createSession(
  store: SessionStore,
  key: SessionKey,
  { state, title }: Pick<ReadSession, 'state' | 'title'>,
): Promise<void> {
  const own = Object.entries(state).filter(([name]) => !isShared(name))
  try {
    const created = await store.createSession(key, Object.fromEntries(own), defined({ title }))
    const missing = Object.entries(state).filter(
      ([name]) => isShared(name) && !Object.hasOwn(created.state, name),
    )
    if (missing.length > 0) await store.updateState(key, Object.fromEntries(missing))
  } catch (error) {
    if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
    throw new AgentError(
      'session-exists',
      `Session "${key.sessionId}" of user "${key.userId}" already exists.`,
    )
  }
}

function isShared(name: string): boolean {
  return name.startsWith('app:') || name.startsWith('user:')
}
