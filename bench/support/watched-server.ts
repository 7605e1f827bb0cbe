/** `lango serve` in a process of its own, its loop watched from inside, with a client and a control next to it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { LoopReport, MemoryReport } from './watch-loop.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const WATCH = new URL('./watch-loop.ts', import.meta.url).href
const MAIN = join(ROOT, 'src/cli/main.ts')

export type Report = LoopReport & { memory: MemoryReport }

/** A process that answers to `watch-loop.ts`. */
export class Watched {
  readonly child: ChildProcess
  #asked = 0

  constructor(child: ChildProcess) {
    this.child = child
    child.setMaxListeners(0)
  }

  ask(what: 'reset' | 'read' | 'collect'): Promise<Report> {
    this.#asked += 1
    const id = this.#asked
    return new Promise((resolve, reject) => {
      const receive = (message: { id: number; report: Report }) => {
        if (message.id !== id) return
        this.child.off('message', receive)
        resolve(message.report)
      }
      this.child.on('message', receive)
      this.child.send({ ask: what, id }, error => error && reject(error))
    })
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGTERM')
    const force = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(force)
  }
}

export interface WatchedServer {
  url: string
  folder: string
  server: Watched
  client: Watched
  control: Watched
  /** Runs a command of `lango` on the server's configuration. */
  lango(args: readonly string[]): Promise<{ code: number; errors: string; output: string }>
  stop(): Promise<void>
}

/** `config` is data, or the text of a configuration in code. */
export async function startWatchedServer(folder: string, config: object | string): Promise<WatchedServer> {
  if (typeof config === 'string') await writeFile(join(folder, 'lango.config.mjs'), config)
  else await writeFile(join(folder, 'lango.config.json'), JSON.stringify(config))
  const args = [...process.execArgv, '--import', WATCH, MAIN, 'serve', '--json', '--port', '0']
  const flags = process.env.LANGO_BENCH_PROFILE
    ? ['--cpu-prof', '--cpu-prof-dir', process.env.LANGO_BENCH_PROFILE]
    : []
  const child = spawn(process.execPath, [...flags, ...args], {
    cwd: folder,
    env: quietEnvironment(),
    stdio: ['ignore', 'pipe', process.env.LANGO_BENCH_LOG ? 'inherit' : 'ignore', 'ipc'],
  })
  const url = await firstUrl(child)
  const watch = (...more: string[]) =>
    new Watched(
      spawn(process.execPath, [...process.execArgv, fileURLToPath(WATCH), ...more], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      }),
    )
  const parts = { server: new Watched(child), client: watch(`${url}/api/health`), control: watch() }
  return {
    url,
    folder,
    ...parts,
    lango: more => runLango(folder, more),
    stop: async () => {
      for (const part of [parts.client, parts.control, parts.server]) await part.stop()
    },
  }
}

async function firstUrl(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('The server has no output.')
  for await (const line of createInterface({ input: child.stdout }))
    return (JSON.parse(line) as { url: string }).url
  throw new Error('The server did not start. Set LANGO_BENCH_LOG=1 to see why.')
}

async function runLango(folder: string, args: readonly string[]) {
  const child = spawn(process.execPath, [...process.execArgv, MAIN, ...args], {
    cwd: folder,
    env: quietEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  let output = ''
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  child.stdout.on('data', chunk => {
    output += chunk
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 1, errors, output }
}

/** What the shell has set must not decide what is measured. */
function quietEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, LANGO_TRUST: '1' }
}
