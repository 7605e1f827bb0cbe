// The lanes: each runs the program, and returns the version that was used and a size, or `why` it could not be run.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { dockerLane } from './docker.mjs'
import { installedLane, newestLane } from './installed.mjs'
import { proxyLane } from './proxy.mjs'
import {
  checkOutput,
  command,
  commandAside,
  copyPackages,
  HERE,
  megabytesOf,
  runProgram,
} from './support.mjs'

/** `installs`: needs the packages of this folder. */
export const LANES = [
  { name: 'node-20', run: home => runtimeLane(home, process.execPath) },
  { name: 'node-22', installs: true, run: home => runtimeLane(home, nodeOf('node-22')) },
  { name: 'node-24', installs: true, run: home => runtimeLane(home, nodeOf('node-24')) },
  { name: 'bun', installs: true, run: home => runtimeLane(home, bunFile()) },
  { name: 'deno', run: denoLane },
  { name: 'esbuild-esm', run: home => esbuildLane(home, 'esm') },
  { name: 'esbuild-cjs', run: home => esbuildLane(home, 'cjs') },
  { name: 'next', installs: true, run: nextLane },
  { name: 'proxy', run: proxyLane },
  { name: 'docker', installs: true, run: dockerLane },
  { name: 'installed-esm', run: home => installedLane(home, { type: 'module', peers: [] }) },
  {
    name: 'installed-cjs',
    run: home => installedLane(home, { type: 'commonjs', peers: ['openai', '@anthropic-ai/sdk'] }),
  },
  { name: 'installed-newest', run: newestLane },
]

async function runtimeLane(home, file, before = []) {
  if (!existsSync(file))
    return { why: `the registry has no such runtime for ${process.platform}-${process.arch}` }
  const version = command(file, ['--version']).trim().split('\n')[0]
  await runProgram(home, [file, ...before, 'program.mjs'])
  return { version, megabytes: megabytesOf(file) }
}

/** Packages with one binary for one platform: installed where it fits. */
function nodeOf(name) {
  return join(HERE, 'node_modules', name, 'bin/node')
}

/** The binary itself: the command of the package is put in its place by a script, and scripts do not run here. */
function bunFile() {
  const system = `bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`
  return join(HERE, 'node_modules/@oven', system, 'bin/bun')
}

/** Its package cannot be in a lock file: `npm ci` fails with it. */
async function denoLane(home) {
  const folder = join(home.folder, '../deno')
  mkdirSync(folder)
  const install = [
    'install',
    '--prefix',
    folder,
    '--no-save',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  try {
    command('npm', [...install, 'deno@2.9.6'])
  } catch (error) {
    return { why: `it could not be installed: ${error.message.slice(-300)}` }
  }
  const require = createRequire(join(folder, 'package.json'))
  const system = { linux: 'linux-x64-glibc', darwin: `darwin-${process.arch}` }[process.platform]
  let file
  try {
    file = join(require.resolve(`@deno/${system}/package.json`), '../deno')
  } catch {
    return { why: `the registry has no Deno for ${process.platform}-${process.arch}` }
  }
  // Deno asks for each right; a program that runs an agent needs files, network, environment and native modules.
  return runtimeLane(home, file, ['run', '--allow-all'])
}

/** What a bundle for Node needs besides: the native driver stays a package, and packages of CommonJS get `require`. */
const BUNDLES = {
  esm: {
    file: 'program.bundle.mjs',
    options: {
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
      },
    },
  },
  cjs: {
    file: 'program.bundle.cjs',
    options: {
      define: { 'import.meta.url': 'importMetaUrl' },
      banner: { js: "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
    },
  },
}

async function esbuildLane(home, format) {
  const { file, options } = BUNDLES[format]
  // A folder of its own: the bundle must find nothing but the driver.
  const folder = join(home.folder, `../${format}`)
  mkdirSync(join(folder, 'node_modules/@photostructure'), { recursive: true })
  const driver = '@photostructure/sqlite'
  symlinkSync(join(home.folder, 'node_modules', driver), join(folder, 'node_modules', driver), 'dir')
  const place = home.quick ? import.meta.url : join(HERE, 'package.json')
  const { build, version } = createRequire(place)('esbuild')
  const { errors } = await build({
    entryPoints: [join(home.folder, 'program.mjs')],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format,
    external: [driver],
    outfile: join(folder, file),
    logLevel: 'silent',
    ...options,
  })
  if (errors.length > 0) throw new Error(errors.map(({ text }) => text).join('\n'))
  await runProgram({ ...home, folder }, [process.execPath, file])
  return { version: `esbuild ${version}`, megabytes: megabytesOf(join(folder, file)) }
}

async function nextLane(home) {
  if (home.quick)
    return { why: 'an application of Next.js cannot have links for packages; leave out --quick' }
  const { folder, server } = home
  cpSync(join(HERE, 'next'), folder, { recursive: true })
  copyPackages(folder)
  const next = join(folder, 'node_modules/next/dist/bin/next')
  const env = { NEXT_TELEMETRY_DISABLED: '1', MODEL_SERVER: server.baseUrl, NODE_ENV: 'production' }
  await commandAside(process.execPath, [next, 'build'], { cwd: folder, env })
  const store = `sqlite:${join(folder, 'next.db')}`
  const first = await whileServing(folder, next, env, async url => ({
    sqlite: await askAndRead(url, store),
    memory: await askAndRead(url, 'memory:'),
  }))
  checkOutput('SQLite', first.sqlite)
  checkOutput('memory', { ...first.memory, calls: first.memory.calls - 1 })
  const second = await whileServing(folder, next, env, url => read(url, store))
  if (second.calls !== 0 || JSON.stringify(second.messages) !== JSON.stringify(first.sqlite.messages))
    throw new Error('SQLite: a second process reads another session than the first one stored.')
  const { version } = JSON.parse(readFileSync(join(folder, 'node_modules/next/package.json'), 'utf8'))
  return { version: `Next.js ${version}`, megabytes: megabytesOf(join(folder, '.next/server')) }
}

/** `next start` on a free port, until `use` is done with its address. */
async function whileServing(folder, next, env, use) {
  const args = [next, 'start', '--port', '0', '--hostname', '127.0.0.1']
  const child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env } })
  let printed = ''
  const url = new Promise((resolve, reject) => {
    const listen = text => {
      printed += text
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(printed)
      if (found && found[1] !== '0' && /Ready/.test(printed)) resolve(found[0])
    }
    child.stdout.setEncoding('utf8').on('data', listen)
    child.stderr.setEncoding('utf8').on('data', listen)
    child.on('close', code => reject(new Error(`next start ended with ${code}: ${printed.slice(-1000)}`)))
  })
  const ended = new Promise(resolve => child.on('close', resolve))
  try {
    return await use(await url)
  } finally {
    child.kill()
    await ended
  }
}

async function askAndRead(url, store) {
  const response = await fetch(`${url}/api/ask`, { method: 'POST', body: JSON.stringify({ store }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`POST answered ${response.status}: ${text.slice(0, 500)}`)
  const events = text
    .split('\n\n')
    .filter(Boolean)
    .map(block => JSON.parse(block.slice('data: '.length)))
  const { finishReason } = events.at(-1)
  const answer = events.filter(({ type }) => type === 'text-delta').map(event => event.text)
  return { ...(await read(url, store)), answer: { finishReason, text: answer.join('') } }
}

async function read(url, store) {
  const response = await fetch(`${url}/api/ask?store=${encodeURIComponent(store)}`)
  if (!response.ok)
    throw new Error(`GET answered ${response.status}: ${(await response.text()).slice(0, 500)}`)
  return response.json()
}
