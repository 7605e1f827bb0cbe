/** ADK's routes, as `adk api_server` serves them. */
import { Hono } from 'hono'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { adkError } from './adk-error.js'
import { mountAdkRuns } from './adk-run-routes.js'
import { mountAdkSessions } from './adk-session-routes.js'

/** The routes of ADK, with errors as its clients read them. */
export function adkRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => adkError(error, context))
  app.get('/list-apps', c => c.json([context.info.app]))
  mountAdkSessions(app, context)
  mountAdkRuns(app, context)
  return app
}
