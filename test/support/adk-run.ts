import { type BasePlugin, type BaseSessionService, type Event, type RunnableNode, Runner } from '@google/adk'
import type { Part } from '@google/genai'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from './temporary-folder.js'

export const KEY = { appName: 'app', userId: 'ann', sessionId: 's1' } as const

export interface TurnOptions {
  agent: RunnableNode
  sessions: BaseSessionService
  message: string | Part[]
  plugins?: BasePlugin[]
  stateDelta?: Record<string, unknown>
}

/** One turn of ADK's own runner; the session is created when it does not exist. */
export async function runTurn({
  agent,
  sessions,
  message,
  plugins = [],
  stateDelta,
}: TurnOptions): Promise<Event[]> {
  await sessions.getOrCreateSession({ ...KEY })
  const runner = new Runner({ appName: KEY.appName, agent, sessionService: sessions, plugins })
  const parts = typeof message === 'string' ? [{ text: message }] : message
  const events: Event[] = []
  const run = runner.runAsync({
    userId: KEY.userId,
    sessionId: KEY.sessionId,
    newMessage: { role: 'user', parts },
    ...(stateDelta ? { stateDelta } : {}),
  })
  for await (const event of run) events.push(event)
  return events
}

/** The stores that every scenario of the bridge runs on. */
export const STORES = ['memory', 'sqlite'] as const

export async function openTestStore(kind: (typeof STORES)[number]): Promise<SessionStore> {
  return openStore(kind === 'memory' ? 'memory:' : `sqlite:${await temporaryFolder()}/lango.db`)
}
