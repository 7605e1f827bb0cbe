/** What goes in and out of the caller's sessions as a whole: search in messages, export as lines, import of a file. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import type { ReadSession } from '../../formats/session-lines.js'
import type { AgentTree } from '../../runtime/info.js'
import type { Message, SessionKey, State } from '../../session/message.js'
import { searchMessages } from '../../session/search-messages.js'
import type * as protocol from '../chat-protocol.js'
import { checkShape } from '../client-json.js'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

const Count = z.number().int().min(0)
const SearchQuery = z.object({
  text: z.string().min(1).max(200),
  sessionId: schemas.SessionParameter.shape.sessionId.optional(),
  cursor: z.string().max(2000).optional(),
  limit: z.coerce.number().int().min(1).max(200).optional(),
})
const ExportQuery = z.object({ format: z.string().max(50).default('lango') })

const ImportRequest = z
  .strictObject({
    name: z.string().min(1).max(255),
    data: schemas.base64,
    format: z.string().max(50).optional(),
    authors: z.record(z.string(), z.string().min(1).max(256)).optional(),
    dryRun: z.boolean().optional(),
  })
  .openapi({
    example: { name: 'chat.json', data: 'W3sicm9sZSI6InVzZXIiLCJjb250ZW50IjoiSGkifV0=', dryRun: true },
  })
const ImportedFile = z
  .object({
    stored: z.boolean(),
    sessions: z.array(
      z.object({
        sessionId: z.string(),
        title: z.string().optional(),
        messages: Count,
        notes: z.array(z.string()),
        leftOut: z.array(z.string()),
      }),
    ),
    agents: z.array(z.string()),
    unknownAgents: z.array(z.string()),
  })
  .openapi('ImportedFile')
const FoundMessages = z
  .object({
    found: z.array(
      z.object({
        sessionId: z.string(),
        title: z.string().optional(),
        seq: Count,
        role: z.enum(['user', 'assistant', 'tool']),
        timestamp: z.number(),
        before: z.string(),
        match: z.string(),
        after: z.string(),
      }),
    ),
    searched: Count,
    nextCursor: z.string().optional(),
  })
  .openapi('FoundMessages')

export function mountExchangeRoutes(api: ApiApp, context: ServerContext): void {
  const { store } = context.runtime
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/search',
      summary: 'Messages that hold all words, newest first, in all sessions or in one',
      query: SearchQuery,
      answer: { status: 200, schema: FoundMessages, description: 'A page of messages' },
    },
    async (c, { query }) => {
      const { appName, userId } = context.keyOf(c, query.sessionId ?? '-')
      return c.json(await searchMessages(store, { appName, userId, ...query }))
    },
  )
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/sessions/{sessionId}/export',
      summary: 'A session without loss, as lines that an import reads, or in the form of another framework',
      params: schemas.SessionParameter,
      query: ExportQuery,
      answer: {
        status: 200,
        schema: z.string(),
        description:
          'The lines; JSON for another format, and then `lango-left-out` and `lango-notes` say as JSON what it has no place for',
        mediaType: 'application/x-ndjson',
      },
    },
    async (c, { params: { sessionId }, query }) => {
      const key = context.keyOf(c, sessionId)
      return query.format === 'lango' ? exported(context, key) : exportedAs(context, key, query.format)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/import',
      summary: 'Store the sessions of a file of any known format',
      body: ImportRequest,
      answer: { status: 200, schema: ImportedFile, description: 'What was found or stored' },
    },
    async (c, { body }) => c.json(await importFile(c, context, body)),
  )
}

async function exportedAs({ runtime }: ServerContext, key: SessionKey, name: string): Promise<Response> {
  const { exportFormat, writeSession } = await import('../../runtime/export-session.js')
  const format = exportFormat(name)
  if (format === 'lango') throw new AgentError('internal', 'Lango’s own lines are streamed.')
  const written = await writeSession(runtime.store, key, format)
  if (!written) throw new AgentError('session-not-found', `There is no session "${key.sessionId}".`)
  return new Response(JSON.stringify(written.content), {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'lango-left-out': headerJson(written.leftOut),
      'lango-notes': headerJson(written.notes),
    },
  })
}

/** The beginning of a list as JSON in ASCII: headers have neither other characters nor much space. */
function headerJson(lines: readonly string[]): string {
  const shown = lines.length > MOST_NAMED ? [...lines.slice(0, MOST_NAMED), `… (${lines.length})`] : lines
  return JSON.stringify(shown.map(line => line.slice(0, 200))).replaceAll(
    /[^\x20-\x7e]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const MOST_NAMED = 20

async function exported({ runtime }: ServerContext, key: SessionKey): Promise<Response> {
  const { exportLines } = await import('../../formats/session-lines.js')
  const parts = exportLines(runtime.store, key)
  const first = await parts.next()
  if (first.done) throw new AgentError('session-not-found', `There is no session "${key.sessionId}".`)
  const encoder = new TextEncoder()
  // Pulled by its reader: a long session is never in memory as a whole.
  const body = new ReadableStream<Uint8Array>({
    start: controller => controller.enqueue(encoder.encode(first.value.text)),
    pull: async controller => {
      const next = await parts.next()
      if (next.done) controller.close()
      else controller.enqueue(encoder.encode(next.value.text))
    },
    cancel: async () => {
      await parts.return(undefined)
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson; charset=utf-8' } })
}

/** The readers take files: databases can be read in no other way. */
async function importFile(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: protocol.ImportRequest,
): Promise<protocol.ImportedFile> {
  const data = Buffer.from(request.data, 'base64')
  const { isSqliteData } = await import('../../formats/adk-sessions.js')
  const isDatabase = isSqliteData(data)
  if (!isDatabase) await checkShape(data.toString('utf8'), context.limits)
  const folder = await mkdtemp(join(tmpdir(), 'lango-import-'))
  try {
    const file = join(
      folder,
      request.name.replaceAll(/[^\p{L}\p{N}._ -]+/gu, '_').replace(/^\.+/, '') || 'file',
    )
    await writeFile(file, data, { mode: 0o600 })
    return await importFrom(c, context, file, request)
  } catch (error) {
    if (!(error instanceof AgentError)) throw error
    // The reader knows the name of the file, not the place that it was put to, and has no command line.
    const message = error.message
      .replaceAll(folder + sep, '')
      .replaceAll(/ Choose with --format [^.]*\./g, ' Choose its format.')
    throw new AgentError(error.code, message, defined({ cause: error, details: error.details }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function importFrom(
  c: Context<ServerEnv>,
  context: ServerContext,
  file: string,
  { format, authors = {}, dryRun = false }: protocol.ImportRequest,
): Promise<protocol.ImportedFile> {
  const { firstWords, readSessions, storeSession, withAuthors } = await import(
    '../../formats/import-sessions.js'
  )
  const agents = namesOf((await context.runtime.info({ agents: true })).agents)
  const { appName } = context.keyOf(c, '-')
  const into = { app: appName, format, author: agents[0], signal: c.req.raw.signal }
  const names = new Map(Object.entries(authors))
  const seen = new Set<string>()
  const sessions: protocol.ImportedSession[] = []
  for await (const read of readSessions(file, into)) {
    const first = { text: '' }
    const messages = rememberFirst(withAuthors(read.messages, names, seen), first, firstWords)
    const key = await freeKey(c, context, read.key.sessionId)
    const state = clientState(read.state)
    const session = { ...read, key, messages, state }
    const count = dryRun
      ? await drained(session)
      : await storeSession(context.runtime.store, session, () => {})
    const title = read.title ?? (first.text === '' ? undefined : first.text)
    const { notes = [], leftOut = [] } = read
    const dropped = Object.keys(read.state).filter(name => !Object.hasOwn(state, name))
    const facts = { notes: [...notes], leftOut: [...leftOut, ...dropped.map(name => `state "${name}"`)] }
    sessions.push({ sessionId: key.sessionId, messages: count, ...defined({ title }), ...facts })
  }
  return {
    stored: !dryRun,
    sessions,
    agents,
    unknownAgents: [...seen].filter(name => !agents.includes(name)),
  }
}

function namesOf(tree: AgentTree | undefined): string[] {
  return tree ? [tree.name, ...tree.subAgents.flatMap(namesOf)] : []
}

async function drained({ messages, artifacts }: ReadSession): Promise<number> {
  let count = 0
  for await (const _message of messages) count += 1
  for await (const _artifact of artifacts ?? []);
  return count
}

async function* rememberFirst(
  messages: AsyncIterable<Message>,
  first: { text: string },
  wordsOf: (message: Message) => string,
): AsyncGenerator<Message> {
  for await (const message of messages) {
    if (first.text === '') first.text = wordsOf(message)
    yield message
  }
}

const MOST_COPIES = 20

/** The id in the file, or the next that is free: importing a file twice gives two chats and loses neither. */
async function freeKey(c: Context<ServerEnv>, context: ServerContext, wanted: string): Promise<SessionKey> {
  const base = /^[^\p{Cc}]{1,240}$/u.test(wanted) && wanted !== '.' && wanted !== '..' ? wanted : randomUUID()
  for (let copy = 1; copy <= MOST_COPIES; copy += 1) {
    const key = context.keyOf(c, copy === 1 ? base : `${base}-${copy}`)
    if (!(await context.runtime.store.describeSession(key))) return key
  }
  return context.keyOf(c, randomUUID())
}

/** State of the app is shared by all users, and Lango's own holds approvals: a file may bring neither. */
function clientState(state: State): State {
  return Object.fromEntries(
    Object.entries(state).filter(([name]) => !/^(app|lango):/i.test(name) && name !== '__proto__'),
  )
}
