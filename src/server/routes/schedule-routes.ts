import { z } from '@hono/zod-openapi'
import type { ScheduleList } from '../chat-protocol.js'
import type { ServerContext } from '../server-context.js'
import { type ApiApp, addRoute } from './add-route.js'
import * as schemas from './schemas.js'

const Schedules = z
  .object({
    schedules: z.array(
      z.object({
        name: z.string(),
        cron: z.string(),
        timeZone: z.string(),
        session: z.string(),
        text: z.string(),
        model: z.string().optional(),
        missed: z.enum(['skip', 'latest', 'all']),
        overlap: z.enum(['queue', 'skip']),
        next: z.array(schemas.count),
        lastTick: schemas.count.optional(),
        lastRunId: z.uuid().optional(),
        lastStatus: z.enum(['scheduled', 'queued', 'running', 'waiting', 'finished']).optional(),
      }),
    ),
  })
  .openapi('ScheduleList')

/** The schedules whose runs are the caller's. */
export function mountScheduleRoutes(api: ApiApp, context: ServerContext): void {
  addRoute(
    api,
    {
      method: 'get',
      path: '/api/schedules',
      summary: 'The schedules of the caller, with their next ticks and last runs',
      answer: { status: 200, schema: Schedules, description: 'As configured' },
    },
    async c => {
      const user = context.userOf(c)
      const states = await (await context.runtime.schedules()).list()
      const list: ScheduleList = {
        schedules: states
          .filter(state => state.user === user)
          .map(({ user: _user, lastRun, ...state }) => ({
            ...{ ...state, next: [...state.next] },
            ...(lastRun ? { lastRunId: lastRun.runId, lastStatus: lastRun.state } : {}),
          })),
      }
      return c.json(list)
    },
  )
}
