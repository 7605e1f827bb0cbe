/** PgBouncer in front of a PostgreSQL server of the tests, where it is installed. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, NOBODY } from './postgres-server.js'

export type PoolMode = 'session' | 'transaction' | 'statement'

export interface PgBouncer {
  /** Of the same database as the server's URL. */
  url: string
  /** Of its console. */
  consoleUrl: string
  stop(): Promise<void>
}

export function poolModeOf(value: string | undefined): PoolMode | undefined {
  if (value === undefined || value === '') return undefined
  if (value === 'session' || value === 'transaction') return value
  throw new Error(`LANGO_TEST_POOLER is "${value}": write session or transaction`)
}

/** The version of the installed PgBouncer; `undefined` when there is none. */
export async function pgBouncerVersion(): Promise<string | undefined> {
  for (const path of PATHS) {
    const found = await promisify(execFile)(path, ['--version']).catch(() => undefined)
    const version = /PgBouncer ([\d.]+)/.exec(found?.stdout ?? '')?.[1]
    if (version !== undefined) return version
  }
  return undefined
}

/** Debian keeps it where only root looks. */
const PATHS = ['pgbouncer', '/usr/sbin/pgbouncer']

export async function startPgBouncer(
  serverUrl: string,
  { poolMode = 'session' as PoolMode, poolSize = 10, settings = {} as Record<string, string> } = {},
): Promise<PgBouncer> {
  const server = new URL(serverUrl)
  const folder = await mkdtemp(join(tmpdir(), 'lango-pgbouncer-'))
  const isRoot = process.getuid?.() === 0
  const port = await freePort()
  const options = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'plain',
    auth_file: join(folder, 'users'),
    admin_users: server.username,
    pool_mode: poolMode,
    default_pool_size: String(poolSize),
    max_client_conn: '1000',
    // A server that was restarted is tried again at once.
    server_login_retry: '0',
    ...settings,
  }
  const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(
    file,
    ['[databases]', `* = host=127.0.0.1 port=${server.port}`, '[pgbouncer]', ...lines, ''].join('\n'),
  )
  await writeFile(join(folder, 'users'), `"${server.username}" "${server.password}"\n`)
  if (isRoot)
    for (const path of [folder, file, join(folder, 'users')]) await chown(path, NOBODY.uid, NOBODY.gid)
  const child = await spawnFirst([file], isRoot ? NOBODY : {})
  process.once('exit', () => child.kill('SIGKILL'))
  const at = (database: string) =>
    Object.assign(new URL(serverUrl), { port: String(port), pathname: `/${database}` }).href
  return {
    url: at(server.pathname.slice(1)),
    consoleUrl: at('pgbouncer'),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise(resolve => child.on('exit', resolve))
        child.kill('SIGKILL')
        await ended
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Resolves when it listens. */
async function spawnFirst(args: string[], identity: { uid?: number; gid?: number }): Promise<ChildProcess> {
  let log = ''
  for (const path of PATHS) {
    const child = spawn(path, args, { ...identity, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
    const isReady = await new Promise<boolean>(resolve => {
      child.on('error', () => resolve(false))
      child.on('exit', () => resolve(false))
      child.stderr.on('data', chunk => {
        if (log.length < 10_000) log += chunk
        if (log.includes('process up')) resolve(true)
      })
    })
    if (isReady) return child
  }
  throw new Error(`PgBouncer did not start: ${log || 'it is not installed'}`)
}
