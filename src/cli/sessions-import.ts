import { stat } from 'node:fs/promises'
import { defined } from '../base/defined.js'
import { DEFAULT_AGENT_NAME, isAgentName } from '../base/names.js'
import { AgentError } from '../errors.js'
import { readSessions, storeSession, withAuthors } from '../formats/import-sessions.js'
import type { Message, SessionKey } from '../session/message.js'
import { isDatabaseUrl } from '../store/open-store.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import { asTyped, type Io, pathOf, sourceOf } from './io.js'
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
export async function importSessions(io: Io, [file = '']: readonly string[], flags: Flags): Promise<number> {
  await checkFile(io, file)
  const authors = authorsOf(flags.author)
  return interruptible(io, signal =>
    withStore(
      io,
      flags,
      opened => asTyped(io, file, importInto(io, opened, { file, flags, signal, authors })),
      {
        creates: flags['dry-run'] !== true,
      },
    ),
  )
}

interface ImportOptions {
  file: string
  flags: Flags
  signal: AbortSignal
  /** Names of agents in the file, and those that they are stored under. */
  authors: ReadonlyMap<string, string>
}

async function importInto(io: Io, { store, app }: CommandStore, options: ImportOptions): Promise<number> {
  const { file, flags, signal, authors } = options
  const progress = new Progress(io)
  const imported: ImportedSession[] = []
  const seen = new Set<string>()
  const agents = await knownAgents(io, flags)
  let messages = 0
  const onMessage = (): void => {
    signal.throwIfAborted()
    messages += 1
    progress.report(() => `imported ${count(imported.length, 'session')}, ${count(messages, 'message')}`)
  }
  try {
    const into = { app, format: flags.format, author: flags.agent ?? agents?.[0], signal }
    for await (const session of readSessions(isDatabaseUrl(file) ? file : sourceOf(io, file), into)) {
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
      for (const line of session.notes ?? []) note(io, `${key.sessionId}: ${line}`)
      const read = { ...session, key, messages: withAuthors(session.messages, authors, seen) }
      const stored = flags['dry-run']
        ? await countMessages(read.messages, onMessage)
        : await storeSession(store, read, onMessage).catch(inFlags)
      imported.push({ ...key, messages: stored, ...defined({ leftOut: session.leftOut }) })
    }
  } finally {
    progress.end()
  }
  const strangers = agents ? [...seen].filter(name => !agents.includes(name)) : []
  await report(io, imported, { file: shown(file), app, flags, strangers })
  noteStrangers(io, strangers, agents?.[0])
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

/** What to do about a session that exists, in words of this command. */
function inFlags(error: unknown): never {
  if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
  throw new AgentError('session-exists', `${error.message} Import it under another id with --as.`)
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
async function knownAgents(io: Io, flags: Flags): Promise<string[] | undefined> {
  const { loadConfig } = await import('../config/load-config.js')
  const { folder } = await settleTrust(io, flags, { runs: false })
  // What is wrong with the rest of the configuration does not matter here.
  const loaded = await loadConfig({ ...folder, file: flags.config }).catch(() => undefined)
  if (loaded?.agentFile !== undefined || loaded?.config.rootAgent !== undefined) return undefined
  const namesOf = (agent: { name?: string; subAgents?: readonly object[] | undefined }): string[] => [
    agent.name ?? DEFAULT_AGENT_NAME,
    ...(agent.subAgents ?? []).flatMap(namesOf),
  ]
  return namesOf(loaded?.config.agent ?? {})
}

/** Answers of an agent that is not there reach the model as a description in words, calls and results included. */
function noteStrangers(io: Io, strangers: readonly string[], root: string | undefined): void {
  if (strangers.length === 0 || root === undefined) return
  const names = strangers.map(name => `"${name}"`).join(', ')
  const pairs = strangers.map(name => `--author ${quoted(`${name}=${root}`)}`).join(' ')
  note(
    io,
    `The answers of ${names} ${strangers.length === 1 ? 'are from an agent' : 'are from agents'} that this configuration does not have: ` +
      `"${root}" receives them as text, their tool calls included. To continue them as "${root}", import with ${pairs}.`,
  )
}

/** A URL may hold a password. */
function shown(file: string): string {
  return isDatabaseUrl(file) ? 'the database' : file
}

async function checkFile(io: Io, file: string): Promise<void> {
  if (file === '-' || isDatabaseUrl(file)) return
  const found = await stat(pathOf(io, file)).catch(() => undefined)
  if (found?.isFile()) return
  const why = found ? 'is not a file' : 'does not exist'
  throw new AgentError(
    'invalid-argument',
    `${file} ${why}. Pass a Lango export, an ADK database, or a session or transcript of another program.`,
  )
}

/** Sessions listed in the report; --json lists all. */
const MOST_NAMED = 10

async function report(
  io: Io,
  imported: readonly ImportedSession[],
  { file, app, flags, strangers }: { file: string; app: string; flags: Flags; strangers: readonly string[] },
): Promise<void> {
  const isDry = flags['dry-run'] === true
  if (flags.json) {
    const unknown = strangers.length > 0 ? { unknownAgents: strangers } : {}
    await printJson(io, { ...(isDry ? { found: imported } : { imported }), ...unknown })
    return
  }
  if (imported.length === 0) note(io, `${file} contains no session.`)
  for (const { sessionId, userId, messages, leftOut = [] } of imported.slice(0, MOST_NAMED)) {
    await print(
      io,
      `${isDry ? 'Found' : 'Imported'} ${sessionId} of user ${userId}: ${count(messages, 'message')}.\n`,
    )
    if (leftOut.length > 0)
      note(io, `  Not stored: ${leftOut.slice(0, MOST_FIELDS).join(', ')}${more(leftOut)}.`)
  }
  if (imported.length > MOST_NAMED) {
    const others = imported.slice(MOST_NAMED)
    const messages = others.reduce((sum, session) => sum + session.messages, 0)
    await print(io, `… and ${count(others.length, 'more session')} with ${count(messages, 'message')}.\n`)
  }
  const foreign = imported.find(({ appName }) => appName !== app)
  if (foreign) {
    note(
      io,
      `They belong to the app "${foreign.appName}", not "${app}". List them with --app ${foreign.appName}, or import them with --app ${app}.`,
    )
  }
  if (isDry) note(io, 'Nothing was stored.')
}

/** Fields of a session that the report names; --json lists all. */
const MOST_FIELDS = 8

function more(fields: readonly string[]): string {
  return fields.length > MOST_FIELDS ? ` and ${fields.length - MOST_FIELDS} more` : ''
}
