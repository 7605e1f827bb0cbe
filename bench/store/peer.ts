import { DatabaseSessionService } from '@google/adk'
import { adkEvent } from './events.js'

/** ADK's own service with one session to append to and read from. */
export async function openPeer(url: string, sessionIds: readonly string[]) {
  const service = new DatabaseSessionService(url)
  await service.init()
  const sessions = new Map<string, Awaited<ReturnType<typeof service.createSession>>>()
  for (const sessionId of sessionIds) {
    sessions.set(sessionId, await service.createSession({ appName: 'bench', userId: 'user', sessionId }))
  }
  const append = async (sessionId: string, index: number, bytes: number) => {
    const session = sessions.get(sessionId)
    // The bench's events are ADK's in every field that its store looks at.
    await service.appendEvent({ session, event: adkEvent(index, bytes) } as unknown as Parameters<
      typeof service.appendEvent
    >[0])
  }
  const open = (sessionId: string) => service.getSession({ appName: 'bench', userId: 'user', sessionId })
  return { append, open }
}
