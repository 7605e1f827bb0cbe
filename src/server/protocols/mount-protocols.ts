import type { Hono } from 'hono'
import type { ServerContext, ServerEnv } from '../server-context.js'
import { adkError } from './adk/adk-error.js'
import { adkRoutes } from './adk/adk-routes.js'
import { chatError } from './ai-sdk/chat-error.js'
import { chatRoutes } from './ai-sdk/chat-routes.js'
import { openaiErrorResponse } from './openai/openai-error.js'
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

type ErrorAnswer = (error: unknown, context: ServerContext) => Promise<Response>

/** How a protocol tells errors that arise before its routes: a wrong token, a path that is not there. */
export function protocolErrorOf(path: string): ErrorAnswer | undefined {
  if (path.startsWith('/v1/')) return openaiErrorResponse
  if (/^\/api\/chat(\/|$)/.test(path)) return chatError
  return /^\/(apps\/|(list-apps|run|run_sse)$)/.test(path) ? adkError : undefined
}
