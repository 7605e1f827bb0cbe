import { defined } from '../base/defined.js'
import { AgentError } from '../errors.js'
import { messageLine } from '../formats/session-lines.js'
import { deleteSessionOf } from '../session/delete-session.js'
import {
  type Session,
  type SessionKey,
  type StoredMessage,
  type ToolCall,
  toolCallKind,
} from '../session/message.js'
import type { ListQuery, SessionPage, SessionSummary } from '../session/session-store.js'
import { ask, canAsk } from './ask.js'
import { type Flags, wholeNumber } from './command.js'
import type { Io } from './io.js'
import { called, givenFlags, quoted } from './next-command.js'
import { type CommandStore, findSession, withStore } from './open-command-store.js'
import {
  type Column,
  lineWidth,
  note,
  print,
  printJson,
  type Styles,
  stylesOf,
  tableLines,
} from './output.js'
import { fitText, plainLine, plainText } from './plain-text.js'
import { ago, count, grouped, localTime } from './wording.js'

/** `lango sessions list`. */
export async function listSessions(io: Io, flags: Flags): Promise<number> {
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 50
  const pageNumber = wholeNumber('--page', flags.page, 1) ?? 1
  return withStore(io, flags, async opened => {
    const query = {
      appName: opened.app,
      ...defined({ userId: flags.user, search: flags.search }),
    }
    const start = await skip(opened, query, (pageNumber - 1) * limit, flags.cursor)
    const page = start === 'past the end' ? { sessions: [] } : await take(opened, query, limit, start)
    if (flags.json) await printJson(io, page)
    else await show(io, page, opened.app, flags)
    return 0
  })
}

/** `lango sessions show`. */
export async function showSession(io: Io, [id = '']: readonly string[], flags: Flags): Promise<number> {
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 20
  const before = wholeNumber('--before', flags.before, 1)
  return withStore(io, flags, async opened => {
    const key = await findSession(opened, id, flags.user)
    const session = await opened.store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
    const beforeSeq = before ?? Number.MAX_SAFE_INTEGER
    const messages = await opened.store.readMessages(key, { beforeSeq, limit })
    if (flags.raw) await print(io, messages.map(messageLine).join(''))
    else if (flags.json) await printJson(io, { ...session, messages })
    else if (session) await showText(io, { ...session, messages }, flags)
    return 0
  })
}

/** `lango sessions delete`. */
export async function deleteSessions(io: Io, ids: readonly string[], flags: Flags): Promise<number> {
  if (flags.yes !== true && (flags.json === true || !canAsk(io))) {
    throw new AgentError(
      'invalid-argument',
      'Deleting cannot be undone, and there is no terminal for the confirmation prompt. Pass --yes to confirm.',
    )
  }
  return withStore(io, flags, async opened => {
    const { keys, missing } = await lookUp(opened, [...new Set(ids)], flags.user)
    for (const message of missing.values()) if (!flags.json) note(io, `lango: ${message}`)
    if (keys.length > 0 && flags.yes !== true && !(await isConfirmed(io, keys))) {
      note(io, 'Nothing was deleted.')
      return 1
    }
    const deleted: string[] = []
    const kept = new Map<string, string[]>()
    for (const key of keys) {
      const { isDeleted, keptState } = await deleteSessionOf(opened.store, key)
      if (isDeleted) deleted.push(key.sessionId)
      else missing.set(key.sessionId, 'It was deleted by another process.')
      if (keptState.length > 0) kept.set(key.userId, keptState)
    }
    if (flags.json) {
      const stays = kept.size > 0 ? { keptUserState: Object.fromEntries(kept) } : {}
      await printJson(io, { deleted, missing: [...missing.keys()], ...stays })
    } else if (deleted.length > 0)
      await print(io, `Deleted ${count(deleted.length, 'session')}: ${deleted.join(', ')}.\n`)
    if (!flags.json) for (const [userId, names] of kept) note(io, keptText(io, userId, names, flags))
    return missing.size > 0 ? 1 : 0
  })
}

function keptText(io: Io, userId: string, names: readonly string[], flags: Flags): string {
  const erase = `${called(io, 'erase')}${givenFlags({ ...flags, user: userId }, ['user', 'app', 'config', 'store'])}`
  const keys = `${count(names.length, 'key')} of "user:" state`
  return `The user "${plainLine(userId)}" has no more sessions, but ${keys} stays stored (${names.map(plainLine).join(', ')}). Erase everything of this user with: ${erase}`
}

/** The largest page of a store. */
const CHUNK = 1000

/** The cursor after that many sessions. */
async function skip(
  { store }: CommandStore,
  query: ListQuery,
  number: number,
  cursor: string | undefined,
): Promise<string | undefined | 'past the end'> {
  let at = cursor
  for (let left = number; left > 0; left -= CHUNK) {
    const limit = Math.min(left, CHUNK)
    const page = await store.listSessions({ ...query, limit, ...defined({ cursor: at }) })
    if (page.nextCursor === undefined) return 'past the end'
    at = page.nextCursor
  }
  return at
}

async function take(
  { store }: CommandStore,
  query: ListQuery,
  limit: number,
  cursor: string | undefined,
): Promise<SessionPage> {
  const sessions: SessionSummary[] = []
  let at = cursor
  while (sessions.length < limit) {
    const wanted = Math.min(limit - sessions.length, CHUNK)
    const page = await store.listSessions({
      ...query,
      limit: wanted,
      ...defined({ cursor: at }),
    })
    sessions.push(...page.sessions)
    at = page.nextCursor
    if (at === undefined) break
  }
  return { sessions, ...defined({ nextCursor: at }) }
}

async function show(io: Io, { sessions, nextCursor }: SessionPage, app: string, flags: Flags): Promise<void> {
  if (sessions.length === 0) {
    note(io, nothingFound(app, flags))
    return
  }
  const { bold } = stylesOf(io, io.stdout)
  const withUser = flags.user === undefined && sessions.some(({ key }) => key.userId !== 'user')
  const [titles = '', ...lines] = sessionTable(sessions, withUser, lineWidth(io))
  await print(io, `${[bold(titles), ...lines].join('\n')}\n`)
  if (nextCursor !== undefined) note(io, `More: ${nextCommand(io, flags, nextCursor)}`)
}

function nothingFound(app: string, { page, cursor, search }: Flags): string {
  if (page || cursor) return 'No more sessions.'
  return search === undefined ? `No sessions in the app "${app}".` : `No session matches "${search}".`
}

function nextCommand(io: Io, flags: Flags, cursor: string): string {
  const { page } = flags
  const options = givenFlags(flags, ['limit', 'search', 'user', 'app', 'store', 'config', 'trust'])
  const place = page === undefined ? `--cursor ${cursor}` : `--page ${Number(page) + 1}`
  return `${called(io, 'sessions list')}${options} ${place}`
}

/** The lines of the table. */
export function sessionTable(
  sessions: readonly SessionSummary[],
  withUser: boolean,
  width: number,
  now = Date.now(),
): string[] {
  // A narrow terminal shows no tokens; an id is shortened only when it is longer than a UUID.
  const withTokens = width >= 100
  const columns: Column[] = [
    { title: 'SESSION', least: 36 },
    ...(withUser ? [{ title: 'USER', least: 6 }] : []),
    { title: 'MESSAGES', align: 'right' },
    ...(withTokens ? [{ title: 'TOKENS', align: 'right' as const }] : []),
    { title: 'UPDATED', align: 'right' },
    { title: 'TITLE OR LAST MESSAGE', flexible: true, least: 10 },
  ]
  const rows = sessions.map(({ key, totalMessages, totalTokens, updatedAt, title, preview = '' }) => [
    plainLine(key.sessionId),
    ...(withUser ? [plainLine(key.userId)] : []),
    grouped(totalMessages),
    ...(withTokens ? [grouped(totalTokens)] : []),
    ago(updatedAt, now),
    plainLine(title ?? preview),
  ])
  return tableLines(columns, rows, width)
}

async function showText(io: Io, session: Session, flags: Flags): Promise<void> {
  const styles = stylesOf(io, io.stdout)
  const { key, messages, totalMessages } = session
  const facts = [`user ${key.userId}`, `app ${key.appName}`, count(totalMessages, 'message')]
  const times = `created ${localTime(session.createdAt)}, updated ${localTime(session.updatedAt)}`
  const state = stateLines(session)
  const title = session.title === undefined ? '' : `: ${plainLine(session.title)}`
  const head = [
    styles.bold(`${plainLine(key.sessionId)}${title}`),
    styles.dim(plainLine(facts.join(' · '))),
    styles.dim(times),
    ...state,
  ]
  await print(io, `${head.join('\n')}\n`)
  for (const message of messages) await print(io, `\n${messageText(message, styles)}\n`)
  const [first] = messages
  if (first && first.seq > 1) {
    const options = givenFlags(flags, ['limit', 'user', 'app', 'store', 'config'])
    const command = `${called(io, 'sessions show')} ${quoted(key.sessionId)}${options} --before ${first.seq}`
    note(io, styles.dim(`\nEarlier messages: ${command}`))
  }
}

function stateLines({ state }: Session): string[] {
  const names = Object.keys(state)
  if (names.length === 0) return []
  return [`state ${fitText(plainLine(JSON.stringify(state)), SHOWN_CHARACTERS)}`]
}

/** One message as text: author, time, content and tool calls. */
export function messageText(message: StoredMessage, styles: Styles): string {
  const { seq, role, author, content, toolCalls = [], timestamp } = message
  const speaker = author === undefined || author === role ? role : `${role} ${author}`
  const head = `${styles.bold(plainLine(speaker))} ${styles.dim(`#${seq} · ${localTime(timestamp)}`)}`
  // A tool's result is shown with the call; the content repeats it.
  const isResult = toolCalls.some(call => toolCallKind(call, role) === 'response')
  const text = isResult ? '' : shortened(plainText(content))
  const calls = toolCalls.flatMap(call => callLines(call, message))
  const body = [...(text === '' ? [] : [text]), ...calls]
  return [
    head,
    ...(body.length === 0 ? [styles.dim('(no text; --raw shows the stored message)')] : body),
  ].join('\n')
}

function callLines(call: ToolCall, { role }: StoredMessage): string[] {
  const kind = toolCallKind(call, role)
  const asked = `→ ${call.name} ${call.input ?? ''}`
  const answered = `← ${call.name} ${call.output ?? ''}`
  const lines = kind === 'both' ? [asked, answered] : [kind === 'call' ? asked : answered]
  return lines.map(line => fitText(plainLine(line), SHOWN_CHARACTERS))
}

function shortened(text: string): string {
  const lines = text.split('\n')
  const shown = lines.slice(0, SHOWN_LINES).join('\n')
  const cut = shown.length > SHOWN_LINES * 200 ? `${shown.slice(0, SHOWN_LINES * 200)}…` : shown
  return lines.length > SHOWN_LINES ? `${cut}\n… ${count(lines.length - SHOWN_LINES, 'more line')}` : cut
}

const SHOWN_CHARACTERS = 300

const SHOWN_LINES = 40

async function lookUp(
  opened: CommandStore,
  ids: readonly string[],
  user: string | undefined,
): Promise<{ keys: SessionKey[]; missing: Map<string, string> }> {
  const keys: SessionKey[] = []
  const missing = new Map<string, string>()
  for (const id of ids) {
    try {
      keys.push(await findSession(opened, id, user))
    } catch (error) {
      if (!(error instanceof AgentError && error.code === 'session-not-found')) throw error
      missing.set(id, error.message)
    }
  }
  return { keys, missing }
}

async function isConfirmed(io: Io, keys: readonly SessionKey[]): Promise<boolean> {
  const names = keys.map(({ sessionId }) => sessionId).join(', ')
  const answer = await ask(io, `Delete ${count(keys.length, 'session')} permanently (${names})? [y/N] `)
  return answer === 'y' || answer === 'yes'
}
