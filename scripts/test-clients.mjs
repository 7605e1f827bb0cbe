// `npm run test:clients`: installs the clients where their lock file has changed, checks the types of the suites, runs
// them against strict providers on SQLite and PostgreSQL, and compares the table in docs/protocols.md with the report.
//
//   npm run test:clients                 all suites
//   npm run test:clients -- --write      also writes the table
//   npm run test:clients -- use-chat     only files with this in their name; the table is left alone
//   npm run test:clients -- --install    only installs
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLIENTS = join(ROOT, 'test/clients')

const write = process.argv.includes('--write')
const filters = process.argv.slice(2).filter(word => !word.startsWith('--'))

await Promise.all(packageFolders().map(install))
if (process.argv.includes('--install')) process.exit()
step('types', [join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', CLIENTS])
const config = join(CLIENTS, 'vitest.config.ts')
step('suites', [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config, ...filters])
const table = join(ROOT, 'scripts/build-client-table.mjs')
if (filters.length === 0) step('table', [table, ...(write ? ['--write'] : [])])

/**
 * This folder and those in it with a lock file of their own and tests. The programs that wrote the kept transcripts are
 * no part of any test, and have more than a gigabyte.
 */
function packageFolders() {
  const inside = readdirSync(CLIENTS, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => join(CLIENTS, name))
  return [CLIENTS, ...inside].filter(
    folder =>
      existsSync(join(folder, 'package-lock.json')) &&
      readdirSync(folder).some(name => name.endsWith('.test.ts')),
  )
}

/** No scripts: the packages are other people's, and none of the suites needs one. */
async function install(folder) {
  const lock = join(folder, 'package-lock.json')
  const installed = join(folder, 'node_modules/.installed-lock')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const command = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const child = spawn(npm, command, { cwd: folder, stdio: 'inherit' })
  end('install', { status: await new Promise(resolve => child.on('error', resolve).on('close', resolve)) })
  copyFileSync(lock, installed)
}

function step(name, command) {
  end(name, spawnSync(process.execPath, command, { cwd: ROOT, stdio: 'inherit' }))
}

function end(name, { status }) {
  if (status === 0) return
  console.error(`test:clients failed: ${name}`)
  process.exit(1)
}
