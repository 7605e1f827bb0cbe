import { createServer } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgres } from './postgres-server.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A port that answers any connection with the URL of the run's PostgreSQL, starting it on the first. */
    postgresStarter: number
  }
}

/** One PostgreSQL per test run, started only when a test asks for it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let postgres: Promise<PostgresServer> | undefined
  const starter = createServer(socket => {
    socket.on('error', () => {})
    postgres ??= startPostgres()
    postgres.then(
      ({ url }) => socket.end(url),
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
    const server = await postgres?.catch(() => undefined)
    await server?.stop()
  }
}
