/** The schema of `engine`, and what it asks of the store. */

import { z } from 'zod'
import type { ConfigProblem } from './read-data.js'
import { flag, group, oneOf, text, wholeNumber } from './schema-parts.js'

const POSTGRES_URL = /^postgres(ql)?:\/\//i

const places = (what: string) => wholeNumber(1).optional().describe(`How many runs ${what} may work at once.`)

const dbosSchema = group({
  name: z.literal('dbos', { error: 'must be dbos' }).describe('The engine: `dbos`.'),
  url: text()
    .regex(POSTGRES_URL, { error: 'must start with postgres://' })
    .optional()
    .describe('The PostgreSQL database of DBOS’ tables. Default: that of the store. Never printed.'),
  schema: text()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, { error: 'must consist of letters, digits and underscores' })
    .optional()
    .describe('The schema of DBOS’ tables. Default `dbos`.'),
  migrate: flag
    .optional()
    .describe(
      'Create and migrate DBOS’ tables when a process starts. `false`: they must be there. Default true.',
    ),
  version: text()
    .optional()
    .describe(
      'The version of your code, such as a commit. A run that has begun is continued by processes of its version, as long as there are any. Default: made from the names of agents, models and tools.',
    ),
  oldVersions: oneOf(['continue', 'wait'])
    .optional()
    .describe(
      'What happens to a run that has begun when no process of its version is left: another version continues it, or it waits for its version. Default `continue`.',
    ),
  queues: group({
    fleet: places('of all users and models'),
    perUser: places('of one user'),
    perModel: places('that ask one model first'),
  })
    .optional()
    .describe(
      'How many runs may work at once over all processes. Default: `runs.maxRunning` of each process.',
    ),
  pollMs: wholeNumber(10, 60_000)
    .optional()
    .describe('How often a process looks for runs in the queues, in milliseconds. Default 200.'),
  keepHours: wholeNumber(1)
    .optional()
    .describe('How long DBOS keeps the record of a workflow that has ended. Default 24.'),
})

export const engineSchema = z
  .union([oneOf(['leases', 'dbos']), dbosSchema], {
    error: 'must be one of: leases, dbos; or an object with `name: dbos`',
  })
  .describe(
    'What decides when and where runs are executed: every process executes what is free (`leases`), or DBOS dispatches them over a fleet (`dbos`, on PostgreSQL, with the package @dbos-inc/dbos-sdk). See engines.md. Default `leases`.',
  )

export interface EngineParts {
  engine?: z.infer<typeof engineSchema> | undefined
  store?: unknown
}

/** DBOS keeps its tables where the store is, because both are needed to continue a run. */
export function engineProblems({ engine = 'leases', store }: EngineParts): ConfigProblem[] {
  if (engine === 'leases') return []
  const isPostgres = typeof store === 'string' && POSTGRES_URL.test(store)
  const hasUrl = engine !== 'dbos' && engine.url !== undefined
  if (isPostgres || (typeof store === 'object' && hasUrl)) return []
  const message =
    typeof store === 'object'
      ? '`engine` is "dbos", and the store was made in code: give the URL of its PostgreSQL database as `engine.url`.'
      : '`engine` is "dbos", which needs a PostgreSQL store: set `store` to postgres://…, or omit `engine`.'
  return [{ path: 'engine', message }]
}
