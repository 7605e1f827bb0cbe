/** The routes in their order: what everybody may ask, the page included, then what needs a name. */
import { OpenAPIHono } from '@hono/zod-openapi'
import { errorResponse } from './error-response.js'
import type { RouteClass } from './metrics.js'
import { mountProtocols } from './protocols/mount-protocols.js'
import { notFound } from './refusal.js'
import type { ApiApp } from './routes/add-route.js'
import { mountDocs } from './routes/docs-page.js'
import { mountHealthRoutes, mountInfoRoutes, mountMetrics } from './routes/info-routes.js'
import { mountLogin } from './routes/login.js'
import { mountRunRoutes } from './routes/run-routes.js'
import { mountSessionRoutes } from './routes/session-routes.js'
import type { Authenticator } from './security/authenticate.js'
import type { OriginRules } from './security/check-origin.js'
import { bodyGuard, originGuard, securityHeaders, userGuard } from './security/guard.js'
import type { ServerContext, ServerEnv } from './server-context.js'
import { isPage, mountStaticFiles } from './static-files.js'

export interface AppParts {
  context: ServerContext
  authenticator: Authenticator
  origins: OriginRules
  webRoot: string
}

export function createApp({ context, authenticator, origins, webRoot }: AppParts): ApiApp {
  const app = new OpenAPIHono<ServerEnv>()
  app.onError(error => errorResponse(error, context.logger))
  app.notFound(() => errorResponse(notFound('such page'), context.logger))
  app.use(countRequests(context), securityHeaders(), originGuard(origins))
  mountHealthRoutes(app, context)
  mountLogin(app, authenticator)
  mountStaticFiles(app, webRoot)
  // From here on nothing is answered to strangers, not even that it does not exist.
  app.use(userGuard(authenticator), bodyGuard(context.limits.maxBodyBytes))
  mountMetrics(app, context)
  mountDocs(app, context.version)
  mountInfoRoutes(app, context)
  mountSessionRoutes(app, context)
  mountRunRoutes(app, context)
  mountProtocols(app, context)
  return app
}

function countRequests(context: ServerContext): Parameters<ApiApp['use']>[1] {
  return async (c, next) => {
    const started = performance.now()
    await next()
    const route = routeClass(c.req.path)
    context.metrics.request(route, c.res.status)
    // The path may name sessions and the query may hold a token: neither is logged.
    const ms = Math.round(performance.now() - started)
    context.logger.debug('Request', { method: c.req.method, route, status: c.res.status, ms })
  }
}

function routeClass(path: string): RouteClass {
  if (path === '/api/health' || path === '/api/ready' || path === '/metrics') return 'health'
  if (path === '/login' || path === '/logout') return 'login'
  if (path.startsWith('/api/')) return path.endsWith('/events') ? 'stream' : 'api'
  return isPage(path) || path.startsWith('/assets/') ? 'page' : 'protocol'
}
