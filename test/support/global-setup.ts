import { createServer } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type PgBouncer, poolModeOf, startPgBouncer } from './pgbouncer.js'
import { type PostgresServer, startPostgres } from './postgres-server.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A port that answers any connection with the URL of the run's PostgreSQL, and of its pooler if there is one, starting them on the first. */
    postgresStarter: number
  }
}

/**
 * One PostgreSQL per test run, started only when a test asks for it. With LANGO_TEST_POOLER=session or transaction,
 * stores reach it through PgBouncer.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let postgres: Promise<PostgresServer> | undefined
  let pooler: Promise<PgBouncer> | undefined
  const poolMode = poolModeOf(process.env.LANGO_TEST_POOLER)
  const starter = createServer(socket => {
    socket.on('error', () => {})
    postgres ??= startPostgres()
    if (poolMode)
      pooler ??= postgres.then(({ url }) =>
        startPgBouncer(url, { poolMode, poolSize: poolMode === 'session' ? 40 : 10 }),
      )
    Promise.all([postgres, pooler]).then(
      ([{ url }, pooled]) => socket.end([url, ...(pooled ? [pooled.url] : [])].join(' ')),
      error => socket.end(`failed: ${error instanceof Error ? error.message : String(error)}`),
    )
  })
  const port = await new Promise<number>((resolve, reject) => {
    starter.on('error', reject)
    starter.listen(0, '127.0.0.1', () => {
      const address = starter.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  project.provide('postgresStarter', port)
  return async () => {
    starter.close()
    await (await pooler?.catch(() => undefined))?.stop()
    const server = await postgres?.catch(() => undefined)
    await server?.stop()
  }
}
