/** What is noted about a session of the caller: read it, see where it comes from, forget it. */
import { AgentError } from '../../errors.js'
import type { SessionKey } from '../../session/message.js'
import type { SessionMemory } from '../../session/session-memory.js'
import type { MemoryPage } from '../chat-protocol.js'
import type { ServerContext } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

export function mountMemoryRoutes(api: ApiApp, context: ServerContext): void {
  const path = '/api/sessions/{sessionId}/memory'
  addRoute(
    api,
    {
      method: 'get',
      path,
      summary: 'The notes about a session, with their sources',
      params: schemas.SessionParameter,
      query: schemas.MemoryQuery,
      answer: { status: 200, schema: schemas.MemoryPage, description: 'A page of notes' },
    },
    async (c, { params: { sessionId }, query }) => {
      const key = context.keyOf(c, sessionId)
      const progress = await memoryOf(context).progress(key)
      if (!progress) throw noMemory(key)
      const { afterNumber = 0, limit = 100 } = query
      const notes = await memoryOf(context).readObservations(key, { current: true, afterNumber, limit })
      const { totalMessages, indexedSeq, observedSeq, usage = [] } = progress
      const page: MemoryPage = { totalMessages, indexedSeq, observedSeq, usage, notes }
      return c.json(page)
    },
  )
  addRoute(
    api,
    {
      method: 'delete',
      path,
      summary: 'Forget every note about a session; the messages stay',
      params: schemas.SessionParameter,
      answer: { status: 200, schema: schemas.Forgotten, description: 'How many notes were forgotten' },
    },
    async (c, { params: { sessionId } }) => {
      const key = context.keyOf(c, sessionId)
      const progress = await memoryOf(context).progress(key)
      if (!progress) throw noMemory(key)
      const numbers = Array.from({ length: progress.observations }, (_, index) => index + 1)
      return c.json({ forgotten: numbers.length === 0 ? 0 : await memoryOf(context).forget(key, numbers) })
    },
  )
  addRoute(
    api,
    {
      method: 'patch',
      path: `${path}/{number}`,
      summary: 'Replace a note by one in your own words; its sources stay',
      params: schemas.NoteParameter,
      body: schemas.NoteRequest,
      answer: { status: 200, schema: schemas.Note, description: 'The new note' },
    },
    async (c, { params: { sessionId, number }, body: { text } }) => {
      const { editNote } = await import('../../runtime/memory.js')
      const note = await editNote(memoryOf(context), context.keyOf(c, sessionId), number, text)
      if (!note) throw noNote(number)
      return c.json(note)
    },
  )
  addRoute(
    api,
    {
      method: 'delete',
      path: `${path}/{number}`,
      summary: 'Forget a note, and the notes that it replaced',
      params: schemas.NoteParameter,
      answer: { status: 200, schema: schemas.Forgotten, description: 'How many notes were forgotten' },
    },
    async (c, { params: { sessionId, number } }) =>
      c.json({ forgotten: await memoryOf(context).forget(context.keyOf(c, sessionId), [number]) }),
  )
}

function memoryOf({ runtime }: ServerContext): SessionMemory {
  return runtime.store.memory
}

function noNote(number: number): AgentError {
  return new AgentError(
    'session-not-found',
    `There is no current note ${number}: it was replaced or forgotten. Read the notes again.`,
  )
}

function noMemory({ sessionId }: SessionKey): AgentError {
  return new AgentError('session-not-found', `There is no session "${sessionId}": check its id.`)
}
