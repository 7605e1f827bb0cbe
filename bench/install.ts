/**
 * What an installation takes on disk: Lango from its tarball, against `@google/adk` alone, and lango-core with OpenAI's SDK.
 * Needs the registry. In the folder of Lango the command line then says what is missing, adds it and uses it.
 *
 *     npm run bench -- install [--json]
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startStrictProvider } from '../src/testing/start-strict-provider.js'
import { Report } from './support/report.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const COMMAND = join('node_modules', '.bin', 'lango')
const LIMIT = 1.3
const CORE_MB = 65
const MEGABYTE = 1024 * 1024

const report = new Report('install')
const work = mkdtempSync(join(tmpdir(), 'lango-install-'))
try {
  report.progress('building the packages')
  const lango = pack(ROOT, ['scripts/build.mjs', '--no-check'])
  const core = pack(join(ROOT, 'packages/core'), ['scripts/build.mjs', 'core', '--no-check'])
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const adkAlone = install('adk', `@google/adk@${dependencies['@google/adk']}`)
  const withLango = install('lango', lango)
  const withCore = install('core', core, `openai@${devDependencies.openai}`)
  report.atMost('lango with ADK and Gemini, on disk', 'MB', withLango.diskMb, adkAlone.diskMb, LIMIT)
  report.atMost('lango with ADK and Gemini, bytes of the files', 'MB', withLango.fileMb, adkAlone.fileMb)
  report.atMost('lango with ADK and Gemini, packages', '', withLango.packages, adkAlone.packages)
  report.atMost('lango-core with the SDK of OpenAI, on disk, of 65 MB', 'MB', withCore.diskMb, CORE_MB, 1)
  report.atMost('lango-core with the SDK of OpenAI, packages', '', withCore.packages, adkAlone.packages)
  await addAndRun(join(work, 'lango'))
} finally {
  rmSync(work, { recursive: true, force: true })
}
report.finish()

function pack(folder: string, build: readonly string[]): string {
  execFileSync(process.execPath, build, { cwd: ROOT, stdio: ['ignore', 2, 2] })
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', work]
  const name = execFileSync('npm', args, { cwd: folder, encoding: 'utf8' }).trim().split('\n').at(-1)
  return join(work, name ?? '')
}

interface Installed {
  diskMb: number
  fileMb: number
  packages: number
}

function install(name: string, ...packages: string[]): Installed {
  report.progress(`installing ${name}`)
  const folder = join(work, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }')
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages]
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const { blocks, bytes } = sizeOf(join(folder, 'node_modules'))
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: object }
  return {
    diskMb: (blocks * 512) / MEGABYTE,
    fileMb: bytes / MEGABYTE,
    packages: Object.keys(lock.packages).length - 1,
  }
}

function sizeOf(path: string): { blocks: number; bytes: number } {
  const { blocks, size } = lstatSync(path)
  const total = { blocks, bytes: size }
  if (!lstatSync(path).isDirectory()) return total
  for (const name of readdirSync(path)) {
    const { blocks: more, bytes } = sizeOf(join(path, name))
    total.blocks += more
    total.bytes += bytes
  }
  return total
}

/** The sentence, the command that it names, and a run with what was added. */
async function addAndRun(cwd: string): Promise<void> {
  const server = await startStrictProvider({ profile: 'openai-responses', script: [{ text: 'Hello.' }] })
  const env = { ...process.env, OPENAI_API_KEY: 'any', OPENAI_BASE_URL: server.baseUrl, NO_PROXY: '*' }
  const lango = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(COMMAND, args, {
      cwd,
      env,
      input: '',
      encoding: 'utf8',
    })
    return { status, stdout, stderr }
  }
  const run = ['run', 'Hi', '--model', 'openai/gpt-5.2', '--store', 'memory:', '--quiet']
  const before = lango(...run)
  if (!before.stderr.includes('npm install openai@6')) throw new Error(`no sentence: ${before.stderr}`)
  const added = lango('add', 'openai')
  if (added.status !== 0) throw new Error(`lango add failed: ${added.stderr}`)
  const after = await runAsync(cwd, env, run)
  await server.close()
  if (!after.includes('Hello.')) throw new Error(`no answer after lango add: ${after}`)
  report.progress('lango add openai: installed, and the model answered')
}

/** Not at once: the server is in this process. Without standard input, which would be part of the prompt. */
async function runAsync(cwd: string, env: NodeJS.ProcessEnv, args: readonly string[]): Promise<string> {
  const child = spawn(COMMAND, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      output += String(chunk)
    })
  }
  await new Promise(resolve => child.once('close', resolve))
  return output
}
