/** Broken histories: list those to try, open one, send it as it is, send it through Lango; and check the reader's own. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../errors.js'
import type { RunEvent } from '../../run/run-event.js'
import type { CheckedText } from '../chat-protocol.js'
import { checkShape } from '../client-json.js'
import { Refusal } from '../refusal.js'
import type { ServerContext } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

export function mountGalleryRoutes(api: ApiApp, context: ServerContext): void {
  mountCheck(api, context)
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/gallery',
      summary: 'Histories that broke in practice',
      answer: { status: 200, schema: schemas.BrokenHistories, description: 'The histories' },
    },
    async c => c.json({ histories: (await context.gallery()).list() }),
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/gallery/{id}/open',
      summary: 'Store a broken history as a session of the caller',
      params: schemas.BrokenParameter,
      answer: { status: 201, schema: schemas.OpenedSession, description: 'The session' },
    },
    async (c, { params: { id } }) => {
      const { sessionId } = await (await context.gallery()).open(id, context.userOf(c))
      return c.json({ sessionId }, 201)
    },
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/gallery/{id}/send',
      summary: 'What a provider answers to the history as it is',
      params: schemas.BrokenParameter,
      answer: { status: 200, schema: schemas.SentAsItIs, description: 'The provider’s answer' },
    },
    async (c, { params: { id } }) => c.json(await (await context.gallery()).sendAsItIs(id)),
  )
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/sessions/{sessionId}/heal',
      summary: 'Send the next message of a broken history that was opened, through Lango',
      params: schemas.SessionParameter,
      body: schemas.HealRequest,
      bodyOptional: true,
      answer: { status: 202, schema: schemas.StartedRun, description: 'The run' },
    },
    async (c, { params: { sessionId }, body }) => {
      if (context.isClosing()) throw new Refusal('shutting-down', 'The server is shutting down.')
      const runId = body.runId ?? randomUUID()
      const gallery = await context.gallery()
      const events = gallery.heal(context.keyOf(c, sessionId), runId)
      // The first event means that the run is stored; without it the error is the answer.
      await events.next()
      void drain(events, context)
      return c.json({ runId, sessionId }, 202)
    },
  )
}

/** The reader's own history. It is bounded like any JSON of a client, although it comes as a text. */
function mountCheck(api: ApiApp, { limits }: ServerContext): void {
  addRoute(
    api,
    {
      method: 'post',
      path: '/api/lint',
      summary: 'What providers reject in a history that is given as text, why, and the healed file',
      body: schemas.CheckRequest,
      answer: { status: 200, schema: schemas.CheckedText, description: 'The verdict; nothing is stored' },
    },
    async (c, { body: { text, format } }) => {
      await checkShape(text, limits)
      const { checkText } = await import('../../runtime/check/check-text.js')
      const checked: CheckedText = await checkText(text, format)
      return c.json(checked)
    },
  )
}

/** The run goes on without its client; followers read its stored events. */
async function drain(events: AsyncGenerator<RunEvent>, { logger }: ServerContext): Promise<void> {
  try {
    for await (const _event of events);
  } catch (error) {
    logger.warn('A run of the gallery failed', { error: messageOf(error) })
  }
}
