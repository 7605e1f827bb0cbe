import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { defined } from '../base/defined.js'
import { DEFAULT_AGENT_NAME, isAgentName } from '../base/names.js'
import { AgentError, messageOf } from '../errors.js'
import { type ArtifactLine, type ReadSession, readLangoExport } from '../formats/session-lines.js'
import type { Message, SessionKey } from '../session/message.js'
import { appendAll } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import { isDatabaseUrl } from '../store/open-store.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import { quoted } from './next-command.js'
import { type CommandStore, withStore } from './open-command-store.js'
import { note, Progress, print, printJson } from './output.js'
import { settleTrust } from './settle-trust.js'
import { count } from './wording.js'

interface ImportedSession extends SessionKey {
  messages: number
  /** Fields of the file that are not in the messages. */
  leftOut?: readonly string[] | undefined
}

/** `lango sessions import`. */
export async function importSessions([file = '']: readonly string[], flags: Flags): Promise<number> {
  await checkFile(file)
  const authors = authorsOf(flags.author)
  return interruptible(signal =>
    withStore(flags, opened => importInto(opened, { file, flags, signal, authors }), {
      creates: flags['dry-run'] !== true,
    }),
  )
}

interface ImportOptions {
  file: string
  flags: Flags
  signal: AbortSignal
  /** Names of agents in the file, and those that they are stored under. */
  authors: ReadonlyMap<string, string>
}

async function importInto({ store, app }: CommandStore, options: ImportOptions): Promise<number> {
  const { file, flags, signal, authors } = options
  const progress = new Progress()
  const imported: ImportedSession[] = []
  const seen = new Set<string>()
  const agents = await knownAgents(flags)
  let messages = 0
  const onMessage = (): void => {
    signal.throwIfAborted()
    messages += 1
    progress.report(() => `imported ${count(imported.length, 'session')}, ${count(messages, 'message')}`)
  }
  try {
    for await (const session of readSessions(file, signal, {
      app,
      flags,
      author: flags.agent ?? agents?.[0],
    })) {
      signal.throwIfAborted()
      if (flags.as !== undefined && imported.length > 0) {
        throw new AgentError(
          'invalid-argument',
          `--as is for one session, but ${shown(file)} contains several: only the first was imported. Omit --as.`,
        )
      }
      const key = {
        appName: flags.app ?? session.key.appName,
        userId: flags.user ?? session.key.userId,
        sessionId: flags.as ?? session.key.sessionId,
      }
      for (const line of session.notes ?? []) note(`${key.sessionId}: ${line}`)
      const read = { ...session, key, messages: withAuthors(session.messages, authors, seen) }
      const stored = flags['dry-run']
        ? await countMessages(read.messages, onMessage)
        : await storeSession(store, read, onMessage)
      imported.push({ ...key, messages: stored, ...defined({ leftOut: session.leftOut }) })
    }
  } finally {
    progress.end()
  }
  const strangers = agents ? [...seen].filter(name => !agents.includes(name)) : []
  await report(imported, { file: shown(file), app, flags, strangers })
  noteStrangers(strangers, agents?.[0])
  return 0
}

/** `--author clerk=lango-agent`. */
function authorsOf(given: readonly string[] = []): Map<string, string> {
  return new Map(
    given.map(pair => {
      const at = pair.indexOf('=')
      const [from, to] = [pair.slice(0, at), pair.slice(at + 1)]
      if (at < 1 || !isAgentName(to)) {
        throw new AgentError(
          'invalid-argument',
          `--author ${pair} is not a pair of names. Write --author NAME=AGENT: the name in the file, and the agent here.`,
        )
      }
      return [from, to]
    }),
  )
}

/** The messages under the names that were asked for. The names that they end up with are added to `seen`. */
async function* withAuthors(
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

async function countMessages(messages: AsyncIterable<Message>, onMessage: () => void): Promise<number> {
  let found = 0
  for await (const _message of messages) {
    found += 1
    onMessage()
  }
  return found
}

/** The agents of this folder, the root first. `undefined` when only running its code would tell. */
async function knownAgents(flags: Flags): Promise<string[] | undefined> {
  const { loadConfig } = await import('../config/load-config.js')
  const skipped = await settleTrust(flags, { runs: false })
  // What is wrong with the rest of the configuration does not matter here.
  const loaded = await loadConfig({ file: flags.config, trusted: skipped.length === 0 }).catch(
    () => undefined,
  )
  if (loaded?.agentFile !== undefined || loaded?.config.rootAgent !== undefined) return undefined
  const namesOf = (agent: { name?: string; subAgents?: readonly object[] | undefined }): string[] => [
    agent.name ?? DEFAULT_AGENT_NAME,
    ...(agent.subAgents ?? []).flatMap(namesOf),
  ]
  return namesOf(loaded?.config.agent ?? {})
}

/** Answers of an agent that is not there are told to the model in words, calls and results included. */
function noteStrangers(strangers: readonly string[], root: string | undefined): void {
  if (strangers.length === 0 || root === undefined) return
  const names = strangers.map(name => `"${name}"`).join(', ')
  const pairs = strangers.map(name => `--author ${quoted(`${name}=${root}`)}`).join(' ')
  note(
    `Answers are by ${names}, which ${strangers.length === 1 ? 'is no agent' : 'are no agents'} of this configuration: ` +
      `"${root}" is told in words what they said and called. To continue as "${root}", import with ${pairs}.`,
  )
}

/** A URL may hold a password. */
function shown(file: string): string {
  return isDatabaseUrl(file) ? 'the database' : file
}

async function checkFile(file: string): Promise<void> {
  if (file === '-' || isDatabaseUrl(file)) return
  const found = await stat(file).catch(() => undefined)
  if (found?.isFile()) return
  const why = found ? 'is not a file' : 'does not exist'
  throw new AgentError(
    'invalid-argument',
    `${file} ${why}. Pass a Lango export, an ADK database, or a session or transcript of another program.`,
  )
}

interface ImportInto {
  app: string
  flags: Flags
  /** The agent that answers of programs without agents are stored under. */
  author: string | undefined
}

async function* readSessions(
  file: string,
  signal: AbortSignal,
  into: ImportInto,
): AsyncGenerator<ReadSession> {
  if (file !== '-') {
    const adk = await import('../formats/adk-sessions.js')
    if (isDatabaseUrl(file) || (await adk.isSqlite(file))) {
      const { readForeignDatabase } = await import('../formats/foreign-databases.js')
      yield* (await readForeignDatabase(file, into)).sessions
      return
    }
    if (await adk.isAdkFile(file)) {
      yield* adk.readAdkFile(file)
      return
    }
    if (!(await adk.isLangoExport(file))) {
      yield* readTranscripts(file, into)
      return
    }
  }
  const input = file === '-' ? process.stdin : createReadStream(file)
  // Aborted with the signal: an input that stays open would block an interrupted import.
  yield* readLangoExport(addAbortSignal(signal, input), file === '-' ? 'standard input' : file)
}

/** Transcripts and request bodies of other programs, each as one session. */
async function* readTranscripts(
  file: string,
  { app, flags, author }: ImportInto,
): AsyncGenerator<ReadSession> {
  const { leftOutOf, readHistoryFile } = await import('../formats/history-files.js')
  const { neutralToMessages } = await import('../formats/neutral-to-messages.js')
  const { histories } = await readHistoryFile(file, flags.format)
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
  { file, app, flags, strangers }: { file: string; app: string; flags: Flags; strangers: readonly string[] },
): Promise<void> {
  const isDry = flags['dry-run'] === true
  if (flags.json) {
    const unknown = strangers.length > 0 ? { unknownAgents: strangers } : {}
    await printJson({ ...(isDry ? { found: imported } : { imported }), ...unknown })
    return
  }
  if (imported.length === 0) note(`${file} contains no session.`)
  for (const { sessionId, userId, messages, leftOut = [] } of imported.slice(0, MOST_NAMED)) {
    await print(
      `${isDry ? 'Found' : 'Imported'} ${sessionId} of user ${userId}: ${count(messages, 'message')}.\n`,
    )
    if (leftOut.length > 0) note(`  Not stored: ${leftOut.slice(0, MOST_FIELDS).join(', ')}${more(leftOut)}.`)
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
  if (isDry) note('Nothing was stored.')
}

/** Fields of a session that the report names; --json lists all. */
const MOST_FIELDS = 8

function more(fields: readonly string[]): string {
  return fields.length > MOST_FIELDS ? ` and ${fields.length - MOST_FIELDS} more` : ''
}
