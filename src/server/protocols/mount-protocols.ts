import type { Hono } from 'hono'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { adkRoutes } from './adk/adk-routes.js'
import { chatRoutes } from './ai-sdk/chat-routes.js'
import { openaiRoutes } from './openai/openai-routes.js'
import { sweepThrowaways } from './openai/throwaway.js'

/**
 * Three protocols that existing clients speak: ADK's, OpenAI's, and the AI SDK's. Each has routes and errors of
 * its own shape; all of them use the same sessions and runs as the native API.
 */
export function mountProtocols(app: Hono<ServerEnv>, context: ServerContext): void {
  app.route('/', adkRoutes(context))
  app.route('/', openaiRoutes(context))
  app.route('/', chatRoutes(context))
  void sweepThrowaways(context)
}
