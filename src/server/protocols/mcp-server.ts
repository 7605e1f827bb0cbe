/** The agent and its sessions as tools of the Model Context Protocol, for standard input and output and for HTTP. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import { inSession } from '../../runtime/check/check-histories.js'
import { problemsOf } from '../../runtime/check/problems.js'
import type { RunInput, Runtime, StartedRun } from '../../runtime/runtime.js'
import type { ChatMessage } from '../../session/chat-message.js'
import { searchMessages } from '../../session/search-messages.js'
import { type CallContext, McpRun } from './mcp-run.js'

export interface McpServerParts {
  runtime: Runtime
  /** The app and the user whose sessions are served. */
  owner: { appName: string; userId: string }
  version: string
  /** Accepts a run, under the limits of the place. */
  start: (input: RunInput & { userId: string }) => Promise<StartedRun>
  /** Checks the installation; absent where the caller does not own it. */
  doctor?: () => Promise<object>
}

const SESSION = z.string().min(1).max(256)
const LIMIT = z.int().min(1).max(100).default(20)
const CURSOR = z.string().max(2000).optional().describe('nextCursor of the page before.')
const READS = { readOnlyHint: true, openWorldHint: false }

/** A server for one client. Its class is of an optional package, which the caller has loaded. */
export function createMcpServer(Server: typeof McpServer, parts: McpServerParts): McpServer {
  const server = new Server({ name: 'lango', version: parts.version })
  addRunTools(server, parts)
  addSessionTools(server, parts)
  addCheckTools(server, parts)
  return server
}

function addRunTools(server: McpServer, parts: McpServerParts): void {
  const { runtime, owner, start } = parts
  const follow = (runId: string, extra: CallContext) => new McpRun(server, runtime, runId).follow(extra)
  server.registerTool(
    'ask',
    {
      description:
        'Sends a message to the agent and returns its answer. Without sessionId a new conversation begins. The run goes on when the client disconnects: follow_run returns its answer. A run that waits for a person says so; answer continues it.',
      inputSchema: {
        text: z.string().min(1),
        sessionId: SESSION.optional().describe('The conversation to continue.'),
        model: z.string().optional().describe('Another model for this run, as provider/model.'),
      },
    },
    async ({ text, sessionId, model }, extra) => {
      const { runId } = await start({ text, userId: owner.userId, ...defined({ sessionId, model }) })
      return follow(runId, extra)
    },
  )
  server.registerTool(
    'answer',
    {
      description:
        'Answers what a run waits for, and returns the rest of its answer. For an approval: once, always or no. For an unknown outcome: happened, run or leave. For the result of a tool: an object.',
      inputSchema: {
        runId: z.string(),
        callId: z.string(),
        answer: z.union([
          z.enum(['once', 'always', 'no', 'happened', 'run', 'leave']),
          z.record(z.string(), z.unknown()),
        ]),
      },
    },
    async ({ runId, callId, answer }, extra) => {
      await findRun(parts, runId)
      const run = new McpRun(server, runtime, runId)
      await run.answer(callId, answer)
      return run.follow(extra)
    },
  )
  server.registerTool(
    'follow_run',
    {
      description:
        'Waits for the end of a run, or until it waits for a person, and returns its answer. A run whose process is gone is continued.',
      inputSchema: { runId: z.string() },
    },
    async ({ runId }, extra) => {
      await findRun(parts, runId)
      await runtime.ready()
      return follow(runId, extra)
    },
  )
  server.registerTool(
    'stop_run',
    { description: 'Stops a run. What it has stored stays.', inputSchema: { runId: z.string() } },
    async ({ runId }) => {
      await findRun(parts, runId)
      await runtime.stop(runId)
      return asJson({ runId, stopped: true })
    },
  )
}

/** Runs of others are as unknown as those that do not exist. */
async function findRun({ runtime, owner }: McpServerParts, runId: string): Promise<void> {
  const run = await runtime.store.runs.findRun(runId)
  if (run?.key.userId === owner.userId && run.key.appName === owner.appName) return
  throw new AgentError(
    'run-not-found',
    `There is no run "${runId}". ask and read_session return the ids of runs.`,
  )
}

function addSessionTools(server: McpServer, parts: McpServerParts): void {
  const { runtime, owner } = parts
  server.registerTool(
    'list_sessions',
    {
      description:
        'Lists stored conversations, newest first; with search, those whose title or last message has the words.',
      inputSchema: { search: z.string().min(1).max(200).optional(), limit: LIMIT, cursor: CURSOR },
      annotations: READS,
    },
    async ({ search, limit, cursor }) => {
      const query = { ...owner, limit, ...defined({ search, cursor }) }
      const { sessions, nextCursor } = await runtime.store.listSessions(query)
      const found = sessions.map(({ key, title, preview, totalMessages, updatedAt }) => ({
        sessionId: key.sessionId,
        title: title ?? preview ?? '',
        messages: totalMessages,
        updatedAt: new Date(updatedAt).toISOString(),
      }))
      return asJson({ sessions: found, ...defined({ nextCursor }) })
    },
  )
  server.registerTool(
    'search_messages',
    {
      description: 'Finds messages that have all of the words, newest first, in all conversations or in one.',
      inputSchema: {
        text: z.string().min(1).max(200),
        sessionId: SESSION.optional(),
        limit: LIMIT,
        cursor: CURSOR,
      },
      annotations: READS,
    },
    async ({ text, limit, sessionId, cursor }) => {
      const query = { ...owner, text, limit, ...defined({ sessionId, cursor }) }
      return asJson(await searchMessages(runtime.store, query))
    },
  )
  server.registerTool(
    'read_session',
    {
      description:
        'Reads the newest messages of a conversation, earlier ones with before, and its newest runs.',
      inputSchema: {
        sessionId: SESSION,
        before: z.int().min(1).optional().describe('Only messages before this seq.'),
        limit: LIMIT,
      },
      annotations: READS,
    },
    async ({ sessionId, before, limit }) => {
      const key = await findSession(parts, sessionId)
      const messages = await runtime.messages(key, { limit, ...defined({ beforeSeq: before }) })
      const runs = (await runtime.store.runs.listRuns(key, { limit: 5 })).map(({ runId, state }) => ({
        runId,
        state,
      }))
      return asJson({ sessionId, messages: messages.map(readable), runs })
    },
  )
}

function addCheckTools(server: McpServer, parts: McpServerParts): void {
  const { runtime, doctor } = parts
  server.registerTool(
    'lint',
    {
      description:
        'Reports which model providers would refuse a history, and why: a stored conversation, or text in any known format, such as a request body for OpenAI, Anthropic or Gemini.',
      inputSchema: { sessionId: SESSION.optional(), text: z.string().min(1).optional() },
      annotations: READS,
    },
    async ({ sessionId, text }) => {
      if ((sessionId === undefined) === (text === undefined))
        throw new AgentError('invalid-argument', 'Pass either sessionId or text.')
      if (text !== undefined) {
        const { checkText } = await import('../../runtime/check/check-text.js')
        return asJson(await checkText(text))
      }
      const { messages, profiles } = await runtime.lint(await findSession(parts, sessionId ?? ''))
      const refused = profiles.filter(profile => profile.refused).map(({ profile }) => profile)
      return asJson({ sessionId, messages, refusedBy: refused, problems: problemsOf(profiles, inSession) })
    },
  )
  if (!doctor) return
  server.registerTool(
    'doctor',
    {
      description:
        'Checks the installation: configuration, keys, store, providers and sandbox, each with a fix.',
      annotations: READS,
    },
    async () => asJson(await doctor()),
  )
}

async function findSession({ runtime, owner }: McpServerParts, sessionId: string) {
  const key = { ...owner, sessionId }
  if (await runtime.store.describeSession(key)) return key
  throw new AgentError('session-not-found', `There is no session "${sessionId}". list_sessions lists them.`)
}

/** Binary data is named, not included: it is of no use as text. */
function readable({ seq, role, author, timestamp, parts }: ChatMessage): object {
  const shown = parts.map(part => {
    if (part.type !== 'media' || part.data === undefined) return part
    const { data, ...rest } = part
    return { ...rest, bytes: Math.floor((data.length * 3) / 4) }
  })
  return { seq, role, author, time: new Date(timestamp).toISOString(), parts: shown }
}

function asJson(value: object) {
  return { content: [{ type: 'text' as const, text: JSON.stringify(value, null, 2) }] }
}
