/** The agent and its sessions as tools of the Model Context Protocol, for standard input and output and for HTTP. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { AgentError } from '../../errors.js'
import type { Runtime } from '../../runtime/runtime.js'
import type { ChatMessage } from '../../session/chat-message.js'

export interface McpServerParts {
  runtime: Runtime
  /** The app and the user whose sessions are served. */
  owner: { appName: string; userId: string }
  version: string
}

const LIMIT = z.int().min(1).max(100).default(20)

/** A server for one client. */
export function createMcpServer(parts: McpServerParts): McpServer {
  const server = new McpServer({ name: 'lango', version: parts.version })
  addSessionTools(server, parts)
  return server
}

function addSessionTools(server: McpServer, { runtime, owner }: McpServerParts): void {
  server.registerTool(
    'list_sessions',
    {
      description:
        'Lists stored conversations, newest first. With search, those whose texts contain the words.',
      inputSchema: {
        search: z.string().min(1).max(500).optional(),
        limit: LIMIT,
        cursor: z.string().optional().describe('nextCursor of the page before.'),
      },
      annotations: { readOnlyHint: true },
    },
    async ({ search, limit, cursor }) => {
      const query = { ...owner, limit, ...(search ? { search } : {}), ...(cursor ? { cursor } : {}) }
      const { sessions, nextCursor } = await runtime.store.listSessions(query)
      const found = sessions.map(({ key, title, preview, totalMessages, updatedAt }) => ({
        sessionId: key.sessionId,
        title: title ?? preview ?? '',
        messages: totalMessages,
        updatedAt: new Date(updatedAt).toISOString(),
      }))
      return asJson({ sessions: found, ...(nextCursor === undefined ? {} : { nextCursor }) })
    },
  )
  server.registerTool(
    'read_session',
    {
      description: 'Reads the messages of a conversation, the newest first page; earlier ones with before.',
      inputSchema: {
        sessionId: z.string().min(1),
        before: z.int().min(1).optional().describe('Only messages before this seq.'),
        limit: LIMIT,
      },
      annotations: { readOnlyHint: true },
    },
    async ({ sessionId, before, limit }) => {
      const key = { ...owner, sessionId }
      if (!(await runtime.store.describeSession(key)))
        throw new AgentError(
          'session-not-found',
          `There is no session "${sessionId}". list_sessions lists them.`,
        )
      const messages = await runtime.messages(key, {
        limit,
        ...(before === undefined ? {} : { beforeSeq: before }),
      })
      return asJson({ sessionId, messages: messages.map(readable) })
    },
  )
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
