/** The routes in their order: what everybody may ask, the page included, then what needs a name. */
import { OpenAPIHono } from '@hono/zod-openapi'
import { errorResponse } from './error-response.js'
import type { RouteClass } from './metrics.js'
import { mountProtocols, protocolErrorOf } from './protocols/mount-protocols.js'
import { notFound, Refusal } from './refusal.js'
import type { ApiApp } from './routes/add-route.js'
import { mountDocs } from './routes/docs-page.js'
import { mountHealthRoutes, mountInfoRoutes, mountMetrics } from './routes/info-routes.js'
import { mountLogin } from './routes/login.js'
import { mountRunRoutes } from './routes/run-routes.js'
import { mountSessionRoutes } from './routes/session-routes.js'
import type { Authenticator } from './security/authenticate.js'
import type { OriginRules } from './security/check-origin.js'
import type { AddressReader } from './security/client-address.js'
import { bodyGuard, originGuard, securityHeaders, userGuard } from './security/guard.js'
import type { ServerContext, ServerEnv } from './server-context.js'
import { isPage, mountStaticFiles } from './static-files.js'

export interface AppParts {
  context: ServerContext
  authenticator: Authenticator
  addressOf: AddressReader
  origins: OriginRules
  webRoot: string
}

export function createApp({ context, authenticator, addressOf, origins, webRoot }: AppParts): ApiApp {
  const app = new OpenAPIHono<ServerEnv>()
  const answer = (path: string, error: unknown) =>
    protocolErrorOf(path)?.(error, context) ?? errorResponse(error, context.logger)
  app.onError((error, c) => answer(c.req.path, error))
  app.notFound(async c => {
    const methods = methodsOf(app, c.req.path)
    if (methods.length === 0) return answer(c.req.path, notFound('such page'))
    const allow = methods.join(', ')
    if (c.req.method === 'OPTIONS') return c.body(null, 204, { allow })
    const response = await answer(
      c.req.path,
      new Refusal('wrong-method', `This address takes ${allow} only.`),
    )
    response.headers.set('allow', allow)
    return response
  })
  app.use(countRequests(context), securityHeaders(), originGuard(origins))
  mountHealthRoutes(app, context)
  mountLogin(app, authenticator, addressOf)
  mountStaticFiles(app, webRoot)
  // From here on nothing is answered to strangers, not even that it does not exist.
  app.use(userGuard(authenticator, addressOf), bodyGuard(context.limits.maxBodyBytes))
  mountMetrics(app, context)
  mountDocs(app, context.version)
  mountInfoRoutes(app, context)
  mountSessionRoutes(app, context)
  mountRunRoutes(app, context)
  mountProtocols(app, context)
  return app
}

/** The methods that a path has routes for, besides the page's own, which takes every path. */
function methodsOf(app: ApiApp, path: string): string[] {
  return ['GET', 'POST', 'PATCH', 'DELETE'].filter(method =>
    app.router
      .match(method, path)[0]
      .some(([[, route]]) => route.method === method && !route.path.endsWith('*')),
  )
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
