// What the lanes share: an empty folder with the package, and the program run in it.
import { spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installPackage } from '../../scripts/check-package.mjs'

export const HERE = fileURLToPath(new URL('.', import.meta.url))

/** A runtime that is alive but does nothing is ended: no lane takes this long. */
const LIMIT_MS = 300_000

/** The package in an empty folder: packed and installed, or with links to the packages of the repository. */
export function openHome(parent, { quick, root, installs }) {
  const started = Date.now()
  const folder = join(parent, 'home')
  mkdirSync(folder)
  if (quick) installPackage(folder)
  else {
    const packed = command('npm', ['pack', '--silent', '--pack-destination', parent], { cwd: root })
    const tarball = join(parent, packed.trim().split('\n').at(-1))
    writeFileSync(join(folder, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }')
    command('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', tarball], {
      cwd: folder,
    })
  }
  if (installs) installLanes()
  copyFileSync(join(HERE, 'program.mjs'), join(folder, 'program.mjs'))
  const seconds = Math.round((Date.now() - started) / 1000)
  return { folder, seconds, megabytes: megabytesOf(join(folder, 'node_modules')) }
}

/** The packages of this folder by its lock file, unless they are there. None of the lanes needs their scripts. */
function installLanes() {
  const lock = join(HERE, 'package-lock.json')
  const installed = join(HERE, 'node_modules/.installed-lock')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  command('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: HERE })
  copyFileSync(lock, installed)
}

/** Runs to the end and returns what was printed; throws with what went wrong. */
export function command(file, args, { cwd, env } = {}) {
  const ran = spawnSync(file, args, {
    cwd,
    encoding: 'utf8',
    timeout: LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, ...env },
  })
  if (ran.error) throw ran.error
  if (ran.status === 0) return ran.stdout
  throw new Error(`${[file, ...args].join(' ')} ended with ${ran.status ?? ran.signal}: ${ending(ran)}`)
}

function ending({ stdout, stderr }) {
  return (stderr.trim() || stdout.trim()).slice(-1500)
}

/** A command beside the runner, whose loop serves the model. */
export async function commandAside(file, args, { cwd, env } = {}) {
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, timeout: LIMIT_MS })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code === 0) return stdout
  throw new Error(`${[file, ...args].join(' ')} ended with ${code}: ${ending({ stdout, stderr })}`)
}

/** The program with a runtime: a session on SQLite, read by a second process; and one in memory. */
export async function runProgram({ folder, server }, [file, ...args]) {
  const store = `sqlite:${join(folder, 'lane.db')}`
  for (const name of readdirSync(folder).filter(entry => entry.startsWith('lane.db')))
    rmSync(join(folder, name))
  const run = async words => JSON.parse(await commandAside(file, [...args, ...words], { cwd: folder }))
  const written = await run(['run', store, server.baseUrl])
  checkOutput('SQLite', written)
  const read = await run(['read', store])
  if (read.calls !== 0 || JSON.stringify(read.messages) !== JSON.stringify(written.messages))
    throw new Error('SQLite: a second process reads another session than the first one stored.')
  checkOutput('memory', await run(['run', 'memory:', server.baseUrl]))
}

/** The tool ran once, the answer arrived, and the session has the call with its result. */
export function checkOutput(store, { calls, answer, messages }) {
  const kinds = messages.map(({ parts }) => parts.map(({ type }) => type)[0]).join(' ')
  const problems = [
    calls === 1 ? [] : `the tool ran ${calls} times`,
    answer?.finishReason === 'stop' ? [] : `the run ended with ${answer?.finishReason}`,
    answer?.text === 'It is in the second drawer.' ? [] : `the answer is "${answer?.text}"`,
    kinds === 'text tool-call tool-result text' ? [] : `the session has ${kinds}`,
  ].flat()
  if (problems.length > 0) throw new Error(`${store}: ${problems.join(', ')}.`)
}

/** The size of a file, or of what a folder holds; links count nothing. */
export function megabytesOf(path) {
  if (statSync(path).isFile()) return Math.round(statSync(path).size / 100_000) / 10
  const kilobytes = Number(command('du', ['-sk', path]).split('\t')[0])
  return Math.round(kilobytes / 102.4) / 10
}

/** The packages that an application of Next.js needs, beside the package. */
export function copyPackages(folder) {
  const runtimes = ['bun', '@oven', 'node-22', 'node-24', 'esbuild', '@esbuild']
  for (const name of readdirSync(join(HERE, 'node_modules'))) {
    const place = join(folder, 'node_modules', name)
    if (name.startsWith('.') || runtimes.includes(name) || existsSync(place)) continue
    cpSync(join(HERE, 'node_modules', name), place, { recursive: true, verbatimSymlinks: true })
  }
}
