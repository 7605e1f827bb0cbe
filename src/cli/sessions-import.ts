import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { defined } from '../base/defined.js'
import { AgentError, messageOf } from '../errors.js'
import { type ArtifactLine, readSessionLines } from '../formats/session-lines.js'
import type { Message, SessionKey, State } from '../session/message.js'
import { appendAll } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import { type CommandStore, withStore } from './open-command-store.js'
import { note, Progress, print, printJson } from './output.js'
import { count } from './wording.js'

/** A session of a file. Its messages are read while they are stored. */
interface ReadSession {
  key: SessionKey
  state: State
  title?: string | undefined
  /** The number of messages, when the file states it. */
  expected?: number | undefined
  messages: AsyncIterable<Message> | Iterable<Message>
  /** Read after the messages. */
  artifacts?: AsyncIterable<ArtifactLine>
}

interface ImportedSession extends SessionKey {
  messages: number
}

/** `lango sessions import`. */
export async function importSessions([file = '']: readonly string[], flags: Flags): Promise<number> {
  await checkFile(file)
  return interruptible(signal =>
    withStore(flags, opened => importInto(opened, { file, flags, signal }), { creates: true }),
  )
}

async function importInto(
  { store, app }: CommandStore,
  { file, flags, signal }: { file: string; flags: Flags; signal: AbortSignal },
): Promise<number> {
  const progress = new Progress()
  const imported: ImportedSession[] = []
  let messages = 0
  try {
    for await (const session of readSessions(file, signal, { app, flags })) {
      signal.throwIfAborted()
      if (flags.as !== undefined && imported.length > 0) {
        throw new AgentError(
          'invalid-argument',
          `--as is for one session, but ${file} contains several: only the first was imported. Omit --as.`,
        )
      }
      const key = {
        appName: flags.app ?? session.key.appName,
        userId: flags.user ?? session.key.userId,
        sessionId: flags.as ?? session.key.sessionId,
      }
      const stored = await storeSession(store, { ...session, key }, () => {
        signal.throwIfAborted()
        messages += 1
        progress.report(() => `imported ${count(imported.length, 'session')}, ${count(messages, 'message')}`)
      })
      imported.push({ ...key, messages: stored })
    }
  } finally {
    progress.end()
  }
  await report(imported, { file, app, json: flags.json === true })
  return 0
}

async function checkFile(file: string): Promise<void> {
  if (file === '-') return
  const found = await stat(file).catch(() => undefined)
  if (found?.isFile()) return
  const why = found ? 'is not a file' : 'does not exist'
  throw new AgentError(
    'invalid-argument',
    `${file} ${why}. Pass a Lango export, an ADK database, or a session or transcript of another program.`,
  )
}

async function* readSessions(
  file: string,
  signal: AbortSignal,
  into: { app: string; flags: Flags },
): AsyncGenerator<ReadSession> {
  if (file !== '-') {
    const { isForeignFile, isLangoExport, readForeignSessions } = await import('../formats/adk-sessions.js')
    if (await isForeignFile(file)) {
      yield* readForeignSessions(file)
      return
    }
    if (!(await isLangoExport(file))) {
      yield* readTranscripts(file, into)
      return
    }
  }
  const input = file === '-' ? process.stdin : createReadStream(file)
  // Aborted with the signal: an input that stays open would block an interrupted import.
  yield* readOurs(addAbortSignal(signal, input), file === '-' ? 'standard input' : file)
}

/** Transcripts and request bodies of other programs, each as one session. */
async function* readTranscripts(
  file: string,
  { app, flags }: { app: string; flags: Flags },
): AsyncGenerator<ReadSession> {
  const { readHistoryFile } = await import('../formats/history-files.js')
  const { neutralToMessages } = await import('../formats/neutral-to-messages.js')
  const { histories } = await readHistoryFile(file, flags.format)
  for (const [index, history] of histories.entries()) {
    const fallback = basename(file).replace(/\.\w+$/, '')
    const name = history.name || (histories.length > 1 ? `${fallback}-${index + 1}` : fallback)
    if (history.kind !== 'session') for (const line of history.notes) note(`${name}: ${line}`)
    yield {
      key: { appName: app, userId: 'user', sessionId: name },
      state: {},
      messages:
        history.kind === 'session'
          ? history.messages
          : neutralToMessages(history.messages, { author: flags.agent, now: Date.now() }),
    }
  }
}

/** Sessions follow each other in one stream of lines; each is read completely before the next. */
async function* readOurs(input: AsyncIterable<Uint8Array>, source: string): AsyncGenerator<ReadSession> {
  const lines = readSessionLines(input, source)
  let next = await lines.next()
  const untilHeader = async function* (): AsyncGenerator<Message> {
    for (next = await lines.next(); !next.done && 'message' in next.value; next = await lines.next()) {
      yield next.value.message
    }
  }
  const artifacts = async function* (): AsyncGenerator<ArtifactLine> {
    for (; !next.done && 'artifact' in next.value; next = await lines.next()) yield next.value.artifact
  }
  if (next.done) throw new AgentError('invalid-argument', `${source} is empty.`)
  while (!next.done) {
    if (!('header' in next.value)) {
      throw new AgentError(
        'invalid-argument',
        `Line ${next.value.line} of ${source} is not a session header: the file is not a Lango export, or its beginning is missing.`,
      )
    }
    const { key, state, title, messages } = next.value.header
    yield { key, state, title, expected: messages, messages: untilHeader(), artifacts: artifacts() }
  }
}

/** Stores a session completely or not at all. */
async function storeSession(
  store: SessionStore,
  { key, state, title, messages, expected, artifacts }: ReadSession,
  onStored: () => void,
): Promise<number> {
  await createSession(store, key, { state, title })
  let stored = 0
  try {
    for await (const group of groupsOf(messages)) {
      const numbers = await appendAll(store, key, group)
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
        `Session "${key.sessionId}" should have ${count(expected, 'message')}, but the file contains ${stored}: it was truncated or modified.`,
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

/** Artifacts of the user are only added, never overwritten by an old export. */
async function storeArtifacts(
  store: SessionStore,
  key: SessionKey,
  lines: AsyncIterable<ArtifactLine>,
): Promise<void> {
  const known = new Set(await store.artifacts?.list(key))
  for await (const { name, header, body } of lines) {
    if (!store.artifacts)
      throw new AgentError('unsupported', 'The store keeps no artifacts: choose another one with --store')
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
      `Session "${key.sessionId}" of user "${key.userId}" already exists. Import it under another id with --as.`,
    )
  }
}

function isShared(name: string): boolean {
  return name.startsWith('app:') || name.startsWith('user:')
}

/** Sessions listed in the report; --json lists all. */
const MOST_NAMED = 10

async function report(
  imported: readonly ImportedSession[],
  { file, app, json }: { file: string; app: string; json: boolean },
): Promise<void> {
  if (json) {
    await printJson({ imported })
    return
  }
  if (imported.length === 0) note(`${file} contains no session.`)
  for (const { sessionId, userId, messages } of imported.slice(0, MOST_NAMED)) {
    await print(`Imported ${sessionId} of user ${userId}: ${count(messages, 'message')}.\n`)
  }
  if (imported.length > MOST_NAMED) {
    const others = imported.slice(MOST_NAMED)
    const messages = others.reduce((sum, session) => sum + session.messages, 0)
    await print(`… and ${count(others.length, 'more session')} with ${count(messages, 'message')}.\n`)
  }
  const foreign = imported.find(({ appName }) => appName !== app)
  if (foreign) {
    note(
      `They belong to the app "${foreign.appName}", not "${app}". List them with --app ${foreign.appName}, or import them with --app ${app}.`,
    )
  }
}
