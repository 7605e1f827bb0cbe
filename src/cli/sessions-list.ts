import type { ListQuery, SessionPage, SessionSummary } from '../session/session-store.js'
import type { Flags } from './command.js'
import { type CommandStore, withStore } from './open-command-store.js'
import { lineWidth, note, print, printJson, stylesOf } from './output.js'
import { plainLine } from './plain-text.js'
import { type Column, tableLines } from './table.js'
import { wholeNumber } from './whole-number.js'
import { ago, grouped } from './wording.js'

/** The most that a store gives at once. */
const CHUNK = 1000

/** `lango sessions list`. */
export async function listSessions(flags: Flags): Promise<number> {
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 50
  const pageNumber = wholeNumber('--page', flags.page, 1) ?? 1
  return withStore(flags, async opened => {
    const query = {
      appName: opened.app,
      ...(flags.user === undefined ? {} : { userId: flags.user }),
      ...(flags.search === undefined ? {} : { search: flags.search }),
    }
    const start = await skip(opened, query, (pageNumber - 1) * limit, flags.cursor)
    const page = start === 'past the end' ? { sessions: [] } : await take(opened, query, limit, start)
    if (flags.json) await printJson(page)
    else await show(page, opened.app, flags)
    return 0
  })
}

/** The cursor behind so many sessions. */
async function skip(
  { store }: CommandStore,
  query: ListQuery,
  number: number,
  cursor: string | undefined,
): Promise<string | undefined | 'past the end'> {
  let at = cursor
  for (let left = number; left > 0; left -= CHUNK) {
    const limit = Math.min(left, CHUNK)
    const page = await store.listSessions({ ...query, limit, ...(at === undefined ? {} : { cursor: at }) })
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
      ...(at === undefined ? {} : { cursor: at }),
    })
    sessions.push(...page.sessions)
    at = page.nextCursor
    if (at === undefined) break
  }
  return { sessions, ...(at === undefined ? {} : { nextCursor: at }) }
}

async function show({ sessions, nextCursor }: SessionPage, app: string, flags: Flags): Promise<void> {
  if (sessions.length === 0) {
    note(nothingFound(app, flags))
    return
  }
  const { bold } = stylesOf(process.stdout)
  const withUser = flags.user === undefined && sessions.some(({ key }) => key.userId !== 'user')
  const [titles = '', ...lines] = sessionTable(sessions, withUser, lineWidth())
  await print(`${[bold(titles), ...lines].join('\n')}\n`)
  if (nextCursor !== undefined) note(`There are more: ${await nextCommand(flags, nextCursor)}`)
}

function nothingFound(app: string, { page, cursor, search }: Flags): string {
  if (page || cursor) return 'No more sessions.'
  return search === undefined ? `No sessions in the app "${app}" yet.` : `No session is called "${search}".`
}

async function nextCommand(flags: Flags, cursor: string): Promise<string> {
  const { page } = flags
  const { called, givenFlags } = await import('./next-command.js')
  const options = givenFlags(flags, ['limit', 'search', 'user', 'app', 'store', 'config', 'trust'])
  const place = page === undefined ? `--cursor ${cursor}` : `--page ${Number(page) + 1}`
  return `${called('sessions list')}${options} ${place}`
}

/** The lines of the table that people see. */
export function sessionTable(
  sessions: readonly SessionSummary[],
  withUser: boolean,
  width: number,
  now = Date.now(),
): string[] {
  // On a narrow terminal the tokens make room for the text; an id is only cut when it is longer than Lango's own.
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
